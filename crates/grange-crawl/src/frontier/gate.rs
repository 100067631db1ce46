//! A limit on how many are in flight under one name (a host, an address), and the queues that wait for their turn.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

pub(super) struct Gate<K> {
    /// 0 is no limit.
    limit: u32,
    /// Only names with something in flight.
    lanes: HashMap<K, Lane>,
}

#[derive(Default)]
struct Lane {
    in_flight: u32,
    waiting: VecDeque<u32>,
}

impl<K: Hash + Eq> Gate<K> {
    pub(super) fn new(limit: u32) -> Gate<K> {
        Gate { limit, lanes: HashMap::new() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.limit == 0
    }

    pub(super) fn is_full<Q>(&self, name: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.limit > 0 && self.lanes.get(name).is_some_and(|lane| lane.in_flight >= self.limit)
    }

    pub(super) fn enter(&mut self, name: K) {
        if self.limit > 0 {
            self.lanes.entry(name).or_default().in_flight += 1;
        }
    }

    /// `queue` waits until one of `name` leaves.
    pub(super) fn wait<Q>(&mut self, name: &Q, queue: u32)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(lane) = self.lanes.get_mut(name) {
            lane.waiting.push_back(queue);
        }
    }

    /// One left: these may look again. One is enough while others are in flight and will leave in their turn; when
    /// the last one leaves nobody must be forgotten.
    pub(super) fn leave<Q>(&mut self, name: &Q) -> VecDeque<u32>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(lane) = self.lanes.get_mut(name) else { return VecDeque::new() };
        lane.in_flight = lane.in_flight.saturating_sub(1);
        if lane.in_flight == 0 {
            return self.lanes.remove(name).unwrap_or_default().waiting;
        }
        lane.waiting.pop_front().into_iter().collect()
    }

    /// Everyone looks again by other means.
    pub(super) fn forget_waiting(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.waiting.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_enter_and_none_is_forgotten() {
        let mut gate: Gate<Box<str>> = Gate::new(2);
        gate.enter("a".into());
        assert!(!gate.is_full("a"));
        gate.enter("a".into());
        assert!(gate.is_full("a") && !gate.is_full("b"));
        for queue in [1, 2, 3] {
            gate.wait("a", queue);
        }
        assert_eq!(gate.leave("a"), [1]);
        assert!(!gate.is_full("a"));
        assert_eq!(gate.leave("a"), [2, 3]);
        assert!(gate.leave("a").is_empty());
        assert!(gate.lanes.is_empty());

        let mut open: Gate<Box<str>> = Gate::new(0);
        open.enter("a".into());
        assert!(!open.is_full("a") && open.lanes.is_empty());
    }
}
