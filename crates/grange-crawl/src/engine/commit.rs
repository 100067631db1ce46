//! The committer: one thread that writes what workers deliver and then tells the frontier, in this order.
//!
//! It takes whatever has been delivered since it last looked, appends all of it, and commits it to the frontier
//! in one batch together with the ends of the files. When the disk is full it keeps what it has, pauses the
//! crawl and tries again; nothing that was fetched is thrown away for that.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grange_base::Clock;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::changes::Mark;
use super::holds::{Hold, Holds};
use crate::frontier::{Added, Finished, Frontier, FrontierError};
use crate::log::{AlertLevel, alert};
use crate::record::chunk::Manifest;
use crate::record::recorder::{Ready, Recorder};
use crate::report::Statistics;

/// How many deliveries are written before the frontier is told. More make a commit cheaper, but what is
/// delivered and not committed is fetched again after a crash.
const BATCH: usize = 64;

/// How long a full disk is left alone before it is tried again.
const RETRY_DISK: Duration = Duration::from_secs(1);

/// Nothing is written to a disk with less room than this. The frontier's store writes tables of some 16 MiB by itself
/// and cannot go on after a write that failed; captures wait, so the last room is left to it.
const FRONTIER_ROOM_BYTES: u64 = 32 << 20;

/// With less room than this, the frontier takes the space of its journal beforehand; another process may fill the disk
/// within moments.
const RESERVE_BELOW_BYTES: u64 = 512 << 20;

/// What became of one URL.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Its captures; none if it goes back into its queue.
    pub(super) captures: Vec<Ready>,
    pub(super) finished: Finished,
    /// Lines for other logs, their ends included.
    pub(super) lines: Vec<(&'static str, Vec<u8>)>,
    /// Kept over restarts, together with the captures.
    pub(super) marks: Vec<Mark>,
    /// Given back when it is committed.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// What the committer is told.
#[derive(Debug)]
pub(super) enum Message {
    Delivery(Box<Delivery>),
    Line(&'static str, Vec<u8>),
    /// Close the chunk. Answers its manifest; none if there is nothing in it.
    Rotate(oneshot::Sender<Option<Manifest>>),
    /// Nothing more comes. Close the last chunk.
    Finish,
}

/// Why a crawl cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error("cannot write the files of the crawl; free some space or mend the disk, then resume")]
    Io(#[from] io::Error),
    /// See [`crate::record::unsynced`].
    #[error(
        "cannot sync the files of the crawl: the disk did not take what was written; check it, then resume. The resume \
         restores the files from {note}"
    )]
    Unsynced { note: PathBuf },
    #[error(
        "cannot sync the files of the crawl, and cannot note that in {note}: the last seconds of its WARC files and logs may be \
         lost; check the disk, then resume"
    )]
    Lost {
        note: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What the committer shares with the rest of the engine.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) statistics: Arc<Mutex<Statistics>>,
    /// The dispatcher hands out no URLs while there is any.
    pub(super) holds: Arc<Holds>,
    /// Set when the crawl is to end even if the disk stays full.
    pub(super) give_up: grange_base::Shutdown,
}

impl Ledger {
    pub(super) fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When chunks are closed and files synced without being asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pub(super) chunk_size: u64,
    pub(super) chunk_age: Duration,
    pub(super) sync_every: Duration,
}

pub(super) struct Committer {
    pub(super) recorder: Recorder,
    pub(super) frontier: Arc<Frontier>,
    pub(super) ledger: Ledger,
    pub(super) clock: Clock,
    pub(super) rhythm: Rhythm,
    pub(super) inbox: mpsc::Receiver<Message>,
    /// Where it is noted that a sync failed.
    pub(super) note: PathBuf,
    /// A folder on the disk that is written to.
    pub(super) disk: PathBuf,
    /// Deliveries for the chunk after the one being closed. Not more than there are permits to pack.
    pub(super) held: Vec<Delivery>,
    pub(super) waiting_for_chunk: Vec<oneshot::Sender<Option<Manifest>>>,
    /// URLs that the frontier left out because their hosts would be too many.
    pub(super) left_out: u64,
}

impl Committer {
    /// Runs until told to finish. Answers the manifest of the last chunk; none if whoever delivers is gone.
    pub(super) fn run(mut self) -> Result<Option<Manifest>, CommitError> {
        let ended = self.run_until_told();
        if !self.recorder.sync_failed() {
            return ended;
        }
        let note = self.note;
        let error = match self.recorder.unsynced().save(&note) {
            Ok(()) => CommitError::Unsynced { note },
            Err(source) => CommitError::Lost { note, source },
        };
        tracing::error!(%error, "the crawl ends");
        Err(error)
    }

