//! All queues in memory, and which of them may be asked now.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::budget::{self, Spent};
use super::error::Result;
use super::gate::Gate;
use super::item;
use super::place;
use super::queue::{Disk, Place, Queue};
use super::running::RunningTime;
use super::settings::Settings;
use super::store::{Store, Totals};
use super::work::{Claim, Next};
use crate::job::{Budgets, DomainBudget, StopReason};
use crate::politeness::Pace;

/// How many URLs are held in memory over all queues: about 32 MB.
const MOST_HEADS: isize = 1 << 17;

/// How many of one queue at most: a read brings so many at once.
const MOST_HEADS_OF_ONE: usize = 32;

pub(super) struct Domain {
    pub(super) name: Arc<str>,
    pub(super) budget: DomainBudget,
    pub(super) spent: Spent,
    /// Not counting prerequisites.
    pub(super) in_flight: u64,
    pub(super) queues: Vec<u32>,
    waiting: VecDeque<u32>,
}

pub(super) struct State {
    pub(super) queues: Vec<Queue>,
    pub(super) queue_names: HashMap<Arc<str>, u32>,
    pub(super) domains: Vec<Domain>,
    pub(super) domain_names: HashMap<Arc<str>, u32>,
    /// Served in turn.
    ready: VecDeque<u32>,
    snoozed: BinaryHeap<Reverse<(i64, u32)>>,
    hosts: Gate<Box<str>>,
    ips: Gate<IpAddr>,
    addresses: HashMap<Box<str>, IpAddr>,
    pub(super) totals: Totals,
    pub(super) in_flight: u64,
    /// Not counting prerequisites.
    objects_in_flight: u64,
    heads: isize,
    pub(super) budgets: Budgets,
    pub(super) pace: Pace,
    pub(super) factor: f64,
    pub(super) time: RunningTime,
    parallel: u32,
}

impl State {
    pub(super) fn new(settings: &Settings, budgets: Budgets, totals: Totals, now: i64) -> State {
        State {
            queues: Vec::new(),
            queue_names: HashMap::new(),
            domains: Vec::new(),
            domain_names: HashMap::new(),
            ready: VecDeque::new(),
            snoozed: BinaryHeap::new(),
            hosts: Gate::new(settings.parallel_per_host),
            ips: Gate::new(settings.parallel_per_ip),
            addresses: HashMap::new(),
            totals,
            in_flight: 0,
            objects_in_flight: 0,
            heads: 0,
            budgets,
            pace: settings.pace.clone(),
            factor: 1.0,
            time: RunningTime::resumed(totals.ran, now),
            parallel: settings.parallel_per_queue.max(1),
        }
    }

    /// The domain of this name, made if there is none.
    pub(super) fn domain(&mut self, name: &str) -> u32 {
        if let Some(id) = self.domain_names.get(name) {
            return *id;
        }
        let id = self.domains.len() as u32;
        let name: Arc<str> = Arc::from(name);
        self.domains.push(Domain {
            name: Arc::clone(&name),
            budget: budget_of(&self.budgets, &name),
            spent: Spent::default(),
            in_flight: 0,
            queues: Vec::new(),
            waiting: VecDeque::new(),
        });
        self.domain_names.insert(name, id);
        id
    }

    /// Adds a queue, which gets the next number.
    pub(super) fn new_queue(&mut self, name: &str, domain: &str) -> u32 {
        let domain = self.domain(domain);
        let id = self.queues.len() as u32;
        let name: Arc<str> = Arc::from(name);
        self.queues.push(Queue::new(Arc::clone(&name), domain));
        self.queue_names.insert(name, id);
        self.domains[domain as usize].queues.push(id);
        id
    }

    /// How many URLs one queue may hold in memory when it reads: a fair share, and one at least.
    fn share(&self) -> usize {
        (MOST_HEADS as usize / self.queues.len().max(1)).clamp(1, MOST_HEADS_OF_ONE)
    }

    /// How many it may hold when more come in: its share, unless memory is taken by others.
    pub(super) fn room(&self) -> usize {
        if self.heads < MOST_HEADS { self.share() } else { 0 }
    }

