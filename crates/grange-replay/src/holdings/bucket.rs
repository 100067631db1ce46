//! Files in buckets, read in place by ranges.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use grange_blob::Buckets;

use super::{Holdings, HoldingsError};

/// The most bytes given at once: several readers hold theirs in memory.
const READ_BYTES_MAX: u64 = 64 << 20;

/// A run of bytes in a file of a bucket: all of it, or one member of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSection {
    /// `s3://BUCKET/KEY`.
    pub url: String,
    /// Where it begins.
    pub offset: u64,
    pub len: u64,
}

/// Files of buckets by the names an index gives them.
#[derive(Debug, Default)]
pub struct BucketFiles {
    buckets: Buckets,
    sections: RwLock<HashMap<String, Arc<BucketSection>>>,
}

impl BucketFiles {
    pub fn new(buckets: Buckets) -> Self {
        Self { buckets, sections: RwLock::default() }
    }

    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    pub fn add(&self, name: &str, section: BucketSection) {
        let mut sections = self.sections.write().unwrap_or_else(PoisonError::into_inner);
        sections.insert(name.to_owned(), Arc::new(section));
    }

    pub fn remove(&self, name: &str) -> bool {
        self.sections.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    pub fn get(&self, name: &str) -> Option<Arc<BucketSection>> {
        self.sections.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[async_trait]
impl Holdings for BucketFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        let Some(section) = self.get(file) else { return Ok(None) };
        let from = offset.min(section.len);
        let to = from.saturating_add(len.min(READ_BYTES_MAX)).min(section.len);
        let read = self.buckets.read(&section.url, section.offset + from, section.offset + to).await;
        read.map_err(|error| HoldingsError { file: section.url.clone(), offset, source: Box::new(error) })
    }
}
