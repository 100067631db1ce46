//! The journal of a checksum replica: one line per fact, added at the end, never changed.
//!
//! ```text
//! {"name":"a.warc.gz","size":7,"checksums":{"sha512":"…"},"at":"2026-01-01T00:00:00Z"} 9f2c…
//! {"name":"a.warc.gz","removed":true,"at":"…"} 77ab…
//! ```
//!
//! The last word of a line is SHA-256 over the last word of the line before, a line feed, and this line's JSON. So a
//! line that was edited, taken out or put in does not fit: what it says is then answered as damaged, never believed.
//! A file cut at any byte loses the torn line and nothing else: the tear is kept aside and the journal goes on. A
//! later line about a name supersedes the ones before, which stay.
//!
//! Only lines whose sync succeeded count. After a failed sync the system may show bytes that the disk does not have, and
//! a second sync of them may succeed without writing anything. So such a line is cut off and must be written again. Lines
//! of another process are synced before they count: it may have been killed before it could. Where that fails they are
//! written again in place, for their writer may have acknowledged them.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;
use grange_model::{Checksums, FileName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// What stands before the first line's chain.
const START: &str = "grange checksum journal 1";

/// The name of the file.
pub(crate) const JOURNAL: &str = "checksums.journal";

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub name: FileName,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    #[serde(default, skip_serializing_if = "Checksums::is_empty")]
    pub checksums: Checksums,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    pub at: Timestamp,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks with a reference.
fn is_zero(size: &u64) -> bool {
    *size == 0
}

/// What the journal says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    Sums(u64, Checksums),
    /// The line about it does not fit the chain.
    Damaged,
}

/// What the journal says cannot be told without waiting: somebody is adding to it, or has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behind;

/// The journal of one replica. Shared by cloning an `Arc` around it; safe against other processes by a file lock.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    state: Mutex<State>,
    /// A sync of lines that others wrote has failed: they are written again before the next one.
    doubtful: AtomicBool,
    /// Syncs that fail, and how many were made; for tests, where no disk breaks.
    #[cfg(test)]
    pub(crate) syncs: Syncs,
}

#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    pub(crate) to_fail: std::sync::atomic::AtomicU32,
    pub(crate) cuts_to_fail: std::sync::atomic::AtomicU32,
    pub(crate) made: std::sync::atomic::AtomicU32,
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<String, Entry>,
    /// The last word of the last line read.
    chain: String,
    /// Bytes read so far: whole lines only.
    read: u64,
    damaged: u64,
    /// Written here behind `read` and not synced: it counts for nothing and is cut off first.
    unsynced: String,
}

impl State {
    fn empty() -> Self {
        Self {
            entries: BTreeMap::new(),
            chain: START.to_owned(),
            read: 0,
            damaged: 0,
            unsynced: String::new(),
        }
    }
}

