//! How a crawl goes: rates over the last seconds, and the picture of the whole.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::job::Limits;

/// Rates are over this long.
const OVER: Duration = Duration::from_secs(10);

/// What a crawl is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    #[default]
    Preparing,
    Running,
    Paused,
    /// Paused by itself: the disk is full, or nearly.
    Waiting,
    Stopping,
    Finished,
}

/// A picture of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub job: String,
    pub phase: Phase,
    /// Why it waits, if it does by itself; while it runs, the failing host that is tried next if nothing else is left.
    pub waits_for: Option<String>,
    pub at: Option<Timestamp>,
    /// Running time, pauses excluded.
    pub ran_seconds: f64,
    pub discovered: u64,
    pub queued: u64,
    pub in_flight: u64,
    pub finished: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub disregarded: u64,
    /// Bytes of all answers over the wire.
    pub bytes: u64,
    pub novel_bytes: u64,
    pub duplicates: u64,
    pub urls_per_second: f64,
    pub bytes_per_second: f64,
    pub queues: u64,
    pub active_queues: u64,
    /// Left by an operator, by a budget, or because their hosts cannot be reached.
    #[serde(default)]
    pub retired_queues: u64,
    #[serde(default)]
    pub exhausted_queues: u64,
    pub limits: Limits,
    /// The hosts with most answers.
    pub hosts: Vec<HostRow>,
    pub hosts_total: u64,
}

/// One host of a [`Snapshot`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    pub host: String,
    pub urls: u64,
    pub bytes: u64,
    pub failed: u64,
    pub robots: u64,
}

/// Measures rates and counts workers.
#[derive(Debug, Default)]
pub(super) struct Meter {
    busy: AtomicU32,
    samples: Mutex<VecDeque<(Timestamp, u64, u64)>>,
}

impl Meter {
    pub(super) fn begin(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn busy(&self) -> u32 {
        self.busy.load(Ordering::Relaxed)
    }

    /// Notes totals and answers URLs and bytes per second over the last while.
    pub(super) fn rates(&self, now: Timestamp, urls: u64, bytes: u64) -> (f64, f64) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back((now, urls, bytes));
        let old = |at: Timestamp| Duration::try_from(now.duration_since(at)).is_ok_and(|age| age > OVER);
        while samples.len() > 2 && old(samples[1].0) {
            samples.pop_front();
        }
        let Some(&(at, from_urls, from_bytes)) = samples.front() else { return (0.0, 0.0) };
        let seconds = now.duration_since(at).as_secs_f64();
        if seconds <= 0.0 {
            return (0.0, 0.0);
        }
        let per_second = |now: u64, from: u64| now.saturating_sub(from) as f64 / seconds;
        (per_second(urls, from_urls), per_second(bytes, from_bytes))
    }
}

impl Snapshot {
    /// How long until a limit of the whole crawl is reached at today's rate, in seconds.
    pub fn seconds_left(&self) -> Option<f64> {
        let left = |limit: i64, done: f64, rate: f64| {
            (limit >= 0 && rate > 0.0).then(|| ((limit as f64 - done) / rate).max(0.0))
        };
        let by_objects = left(self.limits.max_objects, self.succeeded as f64, self.urls_per_second);
        let by_bytes = left(self.limits.max_bytes, self.bytes as f64, self.bytes_per_second);
        let by_time = left(self.limits.max_seconds, self.ran_seconds, 1.0);
        let by_queue = (self.urls_per_second > 0.0).then(|| self.queued as f64 / self.urls_per_second);
        [by_objects, by_bytes, by_time, by_queue].into_iter().flatten().reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_forget_what_is_long_ago() {
        let meter = Meter::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(meter.rates(at(0), 0, 0), (0.0, 0.0));
        assert_eq!(meter.rates(at(2), 200, 2000), (100.0, 1000.0));
        for second in 3..=40 {
            meter.rates(at(second), 200, 2000);
        }
        assert_eq!(meter.rates(at(41), 200, 2000), (0.0, 0.0));
    }

    #[test]
    fn the_nearest_limit_counts() {
        let limits = Limits { max_objects: 100, max_bytes: -1, max_seconds: 5 };
        let snapshot = Snapshot { limits, urls_per_second: 10.0, queued: 1000, ..Snapshot::default() };
        assert_eq!(snapshot.seconds_left(), Some(5.0));
        assert_eq!(Snapshot::default().seconds_left(), None);
    }
}
