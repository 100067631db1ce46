//! Harvest definitions: what is to be harvested, and their runs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::channel::ChannelName;
use super::job::HarvestId;
use super::limit::Limits;
use super::name::Name;
use crate::nearest::named;

named! {
    /// The two kinds of harvests.
    HarvestKind, "kind of harvest" {
        /// Chosen configurations, by a schedule.
        Selective = "selective",
        /// Every domain's default configuration, once.
        Snapshot = "snapshot",
    }
}

/// A harvest definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HarvestDefinition {
    pub id: HarvestId,
    pub name: Name,
    pub kind: HarvestKind,
    pub comments: String,
    /// Whom the harvest is for.
    pub audience: String,
    pub active: bool,
    /// Why Grange itself took it out of service, if it did.
    pub deactivated_because: Option<String>,
    /// How many runs were made.
    pub runs: u64,
    /// When the next run is due; absent: never.
    #[schemars(with = "Option<String>")]
    pub next_at: Option<Timestamp>,
    /// Of a selective harvest.
    pub schedule: Option<Name>,
    /// Absent: the default channel of its kind.
    pub channel: Option<ChannelName>,
    /// Of a snapshot harvest; a selective one has none of its own.
    pub limits: Limits,
    /// Only domains not completed in this earlier snapshot.
    pub continues: Option<Name>,
    pub traps: Vec<String>,
    pub fields: BTreeMap<String, String>,
    /// How many configurations a selective harvest has.
    pub configurations: u64,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub edition: i64,
}

/// One firing of a harvest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub harvest: HarvestId,
    pub number: u64,
    /// When it was due.
    #[schemars(with = "String")]
    pub due_at: Timestamp,
    #[schemars(with = "String")]
    pub planned_at: Timestamp,
    pub configurations: u64,
    /// Configurations left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Earlier runs that were due while nobody planned, and were left out.
    pub skipped: u64,
    pub jobs: u64,
    pub jobs_done: u64,
    pub jobs_failed: u64,
    pub jobs_resubmitted: u64,
    pub objects: u64,
    pub bytes: u64,
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
}
