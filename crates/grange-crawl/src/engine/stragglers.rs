//! Hosts that a crawl does not wait for once everything else is done.
//!
//! A page may embed parts of hosts that the crawl is not for. If one of those cannot be reached, its queue waits for half
//! an hour and longer; that must not keep a crawl open whose own hosts are done: their URLs are given up. A host of the crawl
//! itself is waited for a little longer; then its URLs are left in the frontier, and the crawl ends without them. A resume
//! tries them again.

use jiff::{SignedDuration, Timestamp};

use super::dispatch::retry_delay;
use super::shared::Shared;
use crate::frontier::{FailingQueue, FrontierError, WaitingQueues, queue_host};

/// An external host must have failed this often: once may be chance.
const FAILURES_MIN: u32 = 2;

/// One of the crawl's own must have failed this often. With the usual settings that takes three minutes.
const OWN_FAILURES_MIN: u32 = 3;

/// How long hosts are waited for after their first failure when nothing else is left.
#[derive(Clone, Copy, Debug)]
struct Waits {
    external: SignedDuration,
    /// None waits until they are given up one by one.
    own: Option<SignedDuration>,
}

/// When the crawl ends if it has nothing to do but wait for hosts that fail. None if it waits for anything else: for
/// politeness, for a host that has not failed often enough to be judged, or for one of its own that does respond.
pub(super) fn ends_at(crawl: &Shared, waiting: &WaitingQueues) -> Option<Timestamp> {
    let own = crawl.template.engine.max_unreachable_wait.0;
    let own = (!own.is_zero()).then(|| SignedDuration::try_from(own).unwrap_or(SignedDuration::MAX));
    let waits = Waits { external: retry_delay(crawl), own };
    let scope = crawl.scope.current();
    end_of_wait(waiting, |queue| scope.is_own_host(queue_host(&queue.name)), waits)
}

fn end_of_wait(
    waiting: &WaitingQueues,
    is_own: impl Fn(&FailingQueue) -> bool,
    waits: Waits,
) -> Option<Timestamp> {
    if waiting.has_others {
        return None;
    }
    let mut at = None;
    for queue in &waiting.failing {
        let (failures_min, wait) = match is_own(queue) {
            true if queue.status.is_unreachable() => (OWN_FAILURES_MIN, waits.own?),
            true => return None,
            false => (FAILURES_MIN, waits.external),
        };
        if queue.failures < failures_min {
            return None;
        }
        at = at.max(Some(queue.since.saturating_add(wait).unwrap_or(Timestamp::MAX)));
    }
    at
}

/// Ends the wait. URLs of external hosts, and of servers beside which others of the same queue answered, are logged with the
/// last status of their host. So are URLs that were all tried if their servers answered others: those servers are there, the
/// URLs fail. All others stay queued.
pub(super) fn end(crawl: &Shared, waiting: &WaitingQueues, now: Timestamp) -> Result<(), FrontierError> {
    let scope = crawl.scope.current();
    let mut given_up = Vec::new();
    for queue in &waiting.failing {
        let FailingQueue { name, failures, since, .. } = queue;
        if !scope.is_own_host(queue_host(name)) {
            tracing::warn!(
                "external host {name} given up after {failures} failures since {since}: nothing else is left to crawl"
            );
            given_up.push(queue.clone());
        } else if crawl.has_answered_in_part(name)? {
            tracing::warn!(
                "servers of {name} given up after {failures} failures since {since}: nothing else is left to crawl"
            );
            given_up.push(queue.clone());
        } else if queue.has_only_later && crawl.contacts.have_answered(name) {
            tracing::warn!(
                "URLs of {name} given up after {failures} failures since {since}, other URLs of it were answered: \
                 nothing else is left to crawl"
            );
            given_up.push(queue.clone());
        } else {
            tracing::warn!(
                "host {name} left after {failures} failures since {since}: nothing else is left to crawl; \
                 a resume tries its URLs again"
            );
            crawl.frontier.retire(name, now)?;
        }
    }
    crawl.frontier.give_up(&given_up, now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::FetchStatus;

    #[test]
    fn hosts_that_failed_long_enough_are_not_waited_for_and_only_when_nothing_else_waits() {
        let queue = |name: &str, since, failures| FailingQueue {
            name: name.to_owned(),
            since: Timestamp::from_second(since).unwrap(),
            failures,
            status: FetchStatus::CONNECT_FAILED,
            is_robots: true,
            wakes: Timestamp::from_second(9_999).unwrap(),
            has_only_later: false,
        };
        let busy = || FailingQueue { status: FetchStatus(503), ..queue("own.example", 100, 9) };
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
            ("an own host", vec![queue("own.example", 100, 3)], false, Some(400)),
            ("it failed twice", vec![queue("own.example", 100, 2)], false, None),
            ("an own host at a port", vec![queue("own.example:81", 100, 9)], false, Some(400)),
            ("both kinds", vec![queue("a.example", 290, 9), queue("own.example", 0, 9)], false, Some(350)),
            ("an own one that responds", vec![busy()], false, None),
            ("that and another", vec![queue("a.example", 0, 9), busy()], false, None),
            ("others are busy", vec![queue("cdn.example", 100, 9)], true, None),
            ("others and an own one", vec![queue("own.example", 100, 9)], true, None),
        ] {
            let waiting = WaitingQueues { failing, has_others, first_wake: None };
            let is_own = |queue: &FailingQueue| queue_host(&queue.name) == "own.example";
            let external = SignedDuration::from_secs(60);
            let waits = Waits { external, own: Some(SignedDuration::from_secs(300)) };
            let found = end_of_wait(&waiting, is_own, waits);
            assert_eq!(found.map(Timestamp::as_second), at, "{what}");
            let has_own = waiting.failing.iter().any(is_own);
            let found = end_of_wait(&waiting, is_own, Waits { external, own: None });
            assert_eq!(
                found.map(Timestamp::as_second),
                at.filter(|_| !has_own),
                "{what}, own ones are waited for"
            );
        }
    }
}
