//! The job of a harvester that died with its folder: what it stored is imported before the crawl goes on.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use grange_archive::ArchiveClient;
use grange_base::{Chain, Clock, Retry, Shutdown, Trigger};
use grange_db::FileFilter;
use grange_model::FileName;
use tokio::sync::watch;

use crate::crawling::cause_of;
use crate::deposit::{PAUSES, remove};
use crate::engine::{Engine, EngineError, StoredFiles};
use crate::folder::{HarvestInfo, JobFolder};
use crate::metadata;
use crate::pulse::Heard;
use crate::report::Cause;

/// Files listed at once: a few hundred kilobytes of rows.
const PAGE: u32 = 1000;

/// How often the archive may say that no replica has the file as it should be. Then the file is passed over: its captures are
/// fetched again.
const ATTEMPTS: u32 = 3;

/// The import of what earlier attempts at a job stored.
#[derive(Debug)]
pub(crate) struct Import<'a> {
    pub(crate) archive: &'a dyn ArchiveClient,
    pub(crate) clock: &'a Clock,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) folder: &'a JobFolder,
    pub(crate) info: &'a HarvestInfo,
    pub(crate) engine: &'a dyn Engine,
    /// Given to the crawls that made the files.
    pub(crate) orders: Option<&'a str>,
}

/// Why an import was not brought to its end.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// From outside.
    Told(Cause),
    /// This process ends; the next one imports again.
    Suspended,
    /// Trying again gives the same error.
    Broke(EngineError),
}

impl Import<'_> {
    /// Imports, again and again until it is done: whatever is away comes back, and giving the job back would only use up
    /// another of its attempts. Ends earlier when the job is lost or cancelled, or cannot be imported ever. When it has ended
    /// nothing writes into the folder any more.
    pub(crate) async fn run(&self, mut heard: watch::Receiver<Heard>) -> Result<(), GivenUp> {
        let mut attempt = 0;
        loop {
            let stop = Trigger::new();
            let error = {
                let stopping = stop.listener();
                let mut once = std::pin::pin!(self.once(&stopping));
                let given_up = tokio::select! {
                    done = &mut once => match done {
                        Ok(()) => return Ok(()),
                        Err(error) => Err(error),
                    },
                    given_up = self.given_up(&mut heard) => Ok(given_up),
                };
                match given_up {
                    Err(error) => error,
                    Ok(given_up) => {
                        // It ends before the next file.
                        stop.pull();
                        let _ = once.await;
                        return Err(given_up);
                    }
                }
            };
            if let EngineError::Job(_) = error {
                return Err(GivenUp::Broke(error));
            }
            attempt += 1;
            let wait = PAUSES.wait(attempt, Retry::Soon).unwrap_or(PAUSES.most);
            let (job, reason) = (self.info.job.id, Chain(&error).to_string());
            tracing::error!(%job, reason, retry_in_s = wait.as_secs(), "what was stored of the job is not imported yet");
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                given_up = self.given_up(&mut heard) => return Err(given_up),
            }
        }
    }

    /// Completes when the import is to end early.
    async fn given_up(&self, heard: &mut watch::Receiver<Heard>) -> GivenUp {
        tokio::select! {
            cause = cause_to_end(heard) => GivenUp::Told(cause),
            () = self.shutdown.wait() => GivenUp::Suspended,
        }
    }

    async fn once(&self, stop: &Shutdown) -> Result<(), EngineError> {
        let Import { archive, clock, folder, info, engine, .. } = *self;
        let failed = |doing| move |source| EngineError::Io { doing, path: folder.stored(), source };
        // A killed import has left a part of a file.
        empty(&folder.stored()).map_err(failed("empty"))?;
        let listed = stop.or(StoredWarcs::list(archive, clock, stop, folder, &info.file_prefix)).await;
        let mut stored = listed
            .ok_or_else(stopped)
            .map_err(failed("read"))?
            .map_err(|error| EngineError::TakeOver(error.into()))?;
        stored.orders = self.orders;
        tracing::info!(job = %info.job.id, files = stored.left.len(), "importing what another harvester stored of the job");
        if stored.unverified > 0 {
            let (job, files) = (info.job.id, stored.unverified);
            tracing::warn!(%job, files, "files of the job were never stored on every replica: their captures are fetched again");
        }
        engine.take_over(folder, &mut stored).await?;
        empty(&folder.stored()).map_err(failed("empty"))?;
        let path = folder.root().to_owned();
        folder.set_taken_over().map_err(|source| EngineError::Io { doing: "write", path, source })
    }
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the import was stopped")
}