impl Journal {
    /// Opens the journal in the folder. Both are made by [`Journal::create`] or the first line: the disk may not be mounted.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(JOURNAL);
        let journal = Self {
            path,
            state: Mutex::new(State::empty()),
            doubtful: AtomicBool::new(false),
            #[cfg(test)]
            syncs: Syncs::default(),
        };
        journal.refresh()?;
        Ok(journal)
    }

    /// Reads the whole file again: a check looks at the disk, not at what is remembered. Gives the damaged lines.
    pub fn refresh(&self) -> Result<u64, Error> {
        let mut state = self.lock();
        let Some(mut file) = self.existing_file()? else {
            *state = State::empty();
            return Ok(0);
        };
        file.lock().map_err(Error::io("lock", &self.path))?;
        self.cut_unsynced(&file, &mut state)?;
        // Advice: a file system without it reads from its cache, which is no worse than not asking.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        let mut fresh = State::empty();
        self.catch_up(&mut file, &mut fresh)?;
        *state = fresh;
        Ok(state.damaged)
    }

    /// What is known of the name, also by others who added to the journal.
    pub fn get(&self, name: &FileName) -> Result<Option<Entry>, Error> {
        let mut state = self.lock();
        let length = std::fs::metadata(&self.path).map(|data| data.len());
        if length.ok() != Some(state.read) {
            let Some(mut file) = self.existing_file()? else {
                *state = State::empty();
                return Ok(None);
            };
            file.lock().map_err(Error::io("lock", &self.path))?;
            self.cut_unsynced(&file, &mut state)?;
            self.catch_up(&mut file, &mut state)?;
        }
        Ok(state.entries.get(name.as_str()).copied())
    }

    /// The same without waiting for anybody.
    pub(crate) fn get_now(&self, name: &FileName) -> Result<Option<Entry>, Behind> {
        let state = self.state.try_lock().map_err(|_| Behind)?;
        if !state.unsynced.is_empty() {
            return Err(Behind);
        }
        let length = std::fs::metadata(&self.path).map_err(|_| Behind)?.len();
        if length == state.read { Ok(state.entries.get(name.as_str()).copied()) } else { Err(Behind) }
    }

    /// Up to `limit` names after `after`, in order.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Vec<(String, Entry)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let state = self.lock();
        let start = after.map_or(Unbounded, Excluded);
        let range = state.entries.range::<str, _>((start, Unbounded));
        range.take(limit).map(|(name, entry)| (name.clone(), *entry)).collect()
    }

    /// Adds a line and brings it to the disk.
    pub fn append(&self, line: &Line) -> Result<(), Error> {
        self.append_if(line, |_| true).map(|_| ())
    }

    /// The same if `fits` says yes to what is known of the name at that moment; false if not.
    pub fn append_if(&self, line: &Line, fits: impl FnOnce(Option<Entry>) -> bool) -> Result<bool, Error> {
        let mut state = self.lock();
        let mut file = self.locked_file()?;
        self.cut_unsynced(&file, &mut state)?;
        // Another process may have added lines.
        self.catch_up(&mut file, &mut state)?;
        if !fits(state.entries.get(line.name.as_str()).copied()) {
            return Ok(false);
        }
        let body = serde_json::to_string(line).unwrap_or_default();
        let chain = chained(&state.chain, &body);
        let text = format!("{body} {chain}\n");
        let written = file.write_all(text.as_bytes()).and_then(|()| self.sync(&file));
        if let Err(error) = written {
            state.unsynced = text;
            // Under the lock of the file, so that no other process reads it. What fails here is tried again first thing.
            if let Err(error) = self.cut_unsynced(&file, &mut state) {
                tracing::error!(journal = %self.path.display(), error = %grange_base::Chain(&error), "a line that was not synced cannot be cut off; the journal takes and gives nothing until it can");
            }
            return Err(Error::io("write", &self.path)(error));
        }
        state.read += text.len() as u64;
        state.chain = chain;
        enter(&mut state.entries, line);
        Ok(true)
    }

    /// Cuts off what was written here and not synced.
    fn cut_unsynced(&self, file: &File, state: &mut State) -> Result<(), Error> {
        if state.unsynced.is_empty() {
            return Ok(());
        }
        #[cfg(test)]
        if Syncs::next(&self.syncs.cuts_to_fail) {
            return Err(Error::io("cut", &self.path)(ErrorKind::ReadOnlyFilesystem.into()));
        }
        let failed = |doing| Error::io(doing, &self.path);
        let length = file.metadata().map_err(failed("read"))?.len();
        // Another handle may have put the torn end aside, taken over the line as its own find, or added to it: what it
        // acknowledged stays, and is read again like any line of another.
        let own_end = state.read + state.unsynced.len() as u64;
        if length > state.read && length <= own_end {
            let mut behind = vec![0; (length - state.read) as usize];
            file.read_exact_at(&mut behind, state.read).map_err(failed("read"))?;
            if state.unsynced.as_bytes().starts_with(&behind) {
                file.set_len(state.read).and_then(|()| file.sync_all()).map_err(failed("cut"))?;
                state.unsynced.clear();
                return Ok(());
            }
        }
        self.doubtful.store(length > state.read, Ordering::SeqCst);
        state.unsynced.clear();
        Ok(())
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)] // In tests it fails as the journal was told.
    fn sync(&self, file: &File) -> std::io::Result<()> {
        file.sync_data()
    }

    #[cfg(test)]
    fn sync(&self, file: &File) -> std::io::Result<()> {
        self.syncs.made.fetch_add(1, Ordering::SeqCst);
        if Syncs::next(&self.syncs.to_fail) {
            return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        file.sync_data()
    }

    /// The journal, if there is one.
    fn existing_file(&self) -> Result<Option<File>, Error> {
        match OpenOptions::new().read(true).append(true).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", &self.path)(error)),
        }
    }

    /// The journal under its lock, made where there is none.
    fn locked_file(&self) -> Result<File, Error> {
        loop {
            let file = match self.existing_file()? {
                Some(file) => file,
                None => self.new_file()?,
            };
            file.lock().map_err(Error::io("lock", &self.path))?;
            // Another process may have taken a journal away whose name it could not sync.
            let id = |data: Metadata| (data.dev(), data.ino());
            let locked = file.metadata().map(id).map_err(Error::io("read", &self.path))?;
            if std::fs::metadata(&self.path).is_ok_and(|data| id(data) == locked) {
                return Ok(file);
            }
        }
    }

    /// Whether there is a journal.
    pub(crate) fn exists(&self) -> Result<bool, Error> {
        Ok(self.existing_file()?.is_some())
    }

    /// Makes the folder and an empty journal where there is none.
    pub(crate) fn create(&self) -> Result<(), Error> {
        let _state = self.lock();
        if !self.exists()? {
            self.new_file()?;
        }
        Ok(())
    }

    fn new_file(&self) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        let file = options.open(&self.path).map_err(Error::io("open", &self.path))?;
        // The name of the journal must last as long as its lines. A second sync may succeed without writing it.
        if let Err(error) = sync_folder(folder) {
            self.remove_if_empty(&file);
            return Err(error);
        }
        Ok(file)
    }

    /// Takes a journal whose name was not synced away again. Under the lock of the file: nobody adds to it meanwhile.
    fn remove_if_empty(&self, file: &File) {
        let locked = file.lock().and_then(|()| file.metadata());
        if locked.is_ok_and(|data| data.len() == 0)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::error!(journal = %self.path.display(), %error, "a journal whose name was not synced keeps its name");
        }
    }

    /// Reads what was added since; a torn last line is put aside and cut off.
    fn catch_up(&self, file: &mut File, state: &mut State) -> Result<(), Error> {
        let failed = |doing| Error::io(doing, &self.path);
        let length = file.metadata().map_err(failed("read"))?.len();
        if length < state.read {
            // Somebody cut it behind our back: what is on the disk counts.
            *state = State::empty();
        }
        if length == state.read {
            return Ok(());
        }
        file.seek(SeekFrom::Start(state.read)).map_err(failed("read"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read"))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.sync_found(file, state.read, &bytes[..whole])?;
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            take(state, line);
        }
        state.read += whole as u64;
        if whole < bytes.len() {
            let aside = self.path.with_extension(format!("torn-at-{}", state.read));
            let kept = File::create(&aside).and_then(|mut kept| {
                kept.write_all(&bytes[whole..])?;
                kept.sync_all()
            });
            kept.map_err(Error::io("write", &aside))?;
            file.set_len(state.read).map_err(failed("cut"))?;
            file.sync_all().map_err(failed("sync"))?;
            tracing::warn!(journal = %self.path.display(), kept = %aside.display(), "a torn last line was put aside");
        }
        Ok(())
    }

    /// Brings lines that were found in the file to the disk.
    fn sync_found(&self, file: &File, at: u64, lines: &[u8]) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.doubtful.load(Ordering::SeqCst) {
            // The same bytes in the same place, so that the system has something to write.
            let again = OpenOptions::new().write(true).open(&self.path);
            again.and_then(|file| file.write_all_at(lines, at)).map_err(Error::io("write", &self.path))?;
        }
        let synced = self.sync(file);
        self.doubtful.store(synced.is_err(), Ordering::SeqCst);
        synced.map_err(Error::io("sync", &self.path))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    sync_names(folder).map_err(Error::io("sync", folder))
}

