//! What other parts of Grange ask of the archive, here or on another node.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use grange_db::{FileFilter, FileStatus};
use grange_model::{Actor, Checksums, FileName};

use crate::archive::Archive;
use crate::error::Error;
use crate::read::Got;
use crate::remove::Second;
use crate::store::{Store, StoreOutcome};

/// The archive from outside. A missing file is an answer, given at once.
#[async_trait]
pub trait ArchiveClient: std::fmt::Debug + Send + Sync {
    /// Returns when every replica is proven, or says which is not.
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error>;

    /// Copies the file to `dest`, which appears whole or not at all.
    async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, Error>;

    /// Up to `len` bytes from `offset` on.
    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error>;

    async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, Error>;

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error>;

    /// The file's own checksums; `None` when there is no such file.
    async fn checksums(&self, name: &FileName) -> Result<Option<Checksums>, Error> {
        Ok(self.status(name).await?.map(|status| status.file.checksums))
    }

    /// Replaces a copy that answers `bad` by a proven one.
    async fn correct(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        actor: &Actor,
    ) -> Result<FileStatus, Error>;

    /// Takes a wrong copy out and hands its bytes over.
    async fn remove_and_get(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        dest: &Path,
        actor: &Actor,
    ) -> Result<FileStatus, Error>;
}

#[async_trait]
impl ArchiveClient for Archive {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error> {
        Self::store(self, path, store).await
    }

    async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, Error> {
        Self::get(self, name, dest).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        Self::read_at(self, name, offset, len).await
    }

    async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, Error> {
        Self::status(self, name).await
    }

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        Self::list(self, filter).await
    }

    async fn correct(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        Self::correct(self, replica, name, bad, second, actor).await
    }

    async fn remove_and_get(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        dest: &Path,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        Self::remove_and_get(self, replica, name, bad, second, dest, actor).await
    }
}
