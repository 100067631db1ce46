//! Copies of indexes between nodes that share no disk: an indexer puts them into a store, replay nodes follow.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Chain, Clock};
use grange_blob::Blob;
use grange_db::Db;
use grange_index::{Index, Settings, Snapshot};
use jiff::Timestamp;

use super::mirror::{self, MirrorError};
use super::shelf::{Shelf, ShelfError};

/// What the names of folders begin with while an index is copied.
const ASIDE: &str = ".copy-";

/// Puts a copy of every index into a store whenever it has changed.
#[derive(Debug)]
pub struct Publisher {
    db: Db,
    shelf: Shelf,
    blob: Arc<dyn Blob>,
    clock: Clock,
    /// What was last copied.
    seen: HashMap<String, Weak<Snapshot>>,
}

/// A copy that was not made; the next step tries again.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error("cannot make a folder for a copy in {}", path.display())]
    Folder { path: PathBuf, source: std::io::Error },
}

impl Publisher {
    pub fn new(db: Db, shelf: Shelf, blob: Arc<dyn Blob>, clock: Clock) -> Self {
        remove_left_copies(shelf.folder());
        Self { db, shelf, blob, clock, seen: HashMap::new() }
    }

    /// Copies what has changed since the last step.
    pub async fn step(&mut self) -> Result<Step, CopyError> {
        for name in self.db.collections().names().await? {
            let Some(index) = self.shelf.index(&name)? else { continue };
            let now = index.snapshot();
            if self.seen.get(&name).is_some_and(|seen| seen.ptr_eq(&Arc::downgrade(&now))) {
                continue;
            }
            let folder = self.shelf.folder();
            let failed = |source| CopyError::Folder { path: folder.to_owned(), source };
            // On the disk of the index, where links cost nothing.
            let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(folder).map_err(failed)?;
            let files = aside.path().join("files");
            let new = mirror::publish(&index, &name, &*self.blob, &files, &self.clock).await?;
            tracing::info!(collection = name, new, place = self.blob.place(), "index copied");
            // The head was written out for the copy, so this state is another than `now`, and it is the one copied.
            self.seen.insert(name, Arc::downgrade(&index.snapshot()));
        }
        Ok(Step::Idle)
    }
}

/// Removes what a process that was killed while it copied left: links that would keep the space of removed segments. One
/// process alone writes to the folder of indexes.
fn remove_left_copies(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(ASIDE)
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "a left copy of an index was not removed");
        }
    }
}

/// Follows the copies in a store.
#[derive(Debug)]
pub struct Follower {
    blob: Arc<dyn Blob>,
    /// Where copies are brought to; a folder for each collection.
    folder: PathBuf,
    settings: Settings,
    every: Duration,
    clock: Clock,
    at: HashMap<String, Followed>,
}

#[derive(Debug)]
struct Followed {
    folder: PathBuf,
    /// When to look again.
    due: Timestamp,
}

impl Follower {
    pub fn new(
        blob: Arc<dyn Blob>,
        folder: PathBuf,
        settings: Settings,
        every: Duration,
        clock: Clock,
    ) -> Self {
        Self { blob, folder, settings, every, clock, at: HashMap::new() }
    }

    /// The index of a collection, if there is a newer copy than the one given out before.
    pub async fn newer(&mut self, name: &str) -> Result<Option<Index>, MirrorError> {
        let now = self.clock.now();
        let known = self.at.get(name);
        if known.is_some_and(|known| now < known.due) {
            return Ok(None);
        }
        let below = self.folder.join(name);
        let folder = match mirror::fetch(name, &*self.blob, &below).await {
            Ok(folder) => folder,
            Err(MirrorError::Nothing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let due = now.saturating_add(self.every).unwrap_or(Timestamp::MAX);
        if known.is_some_and(|known| known.folder == folder) {
            self.at.insert(name.to_owned(), Followed { folder, due });
            return Ok(None);
        }
        let index = Index::open_read_only(&folder, self.settings.clone())?;
        // What is open stays readable until its last reader is done.
        let (keep, of) = (folder.clone(), below.clone());
        let tidied = tokio::task::spawn_blocking(move || tidy(&of, &keep)).await;
        if let Err(error) = tidied.map_err(std::io::Error::other).and_then(|tidied| tidied) {
            tracing::warn!(folder = %below.display(), error = %Chain(&error), "old copies of an index stay");
        }
        self.at.insert(name.to_owned(), Followed { folder, due });
        Ok(Some(index))
    }

    pub fn forget(&mut self, name: &str) {
        self.at.remove(name);
    }
}

/// Removes older copies: their folders, and segments that only they had.
fn tidy(below: &Path, keep: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(below)? {
        let entry = entry?;
        let path = entry.path();
        if path == keep || !entry.file_type()?.is_dir() || entry.file_name() == mirror::FETCHED {
            continue;
        }
        std::fs::remove_dir_all(path)?;
    }
    for entry in std::fs::read_dir(below.join(mirror::FETCHED))? {
        let entry = entry?;
        // The only name it has: the copy in use does not need it.
        if entry.metadata()?.nlink() == 1 {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
