//! Progress: how far a running job is, told every few seconds.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::named;

named! {
    /// What the crawl of a job is doing.
    CrawlState, "state of a crawl" {
        PreCrawl = "pre-crawl",
        Active = "active",
        Empty = "empty",
        Pausing = "pausing",
        Paused = "paused",
        Finished = "finished",
    }
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub state: CrawlState,
    pub elapsed_s: u64,
    pub discovered: u64,
    pub downloaded: u64,
    pub queued: u64,
    pub bytes: u64,
    pub queues: u64,
    pub queues_active: u64,
    pub queues_retired: u64,
    pub queues_exhausted: u64,
    pub objects_per_s: f64,
    pub objects_per_s_mean: f64,
    pub bytes_per_s: f64,
    pub bytes_per_s_mean: f64,
    /// Fetches under way.
    pub active: u64,
    pub alerts: u64,
    /// Why the crawl waits, if it does by itself: for its network, for space, or for hosts that fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}
