//! Keeps the collections that are served as the database and the data folder say.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::Chain;
use grange_base::worker::Step;
use grange_db::{AccessRow, CollectedFile, Db};
use grange_model::collection::FileKind as Kind;

use super::read_rules;
use super::shelf::{Shelf, ShelfError};
use crate::collection::{Collection, Collections};
use crate::holdings::{Holdings, HoldingsError, LocalFiles, Section, wacz};

/// A look that failed; what is served stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Shelf(#[from] ShelfError),
}

/// Opens every collection there is.
///
/// `archive` is where the bytes of the collection of that name are. What comes later is seen by [`Watcher::step`].
pub async fn open_all(
    db: &Db,
    shelf: &Shelf,
    archive: Arc<dyn Holdings>,
) -> Result<(Collections, Watcher), WatchError> {
    let collections = Collections::default();
    let mut watcher = Watcher {
        db: db.clone(),
        shelf: shelf.clone(),
        archive,
        collections: collections.clone(),
        foreign: HashMap::new(),
        rules: Vec::new(),
    };
    watcher.look().await?;
    Ok((collections, watcher))
}

/// Looks again: for collections that came and went, for files registered since, for captures committed by another process,
/// and for access rules.
#[derive(Debug)]
pub struct Watcher {
    db: Db,
    shelf: Shelf,
    archive: Arc<dyn Holdings>,
    collections: Collections,
    foreign: HashMap<String, Foreign>,
    rules: Vec<AccessRow>,
}

/// The files of a collection registered in place, and how far they are known.
#[derive(Debug)]
struct Foreign {
    files: Arc<ForeignFiles>,
    after: i64,
}

/// Rows read at once.
const PAGE: u32 = 1000;

impl Watcher {
    /// One look, for a worker.
    pub async fn step(&mut self) -> Result<Step, WatchError> {
        self.look().await?;
        Ok(Step::Idle)
    }

    async fn look(&mut self) -> Result<(), WatchError> {
        // Rules first: a collection is never served without those that were there before it.
        let rows = self.db.access_rules().list().await?;
        let changed = rows != self.rules;
        self.rules = rows;
        let listed = self.db.collections().names().await?;
        for served in self.collections.all() {
            if !listed.contains(&served.name) {
                self.collections.remove(&served.name);
                self.foreign.remove(&served.name);
                self.shelf.close(&served.name);
            }
        }
        for name in listed {
            match self.collections.get(&name) {
                Some(served) => {
                    if changed {
                        served.set_rules(read_rules(&self.rules));
                    }
                    if !self.shelf.writes() {
                        refresh(&served).await;
                    }
                }
                None => self.open(&name).await?,
            }
            self.register(&name).await?;
        }
        Ok(())
    }

    async fn open(&mut self, name: &str) -> Result<(), WatchError> {
        let (shelf, of) = (self.shelf.clone(), name.to_owned());
        let opened = tokio::task::spawn_blocking(move || shelf.index(&of)).await;
        let index = match opened {
            Ok(Ok(Some(index))) => index,
            // Nothing was indexed yet.
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => {
                // One broken index must not take the others from people.
                tracing::error!(collection = name, error = %Chain(&error), "a collection cannot be served");
                return Ok(());
            }
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let holdings: Arc<dyn Holdings> = if name == Collection::ARCHIVE {
            Arc::clone(&self.archive)
        } else {
            let files = Arc::new(ForeignFiles {
                local: LocalFiles::default(),
                folders: RwLock::default(),
                away: RwLock::default(),
                archive: Arc::clone(&self.archive),
            });
            self.foreign.insert(name.to_owned(), Foreign { files: Arc::clone(&files), after: 0 });
            files
        };
        let collection = Collection::new(name, Arc::new(index), holdings);
        collection.set_rules(read_rules(&self.rules));
        self.register(name).await?;
        self.collections.add(collection);
        Ok(())
    }

    /// Makes files known that were registered since, indexed or not yet.
    async fn register(&mut self, name: &str) -> Result<(), WatchError> {
        let Some(foreign) = self.foreign.get_mut(name) else { return Ok(()) };
        loop {
            let rows = self.db.collections().files(name, None, foreign.after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            foreign.after = last.id;
            let files = Arc::clone(&foreign.files);
            let added = tokio::task::spawn_blocking(move || rows.iter().for_each(|row| files.add(row)));
            if let Err(error) = added.await {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}

async fn refresh(collection: &Collection) {
    let index = Arc::clone(&collection.index);
    match tokio::task::spawn_blocking(move || index.refresh()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let collection = &collection.name;
            tracing::warn!(collection, error = %Chain(&error), "what was indexed since cannot be seen yet");
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Files registered in place, those that index files speak of (they lie beside them), and those imported with storing.
#[derive(Debug)]
struct ForeignFiles {
    local: LocalFiles,
    folders: RwLock<Vec<PathBuf>>,
    /// Registered and not there when they were looked for: a disk may be mounted later.
    away: RwLock<HashMap<String, PathBuf>>,
    archive: Arc<dyn Holdings>,
}

impl ForeignFiles {
    fn add(&self, row: &CollectedFile) {
        let Some(path) = &row.path else { return };
        match Kind::of(path) {
            Kind::Records => {
                if let Ok(section) = Section::whole(path) {
                    self.local.add(&row.name, section);
                } else {
                    let mut away = self.away.write().unwrap_or_else(PoisonError::into_inner);
                    away.insert(row.name.clone(), path.into());
                }
            }
            Kind::Wacz => {
                for member in wacz::members(Path::new(path)).into_iter().flatten() {
                    if let Some(section) = member.section {
                        self.local.add(&format!("{}/{}", row.name, member.name), section);
                    }
                }
            }
            Kind::Lines => {
                let Some(folder) = Path::new(path).parent() else { return };
                let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
                // pywb keeps indexes/ and archive/ side by side; others keep both in one folder.
                let beside = folder.parent().map(|above| [above.join("archive"), above.join("warcs")]);
                for folder in [folder.to_owned()].into_iter().chain(beside.into_iter().flatten()) {
                    if !folders.contains(&folder) {
                        folders.push(folder);
                    }
                }
            }
            Kind::Other => {}
        }
    }

    /// A file that was away, or that only an index line names: such a name comes from outside and may not lead out of the
    /// folders.
    fn find(&self, name: &str) -> Option<Section> {
        if let Some(path) = self.away.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Section::whole(path).ok();
        }
        let relative = Path::new(name);
        if !relative.components().all(|part| matches!(part, Component::Normal(_)))
            || Kind::of(name) != Kind::Records
        {
            return None;
        }
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        folders.iter().find_map(|folder| Section::whole(folder.join(relative)).ok())
    }
}

#[async_trait]
impl Holdings for ForeignFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        if self.local.get(file).is_none() {
            let Some(section) = self.find(file) else { return self.archive.read_at(file, offset, len).await };
            self.local.add(file, section);
        }
        self.local.read_at(file, offset, len).await
    }
}
