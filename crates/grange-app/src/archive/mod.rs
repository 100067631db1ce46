//! The archive's acts: store and read files, look at replicas, check, repair, prove.

mod files;
mod keep;
mod record;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use grange_archive::Archive;
use tokio::sync::OnceCell;

use crate::Error;

/// Opens the archive when it is first needed: a command on users leaves replicas alone.
#[derive(Clone)]
pub struct OpenArchive {
    cell: Arc<OnceCell<Archive>>,
    open: Arc<dyn Fn() -> BoxFuture<'static, Result<Archive, grange_archive::Error>> + Send + Sync>,
}

impl OpenArchive {
    pub fn new(
        open: impl Fn() -> BoxFuture<'static, Result<Archive, grange_archive::Error>> + Send + Sync + 'static,
    ) -> Self {
        Self { cell: Arc::default(), open: Arc::new(open) }
    }

    /// The archive, if somebody asked for it before.
    pub fn opened(&self) -> Option<&Archive> {
        self.cell.get()
    }

    /// The archive, opened by now.
    pub async fn get(&self) -> Result<&Archive, Error> {
        Ok(self.archive().await?)
    }

    /// The same with the archive's own error. One that could not be opened is tried again by the next call.
    pub async fn archive(&self) -> Result<&Archive, grange_archive::Error> {
        self.cell.get_or_try_init(|| (self.open)()).await
    }
}

impl fmt::Debug for OpenArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenArchive").field("archive", &self.cell.get()).finish_non_exhaustive()
    }
}
