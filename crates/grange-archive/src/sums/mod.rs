//! A checksum replica: names, sizes and checksums of files, in a folder here or on another node.

mod local;
mod peer;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use grange_blob::{Context, MarkedPart};
use grange_model::{Checksums, FileName};
use jiff::Timestamp;

use crate::error::Error;
use crate::journal::{Entry, Line};
pub use local::LocalSums;
pub use peer::{PeerSums, answer};

/// The port: what a checksum replica does, wherever it lies.
#[async_trait]
pub trait Sums: Debug + Send + Sync {
    /// What is known of the name.
    async fn get(&self, name: &FileName) -> Result<Option<Entry>, Error>;

    /// Adds the fact and brings it to the disk. False, and nothing changed, when something else is known of the name;
    /// the same again is no news.
    async fn add(&self, line: Line) -> Result<bool, Error>;

    /// Strikes the name out if the line about it says `expected` or is damaged; without `expected` only a damaged one. False, and
    /// nothing changed, when it says something else: somebody wrote the right line meanwhile. The lines before stay.
    async fn remove(&self, name: &FileName, expected: &Checksums, at: Timestamp) -> Result<bool, Error>;

    /// Up to `limit` names after `after`, in order. A list from the start looks at the disk anew.
    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<(String, Entry)>, Error>;

    /// Keeps a witness beside the checksums.
    async fn put_witness(&self, name: &FileName, text: &[u8]) -> Result<(), Error>;

    /// The names of the witnesses that lie here.
    async fn witness_names(&self) -> Result<Vec<FileName>, Error>;

    /// The text of one of them.
    async fn read_witness(&self, name: &FileName) -> Result<Bytes, Error>;

    /// The marker of the folder, as that of a store of files.
    async fn marker(&self) -> Result<MarkedPart, Error>;

    /// Leaves the marker, in the place of an earlier one. After `Ok` it is durable.
    async fn mark(&self, text: &str) -> Result<(), Error>;
}

/// Opens the checksum replica at `url`: `file:FOLDER`, or `peer://HOST:PORT/REPLICA` on another node.
pub(crate) async fn open(url: &str, context: &Context) -> Result<Arc<dyn Sums>, Error> {
    if let Some(peer) = grange_blob::peer_at(url, "sums", context)? {
        return Ok(Arc::new(PeerSums::new(peer)));
    }
    let folder = url.strip_prefix("file:").filter(|folder| !folder.is_empty() && !folder.contains(','));
    let Some(folder) = folder else {
        let reason = format!("{url}: a checksum replica is file:FOLDER or peer://HOST:PORT/REPLICA");
        return Err(Error::Settings { reason });
    };
    Ok(Arc::new(LocalSums::open(&context.data_folder.join(folder)).await?))
}

#[cfg(test)]
mod tests;
