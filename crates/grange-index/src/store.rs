//! An index in a folder: opening, committing, taking out.
//!
//! ```text
//! DIR/MANIFEST       which segments and which log are live
//! DIR/00000012.seg   segments
//! DIR/00000013.log   the head: changes that are in no segment yet
//! DIR/LOCK           held by the one process that writes
//! ```
//!
//! There is one writer; readers work on snapshots and never wait for it. Segments and logs that the manifest does not name
//! are left over from a crash and removed when the index is next opened for writing; without a manifest they are refused.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::batch::{Batch, Committed};
use crate::combine::{combine, join_in_memory};
use crate::error::{Error, Result};
use crate::folder::{UnnamedFile, read_snapshot, remove_file, state_of};
use crate::log::Log;
use crate::manifest::{self, Manifest, Removal, SegmentEntry, log_name, segment_name};
use crate::merge::Layer;
use crate::run::Run;
use crate::segment::{Cache, Segment, SegmentOptions, SegmentWriter, new_cache};
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::writer::{Head, Writer};

/// A capture index. Clones are the same index.
#[derive(Debug, Clone)]
pub struct Index {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) folder: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) cache: Arc<Cache>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// `None`: opened read-only.
    writer: Mutex<Option<Writer>>,
    /// Held while segments are merged: one merge at a time.
    pub(crate) merging: Mutex<()>,
    /// What a reader has last seen of the folder.
    seen: Mutex<Option<(Manifest, u64)>>,
    /// Held by the one process that writes.
    _lock: Option<File>,
}

