//! The files of an imported collection, wherever they lie.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::Chain;
use grange_blob::{Buckets, is_bucket_url};
use grange_db::{CollectedFile, Db};
use grange_index::Index;
use grange_model::collection::FileKind as Kind;
use tokio::runtime::Handle;

use super::blocking;
use super::reading::Reading;
use crate::holdings::{BucketFiles, BucketSection, Holdings, HoldingsError, LocalFiles, Section, wacz};

/// Files registered in place, on this machine or in a bucket; those that index files speak of (they lie beside them); and
/// those imported with storing.
#[derive(Clone, Debug)]
pub(super) struct ForeignFiles {
    local: Arc<LocalFiles>,
    far: Arc<BucketFiles>,
    /// Folders and prefixes of buckets where files lie that only index lines name.
    beside: Arc<RwLock<Vec<String>>>,
    /// Those of them that were found there.
    found: Arc<RwLock<HashSet<String>>>,
    /// What is served of the collection: it says which names lines have.
    index: Arc<RwLock<Weak<Index>>>,
    /// Registered and not readable when they were looked for: a disk may be mounted later. By name, and by the name of the
    /// package for what is in one.
    away: Arc<RwLock<HashMap<String, CollectedFile>>>,
    /// Those that the archive has.
    stored: Arc<RwLock<HashSet<String>>>,
    /// Where rows are looked for that were not seen yet.
    db: Db,
    collection: String,
    archive: Arc<dyn Holdings>,
}

impl ForeignFiles {
    pub(super) fn new(db: Db, collection: &str, buckets: Buckets, archive: Arc<dyn Holdings>) -> Self {
        Self {
            local: Arc::default(),
            far: Arc::new(BucketFiles::new(buckets)),
            beside: Arc::default(),
            found: Arc::default(),
            index: Arc::default(),
            away: Arc::default(),
            stored: Arc::default(),
            db,
            collection: collection.to_owned(),
            archive,
        }
    }

    /// The index that is served from now on.
    pub(super) fn follow(&self, index: &Arc<Index>) {
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(index);
    }

