//! A folder as an archive that is only read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error as ArchiveError};
use grange_db::{FileFilter, FileStatus, StoredFile};
use grange_model::{Actor, Checksums, FileName};
use jiff::Timestamp;

#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    /// Files that were fetched whole.
    pub(super) fetched: AtomicUsize,
}

impl Shelf {
    pub(super) fn new(folder: &Path) -> Arc<Shelf> {
        Arc::new(Shelf { folder: folder.to_owned(), fetched: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl ArchiveClient for Shelf {
    async fn store(
        &self,
        _: &Path,
        _: &grange_archive::Store,
    ) -> Result<grange_archive::StoreOutcome, ArchiveError> {
        unreachable!("nothing is stored")
    }

    async fn get(&self, name: &FileName, dest: &Path) -> Result<grange_archive::Got, ArchiveError> {
        let absent = |_| ArchiveError::NotFound { name: name.clone() };
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let size = std::fs::copy(self.folder.join(name.as_str()), dest).map_err(absent)?;
        let checksums = Checksums::default();
        Ok(grange_archive::Got {
            name: name.clone(),
            size,
            checksums,
            replica: "one".to_owned(),
            passed_over: Vec::new(),
        })
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, ArchiveError> {
        let absent = |_| ArchiveError::NotFound { name: name.clone() };
        let bytes = Bytes::from(std::fs::read(self.folder.join(name.as_str())).map_err(absent)?);
        let end = (offset + len).min(bytes.len() as u64);
        Ok(bytes.slice(offset as usize..end as usize))
    }

    async fn status(&self, _: &FileName) -> Result<Option<FileStatus>, ArchiveError> {
        unreachable!("files are listed")
    }

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, ArchiveError> {
        let names = std::fs::read_dir(&self.folder).unwrap();
        let names =
            names.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<FileName>().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| filter.after.as_ref().is_none_or(|after| name > after)).collect();
        names.sort();
        names.truncate(filter.limit as usize);
        let status = |name| FileStatus {
            file: StoredFile {
                id: 1,
                name,
                size: 0,
                checksums: Checksums::default(),
                source: None,
                created_at: Timestamp::UNIX_EPOCH,
                stored_at: None,
            },
            holdings: Vec::new(),
        };
        Ok(names.into_iter().map(status).collect())
    }

    async fn correct(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &grange_archive::Second,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is repaired")
    }

    async fn remove_and_get(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &grange_archive::Second,
        _: &Path,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is removed")
    }
}
