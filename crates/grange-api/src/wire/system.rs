//! The system itself: version, nodes, database.

use grange_model::FindingKind;
use grange_model::node::{Liveness, NodeRecord};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who answers, and whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub name: String,
    pub version: String,
    /// The user the request came from.
    pub user: String,
}

/// One process of Grange, and whether it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSeen {
    #[serde(flatten)]
    pub node: NodeRecord,
    pub state: Liveness,
}

/// A state that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingSeen {
    pub id: i64,
    pub kind: FindingKind,
    pub subject: String,
    pub detail: String,
    pub opened_at: Timestamp,
    pub announced_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
}

/// The database: which one, and how old its tables are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// `sqlite` or `postgres`.
    pub engine: String,
    /// Where it is, in words and without credentials.
    pub place: String,
    pub schema_version: i64,
    pub newest_version: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NewBackup {
    /// Where to, on the node's machine; the node's own backup folder when absent.
    pub path: Option<String>,
}

/// The answer to a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub path: String,
    pub bytes: u64,
}
