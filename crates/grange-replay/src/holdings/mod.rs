//! Where the bytes of a collection's files are: the archive, a folder of foreign files, a bucket, a WACZ.

mod archive;
mod bucket;
mod local;
pub mod wacz;

use async_trait::async_trait;
use bytes::Bytes;

pub use archive::ArchiveFiles;
pub use bucket::{BucketFiles, BucketSection};
pub use local::{LocalFiles, Section, SectionReader};

/// Reading a file of a collection failed for another reason than its absence.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file} at byte {offset}; other captures can still be replayed")]
pub struct HoldingsError {
    pub file: String,
    pub offset: u64,
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The files of a collection, by the names the index knows them by.
#[async_trait]
pub trait Holdings: std::fmt::Debug + Send + Sync {
    /// Up to `len` bytes from `offset` on, fewer at the end of the file. `None`: there is no such file here.
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError>;
}
