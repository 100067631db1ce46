//! What is known of hosts: their robots.txt and whether their names can be found.
//!
//! A small part is held in memory; robots.txt is also kept by the frontier, so that a resumed crawl need not ask
//! every host again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use url::{Position, Url};

use crate::frontier::{Frontier, FrontierError};
use crate::robots::{HostRobots, Settings};

/// Hosts held in memory; more are read again from the frontier.
const HELD: usize = 20_000;

/// Memory of the robots.txt files held. Most take less than a kilobyte; the largest that is read takes some megabytes, and a
/// server can have one under each of the names that it invents.
const ROBOTS_BYTES_MAX: usize = 64 << 20;

/// A name is looked up again, and kept in the archive again, after this long; it is how long the fetcher keeps it.
const NAME_COUNTS: Duration = Duration::from_secs(6 * 3600);

/// The robots.txt of one host is asked for this often in an hour, or as often as `retry_max` says if that is more. The
/// usual settings need 7; whatever goes wrong in a crawl, a server is not asked a hundred times a second.
const ROBOTS_ASKS_PER_HOUR: u128 = 12;

/// The key of robots.txt among the facts of a host.
const ROBOTS: &str = "robots";

/// What is known of hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    robots: Mutex<HeldRobots>,
    /// Hosts whose names were found in this run, and when.
    found: Mutex<HashMap<String, Instant>>,
    /// How often robots.txt was asked for, by scheme, host and port.
    asked: Mutex<HashMap<String, RecentAsks>>,
    /// Hosts that did not respond up to then are asked again: the start of this run, or an order.
    revived: Mutex<Timestamp>,
}

/// The robots.txt files in memory.
#[derive(Debug, Default)]
struct HeldRobots {
    files: HashMap<String, Arc<HostRobots>>,
    bytes: usize,
}

impl HeldRobots {
    fn hold(&mut self, authority: &str, file: Arc<HostRobots>) {
        self.bytes += memory(authority, &file);
        if let Some(old) = self.files.insert(authority.to_owned(), file) {
            self.bytes -= memory(authority, &old);
        }
        // Any of them: a file that is still needed comes back from the frontier.
        while self.bytes > ROBOTS_BYTES_MAX || self.files.len() > HELD {
            let before = self.files.len();
            let (mut keep, mut bytes) = (false, 0);
            self.files.retain(|name, file| {
                keep = !keep || name == authority;
                bytes += if keep { memory(name, file) } else { 0 };
                keep
            });
            self.bytes = bytes;
            if self.files.len() == before {
                break;
            }
        }
    }
}

fn memory(authority: &str, file: &HostRobots) -> usize {
    authority.len() + size_of::<(String, Arc<HostRobots>)>() + file.memory()
}

/// How often robots.txt was asked for in the hour that began at `since`.
#[derive(Clone, Copy, Debug)]
struct RecentAsks {
    since: Timestamp,
    count: u128,
}

impl RecentAsks {
    /// The counts of the hour that `now` is in.
    fn at(self, now: Timestamp) -> RecentAsks {
        let age = now.duration_since(self.since);
        if (SignedDuration::ZERO..SignedDuration::from_hours(1)).contains(&age) {
            self
        } else {
            RecentAsks { since: now, count: 0 }
        }
    }
}

/// The scheme, host and port that share one robots.txt, whatever user a URL names.
pub(super) fn authority(url: &Url) -> Cow<'_, str> {
    if url.username().is_empty() && url.password().is_none() {
        Cow::Borrowed(&url[..Position::AfterPort])
    } else {
        let host = &url[Position::BeforeHost..Position::AfterPort];
        Cow::Owned(format!("{}{host}", &url[..Position::BeforeUsername]))
    }
}

/// The same host by the other scheme, both at their usual ports: they share a queue.
pub(super) fn other_scheme(url: &Url) -> Option<String> {
    let other = match (url.scheme(), url.port()) {
        ("http", None) => "https",
        ("https", None) => "http",
        _ => return None,
    };
    Some(format!("{other}://{}", url.host_str()?))
}

impl Default for Hosts {
    fn default() -> Hosts {
        Hosts {
            robots: Mutex::default(),
            found: Mutex::default(),
            asked: Mutex::default(),
            revived: Mutex::new(Timestamp::MIN),
        }
    }
}

impl Hosts {
    /// What is known of the robots.txt at `authority`.
    pub(super) fn robots(
        &self,
        frontier: &Frontier,
        authority: &str,
    ) -> Result<Arc<HostRobots>, FrontierError> {
        if let Some(copy) = lock(&self.robots).files.get(authority) {
            return Ok(Arc::clone(copy));
        }
        let kept = frontier.get_host(authority, ROBOTS)?;
        // What cannot be read is as good as nothing: the host is asked again.
        let mut copy: HostRobots =
            kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        copy.forget_unreachable(*lock(&self.revived));
        let copy = Arc::new(copy);
        lock(&self.robots).hold(authority, Arc::clone(&copy));
        Ok(copy)
    }

    /// Lets robots.txt be asked for again where the host did not respond.
    pub(super) fn revive(&self, now: Timestamp) {
        *lock(&self.revived) = now;
        // Read again from the frontier, which has all of it.
        *lock(&self.robots) = HeldRobots::default();
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
        lock(&self.robots).hold(authority, Arc::new(copy));
        Ok(())
    }

