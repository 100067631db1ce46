//! Whether a crawl has fallen asleep. A pure decision over signs of life.

use std::time::Duration;

use jiff::Timestamp;

use crate::engine::Sign;

/// What the settings allow.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub inactivity: Duration,
    pub no_response: Duration,
}

/// What is wrong with a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asleep {
    /// It lives, but nothing is finished any more.
    Inactive,
    /// It says nothing any more.
    NoResponse,
}

/// Watches one crawl.
#[derive(Clone, Debug)]
pub struct Watchdog {
    patience: Patience,
    /// When the newest sign was given.
    heard: Timestamp,
    /// When a document was last finished, or not being finished was excused.
    moved: Timestamp,
    finished: u64,
}

impl Watchdog {
    pub fn new(patience: Patience, now: Timestamp) -> Self {
        Self { patience, heard: now, moved: now, finished: 0 }
    }

    /// Looks at the newest sign.
    pub fn look(&mut self, sign: Option<&Sign>, now: Timestamp) -> Option<Asleep> {
        if let Some(sign) = sign.filter(|sign| sign.progress.at > self.heard) {
            self.heard = sign.progress.at;
            if sign.finished != self.finished || sign.excused {
                (self.finished, self.moved) = (sign.finished, sign.progress.at);
            }
        }
        let longer = |since: Timestamp, until: Timestamp, patience: Duration| {
            Duration::try_from(until.duration_since(since)).is_ok_and(|gone| gone >= patience)
        };
        if longer(self.heard, now, self.patience.no_response) {
            return Some(Asleep::NoResponse);
        }
        // Judged by its own word: of a silent crawl nobody knows whether it stands still.
        longer(self.moved, self.heard, self.patience.inactivity).then_some(Asleep::Inactive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bed;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn sign(second: i64, finished: u64, excused: bool) -> Sign {
        let progress = test_bed::progress(at(second));
        Sign { progress, finished, excused, orders: None }
    }

    #[test]
    fn a_crawl_sleeps_when_nothing_ends_or_nothing_is_heard() {
        let patience =
            Patience { inactivity: Duration::from_secs(30), no_response: Duration::from_secs(100) };
        // Each case: signs as (second, finished, excused), when it is looked at, and the verdict.
        for (signs, now, verdict) in [
            (&[][..], 99, None),
            (&[], 100, Some(Asleep::NoResponse)),
            (&[(20, 1, false)], 119, None),
            (&[(20, 1, false)], 120, Some(Asleep::NoResponse)),
            (&[(20, 1, false), (49, 1, false)], 60, None),
            (&[(20, 1, false), (50, 1, false)], 50, Some(Asleep::Inactive)),
            (&[(20, 1, false), (49, 2, false), (78, 2, false)], 78, None),
            // Nothing was ever finished.
            (&[(30, 0, false)], 30, Some(Asleep::Inactive)),
            // Paused, or waiting for space: standing still is no sleep.
            (&[(20, 1, false), (60, 1, true), (89, 1, false)], 89, None),
            (&[(20, 1, false), (60, 1, true), (90, 1, false)], 90, Some(Asleep::Inactive)),
            // A sign that is older than what is known says nothing new.
            (&[(20, 1, false), (10, 9, false)], 119, None),
        ] {
            let mut dog = Watchdog::new(patience, at(0));
            for (second, finished, excused) in signs {
                dog.look(Some(&sign(*second, *finished, *excused)), at(*second));
            }
            assert_eq!(dog.look(None, at(now)), verdict, "{signs:?} at {now}");
        }
    }
}
