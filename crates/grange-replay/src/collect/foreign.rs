//! The files of an imported collection, wherever they lie.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::Chain;
use grange_blob::{Buckets, is_bucket_url};
use grange_db::CollectedFile;
use grange_model::collection::FileKind as Kind;
use tokio::runtime::Handle;

use super::reading::Reading;
use crate::holdings::{BucketFiles, BucketSection, Holdings, HoldingsError, LocalFiles, Section, wacz};

/// Files registered in place, on this machine or in a bucket; those that index files speak of (they lie beside them); and
/// those imported with storing.
#[derive(Debug)]
pub(super) struct ForeignFiles {
    local: LocalFiles,
    far: Arc<BucketFiles>,
    /// Folders and prefixes of buckets where files lie that only index lines name.
    beside: RwLock<Vec<String>>,
    /// Registered and not there when they were looked for: a disk may be mounted later.
    away: RwLock<HashMap<String, PathBuf>>,
    archive: Arc<dyn Holdings>,
}

impl ForeignFiles {
    pub(super) fn new(buckets: Buckets, archive: Arc<dyn Holdings>) -> Self {
        Self {
            local: LocalFiles::default(),
            far: Arc::new(BucketFiles::new(buckets)),
            beside: RwLock::default(),
            away: RwLock::default(),
            archive,
        }
    }

    /// Makes a registered file known. It may be read for that, so this is for a thread that may wait.
    pub(super) fn add(&self, row: &CollectedFile, handle: &Handle) {
        let Some(path) = &row.path else { return };
        match Kind::of(path) {
            Kind::Records if is_bucket_url(path) => {
                self.far.add(&row.name, BucketSection { url: path.clone(), offset: 0, len: row.size });
            }
            Kind::Records => {
                if let Ok(section) = Section::whole(path) {
                    self.local.add(&row.name, section);
                } else {
                    let mut away = self.away.write().unwrap_or_else(PoisonError::into_inner);
                    away.insert(row.name.clone(), path.into());
                }
            }
            Kind::Wacz if is_bucket_url(path) => self.add_far_package(row, path, handle),
            Kind::Wacz => {
                for member in wacz::members(Path::new(path)).into_iter().flatten() {
                    let name = member.name_in(&row.name);
                    if let Some(section) = member.section {
                        self.local.add(&name, section);
                    }
                }
            }
            Kind::Lines => self.add_beside(path),
            Kind::Other => {}
        }
    }

    fn add_far_package(&self, row: &CollectedFile, url: &str, handle: &Handle) {
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
            }
            Err(error) => tracing::warn!(url, error = %Chain(&error), "what is in this WACZ cannot be shown"),
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

    /// A file that was away, or that only an index line names: such a name comes from outside and may not lead out of the
    /// folders.
    async fn find(&self, name: &str) -> Option<()> {
        if let Some(path) = self.away.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            self.local.add(name, Section::whole(path).ok()?);
            return Some(());
        }
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || Kind::of(name) != Kind::Records {
            return None;
        }
        let places = self.beside.read().unwrap_or_else(PoisonError::into_inner).clone();
        for place in places {
            let path = format!("{place}/{name}");
            if !is_bucket_url(&path) {
                if let Ok(section) = Section::whole(path) {
                    self.local.add(name, section);
                    return Some(());
                }
            } else if let Ok(Some(len)) = self.far.buckets().size(&path).await {
                self.far.add(name, BucketSection { url: path, offset: 0, len });
                return Some(());
            }
        }
        None
    }
}

#[async_trait]
impl Holdings for ForeignFiles {
    async fn read_at(&self, file: &str, offset: u64, len: u64) -> Result<Option<Bytes>, HoldingsError> {
        let known = || self.local.get(file).is_some() || self.far.get(file).is_some();
        if !known() && self.find(file).await.is_none() {
            return self.archive.read_at(file, offset, len).await;
        }
        if self.far.get(file).is_some() {
            return self.far.read_at(file, offset, len).await;
        }
        self.local.read_at(file, offset, len).await
    }
}