/// Folders whose next sync fails; for tests, where no disk breaks.
#[cfg(test)]
pub(crate) static FOLDER_SYNCS_TO_FAIL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The same with the system's error.
pub(crate) fn sync_names(folder: &Path) -> std::io::Result<()> {
    #[cfg(test)]
    {
        let mut to_fail = FOLDER_SYNCS_TO_FAIL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = to_fail.iter().position(|one| one == folder) {
            to_fail.remove(at);
            return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
    }
    grange_base::durable::sync_folder(folder)
}

/// Takes one line in; one that does not fit the chain is damage, and names what it can.
fn take(state: &mut State, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let Some((body, chain)) = text.trim_end_matches('\n').rsplit_once(' ') else {
        state.damaged += 1;
        return;
    };
    let parsed = serde_json::from_str::<Line>(body).ok();
    let fits = chained(&state.chain, body) == chain;
    chain.clone_into(&mut state.chain);
    match parsed {
        Some(line) if fits => enter(&mut state.entries, &line),
        Some(line) => {
            state.damaged += 1;
            state.entries.insert(line.name.as_str().to_owned(), Entry::Damaged);
        }
        None => state.damaged += 1,
    }
}

fn enter(entries: &mut BTreeMap<String, Entry>, line: &Line) {
    if line.removed {
        entries.remove(line.name.as_str());
    } else {
        entries.insert(line.name.as_str().to_owned(), Entry::Sums(line.size, line.checksums));
    }
}

fn chained(before: &str, body: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before);
    digest.update(b"\n");
    digest.update(body);
    HEXLOWER.encode(&digest.finalize())
}

#[cfg(test)]
impl Syncs {
    fn next(left: &std::sync::atomic::AtomicU32) -> bool {
        let take = |left: u32| left.checked_sub(1);
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
