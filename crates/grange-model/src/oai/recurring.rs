//! Recurring jobs: a harvest that is made again and again, and one-shot harvests planned for a day.

use std::time::Duration;

use jiff::{Timestamp, ToSpan};
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

/// Decides what follows on a job that was due at `due` and ended now. Slots that were missed are not made up for.
/// `failures` counts this one too; after `failures_max` in a row a person has to look.
pub fn next(
    every: Option<Every>,
    ends_at: Option<Timestamp>,
    due: Timestamp,
    now: Timestamp,
    failures: u32,
    failures_max: u32,
) -> Next {
    let slot = every.and_then(|every| slot_after(every, due, now));
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
        Some(at) if ends_at.is_none_or(|end| at <= end) => Next::At(at),
        _ => Next::Over,
    }
}

/// The first slot of the rhythm after now, counted from the last due time. `None`: the calendar ends first.
fn slot_after(every: Every, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let count = i64::from(every.count.max(1));
    let fixed = match every.unit {
        Unit::Minute => Some(60),
        Unit::Hour => Some(3_600),
        Unit::Day => Some(86_400),
        Unit::Week => Some(7 * 86_400),
        Unit::Month => None,
    };
    if let Some(unit) = fixed {
        let step = count * unit;
        let missed = (now.as_second() - due.as_second()).max(0) / step;
        return due.checked_add(((missed + 1) * step).seconds()).ok();
    }
    let first = due.to_zoned(jiff::tz::TimeZone::UTC);
    // Counted from the due date each time, so that the 31st stays the 31st after a shorter month.
    (1..=1_200).find_map(|step| {
        let slot = first.checked_add((step * count).months()).ok()?.timestamp();
        (slot > now).then_some(slot)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_job_is_at_the_next_slot_and_failures_come_back_sooner() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let every = |count, unit| Some(Every { count, unit });
        let due = at("2026-01-31T02:00:00Z");
        for (every, ends, now, failures, expected) in [
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 0, Next::At(at("2026-02-01T02:00:00Z"))),
            // Slots missed are not made up for.
            (every(1, Unit::Day), None, "2026-02-05T01:00:00Z", 0, Next::At(at("2026-02-05T02:00:00Z"))),
            (every(1, Unit::Month), None, "2026-01-31T03:00:00Z", 0, Next::At(at("2026-02-28T02:00:00Z"))),
            (every(1, Unit::Month), None, "2026-03-01T03:00:00Z", 0, Next::At(at("2026-03-31T02:00:00Z"))),
            (every(2, Unit::Hour), None, "2026-01-31T06:00:00Z", 0, Next::At(at("2026-01-31T08:00:00Z"))),
            (None, None, "2026-01-31T03:00:00Z", 0, Next::Over),
            (every(1, Unit::Day), Some("2026-01-31T12:00:00Z"), "2026-01-31T03:00:00Z", 0, Next::Over),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 1, Next::At(at("2026-01-31T03:15:00Z"))),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 3, Next::At(at("2026-01-31T04:00:00Z"))),
            // Never later than the rhythm itself.
            (every(1, Unit::Hour), None, "2026-01-31T02:30:00Z", 4, Next::At(at("2026-01-31T03:00:00Z"))),
            (None, None, "2026-01-31T03:00:00Z", 1, Next::At(at("2026-01-31T03:15:00Z"))),
            (every(1, Unit::Day), None, "2026-01-31T03:00:00Z", 5, Next::Park),
        ] {
            assert_eq!(next(every, ends.map(at), due, at(now), failures, 5), expected, "{every:?} {now}");
        }
    }
}