impl Index {
    /// Opens an index for writing, creating it if there is none.
    pub fn open(folder: impl AsRef<Path>, settings: Settings) -> Result<Self> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let lock_path = folder.join("LOCK");
        let lock = File::options().create(true).append(true).open(&lock_path);
        let lock = lock.map_err(Error::io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::Locked { path: folder.to_owned() }),
            Err(fs::TryLockError::Error(error)) => return Err(Error::io("lock", lock_path)(error)),
        }
        let cache = new_cache(settings.cache_bytes);
        let writer = Writer::open(folder, &cache)?;
        let snapshot = writer.snapshot();
        Ok(Self::new(folder, settings, cache, snapshot, Some((writer, lock))))
    }

    /// Opens an index that another process may be writing. What it commits later is seen after
    /// [`refresh`](Self::refresh).
    pub fn open_read_only(folder: impl AsRef<Path>, settings: Settings) -> Result<Self> {
        let folder = folder.as_ref();
        let cache = new_cache(settings.cache_bytes);
        let snapshot = read_snapshot(folder, &cache)?;
        Ok(Self::new(folder, settings, cache, snapshot, None))
    }

    fn new(
        folder: &Path,
        settings: Settings,
        cache: Arc<Cache>,
        snapshot: Snapshot,
        writer: Option<(Writer, File)>,
    ) -> Self {
        let (writer, lock) = writer.unzip();
        let inner = Inner {
            folder: folder.to_owned(),
            settings,
            cache,
            snapshot: RwLock::new(Arc::new(snapshot)),
            writer: Mutex::new(writer),
            merging: Mutex::new(()),
            seen: Mutex::new(None),
            _lock: lock,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The index as it is now. What is committed later does not change it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.published()
    }

    /// Whether both are clones of one index.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Looks at the folder again, if the index is open read-only.
    pub fn refresh(&self) -> Result<()> {
        if self.inner.lock().is_some() {
            return Ok(());
        }
        // Segments never change: with the same manifest and a log of the same size there is nothing new.
        let now = state_of(&self.inner.folder);
        let mut seen = self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_some() && *seen == now {
            return Ok(());
        }
        let snapshot = read_snapshot(&self.inner.folder, &self.inner.cache)?;
        self.inner.publish(snapshot);
        *seen = now;
        Ok(())
    }

    /// Makes the changes of a batch. After this returns they are on disk; after an error none of them is.
    pub fn commit(&self, batch: Batch) -> Result<Committed> {
        self.inner.write(|inner, writer| {
            let mut done = Committed::default();
            let mut runs = Vec::new();
            for file in batch.files {
                if writer.known.contains(file.name.as_str())
                    || runs.iter().any(|(name, _)| *name == file.name)
                {
                    done.known.push(file.name);
                    continue;
                }
                runs.push((file.name, file.rows));
            }
            done.files = runs.len() as u64;
            let names: Vec<Box<str>> = runs.iter().map(|(name, _)| name.as_str().into()).collect();
            let mut runs: Vec<Run> = runs.into_iter().map(|(_, rows)| rows).collect();
            if batch.loose.rows() > 0 {
                runs.push(batch.loose);
            }
            done.rows = inner.add_runs(writer, runs)?;
            writer.known.extend(names);
            Ok(done)
        })
    }

    /// Whether a file was committed as a file. One that index lines name is not here by that.
    pub fn holds_file(&self, name: &str) -> bool {
        if let Some(writer) = &*self.inner.lock() {
            return writer.known.contains(name);
        }
        self.snapshot().whole_files().any(|file| file == name)
    }

    /// Whether a part of the index was found damaged since it was opened.
    pub fn found_damage(&self) -> bool {
        self.inner.cache.found_damage()
    }

    /// Takes all captures of a file out, also those that lines told of. False if it was not there.
    pub fn remove_file(&self, name: &str) -> Result<bool> {
        let change = |change| Removal { file: Some(name.to_owned()), job: None, change };
        self.inner.write(|inner, writer| Ok(inner.remove(writer, change)? > 0))
    }

    /// Takes out the lines that were loaded under a job. Returns how many files they were about.
    pub fn remove_lines(&self, job: &str) -> Result<u64> {
        let change = |change| Removal { file: None, job: Some(job.to_owned()), change };
        self.inner.write(|inner, writer| inner.remove(writer, change))
    }

    /// Puts the index as it is now into an empty folder, to be kept, copied or opened elsewhere: links to the same bytes
    /// where the disk allows it, else copies. Commits wait meanwhile; merging does not take anything from it later. Gives
    /// the snapshot that the folder holds: a commit right after it makes another one.
    pub fn checkpoint(&self, folder: impl AsRef<Path>) -> Result<Arc<Snapshot>> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let ((), snapshot) = self.inner.write_and_read(|inner, writer| {
            inner.flush(writer)?;
            let mut files = Vec::new();
            for name in writer.manifest.segments.iter().map(|entry| &entry.name) {
                let (from, to) = (inner.folder.join(name), folder.join(name));
                link_or_copy(&from, &to).map_err(Error::io("write", &to))?;
                files.push(UnnamedFile::new(to));
            }
            // Empty, and its own file: the live log grows, and a link to it would grow with it.
            let log = folder.join(&writer.manifest.log);
            files.push(UnnamedFile::new(log.clone()));
            Log::create(log)?;
            let manifest = UnnamedFile::new(folder.join(manifest::NAME));
            writer.manifest.save(folder)?;
            files.into_iter().chain([manifest]).for_each(UnnamedFile::leave);
            Ok(())
        })?;
        Ok(snapshot)
    }

    /// Writes the head out as a segment.
    pub fn flush(&self) -> Result<()> {
        self.inner.write(Inner::flush)
    }
}

/// Links a file or, where the disk has no links, copies it. Never over a file that is there: it may be a link to the same bytes,
/// and opening it to write would cut the original off.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            fs::copy(from, to).map(drop).inspect_err(|_| drop(fs::remove_file(to)))
        }
        done => done,
    }
}

