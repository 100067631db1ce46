//! One queue in memory: how many it holds, its first few URLs, and when it may be asked again.

use std::collections::VecDeque;
use std::sync::Arc;

use fjall::{Keyspace, Slice};

use super::key::{Key, in_line_from, later_start};
use super::settings::Settings;
use super::work::Outcome;
use crate::politeness::{self, Pace, Strain, Visit};
use crate::status::FetchStatus;

/// What is remembered of a host's behaviour; it is written down when it is more than the usual wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Temper {
    /// Not asked before, in milliseconds since 1970.
    pub(super) pace_at: i64,
    pub(super) strain: Strain,
    /// Times in a row the host could not be reached.
    pub(super) failures: u32,
    /// Times in a row it was parked for that.
    pub(super) parks: u32,
    /// By an operator, or because it could not be reached for too long.
    pub(super) is_retired: bool,
}

impl Temper {
    /// After a visit. `far` is a visit that did not touch the host (a name was looked up).
    #[must_use]
    pub(super) fn after(
        self,
        visit: &Visit,
        far: bool,
        settings: &Settings,
        pace: &Pace,
        factor: f64,
        now: i64,
    ) -> Temper {
        let mut temper = self;
        let unreachable = visit.status.is_unreachable();
        if !unreachable && (far || !visit.status.is_success()) {
            // Nothing was asked of the host: blocked by robots.txt, out of scope after all, too deep.
            return temper;
        }
        let (wait, strain) = politeness::delay(pace, visit, self.strain, factor);
        temper.strain = strain;
        temper.pace_at = self.pace_at.max(add(now, wait.as_millis()));
        if visit.is_apart {
            return temper;
        }
        if !unreachable {
            temper.failures = 0;
            temper.parks = 0;
            return temper;
        }
        temper.failures = self.failures.saturating_add(1);
        if settings.park_after > 0 && temper.failures >= settings.park_after {
            temper.parks = self.parks.saturating_add(1);
            temper.pace_at = temper.pace_at.max(add(now, settings.park_for.0.as_millis()));
            temper.is_retired |= settings.max_parks > 0 && temper.parks >= settings.max_parks;
        }
        temper
    }

    /// Parked or retired, or on the way there, because the host could not be reached.
    pub(super) fn is_backing_off(&self) -> bool {
        self.is_retired || self.failures > 0
    }

    /// As if the host had never failed: it may be asked at `now`.
    #[must_use]
    pub(super) fn revived(self, now: i64) -> Temper {
        Temper { is_retired: false, failures: 0, parks: 0, pace_at: self.pace_at.min(now), ..self }
    }

    /// Worth a write: it holds for longer than a crash and a restart take, or counts towards parking.
    pub(super) fn is_remarkable(&self, before: &Temper, now: i64) -> bool {
        const LONG_MS: i64 = 30_000;
        let alike = Temper { pace_at: before.pace_at, ..*self };
        alike != *before || self.pace_at > now.saturating_add(LONG_MS)
    }
}

/// Failures of a queue with no response in between. Kept in memory only: a resume tries every host again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailureRun {
    /// The first of them, in milliseconds since 1970.
    pub(super) since: i64,
    pub(super) count: u32,
    /// The last of them.
    pub(super) status: FetchStatus,
    /// The last one was that of a prerequisite, which keeps the whole queue waiting.
    pub(super) is_prerequisite: bool,
}

impl FailureRun {
    /// The run after an outcome at `now`. A failed prerequisite is one that is tried again, whatever its status: a
    /// robots.txt answered with 503 keeps its queue waiting like one that cannot be had.
    pub(super) fn after(
        run: Option<FailureRun>,
        outcome: &Outcome,
        is_prerequisite: bool,
        now: i64,
    ) -> Option<FailureRun> {
        let (visit, is_retry) = match outcome {
            Outcome::Done(visit) => (visit, false),
            Outcome::Retry { visit, .. } => (visit, true),
            Outcome::Wait { .. } | Outcome::Defer { .. } | Outcome::Retire => return run,
        };
        if visit.status.is_unreachable() || (is_retry && is_prerequisite) {
            let before = run.map_or((now, 0), |run| (run.since, run.count));
            let count = before.1.saturating_add(1);
            return Some(FailureRun { since: before.0, count, status: visit.status, is_prerequisite });
        }
        run.filter(|_| !visit.status.is_success())
    }

