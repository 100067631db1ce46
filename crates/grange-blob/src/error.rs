//! What can go wrong with bytes. Each text says what was tried, on what, and what to do; none holds a secret.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use grange_base::{Retry, Size};
use grange_model::{Checksums, FileName};
use jiff::Timestamp;

type Source = Box<dyn StdError + Send + Sync>;

/// A failed act. Nothing of it was kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    // Opening.
    #[error(
        "\"{given}\" names no place for files: {reason}; write memory:, file:FOLDER[,FOLDER…], \
         s3://BUCKET/PREFIX?endpoint=URL, swap://HOST:PORT/COLLECTION or peer://HOST:PORT/STORE"
    )]
    Url { given: String, reason: String },
    #[error("cannot read the key from {}: make the file readable for this user", path.display())]
    Secret {
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    // Answers about a file.
    #[error("there is no file {name} at {place}")]
    NotFound { name: FileName, place: String },
    #[error(
        "{place} already has a file {name} with other bytes ({known}), these are {given}: nothing was changed; \
         store the new bytes under another name"
    )]
    Conflict { name: FileName, place: String, known: Box<Checksums>, given: Box<Checksums> },
    #[error(
        "the bytes sent as {name} are not what their sender says: announced {announced}, received {received}; \
         send them again"
    )]
    WrongChecksum { name: FileName, announced: Box<Checksums>, received: Box<Checksums> },
    #[error("{received} bytes came as {name} where {announced} were announced: send the file again")]
    WrongSize { name: FileName, announced: u64, received: u64 },
    #[error("the file {name} at {place} has {found}, not {expected}: it was left where it is")]
    OtherBytes { name: FileName, place: String, expected: Box<Checksums>, found: Box<Checksums> },
    #[error("give a checksum of the file {name} to remove it")]
    NoChecksum { name: FileName },

    // Room.
    #[error(
        "there is no room for {name}{} at {place}: free some space, add a folder, or lower min_space_left",
        needed.map_or_else(String::new, |bytes| format!(" ({})", Size(bytes)))
    )]
    Full { name: FileName, place: String, needed: Option<u64> },
    #[error("{place} is read-only: files are neither added nor removed there")]
    ReadOnly { place: String },

    // Moving bytes.
    #[error("cannot read the bytes to be stored as {name}")]
    Source {
        name: FileName,
        #[source]
        source: io::Error,
    },
    #[error("cannot {doing} {}: check the disk, and the rights of the folder", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "what was written as {name} at {place} reads back differently (written {written}, read {read}): that disk \
         cannot be trusted; the file was not kept"
    )]
    ReadBack { name: FileName, place: String, written: Box<Checksums>, read: Box<Checksums> },
    #[error(
        "{name} lies at {place} and cannot be read ({reason}): repair the copy from another replica, and look at that disk"
    )]
    Unreadable { name: FileName, place: String, reason: String },

    #[error(
        "cannot read {name} at {place} now: that machine is short of file descriptors or memory ({reason}); raise its limits \
         (LimitNOFILE of the service)"
    )]
    Shortage { name: FileName, place: String, reason: String },

    // Other machines.
    #[error("cannot reach {place}: check that it runs there and that the network lets us through")]
    Unreachable {
        place: String,
        #[source]
        source: Source,
    },
    #[error("{place} refused to {doing} with status {status}: {reason}")]
    Refused { place: String, doing: String, status: u16, reason: String },
    #[error(
        "whoever answers at {place} does not share our node token: check the address and secrets/node.token"
    )]
    Unproven { place: String },
    #[error("{place} gave an answer that cannot be understood: {reason}; run the same version on both sides")]
    Foreign { place: String, reason: String },
    #[error(
        "{name} cannot be fetched from where it lies ({from}): {reason}{}",
        if *.reached { "" } else { "; check that nodes can reach each other at their node.advertise" }
    )]
    Origin {
        name: FileName,
        from: String,
        reason: String,
        /// Somebody who knows the token answered there.
        reached: bool,
    },
    #[error(
        "cannot {doing} at {place}: it refuses requests because this machine's clock is wrong; this machine says {ours}, {}; set \
         the clock of this machine, or run NTP",
        theirs.as_ref().map_or_else(|| "the store does not say its own time".to_owned(), |time| format!("the store says {time}"))
    )]
    Clock { doing: String, place: String, ours: Timestamp, theirs: Option<String> },
    #[error("cannot {doing} at {place}")]
    Remote {
        doing: String,
        place: String,
        #[source]
        source: Source,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Stable: the key of the translation and the field of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "blob-url",
            Self::Secret { .. } => "blob-secret",
            Self::NotFound { .. } => "blob-not-found",
            Self::Conflict { .. } => "blob-conflict",
            Self::WrongChecksum { .. } => "blob-wrong-checksum",
            Self::WrongSize { .. } => "blob-wrong-size",
            Self::OtherBytes { .. } => "blob-other-bytes",
            Self::NoChecksum { .. } => "blob-no-checksum",
            Self::Full { .. } => "blob-full",
            Self::ReadOnly { .. } => "blob-read-only",
            Self::Source { .. } => "blob-source",
            Self::Io { .. } => "blob-io",
            Self::ReadBack { .. } => "blob-read-back",
            Self::Unreadable { .. } => "blob-unreadable",
            Self::Shortage { .. } => "blob-shortage",
            Self::Unreachable { .. } => "blob-unreachable",
            Self::Refused { .. } => "blob-refused",
            Self::Unproven { .. } => "blob-unproven",
            Self::Foreign { .. } => "blob-foreign",
            Self::Origin { reached: true, .. } => "blob-origin",
            Self::Origin { reached: false, .. } => "blob-origin-away",
            Self::Clock { .. } => "blob-clock",
            Self::Remote { .. } => "blob-remote",
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn retry(&self) -> Retry {
        match self {
            // A sender's slip or a cut wire may not happen twice; a full disk may have been emptied.
            Self::WrongChecksum { .. }
            | Self::WrongSize { .. }
            | Self::Full { .. }
            | Self::Source { .. }
            | Self::Shortage { .. }
            | Self::Unreachable { .. }
            | Self::Origin { .. }
            // NTP may set it at any moment.
            | Self::Clock { .. }
            | Self::Remote { .. } => Retry::Soon,
            // 429 and 5xx are the statuses that speak of the moment and not of the request.
            Self::Refused { status, .. } if *status == 429 || *status >= 500 => Retry::Soon,
            _ => Retry::No,
        }
    }
}
