//! The spool: bytes on their way in, for as long as no replica has them.
//!
//! A file is locked for as long as the process that writes it lives. One that nobody holds and no row names was left by a
//! process that was killed, and is removed at the next start and every hour.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use grange_base::Chain;
use grange_db::FileStatus;

use crate::archive::Archive;
use crate::error::Error;
use crate::replica::blocking;

/// A file in the spool that this process holds.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl SpoolFile {
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        loop {
            let path = folder.join(uuid::Uuid::now_v7().simple().to_string());
            let failed = |error| Error::io("write", &path)(error);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let file = file.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                // A sweep is looking at it, and takes it for abandoned.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // A sweep may have removed it before it was locked.
            if file.metadata().map_err(failed)?.nlink() > 0 {
                return Ok(Self { path, file });
            }
        }
    }
}

/// Only names that [`SpoolFile::create`] gives: whatever else lies there is not ours.
fn is_spooled(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The files that no living process holds, locked so that none comes to hold them.
fn abandoned(folder: &Path) -> Result<Vec<SpoolFile>, Error> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", folder))?;
        if !entry.file_name().to_str().is_some_and(is_spooled) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            found.push(SpoolFile { path, file });
        }
    }
    Ok(found)
}

impl Archive {
    fn spool(&self) -> PathBuf {
        self.0.data_dir.join("spool")
    }

    pub(crate) async fn spool_file(&self) -> Result<SpoolFile, Error> {
        let folder = self.spool();
        blocking(move || SpoolFile::create(&folder)).await
    }

    /// Removes what killed processes left in the spool and no row names as the only bytes of a file. Gives how many.
    pub async fn sweep_spool(&self) -> Result<u64, Error> {
        let folder = self.spool();
        let left = blocking(move || abandoned(&folder)).await?;
        if left.is_empty() {
            return Ok(0);
        }
        let needed = self.0.db.files().needed_sources().await?;
        let needed: Vec<PathBuf> = needed.iter().filter_map(|source| path_of(source)).collect();
        let mut removed = 0;
        for one in left.iter().filter(|one| !needed.contains(&absolute(&one.path))) {
            match std::fs::remove_file(&one.path) {
                Ok(()) => removed += 1,
                Err(error) => {
                    tracing::warn!(path = %one.path.display(), %error, "an abandoned upload was not removed");
                }
            }
        }
        if removed > 0 {
            tracing::info!(removed, "removed uploads that killed processes left in the spool");
        }
        Ok(removed)
    }

    /// The file is stored: what was kept in the spool for the next try goes.
    pub(crate) async fn drop_spooled(&self, status: &FileStatus) {
        let Some(path) = status.file.source.as_deref().and_then(path_of) else { return };
        let ours = path.parent() == Some(absolute(&self.spool()).as_path());
        if ours && path.file_name().and_then(|name| name.to_str()).is_some_and(is_spooled) {
            match tokio::fs::remove_file(&path).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a stored upload was not removed from the spool");
                }
                _ => {}
            }
        }
    }

    /// Removes what killed processes left: here, and on replicas that show it in no listing.
    pub(crate) async fn sweep_leftovers(&self) {
        if let Err(error) = self.sweep_spool().await {
            tracing::warn!(error = %Chain(&error), "the spool was not swept");
        }
        for replica in &self.0.replicas {
            if let Err(error) = replica.remove_abandoned_uploads().await {
                tracing::warn!(replica = replica.name(), error = %Chain(&error), "abandoned uploads were not removed");
            }
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where the bytes of a file that is not stored come from.
fn path_of(source: &str) -> Option<PathBuf> {
    let source: serde_json::Value = serde_json::from_str(source).ok()?;
    source["path"].as_str().map(PathBuf::from)
}
