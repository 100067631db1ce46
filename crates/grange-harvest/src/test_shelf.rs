//! A folder as an archive: what lies in it is read, and stores are answered as a test says.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use grange_archive::{ArchiveClient, Error as ArchiveError, Got, Second, Store, StoreOutcome, Unproven};
use grange_db::{FileFilter, FileStatus, Holding, StoredFile};
use grange_model::{Actor, Checksums, FileName, Presence, ReplicaKind, UploadState, Verdict};
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
    /// Files that the second replica does not hold.
    pub(crate) unverified: Mutex<BTreeSet<String>>,
    /// Files that the second replica, which was added later, does not hold yet.
    pub(crate) stored_before: Mutex<BTreeSet<String>>,
    /// What the next attempts to fetch a file whole are refused with.
    pub(crate) refusals: Mutex<VecDeque<ArchiveError>>,
    /// Files of which no replica returns a part.
    pub(crate) unreadable: Mutex<BTreeSet<String>>,
}

impl Shelf {
    /// Nothing is to be stored.
    pub(crate) fn new(folder: &Path) -> Arc<Shelf> {
        Self::answering(folder, &[])
    }

    /// Stores are answered so, one after another.
    pub(crate) fn answering(folder: &Path, answers: &[Says]) -> Arc<Shelf> {
        let answers = Mutex::new(answers.iter().copied().collect());
        let (fetched, unverified, stored_before) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        let (folder, unreadable, refusals) = (folder.to_owned(), Mutex::default(), Mutex::default());
        Arc::new(Shelf { folder, fetched, answers, unverified, stored_before, refusals, unreadable })
    }

    fn file_status(&self, name: FileName) -> FileStatus {
        let bytes = std::fs::read(self.folder.join(name.as_str())).unwrap_or_default();
        let mut digest = [0; 64];
        blake3::Hasher::new().update(&bytes).finalize_xof().fill(&mut digest);
        let sha512 = data_encoding::HEXLOWER.encode(&digest).parse().ok();
        let stored_before = self.stored_before.lock().unwrap().contains(name.as_str());
        let verified = !stored_before && !self.unverified.lock().unwrap().contains(name.as_str());
        let holding = |replica_id: i64, replica: &str, verified: bool| Holding {
            replica_id,
            replica: replica.parse().unwrap(),
            kind: ReplicaKind::Bitarchive,
            state: if verified { UploadState::UploadCompleted } else { UploadState::UploadFailed },
            presence: Presence::Ok,
            verdict: Verdict::Ok,
            checksum: None,
            attempts: 0,
            last_error: None,
            listed_at: None,
            checked_at: None,
            changed_at: Timestamp::UNIX_EPOCH,
        };
        FileStatus {
            holdings: vec![holding(1, "one", true), holding(2, "two", verified)],
            file: StoredFile {
                id: 1,
                name,
                size: bytes.len() as u64,
                checksums: Checksums { sha512, ..Checksums::default() },
                source: None,
                created_at: Timestamp::UNIX_EPOCH,
                stored_at: stored_before.then_some(Timestamp::UNIX_EPOCH),
            },
        }
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
        if let Some(refusal) = self.refusals.lock().unwrap().pop_front() {
            return Err(refusal);
        }
        let size = std::fs::copy(self.folder.join(name.as_str()), dest).map_err(absent)?;
        let checksums = Checksums::default();
        Ok(Got { name: name.clone(), size, checksums, replica: "one".to_owned(), passed_over: Vec::new() })
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, ArchiveError> {
        let absent = |_| ArchiveError::NotFound { name: name.clone() };
        if self.unreadable.lock().unwrap().contains(name.as_str()) {
            let (path, source) = (self.folder.join(name.as_str()), std::io::Error::other("it is worn out"));
            return Err(ArchiveError::Io { doing: "read", path, source });
        }
        let bytes = Bytes::from(std::fs::read(self.folder.join(name.as_str())).map_err(absent)?);
        let end = (offset + len).min(bytes.len() as u64);
        Ok(bytes.slice(offset as usize..end as usize))
    }

    async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, ArchiveError> {
        let there = self.folder.join(name.as_str()).exists();
        Ok(there.then(|| self.file_status(name.clone())))
    }

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, ArchiveError> {
        let names = std::fs::read_dir(&self.folder).unwrap();
        let names =
            names.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<FileName>().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| filter.after.as_ref().is_none_or(|after| name > after)).collect();
        names.sort();
        names.truncate(filter.limit as usize);
        Ok(names.into_iter().map(|name| self.file_status(name)).collect())
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