/// Removes a folder, if it is there.
fn empty(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Completes when the job is to be let go of.
pub(crate) async fn cause_to_end(heard: &mut watch::Receiver<Heard>) -> Cause {
    match heard.wait_for(|heard| cause_of(*heard).is_some()).await.map(|heard| cause_of(*heard)) {
        Ok(Some(cause)) => cause,
        // Nobody says anything any more.
        _ => std::future::pending().await,
    }
}

/// The WARC files of a job that every replica held at some time, brought here one by one. A replica that was added since is
/// filled for days, and a copy that is damaged now has others beside it.
#[derive(Debug)]
struct StoredWarcs<'a> {
    archive: &'a dyn ArchiveClient,
    clock: &'a Clock,
    /// Ends the import before the next file.
    stop: &'a Shutdown,
    folder: &'a JobFolder,
    left: VecDeque<FileName>,
    /// All that the archive knows of, stored or not.
    known: u64,
    /// Those that were never on every replica.
    unverified: u64,
    /// The file that is here.
    here: Option<PathBuf>,
    orders: Option<&'a str>,
}

impl<'a> StoredWarcs<'a> {
    async fn list(
        archive: &'a dyn ArchiveClient,
        clock: &'a Clock,
        stop: &'a Shutdown,
        folder: &'a JobFolder,
        prefix: &str,
    ) -> Result<Self, grange_archive::Error> {
        let begin = format!("{prefix}-");
        let (left, known, unverified) = (VecDeque::new(), 0, 0);
        let mut files =
            StoredWarcs { archive, clock, stop, folder, left, known, unverified, here: None, orders: None };
        let mut after: Option<FileName> = begin.parse().ok();
        loop {
            let filter = FileFilter { after: after.take(), limit: PAGE, ..FileFilter::default() };
            let page = archive.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(files) };
            let goes_on = last.file.name.as_str().starts_with(&begin);
            after = Some(last.file.name.clone());
            for status in page.into_iter().filter(|status| status.file.name.as_str().starts_with(&begin)) {
                files.known += 1;
                if status.proven() || status.file.stored_at.is_some() {
                    files.left.push_back(status.file.name);
                } else {
                    files.unverified += 1;
                }
            }
            if !goes_on {
                return Ok(files);
            }
        }
    }

    /// None if no replica has it. An archive or a disk that is away is waited for.
    async fn fetch(&self, name: &FileName) -> io::Result<Option<PathBuf>> {
        let place = self.folder.stored();
        std::fs::create_dir_all(&place)?;
        let path = place.join(name.as_str());
        let (mut attempt, mut refusals) = (0, 0);
        loop {
            let Err(error) = self.archive.get(name, &path).await else { return Ok(Some(path)) };
            (attempt, refusals) = (attempt + 1, refusals + u32::from(is_without_copy(&error)));
            let reason = Chain(&error).to_string();
            if refusals >= ATTEMPTS {
                tracing::warn!(file = %name, reason, "stored file passed over: its captures are fetched again");
                return Ok(None);
            }
            let wait = PAUSES.wait(attempt, Retry::Soon).unwrap_or(PAUSES.most);
            tracing::warn!(file = %name, reason, retry_in_s = wait.as_secs(), "a stored file of the job cannot be read");
            self.clock.sleep(wait).await;
        }
    }

    fn clear(&mut self) {
        if let Some(path) = self.here.take() {
            remove(&path);
        }
    }
}

/// Whether the archive was asked and has no copy that is the file. Anything else says nothing about the file: a replica that
/// does not answer, a database that is away, a disk of ours that is full.
fn is_without_copy(error: &grange_archive::Error) -> bool {
    use grange_archive::Error::{NoCopy, NotFound};
    matches!(error, NoCopy { away: false, .. } | NotFound { .. })
}

#[async_trait]
impl StoredFiles for StoredWarcs<'_> {
    fn known(&self) -> u64 {
        self.known
    }

    fn orders(&self) -> Option<&str> {
        self.orders
    }

    async fn next(&mut self) -> io::Result<Option<PathBuf>> {
        self.clear();
        if self.stop.requested() {
            return Err(stopped());
        }
        while let Some(name) = self.left.pop_front() {
            let fetched = self.stop.or(self.fetch(&name)).await.ok_or_else(stopped)?;
            let Some(path) = fetched? else { continue };
            self.here = Some(path.clone());
            // The papers tell of it as of a file that was closed here.
            let (folder, noted) = (self.folder.clone(), path.clone());
            match tokio::task::spawn_blocking(move || metadata::note_file(&folder, &noted)).await {
                Ok(noted) => noted?,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
            return Ok(Some(path));
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "takeover_tests.rs"]
mod tests;
