//! Queues that wait because their hosts fail, and giving them up.

use std::borrow::Cow;

use jiff::Timestamp;
use url::Url;

use super::error::Result;
use super::key::Key;
use super::queue::Place;
use super::state::timestamp;
use super::{Frontier, item, place};
use crate::status::FetchStatus;

/// URLs that [`Frontier::any_in_queue`] looks at: some milliseconds.
const LOOKED_AT: usize = 1_000;

/// The queues that keep a crawl from ending. Retired queues do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingQueues {
    /// Those that wait after failures, by the time at which they are tried again.
    pub failing: Vec<FailingQueue>,
    /// There are others: ready, being fetched from, or waiting for politeness or for the time that the server named.
    pub has_others: bool,
    /// When the first of them is tried, if all of them wait.
    pub first_wake: Option<Timestamp>,
}

/// A queue that waits, and its failures with no response in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingQueue {
    pub name: String,
    /// The first failure.
    pub since: Timestamp,
    pub failures: u32,
    /// The last failure.
    pub status: FetchStatus,
    /// The last failure was that of robots.txt.
    pub is_robots: bool,
    /// When it is tried again.
    pub wakes: Timestamp,
    /// All that it holds waits for another try: nothing stands in line behind a failure.
    pub has_only_later: bool,
}

impl Frontier {
    /// The queues that keep the crawl from ending. Looks at every queue.
    pub fn waiting_queues(&self) -> WaitingQueues {
        let state = self.lock_state();
        let mut waiting = WaitingQueues::default();
        let mut all_wait = true;
        for queue in &state.queues {
            match queue.place {
                Place::Empty | Place::Retired => {}
                Place::Snoozed(wakes) => {
                    let wakes = timestamp(wakes);
                    waiting.first_wake = Some(waiting.first_wake.map_or(wakes, |first| first.min(wakes)));
                }
                _ => all_wait = false,
            }
            match (queue.place, queue.failing) {
                (Place::Empty | Place::Retired, _) => {}
                (Place::Snoozed(wakes), Some(failing)) => waiting.failing.push(FailingQueue {
                    name: queue.name.to_string(),
                    since: timestamp(failing.since),
                    failures: failing.count,
                    status: failing.status,
                    is_robots: failing.is_prerequisite,
                    wakes: timestamp(wakes),
                    has_only_later: queue.in_line == 0,
                }),
                _ => waiting.has_others = true,
            }
        }
        waiting.failing.sort_by_key(|queue| queue.wakes);
        waiting.first_wake = waiting.first_wake.filter(|_| all_wait);
        waiting
    }

    /// Whether a queue holds a URL that `wanted` takes, in flight or not. Looks at the first [`LOOKED_AT`] only: None if
    /// none of those is, and there are more.
    pub fn any_in_queue(&self, queue: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Option<bool>> {
        let state = self.lock_state();
        let Some(id) = state.queue_names.get(queue).copied() else { return Ok(Some(false)) };
        let from = state.queues[id as usize].first_key().bytes(id);
        drop(state);
        let to = id.checked_add(1).map(|next| Key::FIRST.bytes(next));
        for (seen, entry) in self.store.queued.range(from.as_ref()..).enumerate() {
            let (bytes, value) = entry.into_inner().map_err(self.store.failed("read"))?;
            if to.as_ref().is_some_and(|to| *bytes >= *to.as_ref()) {
                break;
            }
            if seen == LOOKED_AT {
                return Ok(None);
            }
            if item::url(&value).is_some_and(wanted) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The queue that a URL belongs to.
    pub fn queue_name<'a>(&self, url: &'a Url) -> Cow<'a, str> {
        place::queue_name(url, self.settings.queue_by)
    }

    /// Hands out what these queues hold without waiting, with the status of their last failure: to be logged and not
    /// to be fetched. Queues that do not wait after failures are left alone. URLs added after a queue is empty are tried.
    pub fn give_up(&self, queues: &[FailingQueue], now: Timestamp) {
        let mut state = self.lock_state();
        for queue in queues {
            let Some(id) = state.queue_names.get(queue.name.as_str()).copied() else { continue };
            let queue = &mut state.queues[id as usize];
            let Some(failing) = queue.failing.filter(|_| matches!(queue.place, Place::Snoozed(_))) else {
                continue;
            };
            queue.given_up = Some(failing.final_status());
            state.settle(id, now.as_millisecond());
        }
        drop(state);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }
}
