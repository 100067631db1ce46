//! For how long the crawl that made the captures ran, from their dates.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// The longest silence that counts as running time. Robots.txt files and hosts that fail are tried again after minutes, and
/// few sites want longer pauses between two pages; a harvester that died is silent for hours.
const SILENCE_MAX: Duration = Duration::from_secs(15 * 60);

/// The beginning of 2020, before this program was. A machine whose clock was never set says 1970.
const EARLIEST_MS: i64 = 1_577_836_800_000;

/// The spans in which captures were made. They lie more than [`SILENCE_MAX`] apart, so they are few.
#[derive(Debug, Default)]
pub(super) struct Worked {
    /// The end of each by its beginning, in milliseconds.
    spans: BTreeMap<i64, i64>,
}

impl Worked {
    /// Takes in a fetch. Those of a clock that was never set say nothing about time.
    pub(super) fn add(&mut self, began: Timestamp, duration: Duration) {
        let (mut from, silence) = (began.as_millisecond(), SILENCE_MAX.as_millis() as i64);
        if from < EARLIEST_MS {
            return;
        }
        let mut to = from.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
        while let Some((&begin, &end)) = self.spans.range(..=to.saturating_add(silence)).next_back() {
            if end.saturating_add(silence) < from {
                break;
            }
            self.spans.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.spans.insert(from, to);
    }

    /// When the first fetch began.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.spans.keys().next().and_then(|first| Timestamp::from_millisecond(*first).ok())
    }

    /// The running time of all fetches.
    pub(super) fn ran(&self) -> Duration {
        self.ran_before(i64::MAX)
    }

    /// The running time when a fetch began.
    pub(super) fn ran_at(&self, at: Timestamp) -> Duration {
        self.ran_before(at.as_millisecond())
    }

    fn ran_before(&self, at: i64) -> Duration {
        let (mut ran, mut last) = (0_u64, None);
        for (begin, end) in self.spans.range(..=at) {
            ran = ran.saturating_add((*end).min(at).abs_diff(*begin));
            if last.replace(*end).is_some() {
                ran = ran.saturating_add(SILENCE_MAX.as_millis() as u64);
            }
        }
        Duration::from_millis(ran)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(EARLIEST_MS / 1000 + second).unwrap()
    }

    #[test]
    fn hours_without_captures_are_no_running_time_whatever_the_order_of_the_files() {
        let day = 24 * 60 * MINUTE;
        // Two hours of work, two days of nothing but a clock that was never set, half an hour of work.
        let first: Vec<_> = (0..=24).map(|n| n * 5 * MINUTE).collect();
        let second: Vec<_> = (0..=6).map(|n| 2 * day + n * 5 * MINUTE).collect();
        let (mut forth, mut back) = (first.clone(), second.clone());
        forth.extend(&second);
        back.extend(&first);
        for order in [forth.clone(), back, forth.into_iter().rev().collect()] {
            let mut worked = Worked::default();
            worked.add(Timestamp::UNIX_EPOCH, Duration::from_secs(1));
            for second in order {
                worked.add(at(second), Duration::from_secs(30));
            }
            let spans = Duration::from_secs(150 * 60 + 2 * 30);
            assert_eq!(worked.ran(), spans + SILENCE_MAX);
            assert_eq!(worked.first(), Some(at(0)));
            assert_eq!(worked.ran_at(at(10 * MINUTE)), Duration::from_secs(600));
            assert_eq!(worked.ran_at(at(2 * day)), Duration::from_secs(120 * 60 + 30) + SILENCE_MAX);
            assert_eq!(worked.ran_at(Timestamp::UNIX_EPOCH), Duration::ZERO);
            assert_eq!(worked.spans.len(), 2);
        }
        assert_eq!((Worked::default().ran(), Worked::default().first()), (Duration::ZERO, None));
    }
}
