//! What is known of hosts: their robots.txt and whether their names can be found.
//!
//! A small part is held in memory; robots.txt is also kept by the frontier, so that a resumed crawl need not ask
//! every host again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use url::{Position, Url};

use crate::frontier::{Frontier, FrontierError};
use crate::robots::{HostRobots, Settings, Standing};

/// Hosts held in memory; more are read again from the frontier. Mostly below a kilobyte each.
const HELD: usize = 20_000;

/// A name is looked up again, and kept in the archive again, after this long; it is how long the fetcher keeps it.
const NAME_COUNTS: Duration = Duration::from_secs(6 * 3600);

/// The key of robots.txt among the facts of a host.
const ROBOTS: &str = "robots";

/// What is known of hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    robots: Mutex<HashMap<String, Arc<HostRobots>>>,
    /// Hosts whose names were found in this run, and when.
    found: Mutex<HashMap<String, Instant>>,
}

/// The scheme, host and port that share one robots.txt.
pub(super) fn authority(url: &Url) -> &str {
    &url[..Position::AfterPort]
}

impl Hosts {
    /// What is known of the robots.txt at `authority`.
    pub(super) fn robots(
        &self,
        frontier: &Frontier,
        authority: &str,
    ) -> Result<Arc<HostRobots>, FrontierError> {
        if let Some(copy) = lock(&self.robots).get(authority) {
            return Ok(Arc::clone(copy));
        }
        let kept = frontier.get_host(authority, ROBOTS)?;
        // What cannot be read is as good as nothing: the host is asked again.
        let copy = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let copy = Arc::new(copy);
        hold(&mut lock(&self.robots), authority, Arc::clone(&copy));
        Ok(copy)
    }

    pub(super) fn set_robots(
        &self,
        frontier: &Frontier,
        authority: &str,
        copy: HostRobots,
    ) -> Result<(), FrontierError> {
        if let Ok(bytes) = serde_json::to_vec(&copy) {
            frontier.put_host(authority, ROBOTS, &bytes)?;
        }
        hold(&mut lock(&self.robots), authority, Arc::new(copy));
        Ok(())
    }

    pub(super) fn is_found(&self, host: &str) -> bool {
        lock(&self.found).get(host).is_some_and(|at| at.elapsed() < NAME_COUNTS)
    }

    pub(super) fn set_found(&self, host: &str) {
        hold(&mut lock(&self.found), host, Instant::now());
    }
}

/// Whether robots.txt must be asked for before anything else.
pub(super) fn must_ask(copy: &HostRobots, now: Timestamp, settings: &Settings) -> bool {
    copy.standing(now, settings) == Standing::Unknown
}

fn hold<T>(map: &mut HashMap<String, T>, key: &str, value: T) {
    if map.len() >= HELD && !map.contains_key(key) {
        // Any half: what is still needed comes back from the frontier.
        let mut keep = false;
        map.retain(|_, _| {
            keep = !keep;
            keep
        });
    }
    map.insert(key.to_owned(), value);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_tell_schemes_and_ports_apart() {
        for (url, expected) in [
            ("http://Example.org/a?b", "http://example.org"),
            ("https://example.org:8443/", "https://example.org:8443"),
            ("http://user@example.org:80/", "http://user@example.org"),
        ] {
            assert_eq!(authority(&Url::parse(url).unwrap()), expected);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let hosts = Hosts::default();
        for n in 0..3 * HELD {
            hosts.set_found(&n.to_string());
        }
        assert!(lock(&hosts.found).len() <= HELD);
        assert!(hosts.is_found(&(3 * HELD - 1).to_string()));
    }
}
