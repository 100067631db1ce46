//! The files of the archive, read from proven copies.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error};
use grange_model::FileName;

use super::{Holdings, HoldingsError};

/// What the archive keeps, on this node or another.
#[derive(Debug, Clone)]
pub struct ArchiveFiles {
    client: Arc<dyn ArchiveClient>,
}

impl ArchiveFiles {
    pub fn new(client: Arc<dyn ArchiveClient>) -> Self {
        Self { client }
    }
}

#[async_trait]
impl Holdings for ArchiveFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        // A name that the archive would not take is the name of none of its files.
        let Ok(name) = file.parse::<FileName>() else { return Ok(None) };
        match self.client.read_at(&name, offset, len).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(HoldingsError { file: file.to_owned(), offset, source: Box::new(error) }),
        }
    }
}
