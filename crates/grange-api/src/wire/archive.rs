//! Files, replicas, checks and repairs: what is asked. Answers are shown as the archive gives them.

use grange_model::{AuditKind, RepairChoice};
use serde::{Deserialize, Serialize};

/// A file of the node's own machine, to be stored from where it lies.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoreFile {
    pub path: String,
    /// The file's own name when absent.
    pub name: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NewAudit {
    pub kind: AuditKind,
    /// All replicas when absent.
    pub replica: Option<String>,
}

/// What to do about a file whose copies contradict its record.
#[derive(Debug, Serialize, Deserialize)]
pub struct RepairDecision {
    pub keep: RepairChoice,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RepairAll {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Use the replicas' credentials that lie on the node's machine, instead of waiting for a second person. Only
    /// somebody who can read them may ask for it.
    pub credentials: bool,
}
