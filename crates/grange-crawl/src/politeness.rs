//! How long a host is left in peace after it was asked. No clock and no IO here: time comes in, a wait comes out.
//!
//! The rule is Heritrix's: the last duration times a factor, not less than the least and not more than the most wait,
//! then raised to the Crawl-delay of robots.txt and to what a bandwidth limit asks. On top of it a host that says it
//! is overloaded (429, 503) is believed: its Retry-After counts, and without one the wait doubles with each such
//! answer and halves with each good one.

use std::time::Duration;

use grange_base::{Period, Size};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::FetchStatus;

/// How fast a host may be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pace {
    /// The wait after an answer, in durations of that answer: a slow server gets more time. Heritrix's number.
    pub delay_factor: f64,
    /// The least wait.
    pub min_delay: Period,
    /// The most that the factor may ask for. `0s` means no waiting at all, whatever robots.txt or the server ask:
    /// for servers of one's own.
    pub max_delay: Period,
    /// A Crawl-delay is honoured up to here; some sites write days.
    pub crawl_delay_cap: Period,
    /// The most bytes per second taken from one host, on average over an answer and the wait after it; `0B` is no
    /// limit.
    pub bytes_per_second: Size,
    /// A Retry-After is honoured up to here; a crawl cannot wait for next week.
    pub retry_after_cap: Period,
    /// The wait after the first answer 429 or 503 without Retry-After; doubled with each further one.
    pub back_off_first: Period,
    /// The most that doubling leads to.
    pub back_off_most: Period,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            delay_factor: 5.0,
            min_delay: Period::from_secs(3),
            max_delay: Period::from_secs(30),
            crawl_delay_cap: Period::from_secs(300),
            bytes_per_second: Size(0),
            retry_after_cap: Period::from_secs(3600),
            back_off_first: Period::from_secs(30),
            back_off_most: Period::from_secs(1800),
        }
    }
}

impl Pace {
    /// No waiting at all.
    pub fn none() -> Pace {
        Pace {
            delay_factor: 0.0,
            min_delay: Period::from_secs(0),
            max_delay: Period::from_secs(0),
            ..Pace::default()
        }
    }

    /// The same wait after every answer, unless robots.txt or the server ask for more; zero is no waiting at all.
    pub fn fixed(delay: Duration) -> Pace {
        Pace { delay_factor: 0.0, min_delay: Period(delay), max_delay: Period(delay), ..Pace::default() }
    }
}

/// What came of asking a host: what matters for the wait after it and for budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub status: FetchStatus,
    pub duration: Duration,
    /// Bytes over the wire.
    pub bytes: u64,
    /// The Crawl-delay of the host's robots.txt.
    pub crawl_delay: Option<Duration>,
    /// What the server's Retry-After asks for; looked at only beside 429 and 503.
    pub retry_after: Option<Duration>,
    /// The queue has URLs of other servers, which may answer: a failure says nothing about those.
    pub is_apart: bool,
}

impl Visit {
    pub const fn new(status: FetchStatus, bytes: u64, duration: Duration) -> Visit {
        Visit { status, duration, bytes, crawl_delay: None, retry_after: None, is_apart: false }
    }
}

/// How often in a row a host said it is overloaded, less the good answers since. Ten doublings are a factor of a
/// thousand: more would only overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strain(pub u8);

const MOST_STRAIN: u8 = 10;

/// Statuses by which a server says it has too much to do.
pub fn is_overloaded(status: FetchStatus) -> bool {
    matches!(status.0, 429 | 503)
}

/// How long to leave the host in peace after `visit`, and how strained it is now. `factor` is the operator's: 2 is
/// half the speed, 0 no wait; it does not scale what a strained server asks for.
pub fn delay(pace: &Pace, visit: &Visit, strain: Strain, factor: f64) -> (Duration, Strain) {
    let overloaded = is_overloaded(visit.status);
    let after = if overloaded {
        Strain(strain.0.saturating_add(1).min(MOST_STRAIN))
    } else {
        Strain(strain.0.saturating_sub(1))
    };
    if pace.max_delay.0.is_zero() {
        return (Duration::ZERO, after);
    }
    let calm = times(calm_delay(pace, visit), factor);
    let wait = if overloaded {
        let asked = match visit.retry_after {
            Some(wait) => wait.min(pace.retry_after_cap.0),
            None => doubled(pace.back_off_first.0, strain.0).min(pace.back_off_most.0),
        };
        calm.max(asked)
    } else {
        // The way back: the host answers again, but is not at once asked as fast as what strained it.
        calm.max(doubled(calm, after.0).min(pace.back_off_most.0))
    };
    (wait, after)
}

fn calm_delay(pace: &Pace, visit: &Visit) -> Duration {
    let mut wait = times(visit.duration, pace.delay_factor).max(pace.min_delay.0).min(pace.max_delay.0);
    if let Some(asked) = visit.crawl_delay {
        wait = wait.max(asked.min(pace.crawl_delay_cap.0));
    }
    if pace.bytes_per_second.0 > 0 {
        let worth = Duration::try_from_secs_f64(visit.bytes as f64 / pace.bytes_per_second.0 as f64)
            .unwrap_or(Duration::MAX);
        wait = wait.max(worth.saturating_sub(visit.duration));
    }
    wait
}

