//! Which of the servers that share a queue can be reached: both schemes of one host, or the hosts of one domain.
//!
//! A queue is a line. A server at its head that cannot be connected to must neither hold up URLs of another server behind
//! it nor use up their tries. So failures are counted by server (scheme, host and port) too. As long as the queue has
//! something for another server that may answer, a failure puts off the URLs of the failing server alone; they are parked
//! as often and as long as a queue is. If nothing else is in the queue, the queue itself is parked.
//!
//! Kept in memory only: a resume tries every server again.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::frontier::Settings;
use crate::status::FetchStatus;

/// Queues that are remembered. Of more, any half is forgotten; that costs some tries.
const QUEUES_MAX: usize = 20_000;
/// Servers remembered of one queue. A domain may have any number of hosts.
const SERVERS_MAX: usize = 1_000;

/// What is known of all servers, by queue and by [`authority`](super::hosts::authority).
#[derive(Debug, Default)]
pub(super) struct Contacts(Mutex<Queues>);

type Queues = HashMap<Box<str>, HashMap<Box<str>, Contact>>;

#[derive(Clone, Copy, Debug, Default)]
struct Contact {
    /// The last time that it answered.
    reached: Option<Timestamp>,
    /// The failures since.
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Timestamp,
    /// The try before the last.
    previous: Timestamp,
    last: Timestamp,
    tries: u32,
    status: FetchStatus,
    /// The queue goes on without its URLs.
    is_apart: bool,
}

/// Whether a server is to be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backoff {
    None,
    /// Its URLs wait until then; others of the queue do not.
    Until(Timestamp),
    /// It was parked as often as the settings allow. This was the last failure.
    Exhausted(FetchStatus),
}

impl Contacts {
    pub(super) fn note_reached(&self, queue: &str, server: &str, now: Timestamp) {
        let mut queues = self.lock();
        *contact(&mut queues, queue, server) = Contact { reached: Some(now), failing: None };
    }

    pub(super) fn note_failed(&self, queue: &str, server: &str, status: FetchStatus, now: Timestamp) {
        let mut queues = self.lock();
        let contact = contact(&mut queues, queue, server);
        let before = contact.failing;
        contact.failing = Some(Failing {
            since: before.map_or(now, |failing| failing.since),
            previous: before.map_or(now, |failing| failing.last),
            last: now,
            tries: before.map_or(0, |failing| failing.tries).saturating_add(1),
            status,
            is_apart: before.is_some_and(|failing| failing.is_apart),
        });
    }

    /// Whether another server of the queue has answered since this one failed first, and has not failed since.
    pub(super) fn answers_elsewhere(&self, queue: &str, server: &str) -> bool {
        let queues = self.lock();
        let Some(servers) = queues.get(queue) else { return false };
        let since = servers.get(server).and_then(|contact| contact.failing).map(|failing| failing.since);
        servers.iter().any(|(name, contact)| {
            &**name != server && contact.failing.is_none() && contact.reached >= since && since.is_some()
        })
    }

    /// The servers of the queue that failed since the last but one try of this one, itself included: it is of no use to let
    /// their URLs go first. Two servers that fail are tried in turn.
    pub(super) fn silent(&self, queue: &str, server: &str) -> HashSet<Box<str>> {
        let queues = self.lock();
        let mut silent = HashSet::from([Box::from(server)]);
        let Some(servers) = queues.get(queue) else { return silent };
        let Some(failing) = servers.get(server).and_then(|contact| contact.failing) else { return silent };
        let fails = |contact: &Contact| contact.failing.is_some_and(|other| other.last >= failing.previous);
        silent.extend(servers.iter().filter(|(_, contact)| fails(contact)).map(|(name, _)| name.clone()));
        silent
    }

    /// Whether a server of the queue has responded in this run.
    pub(super) fn has_responded(&self, queue: &str, server: &str) -> bool {
        let queues = self.lock();
        queues.get(queue).and_then(|servers| servers.get(server)).is_some_and(|one| one.reached.is_some())
    }

    /// Whether every server of the queue that fails has answered before, in this run.
    pub(super) fn have_answered(&self, queue: &str) -> bool {
        let queues = self.lock();
        let Some(servers) = queues.get(queue) else { return false };
        let mut failing = servers.values().filter(|contact| contact.failing.is_some()).peekable();
        failing.peek().is_some() && failing.all(|contact| contact.reached.is_some())
    }

    /// Whether a server of the queue is known that is not among `silent`.
    pub(super) fn knows_others(&self, queue: &str, silent: &HashSet<Box<str>>) -> bool {
        let queues = self.lock();
        queues.get(queue).is_some_and(|servers| servers.keys().any(|name| !silent.contains(name)))
    }

