//! What goes between the frontier and those who work on its URLs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use super::key::Key;
use super::view::Counts;
use crate::candidate::Candidate;
use crate::job::StopReason;
use crate::politeness::Visit;
use crate::status::FetchStatus;

/// What [`super::Frontier::next`] has.
#[derive(Clone, Debug)]
pub enum Next {
    /// To be fetched now, and then given to [`super::Frontier::finish`].
    Uri(Box<Claim>),
    /// Nothing before this time, unless [`super::Frontier::changed`] says so.
    Wait(Timestamp),
    /// Nothing before something in flight is finished, or before the crawl is resumed.
    Idle,
    /// A limit of the whole crawl is reached and nothing is in flight.
    Limit(StopReason),
    /// Nothing is in flight, and nothing can be had until URLs are added, budgets raised or queues revived.
    Empty,
}

/// A URL handed out. It stays queued on disk until it is finished, so a crash repeats it and loses nothing.
#[derive(Clone, Debug)]
pub struct Claim {
    pub candidate: Candidate,
    /// How often it was tried before.
    pub tries: u32,
    /// Set if it is not to be fetched: the crawl no longer waits for its host, and this is its status.
    pub given_up: Option<FetchStatus>,
    pub(super) queue: u32,
    pub(super) key: Key,
    /// The address it was counted under.
    pub(super) ip: Option<IpAddr>,
}

impl Claim {
    /// It must be had before others of its queue can be; no budget is charged.
    pub fn is_prerequisite(&self) -> bool {
        self.key.is_prerequisite()
    }
}

/// A claim, what became of it, and what was found in it and is in scope.
#[derive(Clone, Debug)]
pub struct Finished {
    pub claim: Claim,
    pub outcome: Outcome,
    pub discovered: Vec<Candidate>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// For good, with whatever status.
    Done(Visit),
    /// To be tried again `after` this long, behind nothing but time ([`super::Settings::retry`] says whether). A
    /// prerequisite keeps its whole queue waiting.
    Retry { visit: Visit, after: Duration },
    /// To be had again `after` this long, behind nothing but time: it was not tried. Not for prerequisites.
    Wait { after: Duration },
    /// Back to its place, and its queue is retired with all that it holds until it is revived: its host cannot be reached.
    Retire,
    /// Back to its place at the head of its queue, and these first, in the same queue, seen before or not. It does
    /// not count as a try. With no prerequisites the claim is simply given back.
    Defer { prerequisites: Vec<Candidate> },
}

/// What [`super::Frontier::add`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    pub queued: u64,
    pub seen_before: u64,
    /// Left out, because their hosts would be too many; see [`super::Settings::max_hosts_per_domain`].
    pub left_out: u64,
    /// The domain of the first of those.
    pub crowded_domain: Option<String>,
}

/// What [`super::Frontier::open`] found.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// There was no frontier in the folder.
    pub is_new: bool,
    pub counts: Counts,
    /// The marks of the last finish that was kept.
    pub marks: BTreeMap<String, Vec<u8>>,
}