    /// Whether the index has captures of a file. Folders hold more than what was imported.
    fn is_named(&self, name: &str) -> bool {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner).upgrade();
        index.is_some_and(|index| index.snapshot().file_names().any(|one| one == name))
    }

    /// Forgets files that only lines named which were taken out since.
    pub(super) fn forget_unnamed(&self) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(index) = index.filter(|_| !found.is_empty()) else { return };
        let snapshot = index.snapshot();
        let named: HashSet<&str> = snapshot.file_names().collect();
        found.retain(|name| {
            let stays = named.contains(name.as_str());
            if !stays {
                self.local.remove(name);
                self.far.remove(name);
            }
            stays
        });
    }

    /// Makes a registered file known. It may be read for that, so this is for a thread that may wait.
    pub(super) fn add(&self, row: &CollectedFile, handle: &Handle) {
        if self.open(row, handle).is_none() {
            let mut away = self.away.write().unwrap_or_else(PoisonError::into_inner);
            away.insert(row.name.clone(), row.clone());
        }
    }

    /// `None`: its bytes cannot be had now.
    fn open(&self, row: &CollectedFile, handle: &Handle) -> Option<()> {
        let Some(path) = &row.path else {
            self.stored.write().unwrap_or_else(PoisonError::into_inner).insert(row.name.clone());
            return Some(());
        };
        match Kind::of(path) {
            Kind::Records if is_bucket_url(path) => {
                self.far.add(&row.name, BucketSection { url: path.clone(), offset: 0, len: row.size });
            }
            Kind::Records => self.local.add(&row.name, Section::whole(path).ok()?),
            Kind::Wacz if is_bucket_url(path) => self.add_far_package(row, path, handle)?,
            Kind::Wacz => {
                for member in wacz::members(Path::new(path)).ok()? {
                    let name = member.name_in(&row.name);
                    if let Some(section) = member.section {
                        self.local.add(&name, section);
                    }
                }
            }
            Kind::Lines => self.add_beside(path),
            Kind::Other => {}
        }
        Some(())
    }

    fn add_far_package(&self, row: &CollectedFile, url: &str, handle: &Handle) -> Option<()> {
        let whole = BucketSection { url: url.to_owned(), offset: 0, len: row.size };
        self.far.add(&row.name, whole);
        let reading = Reading::new(self.far.clone(), &row.name, row.size, handle.clone());
        match wacz::members_of(|at, buffer| reading.exactly(at, buffer), row.size) {
            Ok(members) => {
                for member in members {
                    let name = member.name_in(&row.name);
                    if let Some(place) = member.section {
                        let len = place.end - place.start;
                        self.far.add(&name, BucketSection { url: url.to_owned(), offset: place.start, len });
                    }
                }
                Some(())
            }
            Err(error) => {
                tracing::warn!(url, error = %Chain(&error), "what is in this WACZ cannot be shown now");
                None
            }
        }
    }

    /// pywb keeps indexes/ and archive/ side by side; others keep both in one folder.
    fn add_beside(&self, path: &str) {
        let Some((folder, _)) = path.rsplit_once('/') else { return };
        let mut beside = self.beside.write().unwrap_or_else(PoisonError::into_inner);
        let mut places = vec![folder.to_owned()];
        if let Some((above, _)) = folder.rsplit_once('/') {
            places.extend([format!("{above}/archive"), format!("{above}/warcs")]);
        }
        for place in places {
            if !beside.contains(&place) {
                beside.push(place);
            }
        }
    }

    /// Looks for a file that was away, in every name that it or its package can have.
    async fn find_away(&self, name: &str) -> Option<()> {
        let row = {
            let away = self.away.read().unwrap_or_else(PoisonError::into_inner);
            own_and_packages(name).find_map(|name| away.get(name).cloned())?
        };
        self.open_row(row).await
    }

    /// Looks for a row that was not seen yet: rows can become visible in another order than that of their numbers.
    async fn find_row(&self, name: &str) -> Option<()> {
        for name in own_and_packages(name) {
            match self.db.collections().file_named(&self.collection, name).await {
                Ok(Some(row)) => return self.open_row(row).await,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(name, error = %Chain(&error), "cannot look for a file of the collection");
                    return None;
                }
            }
        }
        None
    }

    async fn open_row(&self, row: CollectedFile) -> Option<()> {
        let handle = Handle::current();
        let files = self.clone();
        let name = row.name.clone();
        blocking(move || files.open(&row, &handle)).await?;
        self.away.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
        Some(())
    }

    fn is_stored(&self, name: &str) -> bool {
        self.stored.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn knows(&self, name: &str) -> bool {
        self.local.get(name).is_some() || self.far.get(name).is_some()
    }

    /// A file that was away, that is new, or that only an index line names: such a name comes from outside and may not lead
    /// out of the folders.
    async fn find(&self, name: &str) -> Option<()> {
        if self.is_stored(name) || !is_name_of_file(name) {
            return None;
        }
        if self.find_away(name).await.is_none() {
            self.find_row(name).await;
        }
        if self.knows(name) {
            return Some(());
        }
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || Kind::of(name) != Kind::Records || !self.is_named(name) {
            return None;
        }
        let places = self.beside.read().unwrap_or_else(PoisonError::into_inner).clone();
        for place in places {
            let path = format!("{place}/{name}");
            if !is_bucket_url(&path) {
                let Ok(section) = Section::whole(path) else { continue };
                self.local.add(name, section);
            } else if let Ok(Some(len)) = self.far.buckets().size(&path).await {
                self.far.add(name, BucketSection { url: path, offset: 0, len });
            } else {
                continue;
            }
            self.found.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            return Some(());
        }
        None
    }
}

/// Packages that one file can be in: those within others are not read at all.
const PACKAGES_MAX: usize = 3;
/// No file system or bucket has names longer than this.
const NAME_BYTES_MAX: usize = 1024;

/// Whether a file can have this name. Names come from outside, and each package in one costs a question to the database.
fn is_name_of_file(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && own_and_packages(name).count() <= 1 + PACKAGES_MAX
}

/// A name, and those of the packages that it can be in, the longest first.
fn own_and_packages(name: &str) -> impl Iterator<Item = &str> {
    let above =
        name.rmatch_indices('/').map(|(at, _)| &name[..at]).filter(|above| Kind::of(above) == Kind::Wacz);
    std::iter::once(name).chain(above)
}

#[async_trait]
impl Holdings for ForeignFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        if !self.knows(file) && self.find(file).await.is_none() {
            return self.archive.read_at(file, offset, len).await;
        }
        if self.far.get(file).is_some() {
            return self.far.read_at(file, offset, len).await;
        }
        self.local.read_at(file, offset, len).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_asks_for_few_rows() {
        for (name, rows) in [
            ("a.warc.gz".to_owned(), Some(1)),
            ("x.wacz/archive/a.warc.gz".to_owned(), Some(2)),
            ("in/x.wacz/archive/a.warc.gz".to_owned(), Some(2)),
            ("z.wacz/y.wacz/x.wacz/a.warc.gz".to_owned(), Some(4)),
            ("z.wacz/y.wacz/x.wacz/w.wacz/a.warc.gz".to_owned(), None),
            ("x.wacz/".repeat(10_000), None),
            ("x/".repeat(511), Some(1)),
            ("x/".repeat(513), None),
        ] {
            let asked = is_name_of_file(&name).then(|| own_and_packages(&name).count());
            assert_eq!(asked, rows, "{} bytes: {:.40}", name.len(), name);
        }
    }
}
