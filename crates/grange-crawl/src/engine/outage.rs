//! Distinguishes an outage of our own network from that of a host.
//!
//! A host that cannot be reached is parked and in the end given up, with the URLs that wait for it. When servers that
//! responded before cannot be reached one after the other, and none can in between, the fault may be ours. Servers that
//! responded are then connected to; if none of them can be reached either, the crawl waits and tries one URL and some of these
//! servers from time to time, none of the failures counts, and the crawl resumes when any server responds. The same when a
//! crawl begins and none of its hosts can be reached.
//!
//! A server is a scheme, host and port: an https port that never responded says nothing about our network, because its host may
//! just as well have none. A connection, or a TLS handshake that fails, is a response: somebody is there. A refused connection
//! is not, since a firewall of ours that rejects everything refuses in the same way; that a host closed its port looks like an
//! outage only if its server had responded and nothing else can be reached.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::hosts::other_scheme;
use crate::fetch::{Fetched, ProblemKind};
use crate::status::FetchStatus;

/// So many hosts that answered before must fail in a row, or all that have URLs left if those are fewer. Two hosts may
/// go away in the same minute; three do not.
const HOSTS: usize = 3;
/// One host alone never makes an outage.
const HOSTS_MIN: usize = 2;

/// How long the crawl waits when fewer than [`HOSTS`] hosts that answered before are all that is left: they may share one
/// machine, and it may be theirs that is down. The same if no host has answered yet.
const FEW_HOSTS_LONGEST: Duration = Duration::from_secs(15 * 60);

/// Servers that responded and are remembered, the newest ones: any of them shows that the network is in order.
const RESPONDED_MAX: usize = 16;
/// Servers that are connected to at once, to see whether the network is in order.
const PROBES: usize = 4;

/// A visit, as far as it says something about our network.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetworkContact<'a> {
    pub(super) url: &'a Url,
    /// Scheme, host and port.
    pub(super) server: &'a str,
    pub(super) status: FetchStatus,
    pub(super) reached: bool,
    /// Whether this server responded before, as far as that is known.
    pub(super) responded_before: bool,
}

/// What the last visits say about our network.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkState {
    /// Hosts whose servers responded before and failed since the last response of any, with the server.
    silent: BTreeMap<String, String>,
    /// Hosts that failed in a run in which none has responded yet, with the server.
    never_answered: BTreeMap<String, String>,
    /// Some failures since the last response came after the name was found.
    fails_beyond_names: bool,
    /// The servers that responded last in this run, the newest at the end.
    responded: VecDeque<String>,
    /// How many responses were noted.
    responses: u64,
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
    /// The failure looks like an outage that begins, unless one of [`NetworkState::probes`] responds.
    Suspected,
    /// The failure belongs to an outage: the URL is to be given back.
    Outage,
    /// The outage is over, because a host answered.
    Over,
    /// The outage lasted longer than the crawl waits.
    GaveUp,
}

/// Whether there was a connection to the host. A host that takes a request and never answers has been reached, and so has one
/// that does not speak TLS; the network is in order. None if nobody tried.
pub(super) fn was_reached(fetched: &Fetched) -> Option<bool> {
    let failed = fetched.status.is_unreachable();
    let has_connected = || {
        !fetched.request.is_empty()
            || fetched.has_problem(ProblemKind::TlsFailed)
            || fetched.has_problem(ProblemKind::CertificateNotVerified)
    };
    (failed || fetched.status.is_success()).then(|| !failed || has_connected())
}

impl NetworkState {
    /// Takes note of a visit that ended at `now`. `active` counts the hosts that have URLs left, `longest` is how long the
    /// crawl waits (zero: for ever).
    pub(super) fn note(
        &mut self,
        contact: NetworkContact<'_>,
        active: impl FnOnce() -> u64,
        longest: Duration,
        now: Timestamp,
    ) -> Finding {
        if contact.reached {
            return self.note_response(contact.server);
        }
        if self.gave_up {
            return Finding::Nothing;
        }
        if self.since.is_some() {
            return self.still_away(longest, now);
        }
        let nothing_responded = self.responses == 0 && !contact.responded_before;
        if !contact.responded_before && !nothing_responded {
            return Finding::Nothing;
        }
        self.fails_beyond_names |= contact.status != FetchStatus::DNS_FAILED;
        let failing = if nothing_responded { &mut self.never_answered } else { &mut self.silent };
        let host = contact.url.host_str().unwrap_or_default();
        failing.insert(host.to_owned(), contact.server.to_owned());
        let many = failing.len();
        let is_suspicious = if nothing_responded {
            // Nothing was fetched yet: three hosts at least, and all there are. A list of dead seeds looks the same,
            // which is why this waits no longer than for a few hosts.
            many >= HOSTS && many as u64 >= active()
        } else {
            many >= HOSTS || (many >= HOSTS_MIN && many as u64 >= active())
        };
        if is_suspicious { Finding::Suspected } else { Finding::Nothing }
    }

    /// Takes note that a server responded.
    pub(super) fn note_response(&mut self, server: &str) -> Finding {
        let is_over = self.since.is_some();
        let mut responded = std::mem::take(&mut self.responded);
        responded.retain(|known| known != server);
        if responded.len() >= RESPONDED_MAX {
            responded.pop_front();
        }
        responded.push_back(server.to_owned());
        *self = NetworkState { responded, responses: self.responses + 1, ..NetworkState::default() };
        if is_over { Finding::Over } else { Finding::Nothing }
    }

    /// How many responses were noted so far.
    pub(super) fn responses(&self) -> u64 {
        self.responses
    }

    pub(super) fn is_away(&self) -> bool {
        self.since.is_some()
    }

    /// An outage that was suspected begins: none of the servers that were connected to responded.
    pub(super) fn begin_outage(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// Takes note that nothing responded at `now` either.
    pub(super) fn still_away(&mut self, longest: Duration, now: Timestamp) -> Finding {
        let Some(since) = self.since else { return Finding::Nothing };
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
        let responded = std::mem::take(&mut self.responded);
        *self =
            NetworkState { gave_up: true, responded, responses: self.responses, ..NetworkState::default() };
        Finding::GaveUp
    }

    /// The servers to be connected to next, to see whether the network is in order: those that responded and have not failed
    /// since, the other scheme of hosts that fail, then those that fail. Others have their turn the next time. None if only
    /// names were not found: addresses that are known from before say nothing about that.
    pub(super) fn probes(&mut self) -> Vec<String> {
        if !self.fails_beyond_names {
            return Vec::new();
        }
        let failing: Vec<_> = self.silent.values().chain(self.never_answered.values()).cloned().collect();
        let (silent, others): (Vec<_>, Vec<_>) =
            self.responded.iter().rev().cloned().partition(|server| failing.contains(server));
        let by_other_scheme = failing.iter().filter_map(|server| other_scheme(&Url::parse(server).ok()?));
        let mut probes: Vec<String> = Vec::new();
        for server in others.into_iter().chain(by_other_scheme).chain(silent) {
            if probes.len() < PROBES && !probes.contains(&server) {
                probes.push(server);
            }
        }
        // To the end of the line; all of it is seen in turn.
        let (asked, mut line): (Vec<_>, Vec<_>) =
            self.responded.drain(..).partition(|server| probes.contains(server));
        line.splice(0..0, asked);
        self.responded = line.into();
        probes
    }
}

#[cfg(test)]
#[path = "outage_tests.rs"]
mod tests;
