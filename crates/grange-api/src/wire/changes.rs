//! The record of changes: who did what, when, and what it was before.

use grange_model::audit::AuditEntry;
use serde::{Deserialize, Serialize};

/// A page of changes, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Changes {
    pub changes: Vec<AuditEntry>,
    /// Ask with `before=` this for the next page; absent on the last one.
    pub next: Option<i64>,
}
