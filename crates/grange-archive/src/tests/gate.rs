//! A replica's node that can be away, and counts what it is asked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use grange_blob::{Blob, Error, Listed, Opened, Source, Space, Stat, Stored, Taking};
use grange_model::{Algorithm, Checksums, FileName, Sha512};

#[derive(Debug)]
pub(crate) struct Gate {
    inner: Arc<dyn Blob>,
    pub(crate) down: AtomicBool,
    pub(crate) puts: AtomicU32,
    pub(crate) checksums: AtomicU32,
    /// Goes down by itself after so many checksums; negative never does.
    pub(crate) checksums_left: AtomicI64,
    /// Says yes to this many puts and keeps nothing.
    pub(crate) forgets: AtomicU32,
    /// A file on a part of the disk that is worn out, which no test can have for real.
    pub(crate) unreadable: Mutex<Option<FileName>>,
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Blob>) -> Self {
        Self {
            inner,
            down: AtomicBool::new(false),
            puts: AtomicU32::new(0),
            checksums: AtomicU32::new(0),
            checksums_left: AtomicI64::new(-1),
            forgets: AtomicU32::new(0),
            unreadable: Mutex::new(None),
        }
    }

    fn open(&self) -> Result<&dyn Blob, Error> {
        if self.down.load(Ordering::SeqCst) {
            return Err(Error::Unreachable { place: "gate".to_owned(), source: "it is down".into() });
        }
        Ok(&*self.inner)
    }
}

#[async_trait]
impl Blob for Gate {
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        self.open()?;
        self.puts.fetch_add(1, Ordering::SeqCst);
        self.inner.put(name, source, expected).await
    }

    async fn put_file(
        &self,
        name: &FileName,
        path: &Path,
        taking: Taking,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        self.open()?;
        self.puts.fetch_add(1, Ordering::SeqCst);
        if self.forgets.load(Ordering::SeqCst) > 0 {
            self.forgets.fetch_sub(1, Ordering::SeqCst);
            return Ok(Stored { size: 0, checksums: expected.copied().unwrap_or_default(), already: false });
        }
        self.inner.put_file(name, path, taking, expected).await
    }

    async fn local_path(&self, name: &FileName) -> Result<Option<PathBuf>, Error> {
        self.open()?.local_path(name).await
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        self.open()?.get(name).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        self.open()?.read_at(name, offset, len).await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        self.open()?.list(after, limit).await
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        self.open()?.stat(name).await
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        if self.checksums_left.load(Ordering::SeqCst) >= 0
            && self.checksums_left.fetch_sub(1, Ordering::SeqCst) == 0
        {
            self.down.store(true, Ordering::SeqCst);
        }
        self.open()?;
        self.checksums.fetch_add(1, Ordering::SeqCst);
        if self.unreadable.lock().unwrap().as_ref() == Some(name) {
            let (name, place) = (name.clone(), self.place().to_owned());
            return Err(Error::Unreadable { name, place, reason: "input/output error".to_owned() });
        }
        self.inner.checksum(name, algorithms).await
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        self.open()?.challenge(name, salt).await
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        self.open()?;
        if self.unreadable.lock().unwrap().take_if(|bad| bad == name).is_some() {
            assert_eq!(*expected, Checksums::default());
            let lies_there = self.inner.checksum(name, &[Algorithm::Md5]).await?.unwrap();
            return self.inner.remove_to_attic(name, &lies_there).await;
        }
        self.inner.remove_to_attic(name, expected).await
    }

    async fn free(&self) -> Result<Space, Error> {
        self.open()?.free().await
    }

    fn place(&self) -> &str {
        self.inner.place()
    }
}