    fn run_until_told(&mut self) -> Result<Option<Manifest>, CommitError> {
        let mut synced = Instant::now();
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let Some(first) = self.inbox.blocking_recv() else {
                // The crawl was dropped without an order: as good as a crash, so leave things to a resume.
                return Ok(None);
            };
            let mut next = Some(first);
            let mut finish = false;
            while let Some(message) = next.take() {
                match message {
                    Message::Delivery(delivery) if self.must_wait(&delivery) => self.held.push(*delivery),
                    Message::Delivery(delivery) => batch.push(*delivery),
                    Message::Line(log, line) => self.recorder.log(log, &line),
                    Message::Rotate(answer) => self.waiting_for_chunk.push(answer),
                    Message::Finish => finish = true,
                }
                if batch.len() < BATCH && !finish {
                    next = self.inbox.try_recv().ok();
                }
            }
            if !self.commit(&mut batch)? {
                return Ok(None);
            }
            if !self.rotate_if_due()? {
                return Ok(None);
            }
            if synced.elapsed() >= self.rhythm.sync_every {
                if !self.sync()? {
                    return Ok(None);
                }
                synced = Instant::now();
            }
            if finish {
                return self.finish();
            }
        }
    }

    fn must_wait(&self, delivery: &Delivery) -> bool {
        delivery.captures.iter().any(|capture| self.recorder.must_wait(capture))
    }

    /// Writes and commits all of `batch`. False if the crawl gave up on a full disk; the frontier then still
    /// has those URLs, and no file may be closed any more.
    fn commit(&mut self, batch: &mut Vec<Delivery>) -> Result<bool, CommitError> {
        let now = self.clock.now();
        for delivery in batch.iter_mut() {
            for capture in &mut delivery.captures {
                if self.until_written(|recorder| recorder.take(capture, now)).is_none() {
                    return Ok(false);
                }
            }
            for (log, line) in delivery.lines.drain(..) {
                self.recorder.log(log, &line);
            }
        }
        let Some(mark) = self.until_written(Recorder::flush) else { return Ok(false) };
        let mut statistics = self.ledger.statistics();
        for capture in batch.iter().flat_map(|delivery| &delivery.captures) {
            statistics.add(&capture.line);
        }
        drop(statistics);
        let mut marks = vec![mark];
        let mut permits = Vec::with_capacity(batch.len());
        let mut finished = Vec::with_capacity(batch.len());
        for mut delivery in batch.drain(..) {
            marks.append(&mut delivery.marks);
            permits.extend(delivery.permit);
            finished.push(delivery.finished);
        }
        let added = self.frontier.finish(&finished, &marks, now)?;
        drop(permits);
        self.report_left_out(&added);
        Ok(self.until_written(Recorder::close_full).is_some())
    }

    /// Alerts to URLs that were left out because their hosts would be too many: the first, the tenth, the hundredth and so on.
    fn report_left_out(&mut self, added: &Added) {
        let Some(domain) = &added.crowded_domain else { return };
        let digits = |count: u64| count.checked_ilog10();
        let before = digits(self.left_out);
        self.left_out += added.left_out;
        if digits(self.left_out) == before {
            return;
        }
        let reason = format!(
            "URLs of new hosts were left out so far: {}, the last ones of {domain}; see frontier.max_hosts_per_domain and \
             frontier.max_queues",
            self.left_out
        );
        tracing::warn!("{reason}");
        let mut line = Vec::new();
        alert(self.clock.now(), AlertLevel::Warning, "frontier", &reason, &mut line);
        self.recorder.log("alerts.log", &line);
    }

    /// Repeats `write` until the disk takes it. None if the crawl is to end instead.
    fn until_written<T>(&mut self, mut write: impl FnMut(&mut Recorder) -> io::Result<T>) -> Option<T> {
        loop {
            let written = self.has_room().and_then(|()| write(&mut self.recorder));
            match written {
                Ok(value) => {
                    self.ledger.holds.clear(Hold::Committer);
                    return Some(value);
                }
                // It cannot be tried again. See [`crate::record::unsynced`].
                Err(_) if self.recorder.sync_failed() => return None,
                Err(error) if self.wait_for_disk(&error) => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether the frontier's store has room for itself.
    fn has_room(&self) -> io::Result<()> {
        let free = super::progress::free_bytes(&self.disk).unwrap_or(u64::MAX);
        if free < RESERVE_BELOW_BYTES {
            // Where that cannot be had, room is all there is.
            let _ = self.frontier.reserve();
        }
        if free >= FRONTIER_ROOM_BYTES {
            return Ok(());
        }
        let text = format!("{} MB are left, {} MB are needed", free >> 20, FRONTIER_ROOM_BYTES >> 20);
        Err(io::Error::new(io::ErrorKind::StorageFull, text))
    }

    /// Waits a moment before writing is tried again. False if the crawl is to end instead.
    fn wait_for_disk(&mut self, error: &io::Error) -> bool {
        let reason = format!("cannot write the files of the crawl: {error}");
        if self.ledger.holds.set(Hold::Committer, reason.clone()) {
            tracing::error!(%error, "cannot write the files of the crawl; paused until it can be written");
            let mut line = Vec::new();
            alert(self.clock.now(), AlertLevel::Severe, "recorder", &reason, &mut line);
            self.recorder.log("alerts.log", &line);
        }
        if self.ledger.give_up.requested() {
            return false;
        }
        std::thread::sleep(RETRY_DISK);
        !self.ledger.give_up.requested()
    }

    /// Closes the chunk if it is time. False if the crawl gave up on a full disk.
    fn rotate_if_due(&mut self) -> Result<bool, CommitError> {
        let now = self.clock.now();
        if !self.recorder.is_rotating() {
            let Rhythm { chunk_size, chunk_age, .. } = self.rhythm;
            let by_itself = (chunk_size > 0 || !chunk_age.is_zero()) && {
                let (age, size) = self.recorder.chunk_size(now);
                (chunk_size > 0 && size >= chunk_size) || (!chunk_age.is_zero() && age >= chunk_age)
            };
            if !by_itself && self.waiting_for_chunk.is_empty() {
                return Ok(true);
            }
            if !self.recorder.has_written() {
                self.answer_waiting(None);
                return Ok(true);
            }
            if !self.begin_rotation()? {
                return Ok(false);
            }
        }
        // Everything packed for this chunk must have come in; until then what comes for the next one is held.
        let manifest = match self.until_written(|recorder| recorder.finish_rotation(now)) {
            None => return Ok(false),
            Some(None) => return Ok(true),
            Some(Some(manifest)) => manifest,
        };
        self.frontier.finish(&[], &[self.recorder.mark()], now)?;
        self.frontier.sync()?;
        tracing::info!(chunk = manifest.chunk, files = manifest.files.len(), "chunk closed");
        self.answer_waiting(Some(&manifest));
        let mut held = std::mem::take(&mut self.held);
        self.commit(&mut held)
    }

    /// Commits the name of the chunk before anything has that name. False if the crawl gave up on a full disk.
    fn begin_rotation(&mut self) -> Result<bool, CommitError> {
        let now = self.clock.now();
        let Some(mark) = self.until_written(|recorder| recorder.begin_rotation(now)) else {
            return Ok(false);
        };
        self.frontier.finish(&[], &[mark], now)?;
        Ok(true)
    }

    fn answer_waiting(&mut self, manifest: Option<&Manifest>) {
        for answer in self.waiting_for_chunk.drain(..) {
            // Whoever asked may have left.
            let _ = answer.send(manifest.cloned());
        }
    }

    /// False if the crawl gave up on a full disk.
    fn sync(&mut self) -> Result<bool, CommitError> {
        if self.until_written(Recorder::sync).is_none() {
            return Ok(false);
        }
        self.frontier.sync()?;
        Ok(true)
    }

    /// Closes the last chunk. None if the crawl gave up on a full disk: what is in the files may then be more than the
    /// frontier knows of, and only a resume can tell.
    fn finish(&mut self) -> Result<Option<Manifest>, CommitError> {
        let now = self.clock.now();
        while self.recorder.is_rotating() {
            // No worker is left, so nothing can be under way for the old chunk.
            if !self.rotate_if_due()? {
                return Ok(None);
            }
        }
        if !self.begin_rotation()? {
            return Ok(None);
        }
        let Some(manifest) = self.until_written(Recorder::finish) else { return Ok(None) };
        self.frontier.finish(&[], &[self.recorder.mark()], now)?;
        self.frontier.sync()?;
        self.answer_waiting(Some(&manifest));
        Ok(Some(manifest))
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
