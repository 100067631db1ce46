//! Where the bytes of a segment are: a file, or memory (the head).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) enum Source {
    File { file: File, path: PathBuf, len: u64 },
    Memory { bytes: Bytes, path: PathBuf },
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let len = file.metadata().map_err(Error::io("look at", path))?.len();
        Ok(Self::File { file, path: path.to_owned(), len })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory { bytes, .. } => bytes.len() as u64,
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Memory { path, .. } => path,
        }
    }

    /// Bytes from `offset`; too few are damage.
    pub(super) fn read(&self, offset: u64, len: u64, what: &'static str) -> Result<Bytes> {
        let damaged = || Error::damaged(self.path(), offset, what);
        let end = offset.checked_add(len).filter(|end| *end <= self.len()).ok_or_else(damaged)?;
        match self {
            Self::Memory { bytes, .. } => Ok(bytes.slice(offset as usize..end as usize)),
            Self::File { file, path, .. } => {
                let mut buffer = vec![0; len as usize];
                file.read_exact_at(&mut buffer, offset).map_err(Error::io("read", path))?;
                Ok(buffer.into())
            }
        }
    }
}
