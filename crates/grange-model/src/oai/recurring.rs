//! Recurring jobs: a harvest that is made again and again, and one-shot harvests planned for a day.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{RecurringId, RepositoryId};
use super::job::HarvestSpec;
use crate::harvest::{Every, Unit};
use crate::nearest::named;

named! {
    /// How far the planner is with it.
    RecurringState, "state of a recurring job" {
        /// Not planned yet (0).
        New = "new",
        /// Its next job is planned or runs (1).
        Recurring = "recurring",
        /// Its only job is planned, runs or is over (2).
        Once = "once",
        /// Failed so often in a row that a person has to look.
        Parked = "parked",
        /// Its last date is past.
        Over = "over",
    }
}

/// A recurring job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecurringJob {
    pub id: RecurringId,
    pub repository: RepositoryId,
    pub spec: HarvestSpec,
    #[schemars(with = "String")]
    pub starts_at: Timestamp,
    /// No job begins after this time.
    #[schemars(with = "Option<String>")]
    pub ends_at: Option<Timestamp>,
    /// Absent: once.
    pub every: Option<Every>,
    pub state: RecurringState,
    /// How often in a row it failed.
    pub failures: u32,
    #[schemars(with = "String")]
    pub added_at: Timestamp,
    pub edition: i64,
}

impl RecurringJob {
    pub fn rhythm(&self) -> Rhythm {
        Rhythm { starts_at: self.starts_at, ends_at: self.ends_at, every: self.every }
    }
}

/// What happens after a job of a recurring one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another job, at this time.
    At(Timestamp),
    Park,
    Over,
}

/// After the first failure; doubled with each further one, at most the rhythm itself.
pub const RETRY_FIRST: Duration = Duration::from_mins(15);

/// The rhythm of a recurring job. Its slots are counted from the start, so that neither a retry, nor a slot that was
/// missed, nor a short month moves the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// The first slot. Days, weeks and months are those of UTC.
    pub starts_at: Timestamp,
    /// No job begins after this time.
    pub ends_at: Option<Timestamp>,
    /// Absent: one slot only.
    pub every: Option<Every>,
}

impl Rhythm {
    /// The first slot after a time. `None`: there is none, or the calendar ends first.
    pub fn slot_after(&self, time: Timestamp) -> Option<Timestamp> {
        if time < self.starts_at {
            return Some(self.starts_at);
        }
        let every = self.every?;
        let count = i64::from(every.count.max(1));
        let seconds = match every.unit {
            Unit::Minute => 60,
            Unit::Hour => 3_600,
            Unit::Day => 86_400,
            Unit::Week => 7 * 86_400,
            Unit::Month => return self.month_after(count, time),
        };
        let step = count.checked_mul(seconds)?;
        let past = time.duration_since(self.starts_at).as_secs() / step;
        self.starts_at.checked_add(past.checked_add(1)?.checked_mul(step)?.seconds()).ok()
    }

    /// The first of the slots `count` months apart. Each is counted from the start: the 31st becomes the last day of a
    /// shorter month, and the 31st again after it.
    fn month_after(&self, count: i64, time: Timestamp) -> Option<Timestamp> {
        let first = self.starts_at.to_zoned(TimeZone::UTC);
        let now = time.to_zoned(TimeZone::UTC);
        let months = 12 * i64::from(now.year() - first.year()) + i64::from(now.month() - first.month());
        // The slot of this month may be past or to come.
        let near = months / count;
        (near.max(1)..=near + 1).find_map(|step| {
            let months = Span::new().try_months(step.checked_mul(count)?).ok()?;
            let slot = first.checked_add(months).ok()?.timestamp();
            (slot > time).then_some(slot)
        })
    }
}

