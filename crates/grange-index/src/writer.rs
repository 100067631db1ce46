//! The state of the one writer of an index, and how it is read from the folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::combine::join_in_memory;
use crate::error::{Error, Result};
use crate::folder::{make_snapshot, open_segments, remove_file, remove_strays};
use crate::log::{self, Log, LogContents};
use crate::manifest::{self, Manifest, log_name};
use crate::merge::Layer;
use crate::segment::{Cache, Segment};
use crate::snapshot::Snapshot;

#[derive(Debug)]
pub(crate) struct Writer {
    folder: PathBuf,
    pub(crate) manifest: Manifest,
    /// In the order of the manifest.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) log: Log,
    /// Changes of the log, oldest first.
    pub(crate) head: Vec<Head>,
    /// Files that were committed as files. Those that only lines name are not among them.
    pub(crate) known: HashSet<Box<str>>,
    /// Rises with every change, so that nothing is published twice.
    pub(crate) changes: u64,
    /// Saving a manifest failed, and the disk may have it anyway: nothing is changed until the disk has ours again.
    unsettled: bool,
    /// Files that only manifests name whose save failed: removed as soon as the disk surely has ours.
    unsaved: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) change: u64,
    pub(crate) segment: Arc<Segment>,
}

impl Writer {
    /// Reads the index in a folder that this process has locked, or begins one if there is none. Segments and logs without
    /// a manifest are refused: they may be all there is of it.
    pub(crate) fn open(folder: &Path, cache: &Arc<Cache>) -> Result<Self> {
        let found = Manifest::read(folder)?;
        let (mut manifest, contents) = if let Some(manifest) = found {
            let contents = log::read(&folder.join(&manifest.log))?;
            (manifest, contents)
        } else {
            refuse_orphans(folder)?;
            let manifest = Manifest::new();
            Log::create(folder.join(&manifest.log))?;
            manifest.save(folder)?;
            let contents = log::read(&folder.join(&manifest.log))?;
            (manifest, contents)
        };
        let segments = open_segments(folder, &manifest, cache)?;
        let path = folder.join(&manifest.log);
        let mut head = Vec::with_capacity(contents.changes.len());
        for (change, bytes) in &contents.changes {
            manifest.next_change = manifest.next_change.max(change + 1);
            let segment = Arc::new(Segment::from_memory(bytes.clone(), &path, cache.clone())?);
            head.push(Head { change: *change, segment });
        }
        // All that counts could be read; the rest is left over from a crash.
        let log = if contents.first_version {
            renew_log(folder, &mut manifest, &contents)?
        } else {
            Log::open(path, &contents)?
        };
        remove_strays(folder, &manifest)?;
        let mut writer = Self {
            folder: folder.to_owned(),
            manifest,
            segments,
            log,
            head: Vec::new(),
            known: HashSet::new(),
            changes: 0,
            unsettled: false,
            unsaved: Vec::new(),
        };
        for change in head {
            writer.push_head(change, cache);
        }
        writer.known = writer.snapshot().whole_files().map(Into::into).collect();
        Ok(writer)
    }

    /// Adds a change to the head. Like in a counter, equals are joined, so that there are few. Those that cannot be joined
    /// stay apart: the change is on disk already, and what a reader finds is the same.
    pub(crate) fn push_head(&mut self, head: Head, cache: &Arc<Cache>) {
        self.changes += 1;
        self.head.push(head);
        while let [.., older, newer] = &self.head[..] {
            if older.segment.footer.rows > newer.segment.footer.rows * 2 {
                break;
            }
            match join(older, newer, cache) {
                Ok(joined) => {
                    self.head.truncate(self.head.len() - 2);
                    self.head.push(joined);
                }
                Err(error) => {
                    tracing::warn!(%error, "two changes of an index could not be joined in memory; they stay apart");
                    break;
                }
            }
        }
    }

    /// Puts another manifest in place of the one in force, on disk and then in memory.
    pub(crate) fn replace(
        &mut self,
        manifest: Manifest,
        segments: impl FnOnce(&mut Vec<Arc<Segment>>),
    ) -> Result<()> {
        if let Err(error) = manifest.save(&self.folder) {
            // The disk may have either now, whatever it shows. Names that the other one gave away are not given again.
            self.unsettled = true;
            let ours: HashSet<&str> = self.manifest.files().collect();
            let unsaved =
                manifest.files().filter(|name| !ours.contains(name)).map(|name| self.folder.join(name));
            self.unsaved.extend(unsaved);
            self.manifest.next_name = manifest.next_name;
            self.manifest.next_change = manifest.next_change;
            return Err(error);
        }
        self.changes += 1;
        self.manifest = manifest;
        segments(&mut self.segments);
        let snapshot = self.snapshot();
        self.known = snapshot.whole_files().map(Into::into).collect();
        Ok(())
    }

    /// Before any change: after a save that failed, the manifest in force is written again as a whole. All that it names
    /// is still there, because files are removed only after a save that succeeded.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.unsettled {
            self.manifest.save(&self.folder)?;
            tracing::warn!(folder = %self.folder.display(), "the manifest of an index was written again after a save that failed");
            self.unsettled = false;
            self.unsaved.drain(..).for_each(|path| remove_file(&path));
        }
        Ok(())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let heads = self.head.iter().map(|head| (head.segment.clone(), head.change));
        make_snapshot(&self.manifest, &self.segments, heads)
    }
}

/// Refuses a folder that has lost its manifest. A log without changes is what a start leaves that was cut off early.
fn refuse_orphans(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let path = entry.map_err(Error::io("list", folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let empty = name == log_name(0) && log::is_empty(&path);
        if manifest::is_index_file(name) && !empty {
            return Err(Error::NoManifest { path: folder.to_owned(), found: name.to_owned() });
        }
    }
    Ok(())
}

/// Continues a log of an earlier version as one of this version.
fn renew_log(folder: &Path, manifest: &mut Manifest, contents: &LogContents) -> Result<Log> {
    let old = folder.join(&manifest.log);
    let name = log_name(manifest.take_name());
    let mut log = Log::create(folder.join(&name))?;
    for (change, segment) in &contents.changes {
        log.append(*change, segment)?;
    }
    manifest.log = name;
    manifest.save(folder)?;
    tracing::info!(
        from = %old.display(), to = %log.path().display(), changes = contents.changes.len(), torn_bytes = contents.torn,
        "the log of an index was rewritten in the format of this version"
    );
    remove_file(&old);
    Ok(log)
}

/// Two changes of the head as one.
fn join(older: &Head, newer: &Head, cache: &Arc<Cache>) -> Result<Head> {
    let layers = [newer, older].map(|head| Layer { segment: head.segment.clone(), dead: None });
    let image = join_in_memory(&layers)?;
    let segment = Segment::from_memory(image, newer.segment.path(), cache.clone())?;
    Ok(Head { change: newer.change, segment: Arc::new(segment) })
}
