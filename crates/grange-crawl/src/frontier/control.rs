//! What operators see and change while a crawl runs.

use fjall::Slice;
use jiff::Timestamp;

use super::Frontier;
use super::budget;
use super::error::{FrontierError, Result};
use super::item;
use super::key::Key;
use super::queue::{Place, Temper};
use super::state::{State, timestamp};
use super::store::{self, TOTALS};
use super::view::{Counts, DomainResult, Peeked, QueueCounts, QueueFilter, QueueState, QueueView};
use crate::job::{Budgets, StopReason};
use crate::politeness::Pace;

/// URLs looked at under one lock: workers wait no longer than for so many.
const AT_ONCE: usize = 256;

impl Frontier {
    /// Numbers of the whole frontier. Looks at every queue: for progress lines, not for every URL.
    pub fn counts(&self, now: Timestamp) -> Counts {
        self.lock_state().counts(now.as_millisecond())
    }

    /// Queues in the order in which they were first met, at most `limit`.
    pub fn queues(&self, filter: &QueueFilter, limit: usize) -> Result<Vec<QueueView>> {
        let mut views = {
            let state = self.lock_state();
            let from = filter.after.map_or(0, |after| after.saturating_add(1));
            let wanted = (from..state.queues.len() as u32).filter(|id| {
                let queue = &state.queues[*id as usize];
                filter.state.is_none_or(|wanted| queue_state(queue.place) == wanted)
                    && (filter.empty_too || queue.queued() > 0)
                    && queue.name.contains(&filter.name)
            });
            wanted.take(limit).map(|id| state.view(id)).collect::<Vec<_>>()
        };
        for view in &mut views {
            view.head = self.list(view.cursor, 1, None)?.pop().map(|peeked| peeked.url);
        }
        Ok(views)
    }

    /// Calls `each` with the name of every queue and the number of URLs in it.
    pub fn for_each_queue(&self, mut each: impl FnMut(&str, u64)) {
        let state = self.lock_state();
        for queue in &state.queues {
            each(&queue.name, queue.queued());
        }
    }

    /// URLs of a queue in the order in which they are served, in flight or not; those that wait for another try last.
    pub fn peek(&self, queue: &str, limit: usize, cursor: Option<&[u8]>) -> Result<Vec<Peeked>> {
        self.list(self.queue_id(queue)?, limit, cursor)
    }

    fn list(&self, id: u32, limit: usize, cursor: Option<&[u8]>) -> Result<Vec<Peeked>> {
        let after = cursor.and_then(Key::read).map(|(_, key)| key.after());
        let from = after.unwrap_or(Key::FIRST).bytes(id);
        let mut list = Vec::new();
        let to = id.checked_add(1).map(|next| Key::FIRST.bytes(next));
        for entry in self.store.queued.range(from.as_ref()..) {
            let (bytes, value) = entry.into_inner().map_err(self.store.failed("read"))?;
            if list.len() >= limit || to.as_ref().is_some_and(|to| *bytes >= *to.as_ref()) {
                break;
            }
            let decoded = Key::read(&bytes).zip(item::decode(&value));
            let ((_, key), (candidate, tries)) = decoded.ok_or_else(|| self.store.damaged("a URL"))?;
            list.push(Peeked {
                url: candidate.target_uri().into_owned(),
                via: candidate.via.as_deref().map(str::to_owned),
                hops: candidate.hops,
                tries,
                waits_until: key.waits_until().map(timestamp),
                cursor: bytes.to_vec(),
            });
        }
        Ok(list)
    }

    /// Takes queued URLs out for good, in all queues or one; what is in flight stays. They count as disregarded and
    /// stay seen. Returns how many.
    pub fn reject(
        &self,
        queue: Option<&str>,
        unwanted: &dyn Fn(&str) -> bool,
        now: Timestamp,
    ) -> Result<u64> {
        let only = queue.map(|name| self.queue_id(name)).transpose()?;
        let mut from = only.map_or(Slice::empty(), |id| Slice::from(Key::FIRST.bytes(id).as_ref()));
        let to = only.and_then(|id| id.checked_add(1)).map(|next| Key::FIRST.bytes(next));
        let mut count = 0;
        loop {
            let mut seen = 0;
            let mut found = Vec::new();
            for entry in self.store.queued.range(&*from..).take(AT_ONCE) {
                let (bytes, value) = entry.into_inner().map_err(self.store.failed("read"))?;
                if to.as_ref().is_some_and(|to| *bytes >= *to.as_ref()) {
                    break;
                }
                seen += 1;
                // The next possible key is this one and a zero byte.
                from = Slice::from([&*bytes, &[0]].concat());
                if item::url(&value).is_some_and(unwanted) {
                    found.extend(Key::read(&bytes));
                }
            }
            count += self.drop_queued(&found, now.as_millisecond())?;
            if seen < AT_ONCE {
                self.changed.notify_waiters();
                return Ok(count);
            }
        }
    }

