//! Queues that wait because their hosts fail, and giving them up.

use jiff::Timestamp;

use super::Frontier;
use super::queue::Place;
use super::state::timestamp;
use crate::status::FetchStatus;

/// The queues that keep a crawl from ending. Retired queues do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingQueues {
    /// Those that wait after failures, by the time at which they are tried again.
    pub failing: Vec<FailingQueue>,
    /// There are others: ready, being fetched from, or waiting for politeness alone.
    pub has_others: bool,
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
}

impl Frontier {
    /// The queues that keep the crawl from ending. Looks at every queue.
    pub fn waiting_queues(&self) -> WaitingQueues {
        let state = self.lock_state();
        let mut waiting = WaitingQueues::default();
        for queue in &state.queues {
            match (queue.place, queue.failing) {
                (Place::Empty | Place::Retired, _) => {}
                (Place::Snoozed(wakes), Some(failing)) => waiting.failing.push(FailingQueue {
                    name: queue.name.to_string(),
                    since: timestamp(failing.since),
                    failures: failing.count,
                    status: failing.status,
                    is_robots: failing.is_prerequisite,
                    wakes: timestamp(wakes),
                }),
                _ => waiting.has_others = true,
            }
        }
        waiting.failing.sort_by_key(|queue| queue.wakes);
        waiting
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
