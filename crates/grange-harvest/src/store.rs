//! After the crawl: papers are made, and every file that is still here goes into the archive.

use std::io;

use grange_base::Chain;

use crate::deposit::{Depositor, closed};
use crate::engine::ClosedFile;
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Harvester, Parts};
use crate::metadata;
use crate::papers::JobPapers;
use crate::report::UploadFailure;

/// What the names of files being written end in.
const OPEN: &str = "open";

/// What the names of copies end in that a crawl makes of files whose sync failed, until they are whole.
const RESTORED: &str = "restored";

/// What became of the files of a folder.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) files: usize,
    pub(crate) failures: Vec<UploadFailure>,
    /// Why the papers could not be made.
    pub(crate) papers: Option<String>,
}

impl Stored {
    /// Nothing of the folder is missing in the archive.
    pub(crate) fn is_whole(&self) -> bool {
        self.failures.is_empty() && self.papers.is_none()
    }
}

impl Harvester {
    /// Documents a crawl that ended, and deposits everything that is still here.
    pub(crate) async fn store_all(&self, folder: &JobFolder, info: &HarvestInfo) -> Stored {
        let Parts { archive, clock, settings, software, host, .. } = self.parts();
        let (by, waiting) = (self.parts().name.clone(), Some((self, info)));
        let depositor = Depositor { archive: &**archive, clock, folder, by, waiting };
        let attempts = if folder.is_reported() { 1 } else { settings.upload_attempts };
        let known =
            self.engine_in(folder).and_then(|engine| engine.closed_files(folder).ok()).unwrap_or_default();
        let mut files = match closed_files(folder, &known) {
            Ok(files) => files,
            Err(error) => {
                let failure = UploadFailure { file: folder.name(), reason: error.to_string() };
                return Stored { files: 1, failures: vec![failure], papers: None };
            }
        };
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let papers = JobPapers {
            info: info.clone(),
            organization: settings.organization.clone(),
            software: software.clone(),
            host: host.clone(),
            ip: None,
            at: clock.now(),
        };
        // The papers need every file noted, and are made before any file goes.
        let (place, paths) = (folder.clone(), files.iter().map(|file| file.path.clone()).collect::<Vec<_>>());
        let written = tokio::task::spawn_blocking(move || {
            for path in &paths {
                metadata::note_file(&place, path)?;
            }
            metadata::write(&place, &papers)
        });
        let papers = match written.await {
            Ok(Ok(path)) => {
                if path.exists() {
                    files.push(closed(path));
                }
                None
            }
            Ok(Err(error)) => Some(format!("the metadata file cannot be written: {}", Chain(&error))),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let failures = depositor.all(&files, attempts).await;
        Stored { files: files.len(), failures, papers }
    }
}

/// Every WARC file that is still here, once the crawl has ended. One that was left open is cut at its last whole record.
/// Those that the engine closed itself are told as it knows them.
fn closed_files(folder: &JobFolder, known: &[ClosedFile]) -> io::Result<Vec<ClosedFile>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder.warcs()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == OPEN) {
            let whole = path.with_extension("");
            if warc::write::recover(&path)?.records == 0 {
                std::fs::remove_file(&path)?;
                continue;
            }
            std::fs::rename(&path, &whole)?;
            files.push(closed(whole));
        } else if path.extension().is_some_and(|extension| extension == RESTORED) {
            // It was cut off by a crash. What it was made of is here.
            std::fs::remove_file(&path)?;
        } else {
            let told = known.iter().find(|file| file.path == path).cloned();
            files.push(told.unwrap_or_else(|| closed(path)));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_was_not_finished_is_no_file_of_the_crawl() {
        let place = tempfile::tempdir().unwrap();
        let folder = JobFolder::at(place.path().to_owned());
        std::fs::create_dir_all(folder.warcs()).unwrap();
        for name in ["a.warc.gz", "b.warc.gz.open.restored"] {
            std::fs::write(folder.warcs().join(name), b"bytes").unwrap();
        }
        let files = closed_files(&folder, &[]).unwrap();
        let paths: Vec<_> = files.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [folder.warcs().join("a.warc.gz")]);
        assert!(!folder.warcs().join("b.warc.gz.open.restored").exists());
    }
}
