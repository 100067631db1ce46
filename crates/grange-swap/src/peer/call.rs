//! What servers ask each other over their persistent connection.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::Collection;
use crate::digest::Sum;
use crate::name::{LocalPath, Namespace};
use crate::tree::{Entry, Found};
use crate::verify::Report;
use crate::view::Inventory;

/// A question. Those about a name carry the epoch they were decided by: who has another one does not answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "call")]
pub(crate) enum Call {
    /// Your inventory, once it differs from version `since`, or after a moment anyway: also the sign of life.
    Watch { since: Option<u64> },
    /// What is that name on that slice?
    Find { collection: Uuid, epoch: u64, slice: usize, path: LocalPath },
    /// Make sure that name is a directory; you are the authority for it.
    EnsureDirectory { collection: Uuid, epoch: u64, path: LocalPath },
    /// The lines of a directory on all your slices, after a name.
    List { collection: Uuid, epoch: u64, path: Option<LocalPath>, after: Option<String>, limit: usize },
    /// Read those bytes from the disk again and sum them up.
    Sum { collection: Uuid, epoch: u64, slice: usize, path: LocalPath },
    /// Take the file out of sight if it has that checksum, on the slice it is moving away from.
    Remove { collection: Uuid, epoch: u64, slice: usize, path: LocalPath, sum: Option<Sum> },
    /// Is a name free for a new collection, which all of `servers` are asked? The answer is the inventory.
    NameFree { collection: Uuid, namespace: Namespace, servers: Vec<String> },
    /// Make a new collection real: you keep its slice 0.
    Establish { record: Collection },
    /// A new record.
    Adopt { record: Collection },
    /// Is there anything on your slices? The first thing that a walk meets, directories aside.
    FirstFile { collection: Uuid, epoch: u64 },
    /// A change that you decide, because you keep slice 0 or are the first of all servers.
    Change { change: Change },
    /// Verify your slices; `start` begins anew, else the running or last report.
    Verify { collection: Uuid, start: bool },
}

/// Changes to the set of collections. One server decides each, so no two contradict each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub(crate) enum Change {
    Create {
        namespace: String,
        slices: u32,
        public: bool,
        mixed_disks: bool,
    },
    Reslice {
        collection: Uuid,
        slices: u32,
        mixed_disks: bool,
    },
    Remove {
        collection: Uuid,
        with_files: bool,
    },
    /// Every slice has nothing left to move by that epoch.
    EndMove {
        collection: Uuid,
        epoch: u64,
    },
    /// A removal was not carried through: take names again.
    Reopen {
        collection: Uuid,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer", content = "value")]
pub(crate) enum Answer {
    Inventory(Box<Inventory>),
    /// Nothing new.
    Same,
    Found(Found),
    Done,
    /// Whether there was a file to remove.
    Removed(bool),
    /// The first thing met, if any.
    First(Option<String>),
    /// That component is in the way, being what it is.
    Conflict {
        path: String,
        found: Found,
    },
    /// Another living collection has the name or one that overlaps.
    Overlap(Namespace),
    /// We work by another epoch.
    OtherEpoch(u64),
    /// The lines, and whether there are more.
    Entries(Vec<Entry>, bool),
    Sum(Option<Sum>),
    Changed(Box<Collection>),
    Report(Box<Report>),
    Away(String),
    Refused(String),
    NoCollection(String),
    /// Neither the asking server nor its client did anything wrong: a disk failed, for example.
    Failed {
        status: u16,
        reason: String,
    },
}
