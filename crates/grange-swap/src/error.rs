//! What can go wrong, in words that say what was tried, on what, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::name::{BadName, Namespace};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this name cannot be used")]
    Name(#[from] BadName),
    #[error("cannot {doing} {}: check the disk and the rights of the folder", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is no partition ({reason}): make one with grange swap init", path.display())]
    NoPartition { path: PathBuf, reason: String },
    #[error("{} is a partition already: choose another folder", path.display())]
    AlreadyPartition { path: PathBuf },
    #[error("{} is not empty: a partition starts in an empty folder", path.display())]
    NotEmpty { path: PathBuf },
    #[error("the partition {} is served by another process: stop that one first", path.display())]
    InUse { path: PathBuf },
    #[error("a sync failed on the partition {}, so its disk may lack what is shown there: unmount and check the disk, mount it, then remove {}/.swap-sync-failed", path.display(), path.display())]
    SyncFailed { path: PathBuf },
    #[error("two partitions have the id {uuid}: one is a copy of the other; serve only one of them")]
    Twin { uuid: Uuid },
    #[error("{} does not describe a collection: {reason}; compare it with its copies on other partitions", path.display())]
    BadCollection { path: PathBuf, reason: String },

    #[error("cannot listen on {address}: choose another address with --listen")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the key from {}: make the file, readable for this user only", path.display())]
    Key {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the key in {} has {bytes} bytes, fewer than {min}: make one with head -c 32 /dev/urandom | base64", path.display())]
    ShortKey { path: PathBuf, bytes: usize, min: usize },
    #[error("the key in {} has a line break or another byte that no header can carry: make one with head -c 32 /dev/urandom | base64", path.display())]
    UnsendableKey { path: PathBuf },
    #[error("{address} is no address others could reach us by: name one with --advertise")]
    Advertise { address: String },

    // Answers to people and peers.
    #[error("there is no collection {namespace}")]
    NoCollection { namespace: String },
    #[error("the namespace {namespace} overlaps with the collection {other}: choose one beside it")]
    Overlap { namespace: Namespace, other: Namespace },
    #[error("{reason}")]
    Refused { reason: String },
    /// Somebody who is needed is away or behind; the same request may succeed soon.
    #[error("{reason}: try again soon")]
    Away { reason: String },
    #[error("cannot reach {place}: check that it runs there")]
    Unreachable {
        place: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{place} answered {status}: {reason}")]
    Answered { place: String, status: u16, reason: String },
    #[error("{place} does not know our key, or we not its: give both the same --key-file")]
    Unproven { place: String },
    #[error("{place} sent what cannot be understood: {reason}; run the same version everywhere")]
    Foreign { place: String, reason: String },
}

impl Error {
    pub(crate) fn io<E: Into<io::Error>>(
        doing: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { doing, path: path.as_ref().to_owned(), source: source.into() }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }

    pub(crate) fn away(reason: impl Into<String>) -> Self {
        Self::Away { reason: reason.into() }
    }

    /// The HTTP status that says the same.
    pub fn status(&self) -> u16 {
        match self {
            Self::Name(_) => 400,
            Self::NoCollection { .. } => 404,
            Self::Overlap { .. } | Self::Refused { .. } => 409,
            Self::Away { .. } | Self::Unreachable { .. } => 503,
            Self::Answered { status, .. } => *status,
            _ => 500,
        }
    }
}
