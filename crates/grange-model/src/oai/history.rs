//! History: how harvests ended, and warnings about single records.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::Outcome;
use super::counts::Counts;
use super::ids::{HistoryId, OaiJobId, RecurringId, RepositoryId};

/// One line: a harvest that is over, or a warning of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLine {
    pub id: HistoryId,
    pub repository: RepositoryId,
    pub job: OaiJobId,
    pub recurring: Option<RecurringId>,
    pub prefix: String,
    pub set: Option<String>,
    pub outcome: Outcome,
    /// Why it failed, or what was wrong with the record.
    pub reason: Option<String>,
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    #[schemars(with = "String")]
    pub ended_at: Timestamp,
    pub counts: Counts,
    pub pages: u64,
}