    /// The status of URLs that are given up without another try: that of the last failure, unless it is a response
    /// to another URL.
    pub(super) fn final_status(&self) -> FetchStatus {
        match (self.status.is_success(), self.is_prerequisite) {
            (false, _) => self.status,
            (true, true) => FetchStatus::ROBOTS_PREREQUISITE,
            (true, false) => FetchStatus::TOO_MANY_RETRIES,
        }
    }
}

pub(super) fn add(now: i64, millis: u128) -> i64 {
    now.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// The queues on disk as far as memory has taken note of them. A batch may be on disk while its note is still to come:
/// what stands in it must not be handed out before, or it would be twice.
pub(super) struct Disk<'a> {
    pub(super) queued: &'a Keyspace,
    /// The first sequence number that memory does not know of.
    pub(super) next_sequence: u64,
}

impl Disk<'_> {
    fn knows(&self, key: Key) -> bool {
        key.sequence() < self.next_sequence
    }
}

/// Which list a queue stands in. It is in one only; entries in others are stale and skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Ready,
    /// Until this time.
    Snoozed(i64),
    /// As many in flight as may be, or all that it holds.
    Busy,
    /// Waiting for another URL of its domain.
    AtDomain,
    /// Waiting for another URL of its host or address.
    AtGate,
    Retired,
    Empty,
    /// In none: it is being looked at.
    Loose,
}

pub(super) struct Queue {
    pub(super) name: Arc<str>,
    pub(super) domain: u32,
    pub(super) temper: Temper,
    pub(super) failing: Option<FailureRun>,
    /// Set when its URLs are handed out with this status, to be logged and not fetched.
    pub(super) given_up: Option<FetchStatus>,
    pub(super) place: Place,
    /// In line and not in flight.
    pub(super) in_line: u64,
    /// Waiting for a second try and not in flight.
    pub(super) later: u64,
    /// The earliest of those, in milliseconds since 1970.
    later_first: i64,
    pub(super) claimed: Vec<Key>,
    /// The first ones in line, in order: everything in line on disk before the last of them is among them.
    heads: VecDeque<(Key, Slice)>,
    /// All that is in line is among the heads.
    is_whole: bool,
    /// Nothing in line on disk stands before this, unless it is in flight. Keeps reads off the graves of what is done.
    floor: Key,
    pub(super) enqueued: u64,
    pub(super) errors: u64,
    pub(super) last_claimed: Option<i64>,
}

impl Queue {
    pub(super) fn new(name: Arc<str>, domain: u32) -> Queue {
        Queue {
            name,
            domain,
            temper: Temper::default(),
            failing: None,
            given_up: None,
            place: Place::Empty,
            in_line: 0,
            later: 0,
            later_first: i64::MAX,
            claimed: Vec::new(),
            heads: VecDeque::new(),
            is_whole: true,
            floor: Key::FIRST,
            enqueued: 0,
            errors: 0,
            last_claimed: None,
        }
    }

    /// As if its host had never failed.
    pub(super) fn forget_failures(&mut self) {
        self.failing = None;
        self.given_up = None;
    }

    /// Nothing that it holds stands before this on disk, in flight or not.
    pub(super) fn first_key(&self) -> Key {
        self.claimed.iter().copied().fold(self.floor, Key::min)
    }

    /// All it holds, in flight or not.
    pub(super) fn queued(&self) -> u64 {
        self.in_line + self.later + self.claimed.len() as u64
    }

    /// When it may be asked next, if it holds anything not in flight. URLs that are given up wait for nothing.
    pub(super) fn due(&self) -> i64 {
        if self.given_up.is_some() {
            return i64::MIN;
        }
        if self.in_line > 0 { self.temper.pace_at } else { self.temper.pace_at.max(self.later_first) }
    }

    pub(super) fn has_prerequisite_in_flight(&self) -> bool {
        self.claimed.iter().any(|key| key.is_prerequisite())
    }

    /// Counts what is on disk already, when the frontier is opened. Keys come in their order.
    pub(super) fn found(&mut self, key: Key) {
        self.enqueued += 1;
        if let Some(time) = key.waits_until() {
            self.later += 1;
            self.later_first = self.later_first.min(time);
            return;
        }
        if self.in_line == 0 {
            self.floor = key;
        }
        self.in_line += 1;
        self.is_whole = false;
    }

