//! Distinguishes an outage of our own network from that of a host.
//!
//! A host that cannot be reached is parked and in the end given up, with the URLs that wait for it. When hosts that
//! answered before cannot be reached one after the other, and none can in between, the fault is ours: the crawl then waits and
//! tries one URL from time to time, none of these failures counts, and the crawl resumes when any host answers. The same when a
//! crawl begins and none of its hosts can be reached.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::fetch::Fetched;

/// So many hosts that answered before must fail in a row, or all that have URLs left if those are fewer. Two hosts may
/// go away in the same minute; three do not.
const HOSTS: usize = 3;
/// One host alone never makes an outage.
const HOSTS_MIN: usize = 2;

/// How long the crawl waits when fewer than [`HOSTS`] hosts that answered before are all that is left: they may share one
/// machine, and it may be theirs that is down. The same if no host has answered yet.
const FEW_HOSTS_LONGEST: Duration = Duration::from_secs(15 * 60);

/// What the last visits say about our network.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkState {
    /// Hosts that answered before and failed since the last answer of any.
    silent: BTreeSet<String>,
    /// Hosts that failed in a run in which none has answered yet.
    never_answered: BTreeSet<String>,
    /// Any host answered in this run.
    has_answered: bool,
    /// Set in an outage: when it began.
    since: Option<Timestamp>,
    /// The outage lasted too long: until a host answers, failures are those of the hosts.
    gave_up: bool,
}

/// What follows from a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing new; a failure is the host's own.
    Nothing,
    /// The failure belongs to an outage, which may have begun with it: the URL is to be given back.
    Outage,
    /// The outage is over, because a host answered.
    Over,
    /// The outage lasted longer than the crawl waits.
    GaveUp,
}

/// Whether there was a connection to the host. A host that takes a request and never answers has been reached; the
/// network is in order. None if nobody tried.
pub(super) fn was_reached(fetched: &Fetched) -> Option<bool> {
    let failed = matches!(fetched.status.0, -4..=-1);
    (failed || fetched.status.is_success()).then_some(!failed || !fetched.request.is_empty())
}

