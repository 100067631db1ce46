//! Hosts that a crawl does not wait for once everything else is done.
//!
//! A page may embed parts of hosts that the crawl is not for. If one of those cannot be reached, its queue waits for half
//! an hour and longer; that must not keep a crawl open whose own hosts are done.

use jiff::{SignedDuration, Timestamp};

use super::shared::Shared;
use crate::frontier::{WaitingQueues, queue_host};

/// An external host must have failed this often: once may be chance.
const FAILURES_MIN: u32 = 2;

/// When all that is waited for is given up. None if the crawl waits for anything else: for one of its own hosts, for
/// politeness, or for a host that has not failed often enough to be judged.
pub(super) fn give_up_at(
    waiting: &WaitingQueues,
    is_own_host: impl Fn(&str) -> bool,
    retry_delay: SignedDuration,
) -> Option<Timestamp> {
    if waiting.has_others {
        return None;
    }
    let mut at = None;
    for queue in &waiting.failing {
        if queue.failures < FAILURES_MIN || is_own_host(queue_host(&queue.name)) {
            return None;
        }
        at = at.max(Some(queue.since.saturating_add(retry_delay).unwrap_or(Timestamp::MAX)));
    }
    at
}

/// Gives them up: each of their URLs is logged with the last status of its host.
pub(super) fn give_up(crawl: &Shared, waiting: &WaitingQueues, now: Timestamp) {
    for queue in &waiting.failing {
        tracing::warn!(
            "external host {} given up after {} failures since {}: nothing else is left to crawl",
            queue.name,
            queue.failures,
            queue.since
        );
    }
    crawl.frontier.give_up(&waiting.failing, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::FailingQueue;
    use crate::status::FetchStatus;

    #[test]
    fn only_external_hosts_that_failed_long_enough_are_given_up_and_only_when_nothing_else_waits() {
        let queue = |name: &str, since, failures| FailingQueue {
            name: name.to_owned(),
            since: Timestamp::from_second(since).unwrap(),
            failures,
            status: FetchStatus::CONNECT_FAILED,
            is_robots: true,
            wakes: Timestamp::from_second(9_999).unwrap(),
        };
        for (what, failing, has_others, at) in [
            ("nothing waits", vec![], false, None),
            ("one external host", vec![queue("cdn.example", 100, 2)], false, Some(160)),
            ("it has a port", vec![queue("cdn.example:8080", 100, 2)], false, Some(160)),
            (
                "the last of two",
                vec![queue("a.example", 100, 9), queue("b.example", 130, 2)],
                false,
                Some(190),
            ),
            ("it failed once", vec![queue("cdn.example", 100, 1)], false, None),
            ("one of two failed once", vec![queue("a.example", 0, 9), queue("b.example", 9, 1)], false, None),
            ("an own host", vec![queue("own.example", 100, 9)], false, None),
            ("an own host at a port", vec![queue("own.example:81", 100, 9)], false, None),
            ("an own one too", vec![queue("a.example", 0, 9), queue("own.example", 0, 9)], false, None),
            ("others are busy", vec![queue("cdn.example", 100, 9)], true, None),
        ] {
            let waiting = WaitingQueues { failing, has_others };
            let found = give_up_at(&waiting, |host| host == "own.example", SignedDuration::from_secs(60));
            assert_eq!(found.map(Timestamp::as_second), at, "{what}");
        }
    }
}
