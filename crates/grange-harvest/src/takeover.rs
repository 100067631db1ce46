//! The job of a harvester that died with its folder: what it stored is imported before the crawl goes on.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use grange_archive::ArchiveClient;
use grange_base::{Chain, Clock, Retry};
use grange_db::FileFilter;
use grange_model::FileName;

use crate::deposit::{PAUSES, remove};
use crate::engine::{Engine, StoredFiles};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts};
use crate::metadata;

/// Files listed at once: a few hundred kilobytes of rows.
const PAGE: u32 = 1000;

/// How often a file is asked for. One that no replica gives is passed over: its captures are fetched again.
const ATTEMPTS: u32 = 3;

impl Harvester {
    /// Imports what earlier attempts at the job stored. It can be repeated.
    pub(crate) async fn take_over(
        &self,
        folder: &JobFolder,
        info: &HarvestInfo,
        engine: &dyn Engine,
    ) -> Result<(), Error> {
        let Parts { archive, clock, .. } = self.parts();
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::io("import what was stored of the job before into", folder.root())(io::Error::other(error))
        };
        let mut stored = StoredWarcs::list(&**archive, clock, folder, &info.file_prefix)
            .await
            .map_err(|error| failed(error.into()))?;
        tracing::info!(job = %info.job.id, files = stored.left.len(), "importing what another harvester stored of the job");
        engine.take_over(folder, &mut stored).await.map_err(|error| failed(error.into()))?;
        stored.clear();
        folder.set_taken_over().map_err(Error::io("write", folder.root()))
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

    async fn fetch(&self, name: &FileName) -> io::Result<Option<PathBuf>> {
        let place = self.folder.stored();
        std::fs::create_dir_all(&place)?;
        let path = place.join(name.as_str());
        for attempt in 1..=ATTEMPTS {
            match self.archive.get(name, &path).await {
                Ok(_) => return Ok(Some(path)),
                Err(error) => {
                    let reason = Chain(&error).to_string();
                    tracing::warn!(file = %name, attempt, reason, "a stored file of the job cannot be read");
                }
            }
            if attempt < ATTEMPTS {
                self.clock.sleep(PAUSES.wait(attempt, Retry::Soon).unwrap_or(PAUSES.most)).await;
            }
        }
        tracing::warn!(file = %name, "stored file passed over: its captures are fetched again");
        Ok(None)
    }

    fn clear(&mut self) {
        if let Some(path) = self.here.take() {
            remove(&path);
        }
    }
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