impl Inner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        // A panic while writing leaves what is on disk in order; only memory may be behind, and it is rebuilt below.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a change and publishes its result.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&Self, &mut Writer) -> Result<T>) -> Result<T> {
        Ok(self.write_and_read(change)?.0)
    }

    /// The same, with the snapshot that holds this change and none after it.
    fn write_and_read<T>(
        &self,
        change: impl FnOnce(&Self, &mut Writer) -> Result<T>,
    ) -> Result<(T, Arc<Snapshot>)> {
        self.with_writer(|writer| {
            writer.settle()?;
            let before = writer.changes;
            let done = change(self, writer);
            if writer.changes != before {
                self.publish(writer.snapshot());
            }
            Ok((done?, self.published()))
        })
    }

    /// Runs something that changes nothing a reader could see.
    pub(crate) fn with_writer<T>(&self, act: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        match &mut *self.lock() {
            Some(writer) => act(writer),
            None => {
                Err(Error::Unknown { path: self.folder.clone(), expected: "an index opened for writing" })
            }
        }
    }

    fn published(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, snapshot: Snapshot) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// Makes one change of all runs: they become durable together.
    fn add_runs(&self, writer: &mut Writer, runs: Vec<Run>) -> Result<u64> {
        let mut layers = Vec::with_capacity(runs.len());
        for run in runs.into_iter().rev() {
            let mut segment = SegmentWriter::in_memory(SegmentOptions::memory())?;
            run.write(&mut segment)?;
            let image = segment.finish()?.memory;
            let segment =
                Arc::new(Segment::from_memory(image.clone(), writer.log.path(), self.cache.clone())?);
            layers.push((Layer { segment, dead: None }, image));
        }
        let image = match &layers[..] {
            [] => return Ok(0),
            [(_, image)] => image.clone(),
            _ => join_in_memory(&layers.iter().map(|(layer, _)| layer.clone()).collect::<Vec<_>>())?,
        };
        let segment = Segment::from_memory(image.clone(), writer.log.path(), self.cache.clone())?;
        let rows = segment.footer.rows;
        let change = writer.manifest.take_change();
        writer.log.append(change, &image)?;
        // From here on it is on disk: nothing below may make an error of it.
        writer.push_head(Head { change, segment: Arc::new(segment) }, &self.cache);
        if writer.log.bytes > self.settings.head_bytes
            && let Err(error) = self.flush(writer)
        {
            tracing::warn!(%error, "the head of an index was not written out as a segment; it stays in its log");
        }
        Ok(rows)
    }

    /// Takes out what `removal` names, by a mark that hides it until merging drops it.
    fn remove(&self, writer: &mut Writer, removal: impl FnOnce(u64) -> Removal) -> Result<u64> {
        // Nothing is written for what is not here.
        let nothing = removal(0);
        if !writer.snapshot().files().any(|file| nothing.takes(file)) {
            return Ok(0);
        }
        self.flush(writer)?;
        let removal = Removal { change: writer.manifest.take_change(), ..nothing };
        let snapshot = writer.snapshot();
        let taken: HashSet<Box<str>> =
            snapshot.files().filter(|file| removal.takes(file)).map(|file| file.name.clone()).collect();
        if taken.is_empty() {
            return Ok(0);
        }
        let mut manifest = writer.manifest.clone();
        manifest.removed.push(removal);
        writer.replace(manifest, |_| {})?;
        Ok(taken.len() as u64)
    }

    pub(crate) fn flush(&self, writer: &mut Writer) -> Result<()> {
        let Some(change) = writer.head.last().map(|head| head.change) else { return Ok(()) };
        let layers: Vec<Layer> = writer
            .head
            .iter()
            .rev()
            .map(|head| Layer { segment: head.segment.clone(), dead: None })
            .collect();
        let name = segment_name(writer.manifest.take_name());
        let file = UnnamedFile::new(self.folder.join(&name));
        let bottom = writer.manifest.segments.is_empty();
        let combined = combine(&layers, file.path(), bottom, &self.settings, |_| {})?;
        let segment = Arc::new(Segment::open(file.path(), self.cache.clone())?);
        let log_name = log_name(writer.manifest.take_name());
        let log_file = UnnamedFile::new(self.folder.join(&log_name));
        let log = Log::create(log_file.path().to_owned())?;
        let mut manifest = writer.manifest.clone();
        manifest.log = log_name;
        manifest.segments.push(SegmentEntry { name, change, rows: combined.rows, bytes: combined.bytes });
        file.leave();
        log_file.leave();
        writer.replace(manifest, |segments| segments.push(segment))?;
        let old = std::mem::replace(&mut writer.log, log);
        writer.head.clear();
        remove_file(old.path());
        Ok(())
    }
}
