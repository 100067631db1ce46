//! Who asked for what, and when: what tests of politeness look at.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Different URLs that are counted; some 100 MB when full. Later ones count in the total only.
const URLS_MAX: usize = 1_000_000;
/// Moments kept of one host, 32 bytes each: more than a test of politeness waits for. Later ones are dropped.
const MOMENTS_MAX: usize = 4_096;

/// One request: when its head was read, and when its answer was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub start: Instant,
    pub end: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    total: u64,
    urls: usize,
    hosts: HashMap<String, HostLog>,
}

#[derive(Debug, Default)]
struct HostLog {
    in_flight: usize,
    peak: usize,
    moments: Vec<Moment>,
    requests: HashMap<String, u64>,
}

/// A request under way: ends when dropped, however its connection ends.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    log: &'a Log,
    host: String,
    start: Instant,
}

impl Log {
    pub(crate) fn begin(&self, host: &str, target: &str) -> UnderWay<'_> {
        let host = host_name(host);
        let mut inner = self.inner();
        inner.total += 1;
        let room = inner.urls < URLS_MAX;
        let log = inner.hosts.entry(host.clone()).or_default();
        log.in_flight += 1;
        log.peak = log.peak.max(log.in_flight);
        if let Some(count) = log.requests.get_mut(target) {
            *count += 1;
        } else if room {
            log.requests.insert(target.to_owned(), 1);
            inner.urls += 1;
        }
        UnderWay { log: self, host, start: Instant::now() }
    }

    pub(crate) fn total(&self) -> u64 {
        self.inner().total
    }

    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        let inner = self.inner();
        let of_host = |(host, log): (&String, &HostLog)| {
            log.requests
                .iter()
                .map(|(target, count)| (format!("http://{host}{target}"), *count))
                .collect::<Vec<_>>()
        };
        inner.hosts.iter().flat_map(of_host).collect()
    }

    pub(crate) fn peak(&self, host: &str) -> usize {
        self.inner().hosts.get(host).map_or(0, |log| log.peak)
    }

    pub(crate) fn moments(&self, host: &str) -> Vec<Moment> {
        let mut moments = self.inner().hosts.get(host).map(|log| log.moments.clone()).unwrap_or_default();
        moments.sort_by_key(|moment| moment.start);
        moments
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut inner = self.log.inner();
        if let Some(log) = inner.hosts.get_mut(&self.host) {
            log.in_flight -= 1;
            if log.moments.len() < MOMENTS_MAX {
                log.moments.push(Moment { start: self.start, end: Instant::now() });
            }
        }
    }
}

/// Without port, in lower case.
fn host_name(host: &str) -> String {
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}
