//! Keeping new bytes: aside, summed up, synced, then given their name in one step, then the directory synced.

use std::io::{self, Write as _};
use std::sync::Arc;

use rustix::fs::Advice;

use crate::digest::{Declared, Sum, Summing, Sums};
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
    /// The name is a file that was stored with these bytes and no longer holds them: [`replace`] it.
    Rotten(Replacement),
    /// The same, on the slice it is moving away from.
    RottenElsewhere,
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
    pub unmoved: Option<Unmoved>,
    /// Seconds since 1970, when the sender knows better than now.
    pub modified: Option<i64>,
    /// A copy of a file that moves here from another slice.
    pub moved: bool,
    /// The checksum the file was first stored with. It moves with the bytes, also when they no longer have it.
    pub stored: Option<Sum>,
}

/// A file on the slice it is moving away from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unmoved {
    pub found: Found,
    /// What its bytes were just read to be.
    pub read: Option<Sum>,
}

/// Good bytes, synced, for a name that holds rotten ones.
#[derive(Debug)]
pub(crate) struct Replacement {
    staged: Arc<Staged>,
    sums: Sums,
    size: u64,
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
        if let Some(Unmoved { found, read }) = spot.unmoved {
            return Ok(match judge(found, read, &sums) {
                Judged::Same => Kept::Same(sums),
                Judged::Rotten => Kept::RottenElsewhere,
                Judged::Other => Kept::Taken(found),
            });
        }
        staged.seal(&spot.stored.unwrap_or(sums.sha512), spot.modified).map_err(failed("sync"))?;
        let staged = Arc::new(staged);
        // Until the name is durable or gone again, also when another upload gave it.
        let _pending = spot.tree.hold(&spot.path);
        match naming::give(Wish { staged: Arc::clone(&staged), spot: spot.clone(), size })? {
            Published::New => Ok(Kept::New(sums)),
            Published::Taken(found) => match judge(found, read_again(spot, found)?, &sums) {
                Judged::Same => {
                    // The process that named these bytes may have died before syncing.
                    spot.tree.sync_parent(&spot.path).map_err(failed("sync the folder of"))?;
                    Ok(Kept::Same(sums))
                }
                Judged::Rotten if !spot.moved => Ok(Kept::Rotten(Replacement { staged, sums, size })),
                Judged::Rotten | Judged::Other => Ok(Kept::Taken(found)),
            },
        }
    }
}

/// What has the name already, compared with bytes that came for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Same,
    /// It was stored with these bytes and holds others now.
    Rotten,
    Other,
}

/// Only bytes that were read count: the checksum kept with a file says what it was, not what it is.
fn judge(found: Found, read: Option<Sum>, sums: &Sums) -> Judged {
    match found {
        Found::File { .. } if read == Some(sums.sha512) => Judged::Same,
        Found::File { sum, .. } if sum == Some(sums.sha512) => Judged::Rotten,
        _ => Judged::Other,
    }
}

/// What the bytes of a file here are now; `None` when there is none or the disk does not give them back.
fn read_again(spot: &Spot, found: Found) -> Result<Option<Sum>, Error> {
    if !matches!(found, Found::File { .. }) {
        return Ok(None);
    }
    match verify::sum_durable(&spot.tree, &spot.path) {
        Err(Error::Io { source, .. }) if source.raw_os_error() == Some(EIO) => Ok(None),
        other => other,
    }
}

/// What a disk says of a sector that it cannot read any more.
const EIO: i32 = 5;

/// Puts good bytes in the place of rotten ones, which go to the attic. The caller holds the name. Blocks.
pub(crate) fn replace(spot: &Spot, replacement: Replacement, day: &str) -> Result<Kept, Error> {
    let Replacement { staged, sums, size } = replacement;
    let Spot { known, tree, path, .. } = spot;
    let failed = |doing| Error::io(doing, path.as_str());
    let _pending = tree.hold(path);
    let found = tree.find(path).map_err(failed("look for"))?;
    match judge(found, read_again(spot, found)?, &sums) {
        Judged::Same => return Ok(Kept::Same(sums)),
        Judged::Rotten => {}
        // Somebody else was faster.
        Judged::Other => return Ok(Kept::Taken(found)),
    }
    let _epoch = known.gate.for_names(known.record.standing())?;
    tree.replace(&staged, path, day, size).map_err(failed("replace"))?;
    tracing::warn!(namespace = %known.record.namespace, %path, "replaced rotten bytes; they are in the attic");
    Ok(Kept::New(sums))
}

/// A whole small file at once. Blocks.
pub(crate) fn keep_whole(spot: &Spot, bytes: &[u8], declared: &Declared) -> Result<Kept, Error> {
    let mut incoming = Incoming::start(&spot.tree, declared)?;
    incoming.write(bytes).map_err(Error::io("write", spot.path.as_str()))?;
    incoming.keep(spot, declared)
}