    /// Takes note of what was just written to disk, or of a claim given back. `room` says how many heads
    /// memory allows; returns by how many they grew.
    pub(super) fn put(&mut self, key: Key, value: &Slice, room: usize) -> isize {
        if let Some(time) = key.waits_until() {
            self.later += 1;
            self.later_first = self.later_first.min(time);
            return 0;
        }
        self.in_line += 1;
        self.floor = self.floor.min(key);
        let at = self.heads.partition_point(|(head, _)| *head < key);
        if at == self.heads.len() && !(self.is_whole && at < room) {
            self.is_whole = false;
            return 0;
        }
        self.heads.insert(at, (key, value.clone()));
        // What stands before others must be here; the last makes room, unless it is all there is.
        if self.heads.len() > room.max(1) {
            self.heads.pop_back();
            self.is_whole = false;
            return 0;
        }
        1
    }

    /// What comes next at `now`, and by how many the heads grew in looking. At most `share` of them.
    pub(super) fn head(
        &mut self,
        id: u32,
        disk: &Disk<'_>,
        share: usize,
        now: i64,
    ) -> fjall::Result<(Option<(Key, Slice)>, isize)> {
        let mut grown = 0;
        if self.heads.is_empty() && !self.is_whole {
            grown = self.refill(id, disk, share)?;
        }
        let first = self.heads.front().cloned();
        let now = if self.given_up.is_some() { i64::MAX } else { now };
        let is_due = self.later > 0 && self.later_first <= now;
        if is_due && first.as_ref().is_none_or(|(key, _)| !key.is_prerequisite()) {
            let waiting = self.first_later(id, disk)?;
            // What was deleted may have been the first.
            self.later_first = waiting.as_ref().and_then(|(key, _)| key.waits_until()).unwrap_or(i64::MAX);
            if waiting.is_some() && self.later_first <= now {
                return Ok((waiting, grown));
            }
        }
        Ok((first, grown))
    }

    fn refill(&mut self, id: u32, disk: &Disk<'_>, share: usize) -> fjall::Result<isize> {
        let (from, to) = in_line_from(id, self.floor);
        self.is_whole = true;
        for entry in disk.queued.range(from.as_ref()..&to[..]) {
            let (bytes, value) = entry.into_inner()?;
            let Some((_, key)) = Key::read(&bytes) else { continue };
            if self.claimed.contains(&key) || !disk.knows(key) {
                continue;
            }
            if self.heads.len() == share {
                self.is_whole = false;
                break;
            }
            // A copy: the value read would keep its whole block in memory.
            self.heads.push_back((key, Slice::from(&*value)));
        }
        Ok(self.heads.len() as isize)
    }

    fn first_later(&self, id: u32, disk: &Disk<'_>) -> fjall::Result<Option<(Key, Slice)>> {
        for entry in disk.queued.prefix(later_start(id)) {
            let (bytes, value) = entry.into_inner()?;
            match Key::read(&bytes) {
                Some((_, key)) if !self.claimed.contains(&key) && disk.knows(key) => {
                    return Ok(Some((key, Slice::from(&*value))));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Marks what [`Queue::head`] gave as in flight; returns by how many the heads shrank.
    pub(super) fn claim(&mut self, id: u32, key: Key, disk: &Disk<'_>, now: i64) -> fjall::Result<isize> {
        self.claimed.push(key);
        self.last_claimed = Some(now);
        if key.waits_until().is_some() {
            self.later = self.later.saturating_sub(1);
            let next = if self.later > 0 { self.first_later(id, disk)? } else { None };
            self.later_first = next.and_then(|(key, _)| key.waits_until()).unwrap_or(i64::MAX);
            return Ok(0);
        }
        self.in_line = self.in_line.saturating_sub(1);
        self.heads.pop_front();
        if self.heads.is_empty() {
            self.floor = self.floor.max(key.after());
        }
        Ok(1)
    }

    /// It is in flight no more; true if it was.
    pub(super) fn unclaim(&mut self, key: Key) -> bool {
        let at = self.claimed.iter().position(|claimed| *claimed == key);
        at.map(|at| self.claimed.swap_remove(at)).is_some()
    }

    /// Takes note of what an operator deleted; returns by how many the heads shrank.
    pub(super) fn dropped(&mut self, key: Key) -> isize {
        if key.waits_until().is_some() {
            self.later = self.later.saturating_sub(1);
            return 0;
        }
        self.in_line = self.in_line.saturating_sub(1);
        match self.heads.binary_search_by(|(head, _)| head.cmp(&key)) {
            Ok(at) => {
                self.heads.remove(at);
                1
            }
            Err(_) => 0,
        }
    }
}
