//! A replica's node that can be away, and counts what it is asked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use grange_blob::{
    Blob, Error, Listed, MarkedPart, Opened, Source, Space, Stat, Stored, Taking, UnlistedFiles,
};
use grange_model::{Algorithm, Checksums, FileName, Sha512};

#[derive(Debug)]
pub(crate) struct Gate {
    inner: Arc<dyn Blob>,
    pub(crate) down: AtomicBool,
    pub(crate) puts: AtomicU32,
    pub(crate) removals: AtomicU32,
    pub(crate) checksums: AtomicU32,
    /// Goes down by itself after so many checksums; negative never does.
    pub(crate) checksums_left: AtomicI64,
    /// Says yes to this many puts and keeps nothing.
    pub(crate) forgets: AtomicU32,
    /// Has no room for another file.
    pub(crate) full: AtomicBool,
    /// So many copies lose their last byte right after they were written and read back.
    pub(crate) cuts: AtomicU32,
    /// Lists at most so many files on a page, whatever is asked for.
    pub(crate) page_most: AtomicUsize,
    /// A file on a part of the disk that is worn out, which no test can have for real.
    pub(crate) unreadable: Mutex<Option<FileName>>,
    /// A file about which every question is answered with an error, as a bucket may (500) while it serves all others.
    pub(crate) refused: Mutex<Option<FileName>>,
    /// A file that is never taken, though the replica takes all others.
    pub(crate) refused_puts: Mutex<Option<FileName>>,
    /// Ranges that were read.
    pub(crate) reads: AtomicU32,
    /// Its process has no free file descriptors for so many checksums.
    pub(crate) short: AtomicU32,
    /// Never gives another checksum.
    pub(crate) stuck: AtomicBool,
    /// Takes the bytes of a put and never ends it.
    pub(crate) stuck_puts: AtomicBool,
    /// Lets nothing go to the attic.
    pub(crate) keeps_all: AtomicBool,
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Blob>) -> Self {
        Self {
            inner,
            down: AtomicBool::new(false),
            puts: AtomicU32::new(0),
            removals: AtomicU32::new(0),
            checksums: AtomicU32::new(0),
            checksums_left: AtomicI64::new(-1),
            forgets: AtomicU32::new(0),
            full: AtomicBool::new(false),
            cuts: AtomicU32::new(0),
            page_most: AtomicUsize::new(usize::MAX),
            unreadable: Mutex::new(None),
            refused: Mutex::new(None),
            refused_puts: Mutex::new(None),
            reads: AtomicU32::new(0),
            short: AtomicU32::new(0),
            stuck: AtomicBool::new(false),
            stuck_puts: AtomicBool::new(false),
            keeps_all: AtomicBool::new(false),
        }
    }

    fn open(&self) -> Result<&dyn Blob, Error> {
        if self.down.load(Ordering::SeqCst) {
            return Err(Error::Unreachable { place: "gate".to_owned(), source: "it is down".into() });
        }
        Ok(&*self.inner)
    }

    fn about(&self, name: &FileName) -> Result<&dyn Blob, Error> {
        if self.refused.lock().unwrap().as_ref() == Some(name) {
            let (place, doing) = ("gate".to_owned(), format!("read {name}"));
            return Err(Error::Remote { doing, place, source: "500 Internal Server Error".into() });
        }
        self.open()
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
        if self.refused_puts.lock().unwrap().as_ref() == Some(name) {
            return Err(Error::ReadOnly { place: self.place().to_owned() });
        }
        self.puts.fetch_add(1, Ordering::SeqCst);
        if self.stuck_puts.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
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
        if self.stuck_puts.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.forgets.load(Ordering::SeqCst) > 0 {
            self.forgets.fetch_sub(1, Ordering::SeqCst);
            return Ok(Stored { size: 0, checksums: expected.copied().unwrap_or_default(), already: false });
        }
        if self.full.load(Ordering::SeqCst) {
            let place = self.place().to_owned();
            return Err(Error::Full { name: name.clone(), place, needed: None });
        }
        let stored = self.inner.put_file(name, path, taking, expected).await?;
        if self.cuts.load(Ordering::SeqCst) > 0 {
            self.cuts.fetch_sub(1, Ordering::SeqCst);
            let copy = self.inner.local_path(name).await?.expect("a disk has a path for every copy");
            let bytes = std::fs::read(&copy).expect("the copy was just written");
            std::fs::remove_file(&copy).expect("the folder is the test's");
            std::fs::write(&copy, &bytes[..bytes.len() - 1]).expect("the folder is the test's");
        }
        Ok(stored)
    }

    async fn local_path(&self, name: &FileName) -> Result<Option<PathBuf>, Error> {
        self.open()?.local_path(name).await
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        self.open()?.get(name).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.open()?.read_at(name, offset, len).await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        self.open()?.list(after, limit.min(self.page_most.load(Ordering::SeqCst))).await
    }

    async fn unlisted(&self, limit: usize) -> Result<UnlistedFiles, Error> {
        self.open()?.unlisted(limit).await
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        self.about(name)?.stat(name).await
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        if self.checksums_left.load(Ordering::SeqCst) >= 0
            && self.checksums_left.fetch_sub(1, Ordering::SeqCst) == 0
        {
            self.down.store(true, Ordering::SeqCst);
        }
        self.about(name)?;
        self.checksums.fetch_add(1, Ordering::SeqCst);
        if self.stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let take = |left: u32| left.checked_sub(1);
        if self.short.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            let (name, place) = (name.clone(), self.place().to_owned());
            return Err(Error::Shortage { name, place, reason: "too many open files".to_owned() });
        }
        if self.unreadable.lock().unwrap().as_ref() == Some(name) {
            let (name, place) = (name.clone(), self.place().to_owned());
            return Err(Error::Unreadable { name, place, reason: "input/output error".to_owned() });
        }
        self.inner.checksum(name, algorithms).await
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        self.about(name)?.challenge(name, salt).await
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        self.open()?;
        self.removals.fetch_add(1, Ordering::SeqCst);
        if self.keeps_all.load(Ordering::SeqCst) {
            return Err(Error::ReadOnly { place: self.place().to_owned() });
        }
        let mut bad = [&self.unreadable, &self.refused].into_iter();
        if bad.any(|bad| bad.lock().unwrap().take_if(|bad| bad == name).is_some()) {
            assert_eq!(*expected, Checksums::default());
            let lies_there = self.inner.checksum(name, &[Algorithm::Md5]).await?.unwrap();
            return self.inner.remove_to_attic(name, &lies_there).await;
        }
        self.inner.remove_to_attic(name, expected).await
    }

    async fn free(&self) -> Result<Space, Error> {
        self.open()?.free().await
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        self.open()?.markers().await
    }

    async fn mark(&self, part: &str, text: &str) -> Result<(), Error> {
        self.open()?.mark(part, text).await
    }

    fn place(&self) -> &str {
        self.inner.place()
    }
}