    /// Takes out all that a queue holds.
    pub fn delete(&self, queue: &str, now: Timestamp) -> Result<u64> {
        self.reject(Some(queue), &|_| true, now)
    }

    /// Memory is locked until the disk has it: nobody may read a URL from disk that is about to go.
    fn drop_queued(&self, found: &[(u32, Key)], now: i64) -> Result<u64> {
        if found.is_empty() {
            return Ok(0);
        }
        let mut writer = self.lock_writer();
        let mut state = self.lock_state();
        let mut batch = self.store.batch();
        let mut gone = Vec::new();
        for (id, key) in found {
            let bytes = key.bytes(*id);
            let is_idle = !state.queues[*id as usize].claimed.contains(key);
            if is_idle && self.store.queued.contains_key(bytes.as_ref()).map_err(self.store.failed("read"))? {
                batch.remove(&self.store.queued, bytes.as_ref());
                gone.push((*id, *key));
            }
        }
        let mut totals = state.totals;
        totals.disregarded += gone.len() as u64;
        batch.insert(&self.store.facts, TOTALS, totals.encode());
        self.store.commit(batch)?;
        state.totals = totals;
        for (id, key) in &gone {
            let shrunk = state.queues[*id as usize].dropped(*key);
            state.heads_grew(-shrunk);
            if key.is_prerequisite() {
                // Its fingerprint is not at hand; who needs it asks again, at worst for one that is queued already.
                writer.asked.retain(|(queue, _)| queue != id);
            }
            state.settle(*id, now);
        }
        Ok(gone.len() as u64)
    }

    /// Keeps a queue from being asked until it is revived; what it holds stays, also over a restart.
    pub fn retire(&self, queue: &str, now: Timestamp) -> Result<()> {
        self.set_retired(queue, true, now)
    }

    /// Undoes [`Frontier::retire`], and the retiring of hosts that could not be reached.
    pub fn unretire(&self, queue: &str, now: Timestamp) -> Result<()> {
        self.set_retired(queue, false, now)
    }

    fn set_retired(&self, queue: &str, is_retired: bool, now: Timestamp) -> Result<()> {
        let id = self.queue_id(queue)?;
        let _writer = self.lock_writer();
        let mut state = self.lock_state();
        let queue = &state.queues[id as usize];
        let temper = if is_retired {
            Temper { is_retired, ..queue.temper }
        } else {
            queue.temper.revived(now.as_millisecond())
        };
        let domain = &state.domains[queue.domain as usize].name;
        let mut batch = self.store.batch();
        batch.insert(
            &self.store.facts,
            store::queue_key(id),
            store::encode_queue(&temper, &queue.name, domain),
        );
        self.store.commit(batch)?;
        state.queues[id as usize].temper = temper;
        if !is_retired {
            state.queues[id as usize].forget_failures();
        }
        state.settle(id, now.as_millisecond());
        drop(state);
        self.changed.notify_waiters();
        self.changed.notify_one();
        Ok(())
    }

    /// Lets every queue (or only `queue`) be asked again at once that was parked or retired because its host could not
    /// be reached. Returns how many queues that were.
    pub fn revive(&self, queue: Option<&str>, now: Timestamp) -> Result<u64> {
        let only = queue.map(|name| self.queue_id(name)).transpose()?;
        let _writer = self.lock_writer();
        let mut state = self.lock_state();
        let at = now.as_millisecond();
        let all = 0..state.queues.len() as u32;
        let asked: Vec<u32> = all.filter(|id| only.is_none_or(|only| only == *id)).collect();
        let revived: Vec<u32> =
            asked.iter().copied().filter(|id| state.queues[*id as usize].temper.is_backing_off()).collect();
        let mut batch = self.store.batch();
        for id in &revived {
            let queue = &state.queues[*id as usize];
            let domain = &state.domains[queue.domain as usize].name;
            let value = store::encode_queue(&queue.temper.revived(at), &queue.name, domain);
            batch.insert(&self.store.facts, store::queue_key(*id), value);
        }
        self.store.commit(batch)?;
        for id in &revived {
            let temper = state.queues[*id as usize].temper.revived(at);
            state.queues[*id as usize].temper = temper;
        }
        // Others may wait with some of their URLs.
        for id in asked {
            state.queues[id as usize].forget_failures();
            state.settle(id, at);
        }
        drop(state);
        self.changed.notify_waiters();
        self.changed.notify_one();
        Ok(revived.len() as u64)
    }

    /// URLs that no fetch will be tried for, because their hosts could not be reached and no budget is used up.
    pub fn unreachable(&self, now: Timestamp) -> u64 {
        let state = self.lock_state();
        let now = now.as_millisecond();
        let given_up = |queue: &&super::queue::Queue| {
            queue.temper.is_retired && state.domain_reached(queue.domain, now).is_none()
        };
        state.queues.iter().filter(given_up).map(super::queue::Queue::queued).sum()
    }