    pub(super) fn heads_grew(&mut self, by: isize) {
        self.heads += by;
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn crawl_reached(&self, now: i64) -> Option<StopReason> {
        budget::reached(&self.budgets.crawl, &self.totals.spent(), self.time.ran(now))
    }

    pub(super) fn domain_reached(&self, domain: u32, now: i64) -> Option<StopReason> {
        let domain = &self.domains[domain as usize];
        budget::domain_reached(&domain.budget, &domain.spent, self.time.ran(now))
    }

    pub(super) fn next(&mut self, store: &Store, now: i64) -> Result<Next> {
        if !self.time.is_running() {
            return Ok(Next::Idle);
        }
        if let Some(reason) = self.crawl_reached(now) {
            return Ok(if self.in_flight > 0 { Next::Idle } else { Next::Limit(reason) });
        }
        self.wake(now);
        while let Some(id) = self.ready.pop_front() {
            if self.queues[id as usize].place != Place::Ready {
                continue;
            }
            if !budget::crawl_has_room(
                &self.budgets.crawl,
                &self.totals.spent(),
                self.objects_in_flight,
                self.totals.largest,
            ) {
                self.ready.push_front(id);
                return Ok(Next::Idle);
            }
            if let Some(claim) = self.claim_from(id, store, now)? {
                return Ok(Next::Uri(Box::new(claim)));
            }
        }
        Ok(match self.first_wake() {
            Some(time) => Next::Wait(self.until(time, now)),
            None if self.in_flight > 0 => Next::Idle,
            None => Next::Empty,
        })
    }

    /// Takes the head of a ready queue, or moves the queue to where it has to wait.
    fn claim_from(&mut self, id: u32, store: &Store, now: i64) -> Result<Option<Claim>> {
        let of_domain = self.queues[id as usize].domain;
        self.queues[id as usize].place = Place::Loose;
        if self.domain_reached(of_domain, now).is_some() {
            self.retire_domain(of_domain);
            return Ok(None);
        }
        let domain = &mut self.domains[of_domain as usize];
        if !budget::domain_has_room(&domain.budget, &domain.spent, domain.in_flight) {
            domain.waiting.push_back(id);
            self.queues[id as usize].place = Place::AtDomain;
            return Ok(None);
        }
        let share = self.share();
        let disk = Disk { queued: &store.queued, next_sequence: self.totals.sequence };
        let (head, grown) =
            self.queues[id as usize].head(id, &disk, share, now).map_err(store.failed("read"))?;
        self.heads += grown;
        let Some((key, value)) = head else {
            self.settle(id, now);
            return Ok(None);
        };
        let (candidate, tries) = item::decode(&value)
            .ok_or_else(|| store.damaged(format!("a URL of {}", self.queues[id as usize].name)))?;
        let host = place::host(&candidate.url);
        let ip = self.addresses.get(host).copied();
        if self.hosts.is_full(host) {
            self.hosts.wait(host, id);
            self.queues[id as usize].place = Place::AtGate;
            return Ok(None);
        }
        if let Some(ip) = ip.filter(|ip| self.ips.is_full(ip)) {
            self.ips.wait(&ip, id);
            self.queues[id as usize].place = Place::AtGate;
            return Ok(None);
        }
        self.hosts.enter(host.into());
        if let Some(ip) = ip {
            self.ips.enter(ip);
        }
        let given_up = self.queues[id as usize].given_up;
        let shrunk = self.queues[id as usize].claim(id, key, &disk, now).map_err(store.failed("read"))?;
        self.heads -= shrunk;
        self.in_flight += 1;
        let ran = self.time.ran(now);
        let domain = &mut self.domains[of_domain as usize];
        domain.spent.began.get_or_insert(ran);
        if !key.is_prerequisite() {
            domain.in_flight += 1;
            self.objects_in_flight += 1;
        }
        self.settle(id, now);
        Ok(Some(Claim { candidate, tries, given_up, queue: id, key, ip }))
    }

    /// Undoes what a claim holds: its place in the gates and the room in its domain.
    pub(super) fn release(&mut self, claim: &Claim, now: i64) {
        let queue = &mut self.queues[claim.queue as usize];
        queue.unclaim(claim.key);
        let of_domain = queue.domain;
        self.in_flight = self.in_flight.saturating_sub(1);
        if !claim.key.is_prerequisite() {
            self.objects_in_flight = self.objects_in_flight.saturating_sub(1);
            let domain = &mut self.domains[of_domain as usize];
            domain.in_flight = domain.in_flight.saturating_sub(1);
        }
        let mut freed = self.hosts.leave(place::host(&claim.candidate.url));
        if let Some(ip) = claim.ip {
            freed.append(&mut self.ips.leave(&ip));
        }
        for id in freed {
            if self.queues[id as usize].place == Place::AtGate {
                self.settle(id, now);
            }
        }
    }

    /// After budgets of a domain changed by a finish: its queues retire, or those that wait may look again.
    pub(super) fn settle_domain(&mut self, of_domain: u32, now: i64) {
        if self.domain_reached(of_domain, now).is_some() {
            self.retire_domain(of_domain);
            return;
        }
        let domain = &mut self.domains[of_domain as usize];
        // One at least: others in flight will call the next. All, if there are none to do so.
        let many = if domain.in_flight == 0 { domain.waiting.len() } else { domain.waiting.len().min(1) };
        let called: Vec<u32> = domain.waiting.drain(..many).collect();
        for id in called {
            if self.queues[id as usize].place == Place::AtDomain {
                self.settle(id, now);
            }
        }
    }

    fn retire_domain(&mut self, of_domain: u32) {
        let domain = &mut self.domains[of_domain as usize];
        domain.waiting.clear();
        for id in &domain.queues {
            let queue = &mut self.queues[*id as usize];
            queue.place = match queue.place {
                Place::Empty => Place::Empty,
                Place::Busy => Place::Busy,
                _ => Place::Retired,
            };
        }
    }

    /// Puts a queue into the list where it belongs now.
    pub(super) fn settle(&mut self, id: u32, now: i64) {
        let at = id as usize;
        let of_domain = self.queues[at].domain;
        let is_over = self.domain_reached(of_domain, now).is_some();
        let queue = &self.queues[at];
        let in_flight = queue.claimed.len() as u64;
        let idle = queue.queued() - in_flight;
        let before = queue.place;
        let place = if idle == 0 {
            if in_flight > 0 { Place::Busy } else { Place::Empty }
        } else if queue.temper.is_retired || is_over {
            Place::Retired
        } else if in_flight >= u64::from(self.parallel) || queue.has_prerequisite_in_flight() {
            Place::Busy
        } else if queue.due() > now {
            Place::Snoozed(self.not_after_domain_ends(of_domain, queue.due(), now))
        } else {
            Place::Ready
        };
        self.queues[at].place = place;
        match place {
            // URLs found later are tried.
            Place::Empty => self.queues[at].given_up = None,
            Place::Ready if before != place => self.ready.push_back(id),
            Place::Snoozed(time) if before != place => self.snoozed.push(Reverse((time, id))),
            _ => {}
        }
    }

    /// A snoozed queue is looked at when its domain's time is over, so that it does not keep the crawl alive.
    fn not_after_domain_ends(&self, of_domain: u32, due: i64, now: i64) -> i64 {
        let domain = &self.domains[of_domain as usize];
        let ran = self.time.ran(now);
        if domain.spent.began.is_none() {
            return due;
        }
        let end = budget::deadline(&domain.budget.limits, &domain.spent, ran);
        end.map_or(due, |end| due.min(now.saturating_add_unsigned(end.saturating_sub(ran))))
    }

    /// After a queue got more to do. One that stands ready or waits for its turn is found in its list anyway.
    pub(super) fn grew(&mut self, id: u32, now: i64) {
        if !matches!(self.queues[id as usize].place, Place::Ready | Place::AtGate | Place::AtDomain) {
            self.settle(id, now);
        }
    }

    /// Looks at every queue anew: after opening, and after a change of budgets or pace.
    pub(super) fn settle_all(&mut self, now: i64) {
        self.ready.clear();
        self.snoozed.clear();
        self.hosts.forget_waiting();
        self.ips.forget_waiting();
        for domain in &mut self.domains {
            domain.waiting.clear();
        }
        for id in 0..self.queues.len() as u32 {
            self.queues[id as usize].place = Place::Empty;
            self.settle(id, now);
        }
    }

    pub(super) fn set_budgets(&mut self, budgets: Budgets, now: i64) {
        for domain in &mut self.domains {
            domain.budget = budget_of(&budgets, &domain.name);
        }
        self.budgets = budgets;
        self.settle_all(now);
    }

    pub(super) fn set_address(&mut self, host: &str, ip: IpAddr) {
        if !self.ips.is_open() && self.addresses.get(host) != Some(&ip) {
            self.addresses.insert(host.into(), ip);
        }
    }

    fn wake(&mut self, now: i64) {
        while let Some(Reverse((time, id))) = self.snoozed.peek().copied() {
            if time > now {
                break;
            }
            self.snoozed.pop();
            if self.queues[id as usize].place == Place::Snoozed(time) {
                let domain = self.queues[id as usize].domain;
                if self.domain_reached(domain, now).is_some() {
                    self.retire_domain(domain);
                } else {
                    self.settle(id, now);
                }
            }
        }
    }

    /// When the first snoozed queue wakes.
    fn first_wake(&mut self) -> Option<i64> {
        while let Some(Reverse((time, id))) = self.snoozed.peek().copied() {
            if self.queues[id as usize].place == Place::Snoozed(time) {
                return Some(time);
            }
            self.snoozed.pop();
        }
        None
    }

    /// `time`, or the end of the crawl's time if that comes first.
    fn until(&self, time: i64, now: i64) -> Timestamp {
        let end = self.time_ends(now);
        end.map_or_else(|| timestamp(time), |end| end.min(timestamp(time)))
    }

    /// When the crawl's time is over, if it is limited and runs.
    pub(super) fn time_ends(&self, now: i64) -> Option<Timestamp> {
        let ran = self.time.ran(now);
        let end = budget::deadline(&self.budgets.crawl, &self.totals.spent(), ran);
        let end = end.filter(|_| self.time.is_running())?;
        Some(timestamp(now.saturating_add_unsigned(end.saturating_sub(ran))))
    }
}

pub(super) fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

fn budget_of(budgets: &Budgets, domain: &str) -> DomainBudget {
    *budgets.domains.get(domain).unwrap_or(&budgets.other_domains)
}
