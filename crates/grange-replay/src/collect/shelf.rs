//! The indexes of a data folder, opened once per process.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Whether indexes are opened for writing; there is one writer for each, in one process.
    writes: bool,
    open: Mutex<HashMap<String, Open>>,
}

#[derive(Debug)]
struct Open {
    index: Index,
    /// Ends with the index.
    _merger: Option<Merger>,
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
    /// The indexes in `DIR/index`. Whoever feeds them writes; others only look.
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

    /// The index of a collection; `None` if there is none yet and none may be made.
    pub fn index(&self, name: &str) -> Result<Option<Index>, ShelfError> {
        check_name(name).map_err(ShelfError::Name)?;
        let mut open = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.get(name) {
            return Ok(Some(open.index.clone()));
        }
        let folder = self.inner.folder.join(name);
        let failed = |source| ShelfError::Open { name: name.to_owned(), source };
        let settings = self.inner.settings.clone();
        let made = if self.inner.writes {
            let index = Index::open(folder, settings).map_err(failed)?;
            let merger = index
                .merge_in_background()
                .map_err(|source| ShelfError::Thread { name: name.to_owned(), source })?;
            Open { index, _merger: Some(merger) }
        } else if folder.join("MANIFEST").exists() {
            Open { index: Index::open_read_only(folder, settings).map_err(failed)?, _merger: None }
        } else {
            return Ok(None);
        };
        let index = made.index.clone();
        open.insert(name.to_owned(), made);
        Ok(Some(index))
    }

    /// Takes the index of a collection away, with all captures in it. Files are not touched.
    pub fn remove(&self, name: &str) -> Result<(), ShelfError> {
        check_name(name).map_err(ShelfError::Name)?;
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
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
        self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
