//! The archive for roles that start before it can be opened: each call opens it, or fails with the reason why not.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use grange_app::OpenArchive;
use grange_archive::{ArchiveClient, Error, Got, Second, Store, StoreOutcome};
use grange_db::{FileFilter, FileStatus};
use grange_model::{Actor, Checksums, FileName};

/// The node's archive, as roles use it.
#[derive(Clone, Debug)]
pub struct LateArchive(pub OpenArchive);

#[async_trait]
impl ArchiveClient for LateArchive {
    async fn store(&self, path: &Path, store: &Store) -> Result<StoreOutcome, Error> {
        ArchiveClient::store(self.0.archive().await?, path, store).await
    }

    async fn get(&self, name: &FileName, dest: &Path) -> Result<Got, Error> {
        ArchiveClient::get(self.0.archive().await?, name, dest).await
    }

    async fn read_at(&self, name: &FileName, offset: u64, len: u64) -> Result<Bytes, Error> {
        ArchiveClient::read_at(self.0.archive().await?, name, offset, len).await
    }

    async fn status(&self, name: &FileName) -> Result<Option<FileStatus>, Error> {
        ArchiveClient::status(self.0.archive().await?, name).await
    }

    async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        ArchiveClient::list(self.0.archive().await?, filter).await
    }

    async fn checksums(&self, name: &FileName) -> Result<Option<Checksums>, Error> {
        ArchiveClient::checksums(self.0.archive().await?, name).await
    }

    async fn correct(
        &self,
        replica: &str,
        name: &FileName,
        bad: &Checksums,
        second: &Second,
        actor: &Actor,
    ) -> Result<FileStatus, Error> {
        ArchiveClient::correct(self.0.archive().await?, replica, name, bad, second, actor).await
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
        let archive = self.0.archive().await?;
        ArchiveClient::remove_and_get(archive, replica, name, bad, second, dest, actor).await
    }
}
