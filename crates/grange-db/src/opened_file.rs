//! Whether the open SQLite file is still the one at its path. SQLite goes on with a file that was removed: everything would be
//! acknowledged, and gone with the process.
//!
//! The path is asked for its file's number and never opened: closing a descriptor of the database would end SQLite's locks on it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The file that was at the path when SQLite opened it.
#[derive(Clone, Debug)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

/// The path leads to no file, or to another one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("it was removed or replaced while Grange had it open")]
pub(crate) struct LostFile {
    path: PathBuf,
}

impl OpenedFile {
    /// To be called right after SQLite opened it.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let identity = identity(path).map_err(|source| Error::Unreadable {
            path: path.to_owned(),
            source: std::sync::Arc::new(source),
        })?;
        Ok(Self { path: path.to_owned(), identity })
    }

    /// An error when the file is not at its path any more. A path that cannot be asked now shows nothing.
    pub(crate) fn is_there(&self) -> Result<(), LostFile> {
        let lost = match identity(&self.path) {
            Ok(found) => found != self.identity,
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if lost { Err(LostFile { path: self.path.clone() }) } else { Ok(()) }
    }
}

impl LostFile {
    pub(crate) fn doing(&self, doing: &'static str) -> Error {
        Error::FileLost { doing, path: self.path.clone() }
    }
}

impl From<LostFile> for sqlx::Error {
    fn from(lost: LostFile) -> Self {
        Self::Configuration(Box::new(lost))
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}
