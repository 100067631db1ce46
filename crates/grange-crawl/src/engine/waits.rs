//! Reports which hosts are waited for, until when and why, while it lasts.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::frontier::{FailingQueue, WaitingQueues};
use crate::status::FetchStatus;

/// Shorter waits than this are not reported: they are over before somebody reads of them.
const SHORTEST: SignedDuration = SignedDuration::from_secs(10);

/// Lines written at once; the next come a second later. Thousands of hosts may fail at the same time.
const LINES_MAX: usize = 20;

/// What was reported of each queue that still waits.
#[derive(Debug, Default)]
pub(super) struct WaitLog(HashMap<String, Timestamp>);

impl WaitLog {
    /// A line for each queue that waits longer than when it was last reported.
    pub(super) fn changes(&mut self, waiting: &WaitingQueues, now: Timestamp) -> Vec<String> {
        let mut before = std::mem::take(&mut self.0);
        let mut lines = Vec::new();
        for queue in &waiting.failing {
            let known = before.remove(&queue.name);
            let is_new = known != Some(queue.wakes) && queue.wakes.duration_since(now) >= SHORTEST;
            if is_new && lines.len() < LINES_MAX {
                lines.push(describe(queue));
                self.0.insert(queue.name.clone(), queue.wakes);
            } else if let Some(known) = known {
                self.0.insert(queue.name.clone(), known);
            }
        }
        lines
    }
}

/// Why nothing is fetched, if that is because hosts fail or are left alone for a while, and when the crawl ends if they go on
/// failing.
pub(super) fn waits_for(
    waiting: &WaitingQueues,
    ends_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<String> {
    if waiting.has_others {
        // A server that answers 503 may name an hour after which it is to be asked again.
        let wakes = waiting.first_wake.filter(|wakes| wakes.duration_since(now) >= SHORTEST)?;
        let wakes = wakes.round(jiff::Unit::Second).unwrap_or(wakes);
        return Some(format!(
            "waits until {wakes}: each host that is left asked for a pause, or is given one"
        ));
    }
    let first = waiting.failing.first()?;
    let more = waiting.failing.len() - 1;
    let others = if more > 0 { format!("; {more} more hosts fail") } else { String::new() };
    let end = ends_at.map(|at| format!("; {}", describe_end(at))).unwrap_or_default();
    Some(format!("{}{others}{end}", describe(first)))
}

/// The end of a crawl that has nothing left but hosts that fail.
pub(super) fn describe_end(at: Timestamp) -> String {
    let at = at.round(jiff::Unit::Second).unwrap_or(at);
    format!("nothing else is left to crawl: it ends at {at} unless one of them responds")
}

/// The URLs of one scheme that wait while others of their queue do not. None if the wait is short.
pub(super) fn describe_scheme(
    authority: &str,
    status: FetchStatus,
    until: Timestamp,
    now: Timestamp,
) -> Option<String> {
    if until.duration_since(now) < SHORTEST {
        return None;
    }
    let (until, reason) = (until.round(jiff::Unit::Second).unwrap_or(until), reason(status, true));
    Some(format!(
        "waits for {authority} until {until}: {reason}; other URLs of the host are fetched meanwhile"
    ))
}

fn describe(queue: &FailingQueue) -> String {
    let reason = reason(queue.status, queue.is_robots);
    let wakes = queue.wakes.round(jiff::Unit::Second).unwrap_or(queue.wakes);
    format!("waits for {} until {wakes}: {reason} (failures: {})", queue.name, queue.failures)
}

/// A failure in words.
pub(super) fn reason(status: FetchStatus, is_robots: bool) -> String {
    match (status.0, is_robots) {
        (-1, _) => "its name cannot be resolved".to_owned(),
        (-2, _) => "the connection failed".to_owned(),
        (-3, _) => "the connection was lost".to_owned(),
        (-4, _) => "no response within the timeout".to_owned(),
        (200..=299, true) => "robots.txt was cut off".to_owned(),
        (status @ 100.., true) => format!("robots.txt returned status {status}"),
        (-61, _) => "robots.txt was requested too often".to_owned(),
        (status, _) => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn queue(name: &str, wakes: i64, status: i32, is_robots: bool) -> FailingQueue {
        let (name, status) = (name.to_owned(), FetchStatus(status));
        FailingQueue {
            name,
            since: at(0),
            failures: 2,
            status,
            is_robots,
            wakes: at(wakes),
            has_only_later: false,
        }
    }

    #[test]
    fn a_wait_is_reported_once_and_again_when_it_changes() {
        let mut log = WaitLog::default();
        let mut lines = |failing: &[FailingQueue], now| {
            let waiting = WaitingQueues { failing: failing.to_vec(), has_others: true, first_wake: None };
            log.changes(&waiting, at(now)).len()
        };
        let (a, b) = (queue("a", 60, -2, true), queue("b", 300, 503, true));
        assert_eq!(lines(&[a.clone(), b.clone()], 0), 2);
        assert_eq!(lines(&[a, b.clone()], 1), 0);
        assert_eq!(lines(&[queue("a", 180, -2, true), b.clone()], 60), 1);
        assert_eq!(lines(std::slice::from_ref(&b), 61), 0);
        assert_eq!(lines(&[queue("c", 65, -2, true), b], 61), 0, "a short wait");
        let many: Vec<_> = (0..50).map(|n| queue(&format!("h{n}"), 900, -1, false)).collect();
        assert_eq!([62, 63, 64, 65].map(|now| lines(&many, now)), [20, 20, 10, 0]);
    }

    #[test]
    fn the_reason_is_in_words() {
        for (status, is_robots, words) in [
            (-1, false, "its name cannot be resolved"),
            (-2, true, "the connection failed"),
            (200, true, "robots.txt was cut off"),
            (503, true, "robots.txt returned status 503"),
            (-61, false, "robots.txt was requested too often"),
        ] {
            let failing = vec![queue("h.example", 60, status, is_robots)];
            let waiting = WaitingQueues { failing, has_others: false, first_wake: None };
            let expected = format!("waits for h.example until 1970-01-01T00:01:00Z: {words} (failures: 2)");
            assert_eq!(waits_for(&waiting, None, at(0)).as_ref(), Some(&expected));
            let end = "; nothing else is left to crawl: it ends at 1970-01-01T00:05:00Z unless one of them responds";
            assert_eq!(waits_for(&waiting, Some(at(300)), at(0)), Some(expected + end));
            assert_eq!(waits_for(&WaitingQueues { has_others: true, ..waiting }, None, at(0)), None);
        }
    }

    #[test]
    fn a_crawl_whose_hosts_all_asked_for_a_pause_says_how_long() {
        for (first_wake, now, expected) in [
            (Some(3600), 0, true),
            (Some(3600), 3590, true),
            // About to go on.
            (Some(3600), 3591, false),
            // A host is ready, or being fetched from.
            (None, 0, false),
        ] {
            let waiting =
                WaitingQueues { failing: Vec::new(), has_others: true, first_wake: first_wake.map(at) };
            let reported = waits_for(&waiting, None, at(now));
            let sentence =
                "waits until 1970-01-01T01:00:00Z: each host that is left asked for a pause, or is given one";
            assert_eq!(reported.as_deref(), expected.then_some(sentence), "{first_wake:?} at {now}");
        }
    }
}
