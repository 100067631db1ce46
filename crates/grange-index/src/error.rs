//! What can go wrong with an index.

use std::io;
use std::path::PathBuf;

use crate::varint::Malformed;

/// Why an index or one of its segments did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {act} {}", path.display())]
    Io {
        act: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Bytes of ours that are not as they were written. Other blocks of the same file can still be read.
    #[error("{what} at byte {offset} of {} is damaged: restore the file from a copy, or index its files again", path.display())]
    Damaged { path: PathBuf, offset: u64, what: &'static str },
    /// A file that is no segment or manifest, or one of a version to come.
    #[error("{} is not {expected}", path.display())]
    Unknown { path: PathBuf, expected: &'static str },
    /// Segments or logs whose list is lost: beginning a new index would take them for leftovers.
    #[error(
        "the index in {} has lost its MANIFEST and still has {found}: restore the MANIFEST from a copy, or move the folder \
         away to index its files again", path.display()
    )]
    NoManifest { path: PathBuf, found: String },
    /// Someone else writes to this folder.
    #[error("the index in {} is being written by another process: open it read-only, or stop the other", path.display())]
    Locked { path: PathBuf },
    /// More rows would have to be read than the question allows.
    #[error("the answer takes more than the {most} rows that may be read for it")]
    Unfinished { most: u64 },
    /// A worker thread of a load ended before its work was done.
    #[error("a thread that was loading into {} ended early", path.display())]
    Broken { path: PathBuf },
}

impl Error {
    /// A stable name for the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "index-io",
            Self::Damaged { .. } => "index-damaged",
            Self::Unknown { .. } => "index-unknown",
            Self::NoManifest { .. } => "index-no-manifest",
            Self::Locked { .. } => "index-locked",
            Self::Unfinished { .. } => "index-unfinished",
            Self::Broken { .. } => "index-broken",
        }
    }

    pub(crate) fn io(act: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { act, path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, offset: u64, what: &'static str) -> Self {
        Self::Damaged { path: path.into(), offset, what }
    }

    pub(crate) fn at(
        path: impl Into<PathBuf>,
        offset: u64,
        what: &'static str,
    ) -> impl FnOnce(Malformed) -> Self {
        let path = path.into();
        move |Malformed| Self::Damaged { path, offset, what }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
