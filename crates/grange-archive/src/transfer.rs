//! How a copy comes to where it is kept: by the shortest way there is, and never through here if it can be helped.

use std::path::PathBuf;
use std::sync::Arc;

use grange_blob::{Blob, Error, Source, Stored, Taking};
use grange_model::{Checksums, FileName};

use crate::replica::Replica;

/// Where the bytes of a copy come from.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// A file of this machine.
    File(PathBuf),
    /// A copy that is proven.
    Replica(Replica),
    /// A file that another node lays out for whoever keeps it.
    Offered(Arc<dyn Blob>),
}

impl From {
    /// Whether this is the replica's own copy.
    pub(crate) fn is(&self, replica: &Replica) -> bool {
        matches!(self, Self::Replica(own) if own.row.id == replica.row.id)
    }
}

/// Brings the file from its holder to the store that will keep it.
///
/// | holder | keeper | way |
/// |---|---|---|
/// | this machine's disk | this machine's disk | shared blocks, or a copy |
/// | this machine's disk | another node | the node fetches it from an offer |
/// | another node | this machine's disk | fetched from there |
/// | another node | another node | the keeper fetches it from the holder |
/// | a bucket, SWAP, or nodes that cannot reach each other | any | through here |
pub(crate) async fn bring(
    holder: &dyn Blob,
    keeper: &dyn Blob,
    name: &FileName,
    size: u64,
    expected: &Checksums,
) -> Result<Stored, Error> {
    if size == 0 {
        return keeper.put(name, Source::from(&[][..]), Some(expected)).await;
    }
    if let Some(path) = holder.local_path(name).await? {
        return keeper.put_file(name, &path, Taking::Copy, Some(expected)).await;
    }
    if let Some(stored) = keeper.pull(name, holder, size, expected).await? {
        return Ok(stored);
    }
    let source = holder.get(name).await?.into_source();
    keeper.put(name, source, Some(expected)).await
}