impl NetworkState {
    /// Takes note of a visit that ended at `now`. `answered_before` says whether this host ever did, `active` counts the
    /// hosts that have URLs left, `longest` is how long the crawl waits (zero: for ever).
    pub(super) fn note(
        &mut self,
        host: &str,
        reached: bool,
        answered_before: bool,
        active: impl FnOnce() -> u64,
        longest: Duration,
        now: Timestamp,
    ) -> Finding {
        if reached {
            let over = self.since.is_some();
            *self = NetworkState { has_answered: true, ..NetworkState::default() };
            return if over { Finding::Over } else { Finding::Nothing };
        }
        if self.gave_up {
            return Finding::Nothing;
        }
        if let Some(since) = self.since {
            let lasted = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            let longest = match (self.silent.len() < HOSTS, longest.is_zero()) {
                (true, true) => FEW_HOSTS_LONGEST,
                (true, false) => longest.min(FEW_HOSTS_LONGEST),
                (false, true) => Duration::MAX,
                (false, false) => longest,
            };
            if lasted < longest {
                return Finding::Outage;
            }
            *self =
                NetworkState { gave_up: true, has_answered: self.has_answered, ..NetworkState::default() };
            return Finding::GaveUp;
        }
        if !answered_before {
            if self.has_answered {
                return Finding::Nothing;
            }
            // Nothing was fetched yet: three hosts at least, and all there are. A list of dead seeds looks the same,
            // which is why this waits no longer than for a few hosts.
            self.never_answered.insert(host.to_owned());
            let many = self.never_answered.len();
            if many < HOSTS || (many as u64) < active() {
                return Finding::Nothing;
            }
            self.since = Some(now);
            return Finding::Outage;
        }
        self.silent.insert(host.to_owned());
        let many = self.silent.len();
        let is_outage = many >= HOSTS || (many >= HOSTS_MIN && many as u64 >= active());
        if is_outage {
            self.since = Some(now);
            return Finding::Outage;
        }
        Finding::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_outage_is_when_hosts_that_answered_fail_and_none_answers_in_between() {
        use Finding::{Nothing, Outage, Over};
        let mut state = NetworkState::default();
        for (host, reached, before, active, finding) in [
            ("dead", false, false, 9, Nothing),
            ("gone", false, false, 9, Nothing),
            ("lost", false, false, 9, Nothing),
            ("a", false, true, 9, Nothing),
            ("a", false, true, 9, Nothing),
            ("b", false, true, 9, Nothing),
            ("c", true, true, 9, Nothing),
            ("a", false, true, 9, Nothing),
            ("b", false, true, 9, Nothing),
            ("c", false, true, 9, Outage),
            ("dead", false, false, 9, Outage),
            ("a", true, true, 9, Over),
            ("a", false, true, 2, Nothing),
            ("b", false, true, 2, Outage),
        ] {
            let found = state.note(host, reached, before, || active, DAY, at(0));
            assert_eq!(found, finding, "{host} {reached}");
        }
        let mut alone = NetworkState::default();
        assert_eq!(alone.note("a", false, true, || 1, DAY, at(0)), Nothing, "one host alone");
    }

    #[test]
    fn an_outage_that_lasts_too_long_is_given_up_until_a_host_answers() {
        let mut state = NetworkState::default();
        let mut fails = |host: &str, second| state.note(host, false, true, || 9, DAY, at(second));
        assert_eq!(fails("a", 0), Finding::Nothing);
        assert_eq!(fails("b", 0), Finding::Nothing);
        assert_eq!(fails("c", 0), Finding::Outage);
        assert_eq!(fails("a", 86_399), Finding::Outage);
        assert_eq!(fails("a", 86_400), Finding::GaveUp);
        assert_eq!(fails("b", 86_401), Finding::Nothing);
        assert_eq!(state.note("a", true, true, || 2, DAY, at(90_000)), Finding::Nothing);
        assert_eq!(state, NetworkState { has_answered: true, ..NetworkState::default() });
    }

    #[test]
    fn a_crawl_that_reaches_no_host_at_its_start_waits_a_quarter_of_an_hour() {
        let mut state = NetworkState::default();
        let mut fails =
            |host: &str, active, second| state.note(host, false, false, || active, DAY, at(second));
        assert_eq!(fails("a", 4, 0), Finding::Nothing);
        assert_eq!(fails("b", 4, 1), Finding::Nothing);
        assert_eq!(fails("b", 2, 1), Finding::Nothing, "two hosts may both be gone");
        assert_eq!(fails("c", 4, 2), Finding::Nothing, "one is not tried yet");
        assert_eq!(fails("d", 4, 3), Finding::Outage);
        assert_eq!(fails("a", 4, 902), Finding::Outage);
        assert_eq!(fails("a", 4, 903), Finding::GaveUp);
        assert_eq!(fails("b", 4, 904), Finding::Nothing);
        assert_eq!(state.note("a", true, false, || 4, DAY, at(905)), Finding::Nothing);
        for host in ["b", "c", "d"] {
            let found = state.note(host, false, false, || 3, DAY, at(906));
            assert_eq!(found, Finding::Nothing, "one answered: {host} is gone");
        }
    }

    #[test]
    fn two_hosts_alone_are_waited_for_a_quarter_of_an_hour() {
        for longest in [Duration::ZERO, DAY] {
            let mut state = NetworkState::default();
            let mut fails = |host: &str, second| state.note(host, false, true, || 2, longest, at(second));
            assert_eq!(fails("a", 0), Finding::Nothing);
            assert_eq!(fails("b", 0), Finding::Outage);
            assert_eq!(fails("a", 899), Finding::Outage);
            assert_eq!(fails("a", 900), Finding::GaveUp);
        }
    }
}
