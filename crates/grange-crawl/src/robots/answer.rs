//! What follows from the answer to a request for robots.txt, and for how long.
//!
//! RFC 9309 §2.3.1: a file that is there is obeyed; a file that is not there (4xx) forbids nothing; a server that
//! cannot answer (5xx, 429, no connection) is left alone until it can.

use grange_base::Period;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Policy, Robots};
use crate::status::FetchStatus;

/// How long answers count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// An answer counts for this long, then the file is asked for again. RFC 9309 says not more than 24 hours.
    pub valid: Period,

    /// When the file cannot be had any more, the last good copy counts this much longer.
    pub stale: Period,

    /// After a failure the file is asked for again after this long, then after twice as long, and so on.
    pub retry: Period,

    /// The longest wait between two tries.
    pub retry_max: Period,

    /// When every request for the file failed for this long, everything on the host is taken to be forbidden until
    /// the next try. The file is still asked for, every `retry_max`, and a failure older than that forbids nothing.
    pub give_up: Period,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            valid: Period::from_secs(24 * 3600),
            stale: Period::from_secs(24 * 3600),
            // A restart of a server takes about a minute.
            retry: Period::from_secs(60),
            retry_max: Period::from_secs(3600),
            // Half an hour of waiting costs a crawl of days nothing; a crawl of one page should not wait longer.
            give_up: Period::from_secs(30 * 60),
        }
    }
}

/// How a request for robots.txt ended. Redirects were followed before this, five at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The last answer.
    Http { status: u16, body: &'a [u8] },
    /// A sixth redirect, or one that leads nowhere.
    LostInRedirects,
    /// No name, no connection, no whole answer.
    Unreachable,
}

/// Whether a response ended where it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// It is longer than we read; its beginning is there.
    CutByOurLimit,
    /// The connection broke, or it took too long: nobody knows which rules are missing.
    CutOff,
}

/// What came of a request for robots.txt that led to no redirect. `status` is none without a response.
pub fn answer(status: Option<u16>, extent: Extent, body: &[u8]) -> Answer<'_> {
    match (status, extent) {
        (None, _) | (Some(200..=299), Extent::CutOff) => Answer::Unreachable,
        (Some(status), Extent::CutByOurLimit) => {
            // Half of the last line may say the opposite of the whole.
            let lines = memchr::memrchr2(b'\n', b'\r', body).map_or(0, |end| end + 1);
            Answer::Http { status, body: &body[..lines] }
        }
        (Some(status), _) => Answer::Http { status, body },
    }
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means<'a> {
    /// The body speaks.
    Rules(&'a [u8]),
    /// There is no file: nothing is forbidden.
    AllowAll,
    /// Unknown: ask again, and fetch nothing meanwhile.
    TryLater,
}

/// The meaning of one answer.
pub fn meaning(answer: Answer<'_>) -> Means<'_> {
    match answer {
        Answer::Http { status: 200..=299, body } => Means::Rules(body),
        Answer::Http { status: 429, .. } => Means::TryLater,
        // "Unavailable", 401 and 403 included. A redirect that was not followed is one as well.
        Answer::Http { status: 300..=499, .. } | Answer::LostInRedirects => Means::AllowAll,
        Answer::Http { .. } | Answer::Unreachable => Means::TryLater,
    }
}

/// What is known of one host's robots.txt. Small enough to be kept for every host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRobots {
    /// The last answer that meant something, and when it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    good: Option<(Timestamp, Robots)>,
    /// The failures since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Failing {
    since: Timestamp,
    last: Timestamp,
    tries: u32,
    /// The last failure; 0 if it was not noted.
    #[serde(default)]
    status: i32,
}

/// What counts now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing<'a> {
    Rules(&'a Robots),
    /// The server kept us waiting too long.
    DisallowAll,
    /// Nothing may be fetched before the file was asked for.
    Unknown,
}