    /// All servers of the queue that fail.
    pub(super) fn failing(&self, queue: &str) -> HashSet<Box<str>> {
        let queues = self.lock();
        let servers = queues.get(queue).into_iter().flatten();
        servers.filter(|(_, contact)| contact.failing.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Says whether the queue goes on without the URLs of a server that fails.
    pub(super) fn set_apart(&self, queue: &str, server: &str, is_apart: bool) {
        let mut queues = self.lock();
        if let Some(failing) = &mut contact(&mut queues, queue, server).failing {
            failing.is_apart = is_apart;
        }
    }

    /// Whether a server is to be asked at `now`, as far as its failures count for it alone.
    pub(super) fn backoff(&self, queue: &str, server: &str, settings: &Settings, now: Timestamp) -> Backoff {
        let queues = self.lock();
        let failing = queues.get(queue).and_then(|servers| servers.get(server)?.failing);
        let Some(failing) = failing.filter(|failing| failing.is_apart) else { return Backoff::None };
        if settings.park_after == 0 || failing.tries < settings.park_after {
            return Backoff::None;
        }
        let parks = failing.tries - settings.park_after + 1;
        if settings.max_parks > 0 && parks >= settings.max_parks {
            return Backoff::Exhausted(failing.status);
        }
        let wait = SignedDuration::try_from(settings.park_for.0).unwrap_or(SignedDuration::MAX);
        let until = failing.last.saturating_add(wait).unwrap_or(Timestamp::MAX);
        if now < until { Backoff::Until(until) } else { Backoff::None }
    }

    /// As if no server had ever failed.
    pub(super) fn forget_failures(&self) {
        for contact in self.lock().values_mut().flat_map(HashMap::values_mut) {
            contact.failing = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn contact<'a>(queues: &'a mut Queues, queue: &str, server: &str) -> &'a mut Contact {
    if !queues.contains_key(queue) {
        halve(queues, QUEUES_MAX);
        queues.insert(queue.into(), HashMap::new());
    }
    let servers = queues.entry(queue.into()).or_default();
    if !servers.contains_key(server) {
        halve(servers, SERVERS_MAX);
    }
    servers.entry(server.into()).or_default()
}

/// Forgets any half of a map that is full.
fn halve<T>(map: &mut HashMap<Box<str>, T>, max: usize) {
    if map.len() >= max {
        let mut keep = false;
        map.retain(|_, _| {
            keep = !keep;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: FetchStatus = FetchStatus::CONNECT_FAILED;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(names: &[&str]) -> HashSet<Box<str>> {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    #[test]
    fn a_server_answers_elsewhere_if_another_one_answered_since_the_failures_began_and_still_does() {
        let contacts = Contacts::default();
        let elsewhere = || contacts.answers_elsewhere("h", "https://h");
        contacts.note_reached("h", "http://h", at(1));
        assert!(!elsewhere(), "nothing fails");
        contacts.note_failed("h", "https://h", FAILED, at(2));
        assert!(!elsewhere(), "that may be over");
        contacts.note_reached("h", "http://h", at(3));
        assert!(elsewhere());
        contacts.note_failed("h", "https://h", FAILED, at(4));
        assert!(elsewhere(), "since the first failure");
        contacts.note_failed("h", "http://h", FAILED, at(5));
        assert!(!elsewhere(), "both fail");
        contacts.note_reached("other", "http://other", at(6));
        assert!(!elsewhere(), "another queue");
        assert_eq!(contacts.failing("h"), set(&["http://h", "https://h"]));
        contacts.forget_failures();
        assert_eq!(contacts.failing("h"), set(&[]));
    }

    #[test]
    fn two_servers_that_fail_are_tried_in_turn() {
        let contacts = Contacts::default();
        let mut silent = Vec::new();
        for (second, server) in
            [(0, "a"), (60, "b"), (60, "a"), (180, "a"), (180, "b"), (300, "b"), (400, "a")]
        {
            contacts.note_failed("q", server, FAILED, at(second));
            silent.push(contacts.silent("q", server).len() > 1);
        }
        // The first failure of each, and the second in a row of one while the other has not been tried.
        assert_eq!(silent, [false, false, true, true, true, true, true]);
        contacts.note_failed("q", "a", FAILED, at(500));
        assert!(!contacts.silent("q", "a").contains("b"), "it was not tried since");
    }

    #[test]
    fn urls_of_a_server_are_parked_as_often_as_a_queue_would_be() {
        let contacts = Contacts::default();
        let settings = Settings { park_after: 2, max_parks: 2, ..Settings::default() };
        let backoff = |second| contacts.backoff("h", "https://h", &settings, at(second));
        assert_eq!(backoff(0), Backoff::None);
        contacts.note_failed("h", "https://h", FAILED, at(0));
        contacts.note_failed("h", "https://h", FAILED, at(1));
        assert_eq!(backoff(2), Backoff::None, "the whole queue is parked");
        contacts.set_apart("h", "https://h", true);
        assert_eq!((backoff(600), backoff(601)), (Backoff::Until(at(601)), Backoff::None));
        let never = Settings { park_after: 0, ..settings.clone() };
        assert_eq!(contacts.backoff("h", "https://h", &never, at(2)), Backoff::None);
        contacts.note_failed("h", "https://h", FetchStatus::TIMEOUT, at(601));
        assert_eq!(backoff(602), Backoff::Exhausted(FetchStatus::TIMEOUT));
        contacts.note_reached("h", "https://h", at(603));
        assert_eq!(backoff(604), Backoff::None);
    }

    #[test]
    fn memory_is_bounded() {
        let contacts = Contacts::default();
        for n in 0..2 * QUEUES_MAX {
            contacts.note_failed(&n.to_string(), "s", FAILED, at(0));
        }
        for n in 0..2 * SERVERS_MAX {
            contacts.note_reached("domain", &n.to_string(), at(0));
        }
        let queues = contacts.lock();
        assert!(queues.len() <= QUEUES_MAX && queues["domain"].len() <= SERVERS_MAX);
    }
}
