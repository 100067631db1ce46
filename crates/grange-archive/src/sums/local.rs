//! A checksum replica in a folder of this machine: the journal, and the witnesses beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use grange_base::durable;
use grange_blob::{MARKER, MarkedPart};
use grange_model::{Checksums, FileName};
use jiff::Timestamp;

use super::Sums;
use crate::error::Error;
use crate::journal::{Entry, JOURNAL, Journal, Line, sync_names};
use crate::replica::blocking;
use crate::witness;

/// Of one folder. Several of them on one folder, in one process or in many, agree with each other.
#[derive(Clone, Debug)]
pub struct LocalSums {
    journal: Arc<Journal>,
    folder: PathBuf,
}

impl LocalSums {
    /// Opens the folder. It is made when it is marked or written to.
    pub async fn open(folder: &Path) -> Result<Self, Error> {
        let folder = folder.to_owned();
        blocking(move || Ok(Self { journal: Arc::new(Journal::open(&folder)?), folder })).await
    }
}

#[async_trait]
impl Sums for LocalSums {
    async fn get(&self, name: &FileName) -> Result<Option<Entry>, Error> {
        // A check asks for every file; nearly always the journal has been read to its end.
        if let Ok(known) = self.journal.get_now(name) {
            return Ok(known);
        }
        let (journal, name) = (Arc::clone(&self.journal), name.clone());
        blocking(move || journal.get(&name)).await
    }

    async fn add(&self, line: Line) -> Result<bool, Error> {
        let journal = Arc::clone(&self.journal);
        blocking(move || {
            if journal.get(&line.name)?.is_some_and(|entry| same(entry, &line)) {
                return Ok(true);
            }
            journal.append_if(&line, |known| known.is_none_or(|entry| same(entry, &line)))
        })
        .await
    }

    async fn remove(&self, name: &FileName, expected: &Checksums, at: Timestamp) -> Result<bool, Error> {
        let line = Line { name: name.clone(), size: 0, checksums: Checksums::default(), removed: true, at };
        let (journal, expected) = (Arc::clone(&self.journal), *expected);
        let meant = move |known: Option<Entry>| match known {
            None | Some(Entry::Damaged) => true,
            Some(Entry::Sums(_, sums)) => !expected.is_empty() && sums.same_as(&expected),
        };
        blocking(move || journal.append_if(&line, meant)).await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<(String, Entry)>, Error> {
        let (journal, after) = (Arc::clone(&self.journal), after.cloned());
        blocking(move || {
            if after.is_none() {
                // A check starts: what counts is what lies on the disk.
                journal.refresh()?;
            }
            Ok(journal.list(after.as_ref().map(FileName::as_str), limit))
        })
        .await
    }

    async fn put_witness(&self, name: &FileName, text: &[u8]) -> Result<(), Error> {
        let (folder, name, text) = (self.folder.clone(), name.clone(), text.to_vec());
        blocking(move || witness::write(&folder, &name, &text)).await
    }

    async fn witness_names(&self) -> Result<Vec<FileName>, Error> {
        let folder = self.folder.clone();
        blocking(move || witness::names(&folder)).await
    }

    async fn read_witness(&self, name: &FileName) -> Result<Bytes, Error> {
        let (folder, name) = (self.folder.clone(), name.clone());
        blocking(move || witness::read(&folder, &name)).await
    }

    async fn marker(&self) -> Result<MarkedPart, Error> {
        let (folder, journal) = (self.folder.clone(), Arc::clone(&self.journal));
        blocking(move || {
            let path = folder.join(MARKER);
            let marker = match std::fs::read(&path) {
                Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(Error::io("read", &path)(error)),
            };
            let empty = marker.is_none() && {
                journal.refresh()?;
                journal.list(None, 1).is_empty()
            };
            let lost = (marker.is_some() && !journal.exists()?).then(|| JOURNAL.to_owned());
            Ok(MarkedPart { part: folder.display().to_string(), marker, empty, lost })
        })
        .await
    }

    async fn mark(&self, text: &str) -> Result<(), Error> {
        let (folder, journal, text) = (self.folder.clone(), Arc::clone(&self.journal), text.to_owned());
        blocking(move || {
            // Made with the marker: where it is gone later, it was lost.
            journal.create()?;
            let path = folder.join(MARKER);
            durable::replace_with(&path, text.as_bytes(), durable::PLAIN, sync_names)
                .map_err(Error::io("write", &path))
        })
        .await
    }
}

fn same(entry: Entry, line: &Line) -> bool {
    matches!(entry, Entry::Sums(size, sums) if size == line.size && sums.same_as(&line.checksums))
}
