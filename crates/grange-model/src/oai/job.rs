//! Jobs: one harvest of one repository, set and format, waiting or under way.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::{Method, Validation};
use super::counts::Counts;
use super::ids::{OaiJobId, RecurringId, RepositoryId};
use crate::nearest::named;

named! {
    /// A job that is over is a line of history and no job any more.
    OaiJobStatus, "job status" {
        Scheduled = "scheduled",
        Running = "in-progress",
        /// Somebody deleted it while it ran; it ends after its page.
        Stopping = "stopping",
    }
}

/// What is asked for, and how it is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HarvestSpec {
    pub prefix: String,
    #[serde(default)]
    pub set: Option<String>,
    /// Records dated since then, inclusive. Absent: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub from: Option<Timestamp>,
    /// Records dated until then, inclusive. Absent: all.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// Only what changed since the last whole harvest; overrides `from` once there was one.
    #[serde(default)]
    pub incremental: bool,
    #[serde(default = "list_records")]
    pub method: Method,
    #[serde(default = "loose")]
    pub validation: Validation,
    /// The text of a filter file.
    #[serde(default)]
    pub filter: Option<String>,
    /// The text of a normalize file.
    #[serde(default)]
    pub normalize: Option<String>,
    /// Delete all records that a complete list lacks, also if they are more than a fifth of those held, or if the list is
    /// doubtful. For one harvest that a person asks for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_deletions: bool,
}

fn list_records() -> Method {
    Method::ListRecords
}

fn loose() -> Validation {
    Validation::Loose
}

impl HarvestSpec {
    /// Everything of a format, judged loosely: a large harvest does not fail by one record.
    pub fn all(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            set: None,
            from: None,
            until: None,
            incremental: false,
            method: Method::ListRecords,
            validation: Validation::Loose,
            filter: None,
            normalize: None,
            accept_deletions: false,
        }
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OaiJob {
    pub id: OaiJobId,
    pub repository: RepositoryId,
    pub recurring: Option<RecurringId>,
    pub spec: HarvestSpec,
    pub status: OaiJobStatus,
    /// Not before this time.
    #[schemars(with = "String")]
    pub due_at: Timestamp,
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// The node that runs it.
    pub owner: Option<String>,
    /// It counts as dead without a word until then.
    #[schemars(with = "Option<String>")]
    pub lease_until: Option<Timestamp>,
    /// How often it was begun.
    pub attempts: u32,
    pub pages: u64,
    /// How many records the repository says there are; for progress only.
    pub expected: Option<u64>,
    pub counts: Counts,
}
