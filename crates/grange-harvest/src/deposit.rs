//! Files on their way into the archive. A local copy goes only when every replica is proven to hold the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use grange_archive::{ArchiveClient, Store};
use grange_base::{Chain, Clock, Retry, RetryPolicy};
use grange_model::{Checksums, FileName};
use tokio::sync::{mpsc, watch};

use crate::engine::{Chunk, ClosedFile};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::Harvester;
use crate::metadata;
use crate::report::UploadFailure;

/// How a file is tried again: a replica that restarts is back within seconds.
pub(crate) const PAUSES: RetryPolicy =
    RetryPolicy { first: Duration::from_secs(1), most: Duration::from_secs(30), attempts: 0 };

/// Deposits the files of one job.
#[derive(Debug)]
pub(crate) struct Depositor<'a> {
    pub(crate) archive: &'a dyn ArchiveClient,
    pub(crate) clock: &'a Clock,
    pub(crate) folder: &'a JobFolder,
    /// Who deposits, for the archive's log.
    pub(crate) by: String,
    /// Whom to tell that a file could not be stored yet.
    pub(crate) waiting: Option<(&'a Harvester, &'a HarvestInfo)>,
}

impl Depositor<'_> {
    /// Stores chunks as they are closed, once each, until the crawl has ended; what fails is tried again at the end. The local copies of a chunk go
    /// when the next one is there: only then has the engine left them for good.
    pub(crate) async fn chunks(
        &self,
        mut chunks: mpsc::UnboundedReceiver<Chunk>,
        crawl_ended: &watch::Receiver<bool>,
    ) {
        let mut proven: Vec<PathBuf> = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            proven.drain(..).for_each(|path| remove(&path));
            for file in chunk.files.into_iter().filter(|file| file.path.exists()) {
                if *crawl_ended.borrow() {
                    return;
                }
                let name = name_of(&file.path);
                match self.store(&file).await {
                    Ok(()) => {
                        tracing::info!(file = name, chunk = chunk.name, "stored while the crawl goes on");
                        proven.push(file.path);
                    }
                    Err(Refused { reason, .. }) => {
                        tracing::warn!(file = name, reason, "not stored yet; tried again at the end");
                    }
                }
            }
        }
    }

    /// Stores files with up to this many attempts, and removes what is proven. Reports what is not; what would be refused
    /// again is not tried again. Once a file has used up its attempts the others get one each: they wait for the same
    /// replica.
    pub(crate) async fn all(&self, files: &[ClosedFile], attempts: u32) -> Vec<UploadFailure> {
        let mut failures = Vec::new();
        let mut attempts = attempts.max(1);
        for file in files {
            let mut attempt = 1;
            loop {
                let stored = self.store(file).await;
                let Err(Refused { reason, for_good }) = stored else {
                    // The papers go with the folder: made anew they would be other bytes.
                    if !self.is_paper(&file.path) {
                        remove(&file.path);
                    }
                    break;
                };
                if let Some((harvester, info)) = self.waiting {
                    harvester.note_waiting(self.folder, info, Some(&reason)).await;
                }
                if for_good || attempt >= attempts {
                    attempts = if for_good { attempts } else { 1 };
                    failures.push(UploadFailure { file: name_of(&file.path), reason });
                    break;
                }
                let wait = PAUSES.wait(attempt, Retry::Soon).unwrap_or(PAUSES.most);
                tracing::warn!(file = %name_of(&file.path), reason, retry_in_s = wait.as_secs(), "not stored yet");
                self.clock.sleep(wait).await;
                attempt += 1;
            }
        }
        failures
    }

    fn is_paper(&self, path: &Path) -> bool {
        path.starts_with(self.folder.metadata())
    }

    /// Ok when every replica is proven to hold the file.
    async fn store(&self, file: &ClosedFile) -> Result<(), Refused> {
        if !self.is_paper(&file.path) {
            let (folder, path) = (self.folder.clone(), file.path.clone());
            let noted = tokio::task::spawn_blocking(move || metadata::note_file(&folder, &path)).await;
            match noted {
                Ok(noted) => {
                    noted
                        .map_err(|error| Refused::now(format!("it cannot be indexed: {}", Chain(&error))))?;
                }
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        let name: FileName = name_of(&file.path)
            .parse()
            .map_err(|error| Refused { reason: format!("{error}"), for_good: true })?;
        let mut store = Store::new(name, self.by.clone());
        if let Some(sha512) = file.sha512.as_ref().and_then(|hex| hex.parse().ok()) {
            store = store.expecting(Checksums { sha512: Some(sha512), ..Checksums::default() });
        }
        everywhere(self.archive, &file.path, &store).await
    }
}

/// Ok when every replica is proven to hold the file.
pub(crate) async fn everywhere(
    archive: &dyn ArchiveClient,
    path: &Path,
    store: &Store,
) -> Result<(), Refused> {
    let outcome = archive.store(path, store).await.map_err(|error| Refused::by(&error))?;
    if outcome.stored {
        metrics::counter!("grange_harvest_stored_bytes_total").increment(if outcome.already {
            0
        } else {
            outcome.size
        });
        return Ok(());
    }
    let unproven = outcome.unproven.iter().map(|one| format!("replica {}: {}", one.replica, one.reason));
    Err(Refused::now(unproven.collect::<Vec<_>>().join("; ")))
}

/// Why a file is not stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: String,
    /// The same file would be refused again: a person must look at it.
    for_good: bool,
}

impl Refused {
    fn now(reason: String) -> Refused {
        Refused { reason, for_good: false }
    }

    fn by(error: &grange_archive::Error) -> Refused {
        use grange_archive::Error::{OtherBytes, Reserved, WrongChecksum};
        let for_good = matches!(error, OtherBytes { .. } | Reserved { .. } | WrongChecksum { .. });
        Refused { reason: Chain(error).to_string(), for_good }
    }
}

/// A file that is closed, whatever its kind.
pub(crate) fn closed(path: PathBuf) -> ClosedFile {
    let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    ClosedFile { path, size, sha512: None }
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Of a file that is proven elsewhere.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        // What stays here only takes space.
        tracing::warn!(path = %path.display(), %error, "a stored file could not be removed");
    }
}

#[cfg(test)]
#[path = "deposit_tests.rs"]
mod tests;