impl HostRobots {
    /// The memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<HostRobots>() + self.good.as_ref().map_or(0, |(_, robots)| robots.memory())
    }

    /// Takes in an answer that came at `now`.
    pub fn learn(&mut self, answer: Answer<'_>, product_token: &str, now: Timestamp, settings: &Settings) {
        let robots = match meaning(answer) {
            Means::Rules(text) => Robots::parse(text, product_token),
            Means::AllowAll => Robots::allow_all(),
            Means::TryLater => {
                // Failures with a long silence between them are two incidents, not one outage: a host that was not
                // asked meanwhile may have been well.
                let outage = later(settings.retry_max, settings.give_up);
                let going_on = self.failing.filter(|failing| now <= after(failing.last, outage));
                let failing = self.failing.insert(going_on.unwrap_or(Failing {
                    since: now,
                    last: now,
                    tries: 0,
                    status: 0,
                }));
                failing.last = now;
                failing.tries = failing.tries.saturating_add(1);
                return;
            }
        };
        *self = HostRobots { good: Some((now, robots)), failing: None };
    }

    /// Notes what the last failure was, if the file cannot be had.
    pub fn note_status(&mut self, status: FetchStatus) {
        if let Some(failing) = &mut self.failing {
            failing.status = status.0;
        }
    }

    /// The last failure, if the host did not respond. What it forbids is then not known, but neither is it a refusal.
    pub fn unreachable(&self) -> Option<FetchStatus> {
        let status = self.failing.map(|failing| FetchStatus(failing.status));
        status.filter(|status| status.is_unreachable())
    }

    /// Forgets that the host did not respond, if that was at `revived` or before.
    pub fn forget_unreachable(&mut self, revived: Timestamp) {
        if self.unreachable().is_some() {
            self.failing = self.failing.filter(|failing| failing.last > revived);
        }
    }

    /// When the newest answer came, of whatever kind.
    pub fn answered_at(&self) -> Option<Timestamp> {
        self.good.as_ref().map(|(at, _)| *at).max(self.failing.map(|failing| failing.last))
    }

    /// What counts at `now`.
    pub fn standing(&self, now: Timestamp, settings: &Settings) -> Standing<'_> {
        if let Some((at, robots)) = &self.good {
            let usable =
                if self.failing.is_some() { later(settings.valid, settings.stale) } else { settings.valid };
            if now < after(*at, usable) {
                return Standing::Rules(robots);
            }
        }
        match self.failing {
            Some(failing)
                if now >= after(failing.since, settings.give_up)
                    && now < after(failing.last, settings.retry_max) =>
            {
                Standing::DisallowAll
            }
            _ => Standing::Unknown,
        }
    }

    /// Whether the file is to be asked for before anything else is fetched: whenever it is due, whatever counts
    /// meanwhile, and as long as nothing is known. Who ignores it does not wait for a host that cannot give it.
    pub fn must_ask(&self, now: Timestamp, settings: &Settings, policy: Policy) -> bool {
        let due = self.ask_at(settings) <= now;
        due || (policy != Policy::Ignore && self.standing(now, settings) == Standing::Unknown)
    }

    /// Until when everything else waits: nothing is known, and the file was asked for so recently that it is not due.
    pub fn waits_until(&self, now: Timestamp, settings: &Settings, policy: Policy) -> Option<Timestamp> {
        let is_unknown = policy != Policy::Ignore && self.standing(now, settings) == Standing::Unknown;
        Some(self.ask_at(settings)).filter(|due| is_unknown && *due > now)
    }

    /// Takes the failures of `other`, whose host has the same name, if nothing else is known: a name that cannot be
    /// resolved cannot be resolved for another port either.
    pub fn share_failures(&mut self, other: &HostRobots) {
        if self.good.is_none() {
            self.failing = other.failing;
        }
    }

    /// When the file is to be asked for next; a time in the past means now.
    pub fn ask_at(&self, settings: &Settings) -> Timestamp {
        if let Some(failing) = self.failing {
            let doublings = failing.tries.saturating_sub(1).min(20);
            let wait = settings.retry.0.saturating_mul(1 << doublings).min(settings.retry_max.0);
            return after(failing.last, Period(wait));
        }
        self.good.as_ref().map_or(Timestamp::MIN, |(at, _)| after(*at, settings.valid))
    }
}

fn later(one: Period, other: Period) -> Period {
    Period(one.0.saturating_add(other.0))
}

fn after(time: Timestamp, period: Period) -> Timestamp {
    let period = SignedDuration::try_from(period.0).unwrap_or(SignedDuration::MAX);
    time.saturating_add(period).unwrap_or(Timestamp::MAX)
}