fn doubled(wait: Duration, times: u8) -> Duration {
    wait.saturating_mul(1 << times.min(MOST_STRAIN))
}

/// A product that cannot fail: nonsense factors count as nothing, sums too large as a year.
fn times(wait: Duration, factor: f64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    if factor > 0.0 {
        Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(YEAR).min(YEAR)
    } else {
        Duration::ZERO
    }
}

/// What a Retry-After header asks for, seconds or one of the three date forms of HTTP; a date gone by is no wait.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit is still a wish to wait; the cap makes it reasonable.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let at = http_date(text)?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn http_date(text: &str) -> Option<Timestamp> {
    if let Ok(at) = DateTimeParser::new().parse_timestamp(text) {
        return Some(at);
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].iter().find_map(|form| {
        let at = DateTime::strptime(form, text).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(at.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn took(millis: u64) -> Visit {
        Visit::new(FetchStatus(200), 0, Duration::from_millis(millis))
    }

    #[test]
    fn the_wait_follows_duration_crawl_delay_and_bandwidth() {
        let pace = Pace::default();
        let slow_line = Pace { bytes_per_second: Size(1000), ..Pace::default() };
        let cases = [
            // pace, visit, operator's factor, wait in milliseconds
            (&pace, took(10), 1.0, 3_000),
            (&pace, took(1_000), 1.0, 5_000),
            (&pace, took(60_000), 1.0, 30_000),
            (&pace, took(1_000), 2.0, 10_000),
            (&pace, took(1_000), 0.5, 2_500),
            (&pace, took(1_000), 0.0, 0),
            (&pace, took(1_000), f64::NAN, 0),
            (&pace, took(1_000), -1.0, 0),
            (&pace, Visit { crawl_delay: Some(secs(10)), ..took(10) }, 1.0, 10_000),
            (&pace, Visit { crawl_delay: Some(secs(1)), ..took(10) }, 1.0, 3_000),
            (&pace, Visit { crawl_delay: Some(secs(86_400)), ..took(10) }, 1.0, 300_000),
            (&slow_line, Visit { bytes: 20_000, ..took(5_000) }, 1.0, 25_000),
            (&slow_line, Visit { bytes: 100_000, ..took(5_000) }, 1.0, 95_000),
            // A Retry-After counts only beside 429 or 503.
            (&pace, Visit { retry_after: Some(secs(100)), ..took(10) }, 1.0, 3_000),
            (&Pace::none(), took(60_000), 1.0, 0),
            (&Pace::none(), Visit { crawl_delay: Some(secs(10)), bytes: 1 << 40, ..took(10) }, 9.0, 0),
            (&Pace::fixed(secs(1)), took(60_000), 1.0, 1_000),
            (&Pace { delay_factor: 1e300, ..Pace::default() }, took(60_000), 1e300, 31_536_000_000),
        ];
        for (pace, visit, factor, millis) in cases {
            let (wait, strain) = delay(pace, &visit, Strain::default(), factor);
            assert_eq!((wait.as_millis(), strain), (millis, Strain(0)), "{visit:?} × {factor}");
        }
    }

    #[test]
    fn a_strained_host_gets_more_and_more_time_and_then_less_and_less() {
        let pace = Pace::default();
        let over = Visit { status: FetchStatus(429), ..took(10) };
        let mut strain = Strain::default();
        let mut waits = Vec::new();
        for visit in [over, over, over, took(10), took(10), took(10), took(10)] {
            let (wait, next) = delay(&pace, &visit, strain, 1.0);
            waits.push(wait.as_secs());
            strain = next;
        }
        assert_eq!(waits, [30, 60, 120, 12, 6, 3, 3]);

        for _ in 0..300 {
            strain = delay(&pace, &over, strain, 1.0).1;
        }
        assert_eq!(delay(&pace, &over, strain, 1.0), (secs(1800), Strain(MOST_STRAIN)));
    }

    #[test]
    fn retry_after_is_honoured_to_its_cap_and_not_hurried() {
        let pace = Pace::default();
        for (asked, wait) in [(120, 120), (1, 3), (86_400, 3600)] {
            let visit = Visit { status: FetchStatus(429), retry_after: Some(secs(asked)), ..took(10) };
            assert_eq!(delay(&pace, &visit, Strain(4), 1.0).0, secs(wait), "{asked}");
        }
        let visit = Visit { status: FetchStatus(429), retry_after: Some(secs(120)), ..took(10) };
        assert_eq!(delay(&pace, &visit, Strain(0), 0.1).0, secs(120));
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999", Some(u64::from(u32::MAX))),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(37)),
            ("Sun Nov  6 08:49:37 1994", Some(37)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(text, now), seconds.map(secs), "{text:?}");
        }
    }
}
