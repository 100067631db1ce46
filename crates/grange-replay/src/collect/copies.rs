//! Copies of indexes between nodes that share no disk: an indexer puts them into a store, replay nodes follow.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Chain, Clock};
use grange_blob::Blob;
use grange_db::Db;
use grange_index::{Index, Settings, Snapshot};
use jiff::Timestamp;

use super::mirror::{self, CopyOwner, MirrorError};
use super::shelf::{KeptIndex, Shelf};

/// What the names of folders begin with while an index is copied.
const ASIDE: &str = ".copy-";

/// Puts a copy of every index that this node keeps into a store whenever it has changed.
#[derive(Debug)]
pub struct Publisher {
    db: Db,
    shelf: Shelf,
    blob: Arc<dyn Blob>,
    clock: Clock,
    /// The states that were last copied, by collection and token.
    seen: HashMap<(String, i64), Weak<Snapshot>>,
}

/// A copy that was not made; the next step tries again.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
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

    /// Copies what has changed since the last step. An index that cannot be copied holds up no other; the first error is
    /// given when all were tried.
    pub async fn step(&mut self) -> Result<Step, CopyError> {
        let mut failed = None;
        for kept in self.shelf.all_kept() {
            if let Err(error) = self.copy(&kept).await {
                let collection = &kept.lease.collection;
                tracing::error!(collection, error = %Chain(&error), "the index of a collection was not copied");
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(Step::Idle), Err)
    }

    async fn copy(&mut self, kept: &KeptIndex) -> Result<(), CopyError> {
        let KeptIndex { index, lease } = kept;
        let name = &lease.collection;
        let now = index.snapshot();
        let key = (name.clone(), lease.token);
        if self.seen.get(&key).is_some_and(|seen| seen.ptr_eq(&Arc::downgrade(&now))) {
            return Ok(());
        }
        // Only the owner's word counts, and only while it is that.
        if !self.db.collections().keeps_index(lease).await? {
            return Ok(());
        }
        let folder = self.shelf.folder();
        let failed = |source| CopyError::Folder { path: folder.to_owned(), source };
        // On the disk of the index, where links cost nothing.
        let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(folder).map_err(failed)?;
        let files = aside.path().join("files");
        let owner = CopyOwner { name, identity: &lease.identity, token: lease.token };
        let published = mirror::publish(index, owner, &*self.blob, &files, &self.clock).await?;
        if let Some(new) = published.new_files {
            tracing::info!(collection = name, new, place = self.blob.place(), "index copied");
        }
        // Not what the index is now: the feeder may have changed it while the copy was put.
        self.seen.retain(|(of, _), _| of != name);
        self.seen.insert(key, Arc::downgrade(&published.copied));
        Ok(())
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
    /// Collections whose copy could not be had, and when to look again.
    later: HashMap<String, Timestamp>,
    /// What could not be removed from the folder.
    stuck: HashSet<OsString>,
}

#[derive(Debug)]
struct Followed {
    identity: String,
    folder: PathBuf,
    /// The index that was given out: it knows whether it met damage.
    index: Index,
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
        let (at, later, stuck) = (HashMap::new(), HashMap::new(), HashSet::new());
        Self { blob, folder, settings, every, clock, at, later, stuck }
    }

    /// The index of a collection, if there is a newer copy than the one given out before, or that one was damaged and was
    /// fetched again. After an error the store is left alone for as long as after a look.
    pub async fn newer(&mut self, name: &str, identity: &str) -> Result<Option<Index>, MirrorError> {
        let now = self.clock.now();
        if self.later.get(name).is_some_and(|due| now < *due) {
            return Ok(None);
        }
        let found = self.look(name, identity, now).await;
        // Damage is looked for by reading all pieces, which nobody can do at every look.
        if found.is_err() {
            self.later.insert(name.to_owned(), self.due(now));
        } else {
            self.later.remove(name);
        }
        found
    }

    fn due(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.every).unwrap_or(Timestamp::MAX)
    }

    async fn look(
        &mut self,
        name: &str,
        identity: &str,
        now: Timestamp,
    ) -> Result<Option<Index>, MirrorError> {
        if self.at.get(name).is_some_and(|known| known.identity != identity) {
            self.at.remove(name);
        }
        let known = self.at.get(name);
        if known.is_some_and(|known| now < known.due) {
            return Ok(None);
        }
        let below = self.folder.join(name);
        let damaged = known.filter(|known| known.index.found_damage()).map(|known| known.folder.clone());
        if let Some(folder) = &damaged {
            mirror::drop_damaged(&below, folder).await?;
        }
        let folder = match mirror::fetch(name, Some(identity), &*self.blob, &below).await {
            Ok(fetched) => fetched.folder,
            Err(MirrorError::Nothing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let due = self.due(now);
        if let Some(known) = self.at.get_mut(name)
            && known.folder == folder
            && damaged.is_none()
        {
            known.due = due;
            return Ok(None);
        }
        let index = match Index::open_read_only(&folder, self.settings.clone()) {
            Ok(index) => index,
            Err(error) => {
                // Its digests were right when it came.
                mirror::drop_damaged(&below, &folder).await?;
                return Err(error.into());
            }
        };
        // What is open stays readable until its last reader is done.
        let (keep, of) = (folder.clone(), below.clone());
        let tidied = tokio::task::spawn_blocking(move || tidy(&of, &keep)).await;
        if let Err(error) = tidied.map_err(std::io::Error::other).and_then(|tidied| tidied) {
            tracing::warn!(folder = %below.display(), error = %Chain(&error), "old copies of an index stay");
        }
        let identity = identity.to_owned();
        self.at.insert(name.to_owned(), Followed { identity, folder, index: index.clone(), due });
        Ok(Some(index))
    }

    pub fn forget(&mut self, name: &str) {
        self.at.remove(name);
        self.later.remove(name);
    }

    /// Removes the copies of collections that are not listed any more, also of those that went while this process was away.
    /// What is open of them stays readable.
    pub async fn remove_unlisted(&mut self, is_listed: impl Fn(&str) -> bool) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name.to_str().is_some_and(&is_listed) || self.stuck.contains(&name) {
                continue;
            }
            if let Err(error) = tokio::fs::remove_dir_all(entry.path()).await {
                tracing::warn!(path = %entry.path().display(), %error, "the copy of a removed collection's index was not removed");
                self.stuck.insert(name);
            }
        }
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
