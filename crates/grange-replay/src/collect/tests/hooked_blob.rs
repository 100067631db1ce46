//! A store in which something happens while it is written to or read.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use grange_base::Clock;
use grange_blob::{Blob, Error, Listed, MarkedPart, Memory, Opened, Source, Space, Stat, Stored, Taking};
use grange_model::{Algorithm, Checksums, FileName, Sha512};

/// The act under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobAct {
    Put,
    Get,
    List,
}

type Hook = Box<dyn Fn(BlobAct, String) -> BoxFuture<'static, Result<(), Error>> + Send + Sync>;

pub(super) struct HookedBlob {
    inner: Memory,
    /// Runs before each act on a name.
    hook: Hook,
}

impl HookedBlob {
    pub(super) fn new(
        clock: Clock,
        hook: impl Fn(BlobAct, String) -> BoxFuture<'static, Result<(), Error>> + Send + Sync + 'static,
    ) -> Self {
        Self { inner: Memory::new(clock), hook: Box::new(hook) }
    }

    async fn before(&self, act: BlobAct, name: &FileName) -> Result<(), Error> {
        (self.hook)(act, name.to_string()).await
    }
}

impl std::fmt::Debug for HookedBlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookedBlob").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Blob for HookedBlob {
    async fn put(
        &self,
        name: &FileName,
        source: Source<'_>,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        self.before(BlobAct::Put, name).await?;
        self.inner.put(name, source, expected).await
    }

    async fn put_file(
        &self,
        name: &FileName,
        path: &Path,
        taking: Taking,
        expected: Option<&Checksums>,
    ) -> Result<Stored, Error> {
        self.before(BlobAct::Put, name).await?;
        self.inner.put_file(name, path, taking, expected).await
    }

    async fn get(&self, name: &FileName) -> Result<Opened, Error> {
        self.before(BlobAct::Get, name).await?;
        self.inner.get(name).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: usize) -> Result<Bytes, Error> {
        self.inner.read_at(name, offset, len).await
    }

    async fn list(&self, after: Option<&FileName>, limit: usize) -> Result<Vec<Listed>, Error> {
        (self.hook)(BlobAct::List, after.map_or_else(String::new, ToString::to_string)).await?;
        self.inner.list(after, limit).await
    }

    async fn stat(&self, name: &FileName) -> Result<Option<Stat>, Error> {
        self.inner.stat(name).await
    }

    async fn checksum(&self, name: &FileName, algorithms: &[Algorithm]) -> Result<Option<Checksums>, Error> {
        self.inner.checksum(name, algorithms).await
    }

    async fn challenge(&self, name: &FileName, salt: &[u8]) -> Result<Option<Sha512>, Error> {
        self.inner.challenge(name, salt).await
    }

    async fn remove_to_attic(&self, name: &FileName, expected: &Checksums) -> Result<(), Error> {
        self.inner.remove_to_attic(name, expected).await
    }

    async fn free(&self) -> Result<Space, Error> {
        self.inner.free().await
    }

    async fn markers(&self) -> Result<Vec<MarkedPart>, Error> {
        self.inner.markers().await
    }

    async fn mark(&self, part: &str, text: &str) -> Result<(), Error> {
        self.inner.mark(part, text).await
    }

    fn place(&self) -> &str {
        self.inner.place()
    }
}