    /// The limit of the whole crawl that is reached, whether it is paused or not.
    pub fn limit_reached(&self, now: Timestamp) -> Option<StopReason> {
        self.lock_state().crawl_reached(now.as_millisecond())
    }

    /// When the running time of the crawl reaches its limit, if it has one and the time runs.
    pub fn time_ends(&self, now: Timestamp) -> Option<Timestamp> {
        self.lock_state().time_ends(now.as_millisecond())
    }

    /// New limits, at once: queues of domains over their budget retire, those under it again are revived.
    pub fn set_budgets(&self, budgets: Budgets, now: Timestamp) {
        self.lock_state().set_budgets(budgets, now.as_millisecond());
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// A new pace for the waits that begin from now on.
    pub fn set_pace(&self, pace: Pace) {
        self.lock_state().pace = pace;
    }

    /// Scales the waits that begin from now on: 2 is half the speed, 0 no wait.
    pub fn set_pace_factor(&self, factor: f64) {
        self.lock_state().factor = factor;
    }

    /// Stops or starts handing out, and with it the running time.
    pub fn set_running(&self, running: bool, now: Timestamp) {
        self.lock_state().time.set(running, now.as_millisecond());
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// How every domain fared, if the crawl ends now.
    pub fn domains(&self, now: Timestamp) -> Vec<DomainResult> {
        let state = self.lock_state();
        let now = now.as_millisecond();
        let crawl = state.crawl_reached(now);
        let result = |(id, domain): (usize, &super::state::Domain)| {
            let remaining = domain.queues.iter().map(|queue| state.queues[*queue as usize].queued()).sum();
            DomainResult {
                domain: domain.name.to_string(),
                objects: domain.spent.objects,
                bytes: domain.spent.bytes,
                remaining,
                stop_reason: budget::stop_reason(remaining, state.domain_reached(id as u32, now), crawl),
            }
        };
        state.domains.iter().enumerate().map(result).collect()
    }

    fn queue_id(&self, name: &str) -> Result<u32> {
        let id = self.lock_state().queue_names.get(name).copied();
        id.ok_or_else(|| FrontierError::NoQueue { name: name.to_owned() })
    }
}

fn queue_state(place: Place) -> QueueState {
    match place {
        Place::Ready | Place::Loose => QueueState::Ready,
        Place::Snoozed(_) => QueueState::Snoozed,
        Place::Busy => QueueState::InProcess,
        Place::AtDomain | Place::AtGate => QueueState::Blocked,
        Place::Retired => QueueState::Retired,
        Place::Empty => QueueState::Exhausted,
    }
}

impl State {
    pub(super) fn counts(&self, now: i64) -> Counts {
        let mut queues = QueueCounts { all: self.queues.len() as u64, ..QueueCounts::default() };
        let mut deepest = 0;
        let mut filled = 0_u64;
        for queue in &self.queues {
            deepest = deepest.max(queue.queued());
            filled += u64::from(queue.queued() > 0);
            *match queue_state(queue.place) {
                QueueState::Ready => &mut queues.ready,
                QueueState::InProcess => &mut queues.in_process,
                QueueState::Snoozed => &mut queues.snoozed,
                QueueState::Blocked => &mut queues.blocked,
                QueueState::Retired => &mut queues.retired,
                QueueState::Exhausted => &mut queues.exhausted,
            } += 1;
        }
        let totals = &self.totals;
        let queued = totals.discovered.saturating_sub(totals.finished());
        let eligible = queues.ready + queues.in_process + queues.snoozed + queues.blocked;
        let served = queues.in_process + queues.snoozed;
        Counts {
            discovered: totals.discovered,
            queued,
            in_flight: self.in_flight,
            finished: totals.finished(),
            succeeded: totals.succeeded,
            failed: totals.failed,
            disregarded: totals.disregarded,
            bytes: totals.bytes,
            objects: totals.objects,
            object_bytes: totals.object_bytes,
            ran: std::time::Duration::from_millis(self.time.ran(now)),
            queues,
            deepest,
            average_depth: if filled > 0 { queued as f64 / filled as f64 } else { 0.0 },
            congestion: if served > 0 { eligible as f64 / served as f64 } else { 1.0 },
        }
    }

    fn view(&self, id: u32) -> QueueView {
        let queue = &self.queues[id as usize];
        let domain = &self.domains[queue.domain as usize];
        QueueView {
            name: queue.name.to_string(),
            domain: domain.name.to_string(),
            state: queue_state(queue.place),
            queued: queue.queued(),
            in_flight: queue.claimed.len() as u64,
            enqueued: queue.enqueued,
            errors: queue.errors,
            last_claimed: queue.last_claimed.map(timestamp),
            wakes: match queue.place {
                Place::Snoozed(time) => Some(timestamp(time)),
                _ => None,
            },
            failures: queue.temper.failures,
            spent: domain.spent.objects,
            budget: domain.budget.limits.max_objects,
            head: None,
            cursor: id,
        }
    }
}
