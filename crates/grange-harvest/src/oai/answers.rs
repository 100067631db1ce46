//! Answers kept as they came go into the archive, like the files of any harvest.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_archive::{ArchiveClient, Store};
use grange_base::worker::Step;
use grange_db::Db;
use grange_model::FileName;

use crate::deposit::{everywhere, name_of, remove};

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
                        remove(&path);
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
        let name: FileName = name_of(path).parse().map_err(|error| format!("{error}"))?;
        let store = Store::new(name, self.by.clone());
        everywhere(&*self.archive, path, &store).await.map_err(|refused| refused.reason)
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
