//! The one that writes: appends parcels, logs lines, closes chunks, and says how far the files count.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::capture::Packed;
use super::chunk::{Manifest, chunk_name};
use super::files::{Files, Lane, Resumed, Ticket, digest_file};
use super::logs::Logs;
use super::parcel::Parcel;
use super::state::{FileEntry, State, Work};
use super::unsynced::Unsynced;
use crate::log::CrawlLine;

/// Where a recorder writes.
#[derive(Clone, Debug)]
pub struct Places {
    pub logs: PathBuf,
    pub manifests: PathBuf,
    /// The name of the job, for manifests.
    pub job: String,
}

/// Appends captures to files. Owned by one thread; workers hold its [`Desk`].
#[derive(Debug)]
pub struct Recorder {
    places: Places,
    desk: Desk,
    logs: Logs,
    state: State,
    /// When the chunk was begun.
    begun: Timestamp,
    #[cfg(test)]
    fault: Option<(Option<&'static str>, u64)>,
}

/// Gives out tickets for files.
#[derive(Clone, Debug)]
pub struct Desk {
    files: Arc<Mutex<Files>>,
    chunk: Arc<AtomicU32>,
    turn: Arc<AtomicUsize>,
    work: Arc<Mutex<Work>>,
    writers: usize,
}

/// A capture ready to be written: its log line, and its records if there was an answer.
#[derive(Debug)]
pub struct Ready {
    pub records: Option<(Arc<Ticket>, Parcel, Packed)>,
    pub line: CrawlLine<'static>,
    /// Which extractor looked into it, and how many links it found.
    pub extracted: Option<(&'static str, u64)>,
}

/// What a file holds that was stored before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredContents {
    pub records: u64,
    /// Bytes of blocks, as far as their lengths are known.
    pub block_bytes: u64,
    /// When the first and the last capture were made.
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl Desk {
    pub fn new(files: Files, writers: u8) -> Desk {
        Desk {
            files: Arc::new(Mutex::new(files)),
            chunk: Arc::new(AtomicU32::new(1)),
            turn: Arc::default(),
            work: Arc::default(),
            writers: usize::from(writers.max(1)),
        }
    }

    /// A ticket for one of the ordinary files, in turn. What is delivered together lies in one chunk, so whoever has a
    /// ticket already names it: were it for another chunk, the one could not be closed before the other was begun.
    pub fn ticket(&self, beside: Option<&Arc<Ticket>>, now: Timestamp) -> io::Result<Arc<Ticket>> {
        match beside {
            Some(ticket) if matches!(ticket.lane, Lane::Main(_)) => Ok(Arc::clone(ticket)),
            _ => {
                let lane = self.turn.fetch_add(1, Ordering::Relaxed) % self.writers;
                self.ticket_for(Lane::Main(lane as u8), beside, now)
            }
        }
    }

    /// A ticket for the file of `lane`.
    pub fn ticket_for(
        &self,
        lane: Lane,
        beside: Option<&Arc<Ticket>>,
        now: Timestamp,
    ) -> io::Result<Arc<Ticket>> {
        // Under the lock, so that a ticket never names a chunk that has been left, unless another one keeps it open.
        let mut files = self.files();
        let chunk = beside.map_or_else(|| self.chunk.load(Ordering::Acquire), |ticket| ticket.chunk);
        files.ticket(lane, chunk, now)
    }

    /// What the crawl has done so far.
    pub fn work(&self) -> Work {
        self.work_so_far().clone()
    }

    fn work_so_far(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an earlier run left that is not whole.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Files the frontier never heard of, taken away.
    pub swept: Vec<PathBuf>,
    /// Files that are shorter than the frontier was told, and where they end now: what lay behind is lost.
    /// Only a power cut does that.
    pub short: BTreeMap<String, u64>,
}

impl Recorder {
    /// Starts writing, or goes on where `state` says.
    pub fn open(
        places: Places,
        desk: Desk,
        state: Option<State>,
        now: Timestamp,
    ) -> io::Result<(Recorder, Recovered)> {
        let mut state = state.unwrap_or(State { chunk: 1, ..State::default() });
        let mut recovered = Recovered::default();
        let mut files = desk.files();
        recovered.swept = files.sweep(&state.open)?;
        for mark in std::mem::take(&mut state.open) {
            match files.resume(&mark)? {
                Resumed::Closed(entry) => state.closed.push(entry),
                Resumed::Open { missing: 0, .. } => {}
                Resumed::Open { kept, .. } => {
                    recovered.short.insert(mark.name, kept);
                }
            }
        }
        drop(files);
        if let Some(name) = state.rotating.take() {
            // The chunk was being closed. Every step of that can be repeated.
            let mut files = desk.files();
            files.retire(state.chunk);
            files.close_retired(&mut state.closed)?;
            drop(files);
            let logs = Logs::finish_rotation(&places.logs, &name, &state.logs)?;
            let closed = std::mem::take(&mut state.closed);
            Manifest::new(&name, &places.job, state.urls, closed, logs, false).save(&places.manifests)?;
            state.logs.clear();
            state.chunk += 1;
            state.urls = 0;
        }
        if let Some(name) = state.ended.take() {
            reopen_last_chunk(&places, &name, &state)?;
            state.logs.clear();
            state.chunk += 1;
        }
        desk.chunk.store(state.chunk, Ordering::Release);
        *desk.work_so_far() = state.work.clone();
        let logs = Logs::open(&places.logs, &state.logs)?;
        let recorder = Recorder {
            places,
            desk,
            logs,
            state,
            begun: now,
            #[cfg(test)]
            fault: None,
        };
        Ok((recorder, recovered))
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Whether this capture belongs to a chunk after the one being closed, and has to wait.
    pub fn must_wait(&self, ready: &Ready) -> bool {
        ready.records.as_ref().is_some_and(|(ticket, ..)| ticket.chunk > self.state.chunk)
    }

    /// Appends the records and logs the line. If that fails nothing of it is in the files, and it can be tried
    /// again.
    pub fn take(&mut self, ready: &mut Ready, now: Timestamp) -> io::Result<()> {
        if let Some((ticket, parcel, packed)) = &mut ready.records {
            let placed = self.desk.files().append(ticket, parcel, now)?;
            let mut work = self.desk.work_so_far();
            work.record_bytes += parcel.plain();
            work.disk_bytes += parcel.length();
            drop(work);
            let extra = ready.line.extra.get_or_insert_default();
            extra.warc_filename = Some(Cow::Owned(placed.file.to_string()));
            extra.warc_file_offset = Some(placed.offset + packed.offset);
        }
        // The file may be closed once its last ticket is back.
        ready.records = None;
        if let Some((extractor, links)) = ready.extracted.take() {
            let mut work = self.desk.work_so_far();
            let extracted = work.extracted.entry(Cow::Borrowed(extractor)).or_default();
            extracted.uris += 1;
            extracted.links += links;
        }
        ready.line.logged = now;
        if let Some(pending) = self.logs.pending("crawl.log") {
            ready.line.write(pending);
        }
        self.state.urls += 1;
        Ok(())
    }

    /// Makes a whole file that is stored already part of the chunk. It need not stay where it is.
    pub fn enter_stored(&mut self, path: &Path, viral: bool, contents: &StoredContents) -> io::Result<()> {
        let (size, sha512, md5) = digest_file(path)?;
        let StoredContents { records, block_bytes, first, last } = *contents;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.state.closed.push(FileEntry { name, size, sha512, md5, records, first, last, viral });
        let mut work = self.desk.work_so_far();
        work.record_bytes += block_bytes;
        work.disk_bytes += size;
        Ok(())
    }

    /// Adds a line, its end included, to another log.
    pub fn log(&mut self, name: &'static str, line: &[u8]) {
        self.logs.add(name, line);
    }

    /// Hands everything to the system and says how far the files count now.
    pub fn flush(&mut self) -> io::Result<(String, Vec<u8>)> {
        self.logs.write()?;
        let files = self.desk.files();
        self.state.open = files.marks();
        self.state.serial = files.serial();
        self.state.work = self.desk.work();
        drop(files);
        self.state.logs = self.logs.ends();
        Ok(self.state.to_mark())
    }

    /// Closes the files that are full. Only after the last [`Recorder::flush`] was committed: were a file closed with a
    /// record that the frontier has not heard of, a crash in between would have it fetched and written again.
    pub fn close_full(&mut self) -> io::Result<()> {
        self.desk.files().close_retired(&mut self.state.closed)
    }

    /// Forces everything to the disk.
    pub fn sync(&mut self) -> io::Result<()> {
        #[cfg(test)]
        self.break_if_due();
        self.logs.sync()?;
        self.desk.files().sync()
    }

    /// Whether something that was written may not be on the disk, and no later sync can tell.
    pub fn sync_failed(&self) -> bool {
        self.logs.sync_failed() || self.desk.files().sync_failed()
    }

    /// What is to be restored of the open files after a failed sync.
    pub fn unsynced(&self) -> Unsynced {
        Unsynced { files: self.desk.files().unsynced(), logs: self.logs.unsynced() }
    }

    /// Makes a sync fail, that of a log or that of the WARC files, once so many URLs are logged.
    #[cfg(test)]
    pub(crate) fn break_sync(&mut self, log: Option<&'static str>, urls: u64) {
        self.fault = Some((log, urls));
    }

    #[cfg(test)]
    fn break_if_due(&mut self) {
        let Some((log, urls)) = self.fault else { return };
        let in_doubt = self.unsynced().files.iter().any(|file| file.synced < file.size);
        match log.filter(|_| in_doubt && self.state.urls >= urls) {
            Some(name) => self.logs.break_sync(name),
            None => self.desk.files().fault = in_doubt && log.is_none() && self.state.urls >= urls,
        }
    }

    /// How old the chunk is and how many bytes of WARC files it has.
    pub fn chunk_size(&self, now: Timestamp) -> (std::time::Duration, u64) {
        let closed: u64 = self.state.closed.iter().map(|file| file.size).sum();
        let age = std::time::Duration::try_from(now.duration_since(self.begun)).unwrap_or_default();
        (age, closed + self.desk.files().open_bytes())
    }

    /// Whether anything was written since the chunk began.
    pub fn has_written(&self) -> bool {
        self.state.urls > 0
    }

    pub fn is_rotating(&self) -> bool {
        self.state.rotating.is_some()
    }

    /// Begins to close the chunk: captures packed from now on belong to the next one. The mark to be committed
    /// before [`Recorder::finish_rotation`] is asked for.
    pub fn begin_rotation(&mut self, now: Timestamp) -> io::Result<(String, Vec<u8>)> {
        let mut files = self.desk.files();
        self.desk.chunk.store(self.state.chunk + 1, Ordering::Release);
        files.retire(self.state.chunk);
        drop(files);
        self.state.rotating = Some(chunk_name(self.state.chunk, now));
        self.flush()
    }

    /// Closes the chunk, once no capture for it is under way. None as long as one is.
    pub fn finish_rotation(&mut self, now: Timestamp) -> io::Result<Option<Manifest>> {
        let Some(name) = self.state.rotating.clone() else { return Ok(None) };
        let mut files = self.desk.files();
        files.close_retired(&mut self.state.closed)?;
        let busy = files.has_open(self.state.chunk);
        drop(files);
        if busy {
            return Ok(None);
        }
        let logs = self.logs.rotate(Some(&name))?;
        let manifest = self.close_chunk(&name, logs, false)?;
        self.begun = now;
        Ok(Some(manifest))
    }

    /// Closes the last chunk, under the name that [`Recorder::begin_rotation`] gave it and that was committed: were the
    /// manifest there before its name is known, a crash in between would have it written again under another one. Its
    /// logs keep their plain names.
    pub fn finish(&mut self) -> io::Result<Manifest> {
        let Some(name) = self.state.rotating.clone() else {
            return Err(io::Error::other("the last chunk has no name yet"));
        };
        let mut files = self.desk.files();
        files.retire(u32::MAX);
        files.close_retired(&mut self.state.closed)?;
        let busy = files.has_open(u32::MAX);
        drop(files);
        if busy {
            return Err(io::Error::other("captures were still under way when the last chunk was closed"));
        }
        let logs = self.logs.rotate(None)?;
        self.close_chunk(&name, logs, true)
    }

    fn close_chunk(&mut self, name: &str, logs: Vec<FileEntry>, last: bool) -> io::Result<Manifest> {
        let closed = self.state.closed.clone();
        let manifest = Manifest::new(name, &self.places.job, self.state.urls, closed, logs, last);
        manifest.save(&self.places.manifests)?;
        self.state.closed.clear();
        self.state.open = self.desk.files().marks();
        self.state.logs = self.logs.ends();
        self.state.rotating = None;
        self.state.ended = last.then(|| name.to_owned());
        self.state.chunk += u32::from(!last);
        self.state.urls = 0;
        Ok(manifest)
    }

    /// Whether the last chunk was closed and nothing was written since.
    pub fn is_unchanged(&self) -> bool {
        self.state.urls == 0 && self.state.chunk > 1 && self.state.closed.is_empty()
    }

    /// The state as it stands, to be committed.
    pub fn mark(&self) -> (String, Vec<u8>) {
        self.state.to_mark()
    }
}

/// A crawl that had ended goes on: the logs of its last chunk make way for new ones, and its manifest says where
/// they are now.
fn reopen_last_chunk(places: &Places, name: &str, state: &State) -> io::Result<()> {
    let logs = Logs::finish_rotation(&places.logs, name, &state.logs)?;
    let path = places.manifests.join(format!("{name}.json"));
    let mut manifest = Manifest::load(&path)?;
    manifest.logs = logs;
    manifest.last_chunk = false;
    manifest.save(&places.manifests)?;
    Ok(())
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
