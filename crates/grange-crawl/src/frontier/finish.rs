//! URLs in and results back: one atomic batch on disk for each call, then the same in memory.
//!
//! Only one batch is made at a time (the writer's lock). Memory is not locked while the disk is written, so workers get
//! their next URLs meanwhile; [`super::queue::Disk`] keeps them from what memory does not know of yet.

use std::collections::{HashMap, HashSet};

use fjall::{Keyspace, OwnedWriteBatch, Slice};

use super::Frontier;
use super::budget::Spent;
use super::canonical::fingerprint;
use super::error::{FrontierError, Result};
use super::item;
use super::key::Key;
use super::place;
use super::queue::{FailureRun, Temper, add};
use super::seen::{self, Seen};
use super::settings::Settings;
use super::state::State;
use super::store::{self, TOTALS, Totals};
use super::work::{Added, Claim, Finished, Outcome};
use crate::candidate::Candidate;
use crate::politeness::Visit;

/// What only the one who writes needs.
pub(super) struct Writer {
    pub(super) seen: Seen,
    /// Prerequisites that are queued, by queue and fingerprint: one is enough for all who need it.
    pub(super) asked: HashSet<(u32, u64)>,
}

/// A URL to be queued.
struct Fresh<'a> {
    candidate: &'a Candidate,
    fingerprint: u64,
    /// The queue of those who need it first; its own if none.
    needed_by: Option<u32>,
}

/// A URL with its place.
struct Placed {
    queue: u32,
    key: Key,
    value: Slice,
}

/// What becomes of a claim.
enum Fate {
    Gone,
    /// Back to where it was, perhaps with one try more.
    Back(Slice),
    /// To another place.
    Moved(Placed),
}

/// The batch on disk, and what memory has to note when it is there.
struct Plan {
    batch: OwnedWriteBatch,
    totals: Totals,
    tempers: HashMap<u32, Temper>,
    spent: HashMap<u32, Spent>,
    fates: Vec<Fate>,
    placed: Vec<Placed>,
}

impl Frontier {
    pub(super) fn write(
        &self,
        finished: &[Finished],
        added: &[Candidate],
        marks: &[(String, Vec<u8>)],
        now: i64,
    ) -> Result<Added> {
        let mut writer = self.lock_writer();
        let found = finished.iter().flat_map(|finished| &finished.discovered).chain(added);
        let mut fresh = Vec::new();
        let mut count = Added::default();
        let mut in_batch = HashSet::new();
        for candidate in found {
            let fingerprint = fingerprint(&candidate.url, self.settings.canonical);
            let is_known = in_batch.contains(&fingerprint)
                || writer.seen.contains(fingerprint).map_err(self.store.failed("read"))?;
            if is_known && !candidate.force {
                count.seen_before += 1;
            } else {
                in_batch.insert(fingerprint);
                fresh.push(Fresh { candidate, fingerprint, needed_by: None });
            }
        }
        for finished in finished {
            if let Outcome::Defer { prerequisites } = &finished.outcome {
                let queue = finished.claim.queue;
                for candidate in prerequisites {
                    let fingerprint = fingerprint(&candidate.url, self.settings.canonical);
                    if writer.asked.insert((queue, fingerprint)) {
                        fresh.push(Fresh { candidate, fingerprint, needed_by: Some(queue) });
                    }
                }
            }
        }
        let mut plan = {
            let mut state = self.lock_state();
            check_claims(&state, finished)?;
            leave_out(&mut fresh, &state, &self.settings, &mut count);
            count.queued = fresh.len() as u64;
            let mut plan = Plan {
                batch: self.store.batch(),
                totals: state.totals,
                tempers: HashMap::new(),
                spent: HashMap::new(),
                fates: Vec::with_capacity(finished.len()),
                placed: Vec::with_capacity(fresh.len()),
            };
            for finished in finished {
                let fate = plan.finish(finished, &state, &self.settings, now);
                plan.fates.push(fate);
            }
            for fresh in &fresh {
                plan.place(fresh, &mut state, &self.settings);
            }
            plan.totals.ran = state.time.ran(now);
            plan.facts(&self.store.facts, &state, now);
            plan
        };
        self.fill(&mut plan, finished, &fresh, marks);
        self.store.commit(plan.batch)?;

        for fresh in &fresh {
            writer.seen.committed(fresh.fingerprint);
        }
        for (finished, fate) in finished.iter().zip(&plan.fates) {
            if finished.claim.is_prerequisite() && matches!(fate, Fate::Gone) {
                let fingerprint = fingerprint(&finished.claim.candidate.url, self.settings.canonical);
                writer.asked.remove(&(finished.claim.queue, fingerprint));
            }
        }
        let mut state = self.lock_state();
        state.totals = plan.totals;
        for (queue, temper) in plan.tempers {
            // Retiring is an operator's word too, which may have come meanwhile.
            let is_retired = state.queues[queue as usize].temper.is_retired;
            state.queues[queue as usize].temper =
                Temper { is_retired: is_retired || temper.is_retired, ..temper };
        }
        for (domain, spent) in plan.spent {
            state.domains[domain as usize].spent = spent;
        }
        for (finished, fate) in finished.iter().zip(plan.fates) {
            state.note(&finished.claim, &finished.outcome, fate, now);
        }
        for placed in plan.placed {
            state.queues[placed.queue as usize].enqueued += 1;
            state.put(&placed);
            state.grew(placed.queue, now);
        }
        for finished in finished {
            let domain = state.queues[finished.claim.queue as usize].domain;
            state.settle_domain(domain, now);
        }
        let is_calm = state.in_flight == 0;
        drop(state);
        self.changed.notify_one();
        if is_calm {
            // Whoever waits for a finish waits in vain now.
            self.changed.notify_waiters();
        }
        Ok(count)
    }

