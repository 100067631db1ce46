//! Keeping new bytes: aside, summed up, synced, then given their name in one step, then the directory synced.

use std::io::{self, Write as _};
use std::sync::Arc;

use rustix::fs::Advice;

use crate::digest::{Declared, Summing, Sums};
use crate::error::Error;
use crate::name::LocalPath;
use crate::naming::{self, Wish};
use crate::tree::{Found, Published, Staged, Tree};
use crate::verify;
use crate::view::Known;

/// How an upload ended. Only after `New` and `Same` are the sender's bytes here, and durable.
#[derive(Debug)]
pub(crate) enum Kept {
    New(Sums),
    /// These very bytes were here before.
    Same(Sums),
    /// The name is taken by something else.
    Taken(Found),
    /// The bytes are not what their sender says.
    Wrong(&'static str),
}

/// Where new bytes are to go.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub known: Arc<Known>,
    pub tree: Arc<Tree>,
    pub path: LocalPath,
    /// The file of that name which waits to be moved here.
    pub unmoved: Option<Found>,
    /// Seconds since 1970, when the sender knows better than now.
    pub modified: Option<i64>,
}

/// Bytes that come in pieces. Blocks.
#[derive(Debug)]
pub(crate) struct Incoming {
    staged: Staged,
    summing: Summing,
    size: u64,
    /// Up to here the disk was asked to write.
    started: u64,
}

/// So many bytes are handed to the disk at a time: enough for one long write.
const EARLY_BYTES: u64 = 8 << 20;

impl Incoming {
    pub(crate) fn start(tree: &Tree, declared: &Declared) -> Result<Self, Error> {
        let staged = tree.stage().map_err(Error::io("make a file in", &tree.partition.root))?;
        Ok(Self { staged, summing: Summing::new(declared), size: 0, started: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.staged.file.write_all(bytes)?;
        self.summing.update(bytes);
        self.size += bytes.len() as u64;
        if self.size - self.started >= EARLY_BYTES {
            // The kernel starts to write out what it is told will not be needed: so the disk works while more comes,
            // and the sync at the end has little left to wait for. Only advice: whether it is taken changes no outcome.
            let _ = rustix::fs::fadvise(&self.staged.file, self.started, None, Advice::DontNeed);
            self.started = self.size;
        }
        Ok(())
    }

    pub(crate) fn keep(self, spot: &Spot, declared: &Declared) -> Result<Kept, Error> {
        let failed = |doing| Error::io(doing, spot.path.as_str());
        let Self { mut staged, summing, size, .. } = self;
        let sums = summing.finish();
        if let Some(which) = sums.differs(declared) {
            return Ok(Kept::Wrong(which));
        }
        if let Some(found) = spot.unmoved {
            return Ok(judge(found, sums, || None));
        }
        staged.seal(&sums.sha512, spot.modified).map_err(failed("sync"))?;
        match naming::give(Wish { staged, spot: spot.clone(), size })? {
            Published::New => Ok(Kept::New(sums)),
            Published::Taken(found) => {
                let kept = judge(found, sums, || verify::sum_again(&spot.tree, &spot.path).ok().flatten());
                if matches!(kept, Kept::Same(_)) {
                    // Another upload of the same bytes may have named them without having synced yet.
                    spot.tree.sync_parent(&spot.path).map_err(failed("sync the folder of"))?;
                }
                Ok(kept)
            }
        }
    }
}

/// What has the name already: the same bytes, or something else.
fn judge(found: Found, sums: Sums, read: impl FnOnce() -> Option<crate::digest::Sum>) -> Kept {
    match found {
        Found::File { sum, .. } if sum.or_else(read) == Some(sums.sha512) => Kept::Same(sums),
        other => Kept::Taken(other),
    }
}

/// A whole small file at once. Blocks.
pub(crate) fn keep_whole(spot: &Spot, bytes: &[u8], declared: &Declared) -> Result<Kept, Error> {
    let mut incoming = Incoming::start(&spot.tree, declared)?;
    incoming.write(bytes).map_err(Error::io("write", spot.path.as_str()))?;
    incoming.keep(spot, declared)
}
