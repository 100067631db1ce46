//! The indexes of a data folder, opened once per process.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_db::IndexLease;
use grange_index::{Error, Index, Merger, Settings};
use grange_model::collection::check_name;

/// The indexes below a folder. Clones share what is open.
#[derive(Clone, Debug)]
pub struct Shelf {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    settings: Settings,
    /// Whether this process may write to indexes: to those that its node keeps.
    writes: bool,
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Debug)]
struct Open {
    index: Index,
    /// Why this process writes to it; absent for readers.
    lease: Option<IndexLease>,
    /// Ends with the index.
    _merger: Option<Merger>,
}

/// An index that this node keeps.
#[derive(Clone, Debug)]
pub struct KeptIndex {
    pub index: Index,
    pub lease: IndexLease,
}

/// An index could not be opened or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    #[error("{0}")]
    Name(String),
    #[error("cannot open the index of the collection {name}")]
    Open { name: String, source: Error },
    #[error("cannot start merging the index of the collection {name}")]
    Thread { name: String, source: std::io::Error },
    #[error("cannot remove the index in {}", path.display())]
    Remove { path: PathBuf, source: std::io::Error },
}

impl Shelf {
    /// The indexes in `DIR/index`. A node that may keep indexes writes; others only look.
    pub fn new(data: &Path, settings: Settings, writes: bool) -> Self {
        let inner = Inner { folder: data.join("index"), settings, writes, open: Mutex::new(HashMap::new()) };
        Self { inner: Arc::new(inner) }
    }

    /// Where the indexes are.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    pub fn writes(&self) -> bool {
        self.inner.writes
    }

    /// The index that this node keeps of a collection, once it is ready.
    pub fn kept(&self, name: &str) -> Option<KeptIndex> {
        let open = self.open();
        let found = open.get(name)?;
        Some(KeptIndex { index: found.index.clone(), lease: found.lease.clone()? })
    }

    /// All of them, by name.
    pub fn all_kept(&self) -> Vec<KeptIndex> {
        let open = self.open();
        let kept = open
            .values()
            .filter_map(|one| Some(KeptIndex { index: one.index.clone(), lease: one.lease.clone()? }));
        let mut kept: Vec<_> = kept.collect();
        kept.sort_by(|a, b| a.lease.collection.cmp(&b.lease.collection));
        kept
    }

    /// Whether there is anything of an index on this disk.
    pub fn has_folder(&self, name: &str) -> bool {
        holds_index(&self.inner.folder.join(name))
    }

    /// Opens an index for writing, creating it if there is none. It is not [`kept`](Self::kept) yet.
    pub(super) fn open_to_write(&self, name: &str) -> Result<Index, ShelfError> {
        check_name(name).map_err(ShelfError::Name)?;
        let opened = Index::open(self.inner.folder.join(name), self.inner.settings.clone());
        opened.map_err(|source| ShelfError::Open { name: name.to_owned(), source })
    }

    /// From now on the index is served and written to under this lease.
    pub(super) fn keep(&self, lease: IndexLease, index: Index) -> Result<(), ShelfError> {
        let name = lease.collection.clone();
        let merger = index
            .merge_in_background()
            .map_err(|source| ShelfError::Thread { name: name.clone(), source })?;
        let before = self.open().insert(name, Open { index, lease: Some(lease), _merger: Some(merger) });
        // Its merger is waited for, and nobody else has to.
        drop(before);
        Ok(())
    }

    /// The index of a collection to read; `None` if there is none here. One that has lost its manifest is an error.
    pub fn index(&self, name: &str) -> Result<Option<Index>, ShelfError> {
        check_name(name).map_err(ShelfError::Name)?;
        let mut open = self.open();
        if let Some(open) = open.get(name) {
            return Ok(Some(open.index.clone()));
        }
        let folder = self.inner.folder.join(name);
        if !holds_index(&folder) {
            return Ok(None);
        }
        let index = Index::open_read_only(folder, self.inner.settings.clone());
        let index = index.map_err(|source| ShelfError::Open { name: name.to_owned(), source })?;
        open.insert(name.to_owned(), Open { index: index.clone(), lease: None, _merger: None });
        Ok(Some(index))
    }

    /// Takes the index of a collection away, with all captures in it. Files are not touched.
    pub fn remove(&self, name: &str) -> Result<(), ShelfError> {
        check_name(name).map_err(ShelfError::Name)?;
        self.close(name);
        let path = self.inner.folder.join(name);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ShelfError::Remove { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Closes an index that was opened here.
    pub fn close(&self, name: &str) {
        let closed = self.open().remove(name);
        // Its merger is waited for, and nobody else has to.
        drop(closed);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a folder holds a manifest, segments or logs.
fn holds_index(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let end = Path::new(&name).extension();
        name == "MANIFEST" || end.is_some_and(|end| end == "seg" || end == "log")
    })
}
