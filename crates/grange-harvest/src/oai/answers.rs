//! Answers kept as they came go into the archive, like the files of any harvest.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_archive::{ArchiveClient, Store};
use grange_base::Chain;
use grange_base::worker::Step;
use grange_db::Db;
use grange_model::FileName;

/// Brings closed files of answers home. Looks at the folders each time: what is there is to be stored, whoever left it.
#[derive(Clone, Debug)]
pub struct OaiAnswers {
    db: Db,
    archive: Arc<dyn ArchiveClient>,
    /// The folder of all repositories.
    root: PathBuf,
    by: String,
}

impl OaiAnswers {
    pub fn new(db: Db, archive: Arc<dyn ArchiveClient>, root: PathBuf, by: &str) -> Self {
        Self { db, archive, root, by: by.to_owned() }
    }

    /// Stores what is closed; a local copy goes when every replica is proven to hold it.
    pub async fn step(&self) -> Result<Step, grange_db::Error> {
        for repository in self.db.oai_repositories().list().await? {
            let folder = grange_oai::answers_below(&super::folder(&self.root, &repository));
            for path in closed_in(&folder) {
                match self.store(&path).await {
                    Ok(()) => {
                        tracing::info!(file = %path.display(), "answers of a repository are in the archive");
                        if let Err(error) = std::fs::remove_file(&path) {
                            tracing::warn!(file = %path.display(), %error, "a stored file could not be removed");
                        }
                    }
                    Err(reason) => {
                        tracing::warn!(file = %path.display(), reason, "answers are not stored yet; tried again");
                    }
                }
            }
        }
        Ok(Step::Idle)
    }

    async fn store(&self, path: &Path) -> Result<(), String> {
        let own = path.file_name().unwrap_or_default().to_string_lossy();
        let name: FileName = own.parse().map_err(|error| format!("{error}"))?;
        let outcome = self.archive.store(path, &Store::new(name, self.by.clone())).await;
        let outcome = outcome.map_err(|error| Chain(&error).to_string())?;
        if outcome.stored {
            return Ok(());
        }
        let unproven = outcome.unproven.iter().map(|one| format!("replica {}: {}", one.replica, one.reason));
        Err(unproven.collect::<Vec<_>>().join("; "))
    }
}

/// The files under their final names, oldest first; none where nothing was ever kept.
fn closed_in(folder: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!(folder = %folder.display(), %error, "kept answers cannot be looked at");
            }
            return Vec::new();
        }
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut closed: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    closed.sort();
    closed
}
