//! A folder as an archive: what lies in it is read, and stores are answered as a test says.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error as ArchiveError, Got, Second, Store, StoreOutcome, Unproven};
use grange_db::{FileFilter, FileStatus, StoredFile};
use grange_model::{Actor, Checksums, FileName, UploadState};
use jiff::Timestamp;

/// What an archive answers to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Stored,
    /// A replica is not proven.
    Unproven,
    /// The archiver cannot be reached.
    Away,
    /// The name is taken by other bytes.
    Taken,
}

#[derive(Debug)]
pub(crate) struct Shelf {
    folder: PathBuf,
    /// Files that were fetched whole.
    pub(crate) fetched: AtomicUsize,
    /// What stores are still to be answered with.
    pub(crate) answers: Mutex<VecDeque<Says>>,
}

impl Shelf {
    /// Nothing is to be stored.
    pub(crate) fn new(folder: &Path) -> Arc<Shelf> {
        Self::answering(folder, &[])
    }

    /// Stores are answered so, one after another.
    pub(crate) fn answering(folder: &Path, answers: &[Says]) -> Arc<Shelf> {
        let answers = Mutex::new(answers.iter().copied().collect());
        Arc::new(Shelf { folder: folder.to_owned(), fetched: AtomicUsize::new(0), answers })
    }
}

#[async_trait]
impl ArchiveClient for Shelf {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, ArchiveError> {
        let says = self.answers.lock().unwrap().pop_front().expect("nothing was to be stored any more");
        let (name, checksums) = (store.name.clone(), Checksums::default());
        let unproven = match says {
            Says::Stored => Vec::new(),
            Says::Unproven => {
                let (state, reason) = (UploadState::UploadFailed, "it is full".to_owned());
                vec![Unproven { replica: "two".to_owned(), state, reason }]
            }
            Says::Away => {
                let source = std::io::Error::other("nobody answers");
                return Err(ArchiveError::Io { doing: "send", path: path.to_owned(), source });
            }
            Says::Taken => {
                return Err(ArchiveError::OtherBytes { name, known: checksums, given: checksums });
            }
        };
        let stored = unproven.is_empty();
        Ok(StoreOutcome { name, size: 1, checksums, stored, already: false, unproven })
    }

    async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, ArchiveError> {
        let absent = |_| ArchiveError::NotFound { name: name.clone() };
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let size = std::fs::copy(self.folder.join(name.as_str()), dest).map_err(absent)?;
        let checksums = Checksums::default();
        Ok(Got { name: name.clone(), size, checksums, replica: "one".to_owned(), passed_over: Vec::new() })
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
        _: &Second,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is repaired")
    }

    async fn remove_and_get(
        &self,
        _: &str,
        _: &FileName,
        _: &Checksums,
        _: &Second,
        _: &Path,
        _: &Actor,
    ) -> Result<FileStatus, ArchiveError> {
        unreachable!("nothing is removed")
    }
}
