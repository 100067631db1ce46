//! The job of a harvester that died with its folder: what it stored is imported before the crawl goes on.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use grange_archive::ArchiveClient;
use grange_base::{Chain, Clock, Retry};
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
    pub(crate) folder: &'a JobFolder,
    pub(crate) info: &'a HarvestInfo,
    pub(crate) engine: &'a dyn Engine,
}

/// Why an import was not brought to its end.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// From outside.
    Told(Cause),
    /// Trying again gives the same error.
    Broke(EngineError),
}

impl Import<'_> {
    /// Imports, again and again until it is done: whatever is away comes back, and giving the job back would only use up
    /// another of its attempts. Ends earlier when the job is lost or cancelled, or cannot be imported ever.
    pub(crate) async fn run(&self, mut heard: watch::Receiver<Heard>) -> Result<(), GivenUp> {
        let mut attempt = 0;
        loop {
            let error = tokio::select! {
                done = self.once() => match done {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                },
                cause = told(&mut heard) => return Err(GivenUp::Told(cause)),
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
                cause = told(&mut heard) => return Err(GivenUp::Told(cause)),
            }
        }
    }

    async fn once(&self) -> Result<(), EngineError> {
        let Import { archive, clock, folder, info, engine } = *self;
        let mut stored = StoredWarcs::list(archive, clock, folder, &info.file_prefix)
            .await
            .map_err(|error| EngineError::TakeOver(error.into()))?;
        tracing::info!(job = %info.job.id, files = stored.left.len(), "importing what another harvester stored of the job");
        engine.take_over(folder, &mut stored).await?;
        stored.clear();
        let path = folder.root().to_owned();
        folder.set_taken_over().map_err(|source| EngineError::Io { doing: "write", path, source })
    }
}

/// Completes when the job is to be let go of.
async fn told(heard: &mut watch::Receiver<Heard>) -> Cause {
    match heard.wait_for(|heard| cause_of(*heard).is_some()).await.map(|heard| cause_of(*heard)) {
        Ok(Some(cause)) => cause,
        // Nobody says anything any more.
        _ => std::future::pending().await,
    }
}

/// The WARC files of a job that every replica is proven to hold, brought here one by one.
#[derive(Debug)]
struct StoredWarcs<'a> {
    archive: &'a dyn ArchiveClient,
    clock: &'a Clock,
    folder: &'a JobFolder,
    left: VecDeque<FileName>,
    /// All that the archive knows of, proven or not.
    known: u64,
    /// The file that is here.
    here: Option<PathBuf>,
}

impl<'a> StoredWarcs<'a> {
    async fn list(
        archive: &'a dyn ArchiveClient,
        clock: &'a Clock,
        folder: &'a JobFolder,
        prefix: &str,
    ) -> Result<Self, grange_archive::Error> {
        let begin = format!("{prefix}-");
        let mut files = StoredWarcs { archive, clock, folder, left: VecDeque::new(), known: 0, here: None };
        let mut after: Option<FileName> = begin.parse().ok();
        loop {
            let filter = FileFilter { after: after.take(), limit: PAGE, ..FileFilter::default() };
            let page = archive.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(files) };
            let goes_on = last.file.name.as_str().starts_with(&begin);
            after = Some(last.file.name.clone());
            for status in page.into_iter().filter(|status| status.file.name.as_str().starts_with(&begin)) {
                files.known += 1;
                if status.proven() {
                    files.left.push_back(status.file.name);
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

    async fn next(&mut self) -> io::Result<Option<PathBuf>> {
        self.clear();
        while let Some(name) = self.left.pop_front() {
            let Some(path) = self.fetch(&name).await? else { continue };
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
