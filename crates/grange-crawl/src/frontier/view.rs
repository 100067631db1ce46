//! The frontier as operators and reports see it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::hops::Hops;
use crate::job::StopReason;

/// Numbers of the whole frontier. Always `discovered = queued + finished`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// All that was ever queued: new URLs, and those asked for again (forced, prerequisites).
    pub discovered: u64,
    /// Still to do; those in flight are among them.
    pub queued: u64,
    pub in_flight: u64,
    pub finished: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Left alone on purpose, or deleted by an operator.
    pub disregarded: u64,
    /// Bytes of all answers.
    pub bytes: u64,
    /// Documents and bytes charged to budgets: answers that are no prerequisites.
    pub objects: u64,
    pub object_bytes: u64,
    /// Running time, pauses excluded.
    pub ran: Duration,
    pub queues: QueueCounts,
    /// The most URLs in one queue, and the average over queues that have any.
    pub deepest: u64,
    pub average_depth: f64,
    /// How many times today's capacity would serve all queues as fast as politeness allows, as Heritrix counts it.
    pub congestion: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    pub all: u64,
    pub ready: u64,
    pub in_process: u64,
    pub snoozed: u64,
    /// Ready, but kept back by a limit per host, address or domain.
    pub blocked: u64,
    pub retired: u64,
    pub exhausted: u64,
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueState {
    Ready,
    InProcess,
    Snoozed,
    Blocked,
    /// By an operator, by a budget, or because its host cannot be reached.
    Retired,
    Exhausted,
}

/// One queue, in the columns of Heritrix's frontier-nonempty-report as far as they mean something here. What is
/// marked so counts from the last start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueView {
    pub name: String,
    pub domain: String,
    pub state: QueueState,
    pub queued: u64,
    pub in_flight: u64,
    /// Since the last start, what was there then included.
    pub enqueued: u64,
    /// Since the last start.
    pub errors: u64,
    /// Since the last start.
    pub last_claimed: Option<Timestamp>,
    /// When it may be asked again, if that is later than now.
    pub wakes: Option<Timestamp>,
    /// Failures in a row.
    pub failures: u32,
    /// The domain's objects and their limit, -1 for none.
    pub spent: u64,
    pub budget: i64,
    /// The URL that comes next, without user name and password.
    pub head: Option<String>,
    /// Give it to go on listing after this queue.
    pub cursor: u32,
}

/// Which queues are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    /// Only those in this state.
    pub state: Option<QueueState>,
    /// Only names that contain this.
    pub name: String,
    /// Also those that hold nothing.
    pub empty_too: bool,
    /// Only those after this cursor.
    pub after: Option<u32>,
}

/// A URL in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeked {
    /// Without user name and password.
    pub url: String,
    pub via: Option<String>,
    pub hops: Hops,
    pub tries: u32,
    pub waits_until: Option<Timestamp>,
    /// Give it to go on after this URL.
    pub cursor: Vec<u8>,
}

/// How a registrable domain fared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainResult {
    pub domain: String,
    pub objects: u64,
    pub bytes: u64,
    /// What is still queued.
    pub remaining: u64,
    pub stop_reason: StopReason,
}
