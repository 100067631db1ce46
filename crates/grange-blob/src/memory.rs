//! Bytes in memory: for tests and for trying things out. Gone with the process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use grange_base::Clock;
use grange_model::{Algorithm, Checksums, FileName, Sha512};
use jiff::Timestamp;

use crate::blob::{Blob, Listed, MarkedPart, Opened, Source, Space, Stat, Stored};
use crate::buffers::Buffers;
use crate::check;
use crate::digest::{By, Proving, Summing};
use crate::error::Error;

#[derive(Clone, Debug)]
struct Held {
    bytes: Bytes,
    modified: Timestamp,
}

/// A store that forgets.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    checksums: Vec<Algorithm>,
    files: Mutex<BTreeMap<FileName, Held>>,
    attic: Mutex<Vec<(FileName, Bytes)>>,
    marker: Mutex<Option<String>>,
    /// A byte of the next file changes on its way.
    #[cfg(test)]
    pub(crate) flip_next: std::sync::atomic::AtomicBool,
    /// A file whose bytes cannot be read.
    #[cfg(test)]
    pub(crate) unreadable: Mutex<Option<FileName>>,
}

const PLACE: &str = "memory";

impl Memory {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            checksums: Algorithm::ALL.to_vec(),
            files: Mutex::default(),
            attic: Mutex::default(),
            marker: Mutex::default(),
            #[cfg(test)]
            flip_next: std::sync::atomic::AtomicBool::new(false),
            #[cfg(test)]
            unreadable: Mutex::default(),
        }
    }

    /// The set computed on put.
    #[must_use]
    pub fn with_checksums(self, checksums: Vec<Algorithm>) -> Self {
        Self { checksums, ..self }
    }

    /// What was removed, oldest first.
    pub fn attic(&self) -> Vec<(FileName, Bytes)> {
        self.attic.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes a file's bytes behind the store's back, as a failing disk would; for tests of what finds it.
    pub fn damage(&self, name: &FileName, change: impl FnOnce(&mut Vec<u8>)) {
        let mut files = self.files();
        if let Some(held) = files.get_mut(name) {
            let mut bytes = held.bytes.to_vec();
            change(&mut bytes);
            held.bytes = bytes.into();
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<FileName, Held>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes, or nothing where there are none.
    fn found(&self, name: &FileName) -> Result<Option<Bytes>, Error> {
        match self.held(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn held(&self, name: &FileName) -> Result<Bytes, Error> {
        #[cfg(test)]
        if self.unreadable.lock().unwrap().as_ref() == Some(name) {
            let (name, place, reason) = (name.clone(), PLACE.to_owned(), "worn out".to_owned());
            return Err(Error::Unreadable { name, place, reason });
        }
        let held = self.files().get(name).map(|held| held.bytes.clone());
        held.ok_or_else(|| Error::NotFound { name: name.clone(), place: PLACE.to_owned() })
    }
}

fn sum(by: By, bytes: &Bytes, algorithms: &[Algorithm]) -> Checksums {
    let mut summing = Summing::inline(by, algorithms);
    summing.update(bytes);
    summing.finish()
}

#[async_trait]
impl Blob for Memory {
    async fn put(
        &self,
        name: &FileName,
        mut source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        let announced = check::Announced::of(&source, expected);
        let algorithms = announced.algorithms(&self.checksums);
        if let (Some(expected), Ok(bytes)) = (&announced.expected, self.held(name)) {
            let known = sum(By::Second, &bytes, &algorithms);
            return check::known(name, PLACE, bytes.len() as u64, known, expected);
        }
        let (buffers, mut bytes) = (Buffers::default(), BytesMut::new());
        loop {
            let read = buffers.next(&mut source.reader).await;
            let piece = read.map_err(|source| Error::Source { name: name.clone(), source })?;
            if piece.is_empty() {
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        let bytes = bytes.freeze();
        let size = bytes.len() as u64;
        let checksums = sum(By::First, &bytes, &algorithms);
        announced.check(name, size, &checksums)?;
        let modified = self.clock.now();
        let mut files = self.files();
        if let Some(held) = files.get(name) {
            let known = sum(By::Second, &held.bytes, &algorithms);
            return check::known(name, PLACE, held.bytes.len() as u64, known, &checksums);
        }
        #[cfg(test)]
        let bytes = if self.flip_next.swap(false, std::sync::atomic::Ordering::SeqCst) {
            let mut flipped = bytes.to_vec();
            flipped[0] ^= 1;
            Bytes::from(flipped)
        } else {
            bytes
        };
        let strongest: Vec<_> = checksums.algorithms().take(1).collect();
        let read = (bytes.len() as u64, sum(By::Second, &bytes, &strongest));
        check::read_back(name, PLACE, (size, &checksums), read)?;
        files.insert(name.clone(), Held { bytes, modified });
        Ok(Stored { size, checksums, already: false })
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        let bytes = self.held(name)?;
        Ok(Opened::new(bytes.len() as u64, std::io::Cursor::new(bytes)))
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        let bytes = self.held(name)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(len).min(bytes.len());
        Ok(bytes.slice(start..end))
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        let files = self.files();
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let after = files.range::<FileName, _>((start, Bound::Unbounded));
        let listed = after.take(limit).map(|(name, held)| Listed {
            name: name.clone(),
            size: Some(held.bytes.len() as u64),
            modified: held.modified,
        });
        Ok(listed.collect())
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        let files = self.files();
        Ok(files.get(name).map(|held| Stat { size: held.bytes.len() as u64, modified: held.modified }))
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        Ok(self.found(name)?.map(|bytes| sum(By::Second, &bytes, algorithms)))
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        let proof = self.found(name)?.map(|bytes| {
            let mut proving = Proving::new(salt);
            proving.update(&bytes);
            proving.finish()
        });
        Ok(proof)
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        let readable = self.found(name);
        let mut files = self.files();
        let not_found = || Error::NotFound { name: name.clone(), place: PLACE.to_owned() };
        let bytes = files.get(name).map(|held| held.bytes.clone()).ok_or_else(not_found)?;
        match check::deciding(name, expected) {
            Ok(algorithms) => {
                readable?;
                check::removable(name, PLACE, expected, sum(By::Second, &bytes, &algorithms))?;
            }
            Err(_) if readable.is_err() => {}
            Err(error) => return Err(error),
        }
        files.remove(name);
        self.attic.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), bytes));
        Ok(())
    }

    async fn free(&self) -> Result<Space, Error> {
        Ok(Space { free_bytes: None, total_bytes: None, largest_bytes: u64::MAX })
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        let marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let empty = self.files().is_empty();
        Ok(vec![MarkedPart { part: String::new(), marker, empty, lost: None }])
    }

    async fn mark(&self, _part: &str, text: &str) -> Result<(), Error> {
        *self.marker.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
        Ok(())
    }

    fn place(&self) -> &str {
        PLACE
    }
}