/// Decides what follows on a job that ended now. Slots that were missed are not made up for. `failures` counts this one
/// too; after `failures_max` in a row a person has to look.
pub fn next(rhythm: Rhythm, now: Timestamp, failures: u32, failures_max: u32) -> Next {
    let slot = rhythm.slot_after(now);
    let at = if failures == 0 {
        slot
    } else if failures >= failures_max {
        return Next::Park;
    } else {
        let wait = RETRY_FIRST.saturating_mul(1 << (failures - 1).min(16));
        let retry = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        Some(slot.map_or(retry, |slot| slot.min(retry)))
    };
    match at {
        Some(at) if rhythm.ends_at.is_none_or(|end| at <= end) => Next::At(at),
        _ => Next::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn rhythm(starts_at: &str, count: u32, unit: Unit) -> Rhythm {
        Rhythm { starts_at: at(starts_at), ends_at: None, every: Some(Every { count, unit }) }
    }

    #[test]
    fn slots_are_counted_from_the_start_whenever_the_job_before_ran() {
        for (starts, count, unit, now, slot) in [
            ("2026-01-31T02:00:00Z", 1, Unit::Day, "2026-01-31T03:00:00Z", "2026-02-01T02:00:00Z"),
            // A job that ran late, as after a retry, or over several slots.
            ("2026-01-31T02:00:00Z", 1, Unit::Day, "2026-02-04T23:07:43Z", "2026-02-05T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Day, "2026-02-05T01:59:59.999Z", "2026-02-05T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Day, "2026-02-05T02:00:00Z", "2026-02-06T02:00:00Z"),
            ("2026-01-31T02:00:00.5Z", 1, Unit::Day, "2026-02-05T02:00:00.4Z", "2026-02-05T02:00:00.5Z"),
            // Before the start there is only the start.
            ("2026-01-31T02:00:00Z", 1, Unit::Day, "2025-01-31T02:00:00Z", "2026-01-31T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 3, Unit::Day, "2026-02-04T12:00:00Z", "2026-02-06T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 2, Unit::Hour, "2026-01-31T06:00:00Z", "2026-01-31T08:00:00Z"),
            ("2026-01-31T02:00:00Z", 15, Unit::Minute, "2026-01-31T02:46:00Z", "2026-01-31T03:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Week, "2026-12-31T00:00:00Z", "2027-01-02T02:00:00Z"),
            // Ends of months, also after a short one.
            ("2026-01-31T02:00:00Z", 1, Unit::Month, "2026-01-31T03:00:00Z", "2026-02-28T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Month, "2026-02-28T03:00:00Z", "2026-03-31T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Month, "2026-04-30T02:00:00Z", "2026-05-31T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Month, "2026-05-01T00:00:00Z", "2026-05-31T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 1, Unit::Month, "2026-12-31T03:00:00Z", "2027-01-31T02:00:00Z"),
            ("2026-01-30T02:00:00Z", 1, Unit::Month, "2028-02-01T00:00:00Z", "2028-02-29T02:00:00Z"),
            ("2028-02-29T02:00:00Z", 12, Unit::Month, "2028-03-01T00:00:00Z", "2029-02-28T02:00:00Z"),
            ("2028-02-29T02:00:00Z", 12, Unit::Month, "2031-03-01T00:00:00Z", "2032-02-29T02:00:00Z"),
            ("2026-01-31T02:00:00Z", 5, Unit::Month, "2026-07-01T00:00:00Z", "2026-11-30T02:00:00Z"),
            ("1970-01-31T02:00:00Z", 1, Unit::Month, "2226-02-20T00:00:00Z", "2226-02-28T02:00:00Z"),
            // A start with an offset names a moment. Its hour is that of UTC, in summer and winter alike.
            ("2026-03-28T02:30:00+01:00", 1, Unit::Day, "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"),
            ("2026-03-28T02:30:00+01:00", 1, Unit::Day, "2026-03-30T12:00:00Z", "2026-03-31T01:30:00Z"),
            ("2026-02-01T00:30:00+02:00", 1, Unit::Month, "2026-02-01T00:00:00Z", "2026-02-28T22:30:00Z"),
        ] {
            let found = rhythm(starts, count, unit).slot_after(at(now));
            assert_eq!(found, Some(at(slot)), "{starts} every {count} {unit}, after {now}");
        }
        let once = Rhythm { every: None, ..rhythm("2026-01-31T02:00:00Z", 1, Unit::Day) };
        assert_eq!(once.slot_after(at("2026-01-31T02:00:00Z")), None);
        let far = rhythm("2026-01-31T02:00:00Z", u32::MAX, Unit::Month);
        assert_eq!(far.slot_after(at("2026-01-31T02:00:00Z")), None, "the calendar ends first");
    }

    #[test]
    fn a_retry_does_not_move_the_slots_behind_it() {
        let daily = rhythm("2026-01-31T02:00:00Z", 1, Unit::Day);
        let mut now = at("2026-01-31T23:07:43Z");
        for failures in [1, 2, 0, 1, 0, 0] {
            let Next::At(due) = next(daily, now, failures, 10) else { panic!("it goes on") };
            if failures == 0 {
                assert_eq!(due.to_zoned(TimeZone::UTC).time(), jiff::civil::time(2, 0, 0, 0));
            }
            // It runs for a minute.
            now = due + Duration::from_mins(1);
        }
    }

    #[test]
    fn the_next_job_is_at_the_next_slot_and_failures_come_back_sooner() {
        let every = |count, unit| Some(Every { count, unit });
        for (every, ends, now, failures, expected) in [
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 0, Next::At(at("2026-02-01T02:00:00Z"))),
            // Slots missed are not made up for.
            (every(1, Unit::Day), None, "2026-02-05T01:00:00Z", 0, Next::At(at("2026-02-05T02:00:00Z"))),
            (None, None, "2026-01-31T03:00:00Z", 0, Next::Over),
            (every(1, Unit::Day), Some("2026-01-31T12:00:00Z"), "2026-01-31T03:00:00Z", 0, Next::Over),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 1, Next::At(at("2026-01-31T03:15:00Z"))),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 3, Next::At(at("2026-01-31T04:00:00Z"))),
            // Never later than the rhythm itself.
            (every(1, Unit::Hour), None, "2026-01-31T02:30:00Z", 4, Next::At(at("2026-01-31T03:00:00Z"))),
            (None, None, "2026-01-31T03:00:00Z", 1, Next::At(at("2026-01-31T03:15:00Z"))),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 5, Next::Park),
        ] {
            let rhythm = Rhythm { starts_at: at("2026-01-31T02:00:00Z"), ends_at: ends.map(at), every };
            assert_eq!(next(rhythm, at(now), failures, 5), expected, "{every:?} {now}");
        }
    }
}
