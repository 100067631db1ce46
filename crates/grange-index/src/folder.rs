//! What lies in the folder of an index: read as a snapshot, and cleared of what a crash left.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::log;
use crate::manifest::{self, Manifest, SegmentEntry};
use crate::merge::Layer;
use crate::segment::{Cache, Segment};
use crate::snapshot::Snapshot;

/// Tries of a reader to open what a writer is replacing.
const OPEN_TRIES: usize = 10;

pub(crate) fn make_snapshot(
    manifest: &Manifest,
    segments: &[Arc<Segment>],
    heads: impl DoubleEndedIterator<Item = (Arc<Segment>, u64)>,
) -> Snapshot {
    let stored = segments.iter().cloned().zip(manifest.segments.iter().map(|entry| entry.change));
    // Heads are newer than every removal: taking out writes the head out first.
    let layers = stored
        .map(|(segment, change)| {
            let dead = manifest.dead(&segment.files, change).map(Into::into);
            Layer { segment, dead }
        })
        .chain(heads.map(|(segment, _)| Layer { segment, dead: None }));
    let mut layers: Vec<Layer> = layers.collect();
    layers.reverse();
    Snapshot::new(layers)
}

pub(crate) fn open_segments(
    folder: &Path,
    manifest: &Manifest,
    cache: &Arc<Cache>,
) -> Result<Vec<Arc<Segment>>> {
    let open = |entry: &SegmentEntry| Segment::open(&folder.join(&entry.name), cache.clone()).map(Arc::new);
    manifest.segments.iter().map(open).collect()
}

/// What tells one state of a folder from another, read before anything it names.
pub(crate) fn state_of(folder: &Path) -> Option<(Manifest, u64)> {
    let manifest = Manifest::read(folder).ok()??;
    let log = fs::metadata(folder.join(&manifest.log)).ok()?.len();
    Some((manifest, log))
}

pub(crate) fn read_snapshot(folder: &Path, cache: &Arc<Cache>) -> Result<Snapshot> {
    let mut tries = 0;
    loop {
        tries += 1;
        let manifest = Manifest::read(folder)?.ok_or_else(|| Error::Unknown {
            path: folder.to_owned(),
            expected: "the folder of a capture index",
        })?;
        let opened = open_segments(folder, &manifest, cache)
            .and_then(|segments| Ok((segments, log::read(&folder.join(&manifest.log))?.changes)));
        match opened {
            Ok((segments, changes)) => {
                let path = folder.join(&manifest.log);
                let mut heads = Vec::with_capacity(changes.len());
                for (change, bytes) in changes {
                    heads.push((Arc::new(Segment::from_memory(bytes, &path, cache.clone())?), change));
                }
                return Ok(make_snapshot(&manifest, &segments, heads.into_iter()));
            }
            // The writer has replaced what the manifest named a moment ago.
            Err(Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && tries < OPEN_TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes what a crash left behind.
pub(crate) fn remove_strays(folder: &Path, manifest: &Manifest) -> Result<()> {
    let live: HashSet<&str> = manifest.files().collect();
    for entry in fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name();
        if let Some(name) = name.to_str()
            && manifest::is_ours(name)
            && !live.contains(name)
        {
            let bytes = entry.metadata().map_or(0, |about| about.len());
            tracing::info!(path = %entry.path().display(), bytes, "removes a file that a crash left beside an index");
            remove_file(&entry.path());
        }
    }
    Ok(())
}

/// A file that is being written and that no manifest names yet. Dropped, it is removed: a name is given once, and what an act
/// that failed left would keep its space until the next start.
#[derive(Debug)]
pub(crate) struct UnnamedFile {
    path: PathBuf,
    /// A manifest that names it was saved, or may have been.
    named: bool,
}

impl UnnamedFile {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, named: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the file to [`Writer::replace`](crate::writer::Writer::replace), which also knows what to do if that fails.
    pub(crate) fn leave(mut self) {
        self.named = true;
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        // It may have failed before there was a file.
        if !self.named && self.path.exists() {
            remove_file(&self.path);
        }
    }
}

/// Removes a file that nothing names any more. If that fails, the next start tries again.
pub(crate) fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "an old file of the index stays");
    }
}
