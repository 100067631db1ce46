//! What can go wrong with the archive. Each text says what was tried, on what, and what to do.

use std::io;
use std::path::PathBuf;

use grange_base::Retry;
use grange_model::{Checksums, FileName, RepairId, RepairState};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the settings of the archive cannot be used: {reason}")]
    Settings { reason: String },
    #[error(
        "the database knows replicas that the settings do not have, or have as another kind: {}; put them back into \
         archive.replicas, or nobody would look after their files",
        names.join(", ")
    )]
    Undeclared { names: Vec<String> },
    #[error("there is no replica \"{given}\": choose from {}", known.join(", "))]
    NoReplica { given: String, known: Vec<String> },
    #[error("the replica {replica} is away: {reason}")]
    Away { replica: String, reason: String },
    #[error("the replica {replica} keeps no bytes: ask a bitarchive")]
    NoBytes { replica: String },
    #[error(
        "a challenge compares two replicas with bytes, and there is no other than {replica}: run \
         `grange audit run --kind checksum`, which needs only one"
    )]
    NoPeer { replica: String },

    #[error("there is no file {name} in the archive")]
    NotFound { name: FileName },
    #[error(
        "names that begin with {prefix}, and grange-replica.json, are kept for the archive itself: choose another name"
    )]
    Reserved { prefix: &'static str },
    #[error(
        "the archive has other bytes as {name} ({known}), these are {given}: store them under another name; \
         nothing was changed"
    )]
    OtherBytes { name: FileName, known: Checksums, given: Checksums },
    #[error(
        "an earlier deposit has the name {name} ({known}), and no replica has its bytes yet; these are {given}: store them \
         under another name, or, if the earlier deposit is given up, run `grange files withdraw {name}` and store them \
         again; nothing was changed"
    )]
    OtherDeposit { name: FileName, known: Checksums, given: Checksums },
    #[error("{} is not a regular file, so it cannot be stored; nothing was changed", path.display())]
    NotRegularFile { path: PathBuf },
    #[error(
        "cannot store {}: it belongs to the database that this node uses, and reading it would lose rows; make a copy with \
         `grange db backup COPY` and store that; nothing was changed",
        path.display()
    )]
    NamedDatabase { path: PathBuf },
    #[error("the deposit of {name} cannot be withdrawn: {reason}; nothing was changed")]
    NotWithdrawable { name: FileName, reason: String },
    #[error("the bytes given as {name} are not what their sender says: announced {announced}, found {found}")]
    WrongChecksum { name: FileName, announced: Checksums, found: Checksums },
    #[error("no proven copy of {name} can be read now: {reason}")]
    NoCopy {
        name: FileName,
        reason: String,
        /// A replica did not answer: its copy may be good.
        away: bool,
    },
    #[error("{len} bytes were asked for at once, at most {most} are given: ask in parts")]
    TooMuch { len: u64, most: u64 },

    #[error("{} on {replica} answers {found}, which is not the checksum named as wrong: look again", name)]
    NotThatBad { name: FileName, replica: String, found: String },
    #[error("the copy of {name} on {replica} is the right one: it is not taken out")]
    IsGood { name: FileName, replica: String },
    #[error(
        "what the archive wrote down of {name} is only changed when every copy, read now, says the same against it: {reason}"
    )]
    NotOutvoted { name: FileName, reason: String },
    #[error(
        "nothing is to be decided about {name}: no copy contradicts its record with enough voices; `grange files show {name}` lists its copies"
    )]
    NotUndecided { name: FileName },
    #[error("the credential is not that of {replica}: give the right one, or ask a second person to confirm")]
    Credential { replica: String },
    #[error("the repair {id} is {state}: only a repair that waits for a second person can be withdrawn")]
    NotWaiting { id: RepairId, state: RepairState },
    #[error("{who} asked for this repair and cannot also confirm it: a second person must")]
    SamePerson { who: String },
    #[error(
        "cannot {doing} as {who}: in a user namespace (a container with mapped user ids, `unshare`) user ids do not show \
         which person runs a command; give your own token with --server URL --token-file FILE, or run the command \
         outside of the namespace"
    )]
    Unidentified { doing: &'static str, who: String },

    #[error("cannot {doing} {}: check the disk and the rights of the folder", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the key {} cannot be used: {reason}", path.display())]
    Key { path: PathBuf, reason: String },
    #[error("the proof is not valid: {reason}")]
    Proof { reason: String },
    #[error(transparent)]
    Blob(#[from] grange_blob::Error),
    #[error(transparent)]
    Db(#[from] grange_db::Error),
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Stable: the key of the translation and the field of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Settings { .. } => "archive-settings",
            Self::Undeclared { .. } => "archive-undeclared-replica",
            Self::NoReplica { .. } => "archive-no-replica",
            Self::Away { .. } => "archive-replica-away",
            Self::NoBytes { .. } => "archive-no-bytes",
            Self::NotFound { .. } => "not-found",
            Self::Reserved { .. } => "archive-reserved-name",
            Self::OtherBytes { .. } => "archive-other-bytes",
            Self::WrongChecksum { .. } => "archive-wrong-checksum",
            Self::NoCopy { .. } => "archive-no-copy",
            Self::TooMuch { .. } => "archive-too-much",
            Self::NotThatBad { .. } => "archive-not-that-checksum",
            Self::IsGood { .. } => "archive-copy-is-good",
            Self::NotOutvoted { .. } => "archive-not-outvoted",
            Self::NotUndecided { .. } => "archive-not-undecided",
            Self::Credential { .. } => "archive-credential",
            Self::NotWaiting { .. } => "archive-repair-not-waiting",
            Self::OtherDeposit { .. } => "archive-other-deposit",
            Self::NotRegularFile { .. } => "archive-not-regular-file",
            Self::NamedDatabase { .. } => "archive-named-database",
            Self::NotWithdrawable { .. } => "archive-not-withdrawable",
            Self::NoPeer { .. } => "archive-no-peer",
            Self::SamePerson { .. } => "archive-same-person",
            Self::Unidentified { .. } => "archive-unidentified",
            Self::Io { .. } => "archive-io",
            Self::Key { .. } => "archive-key",
            Self::Proof { .. } => "archive-proof",
            Self::Blob(error) => error.code(),
            Self::Db(error) => error.code(),
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn retry(&self) -> Retry {
        match self {
            // A disk may be mounted again at any moment.
            Self::NoCopy { .. } | Self::Away { .. } => Retry::Soon,
            Self::Blob(error) => error.retry(),
            Self::Db(error) => error.retry(),
            _ => Retry::No,
        }
    }
}