    /// Whether the robots.txt at `authority` was not yet asked for too often within the hour.
    pub(super) fn may_ask_robots(&self, authority: &str, now: Timestamp, settings: &Settings) -> bool {
        let by_settings = Duration::from_secs(3600).as_nanos() / settings.retry_max.0.as_nanos().max(1);
        let asks = lock(&self.asked).get(authority).map_or(0, |asks| asks.at(now).count);
        asks < by_settings.max(ROBOTS_ASKS_PER_HOUR)
    }

    /// How long until the robots.txt at `authority` may be asked for again, where it was asked for too often.
    pub(super) fn robots_wait(&self, authority: &str, now: Timestamp) -> Duration {
        let since = lock(&self.asked).get(authority).map_or(now, |asks| asks.since);
        let asked = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        Duration::from_secs(3600).saturating_sub(asked).max(Duration::from_secs(1))
    }

    /// Notes that the robots.txt at `authority` is asked for.
    pub(super) fn note_robots_asked(&self, authority: &str, now: Timestamp) {
        let mut asked = lock(&self.asked);
        let mut asks = asked.get(authority).copied().unwrap_or(RecentAsks { since: now, count: 0 }).at(now);
        asks.count += 1;
        hold(&mut asked, authority, asks);
    }

    pub(super) fn is_found(&self, host: &str) -> bool {
        lock(&self.found).get(host).is_some_and(|at| at.elapsed() < NAME_COUNTS)
    }

    pub(super) fn set_found(&self, host: &str) {
        hold(&mut lock(&self.found), host, Instant::now());
    }
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
    use crate::robots::Answer;

    #[test]
    fn authorities_tell_schemes_and_ports_apart() {
        for (url, expected) in [
            ("http://Example.org/a?b", "http://example.org"),
            ("https://example.org:8443/", "https://example.org:8443"),
            ("http://user@example.org:80/", "http://example.org"),
            ("https://user:pass@example.org:8443/a@b", "https://example.org:8443"),
            ("http://:pass@[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(authority(&Url::parse(url).unwrap()), expected);
        }
    }

    #[test]
    fn the_other_scheme_is_at_its_usual_port() {
        for (url, expected) in [
            ("http://a.example/x", Some("https://a.example")),
            ("https://u:p@a.example:443/x", Some("http://a.example")),
            ("https://[::1]/", Some("http://[::1]")),
            ("http://a.example:8080/", None),
        ] {
            assert_eq!(other_scheme(&Url::parse(url).unwrap()).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_robots_txt_is_asked_for_a_few_times_in_an_hour_whatever_the_reason() {
        let hosts = Hosts::default();
        let start = Timestamp::from_second(1_700_000_000).unwrap();
        let settings = Settings::default();
        let mut asked = Vec::new();
        for second in 0..2 * 3600 {
            let now = start + SignedDuration::from_secs(second);
            if hosts.may_ask_robots("http://a.example", now, &settings) {
                hosts.note_robots_asked("http://a.example", now);
                asked.push(second);
            }
        }
        assert_eq!(asked, (0..12).chain(3600..3612).collect::<Vec<_>>());
        let last = start + SignedDuration::from_secs(3600 + 20);
        assert_eq!(hosts.robots_wait("http://a.example", last), Duration::from_secs(3580));
        assert!(hosts.may_ask_robots("http://b.example", start, &settings), "others are not concerned");
        // A clock that is set back does not lock a host.
        assert!(hosts.may_ask_robots("http://a.example", start - SignedDuration::from_secs(1), &settings));
        let quick = Settings { retry_max: grange_base::Period::from_secs(60), ..settings };
        assert!(hosts.may_ask_robots("http://a.example", start + SignedDuration::from_secs(3700), &quick));
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

    #[test]
    fn large_robots_txt_files_take_bounded_memory() {
        let rules: Vec<_> = (0..30_000).map(|n| format!("disallow: /{n}")).collect();
        let text = format!("user-agent: *\n{}", rules.join("\n"));
        let start = Timestamp::from_second(1_700_000_000).unwrap();
        let large = {
            let mut file = HostRobots::default();
            let answer = Answer::Http { status: 200, body: text.as_bytes() };
            file.learn(answer, "grange", start, &Settings::default());
            Arc::new(file)
        };
        assert!(large.memory() > 1 << 20, "{}", large.memory());
        let mut held = HeldRobots::default();
        for n in 0..200 {
            held.hold(&format!("http://r{n}.evil.dk"), Arc::clone(&large));
            assert!(held.bytes <= ROBOTS_BYTES_MAX, "{} bytes of {n}", held.bytes);
            assert!(held.files.contains_key(&format!("http://r{n}.evil.dk")));
        }
        assert!(held.files.len() > 10);
        let counted: usize = held.files.iter().map(|(name, file)| memory(name, file)).sum();
        assert_eq!(counted, held.bytes);
        for n in 0..3 * HELD {
            held.hold(&n.to_string(), Arc::default());
        }
        assert!(held.files.len() <= HELD);
    }
}