    /// Everything but the facts goes into the batch without a lock on memory.
    fn fill(&self, plan: &mut Plan, finished: &[Finished], fresh: &[Fresh<'_>], marks: &[(String, Vec<u8>)]) {
        let queued = &self.store.queued;
        for (finished, fate) in finished.iter().zip(&plan.fates) {
            let old = finished.claim.key.bytes(finished.claim.queue);
            match fate {
                Fate::Gone => plan.batch.remove(queued, old.as_ref()),
                Fate::Back(value) => {
                    if matches!(finished.outcome, Outcome::Retry { .. }) {
                        plan.batch.insert(queued, old.as_ref(), value.clone());
                    }
                }
                Fate::Moved(placed) => {
                    plan.batch.remove(queued, old.as_ref());
                    plan.batch.insert(queued, placed.key.bytes(placed.queue).as_ref(), placed.value.clone());
                }
            }
        }
        for (fresh, placed) in fresh.iter().zip(&plan.placed) {
            plan.batch.insert(&self.store.seen, seen::bytes(fresh.fingerprint), Slice::empty());
            plan.batch.insert(queued, placed.key.bytes(placed.queue).as_ref(), placed.value.clone());
        }
        let facts = &self.store.facts;
        for (name, value) in marks {
            plan.batch.insert(facts, store::named(b'm', name), value.as_slice());
        }
        plan.batch.insert(facts, TOTALS, plan.totals.encode());
    }
}

/// Each must be in flight, and none may be there twice.
fn check_claims(state: &State, finished: &[Finished]) -> Result<()> {
    let mut twice = HashSet::with_capacity(finished.len());
    for Finished { claim, .. } in finished {
        let is_claimed =
            state.queues.get(claim.queue as usize).is_some_and(|queue| queue.claimed.contains(&claim.key));
        if !is_claimed || !twice.insert(claim.key.sequence()) {
            return Err(FrontierError::NotClaimed { url: claim.candidate.target_uri().into_owned() });
        }
    }
    Ok(())
}

/// Leaves URLs out whose hosts would be too many. Seeds and what is forced stay.
fn leave_out(fresh: &mut Vec<Fresh<'_>>, state: &State, settings: &Settings, count: &mut Added) {
    let most = |limit: u32| if limit == 0 { usize::MAX } else { limit as usize };
    let (of_crawl, of_domain) = (most(settings.max_queues), most(settings.max_hosts_per_domain));
    // What this batch makes.
    let mut new = HashSet::new();
    let mut new_of_domain: HashMap<String, usize> = HashMap::new();
    fresh.retain(|Fresh { candidate, needed_by, .. }| {
        let name = place::queue_name(&candidate.url, settings.queue_by);
        if needed_by.is_some() || state.queue_names.contains_key(&*name) || new.contains(&*name) {
            return true;
        }
        let domain = place::domain(place::host(&candidate.url));
        let known = state.domain_names.get(domain).map_or(0, |id| state.domains[*id as usize].queues.len());
        let hosts = known + new_of_domain.get(domain).copied().unwrap_or_default();
        let is_wanted = candidate.hops.count() == 0 || candidate.force;
        let has_room = state.queues.len() + new.len() < of_crawl && hosts < of_domain;
        if is_wanted || has_room {
            *new_of_domain.entry(domain.to_owned()).or_default() += 1;
            new.insert(name.into_owned());
            return true;
        }
        count.left_out += 1;
        count.crowded_domain.get_or_insert_with(|| domain.to_owned());
        false
    });
}

impl Plan {
    fn finish(&mut self, finished: &Finished, state: &State, settings: &Settings, now: i64) -> Fate {
        let claim = &finished.claim;
        match &finished.outcome {
            Outcome::Done(visit) => {
                self.visited(claim, visit, None, state, settings, now);
                self.charge(claim, visit, state);
                Fate::Gone
            }
            Outcome::Retry { visit, after } => {
                let value = Slice::from(item::encode(&claim.candidate, claim.tries.saturating_add(1)));
                let time = add(now, after.as_millis());
                if claim.is_prerequisite() {
                    self.visited(claim, visit, Some(time), state, settings, now);
                    return Fate::Back(value);
                }
                self.visited(claim, visit, None, state, settings, now);
                Fate::Moved(Placed { queue: claim.queue, key: Key::later(time, self.sequence()), value })
            }
            Outcome::Wait { after } => {
                let value = Slice::from(item::encode(&claim.candidate, claim.tries));
                let key = Key::later(add(now, after.as_millis()), self.sequence());
                Fate::Moved(Placed { queue: claim.queue, key, value })
            }
            Outcome::Retire => {
                let id = claim.queue;
                let temper = self.tempers.entry(id).or_insert(state.queues[id as usize].temper);
                temper.is_retired = true;
                Fate::Back(Slice::from(item::encode(&claim.candidate, claim.tries)))
            }
            Outcome::Defer { .. } => Fate::Back(Slice::from(item::encode(&claim.candidate, claim.tries))),
        }
    }

    fn visited(
        &mut self,
        claim: &Claim,
        visit: &Visit,
        not_before: Option<i64>,
        state: &State,
        settings: &Settings,
        now: i64,
    ) {
        if claim.given_up.is_some() {
            // Nothing was asked of the host.
            return;
        }
        let temper = self.tempers.entry(claim.queue).or_insert(state.queues[claim.queue as usize].temper);
        let far = place::is_far_from_host(&claim.candidate.url);
        *temper = temper.after(visit, far, settings, &state.pace, state.factor, now);
        if let Some(time) = not_before {
            temper.pace_at = temper.pace_at.max(time);
        }
    }

    fn charge(&mut self, claim: &Claim, visit: &Visit, state: &State) {
        let domain = state.queues[claim.queue as usize].domain;
        let spent = self.spent.entry(domain).or_insert(state.domains[domain as usize].spent);
        self.totals.charge(spent, visit, claim.is_prerequisite());
    }

    fn place(&mut self, fresh: &Fresh<'_>, state: &mut State, settings: &Settings) {
        let candidate = fresh.candidate;
        let class = match fresh.needed_by {
            Some(_) => 0,
            None => settings.priorities.of(candidate.hops.last()),
        };
        let hops = if settings.priorities.by_hops { candidate.hops.count() } else { 0 };
        let queue = fresh.needed_by.unwrap_or_else(|| {
            let name = place::queue_name(&candidate.url, settings.queue_by);
            state.queue_names.get(&*name).copied().unwrap_or_else(|| {
                let id = state.new_queue(&name, place::domain(place::host(&candidate.url)));
                self.tempers.insert(id, Temper::default());
                id
            })
        });
        let key = Key::in_line(class, hops, self.sequence());
        self.totals.discovered += 1;
        self.placed.push(Placed { queue, key, value: Slice::from(item::encode(candidate, 0)) });
    }

    fn sequence(&mut self) -> u64 {
        let sequence = self.totals.sequence;
        self.totals.sequence += 1;
        sequence
    }

    /// Queues that are new or behave remarkably, and domains that were charged.
    fn facts(&mut self, facts: &Keyspace, state: &State, now: i64) {
        for (id, temper) in &self.tempers {
            let queue = &state.queues[*id as usize];
            let is_new = queue.enqueued == 0;
            if is_new || temper.is_remarkable(&queue.temper, now) {
                let domain = &state.domains[queue.domain as usize].name;
                let value = store::encode_queue(temper, &queue.name, domain);
                self.batch.insert(facts, store::queue_key(*id), value);
            }
        }
        for (id, spent) in &self.spent {
            let name = &state.domains[*id as usize].name;
            self.batch.insert(facts, store::named(b'd', name), store::encode_spent(spent));
        }
    }
}

impl State {
    fn note(&mut self, claim: &Claim, outcome: &Outcome, fate: Fate, now: i64) {
        self.release(claim, now);
        if let Outcome::Done(visit) | Outcome::Retry { visit, .. } = outcome {
            self.queues[claim.queue as usize].errors += u64::from(visit.status.is_failure());
        }
        if claim.given_up.is_none() {
            let queue = &mut self.queues[claim.queue as usize];
            queue.failing = FailureRun::after(queue.failing, outcome, claim.is_prerequisite(), now);
        }
        match fate {
            Fate::Gone => {}
            Fate::Back(value) => self.put(&Placed { queue: claim.queue, key: claim.key, value }),
            Fate::Moved(placed) => self.put(&placed),
        }
        self.grew(claim.queue, now);
    }

    fn put(&mut self, placed: &Placed) {
        let room = self.room();
        let grown = self.queues[placed.queue as usize].put(placed.key, &placed.value, room);
        self.heads_grew(grown);
    }
}
