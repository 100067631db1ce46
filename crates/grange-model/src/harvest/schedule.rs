//! Schedules: how often, at which time of the clock, from when and until when.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::nearest::named;

named! {
    /// What a schedule counts in.
    Unit, "unit of time" {
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

/// Every so many of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    pub count: u32,
    pub unit: Unit,
}

/// The time of the clock a run begins at, in the schedule's time zone. What does not apply to the unit is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 23; for days, weeks and months.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hour: Option<u8>,
    /// 1 Monday to 7 Sunday; for weeks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub weekday: Option<u8>,
    /// 1 to 31, the last day of shorter months; for months.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub day: Option<u8>,
}

/// When a schedule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// Never.
    Forever,
    /// No run begins after this time.
    Until(#[schemars(with = "String")] Timestamp),
    /// After so many runs.
    Times(u32),
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub name: Name,
    #[serde(default)]
    pub comments: String,
    /// No run begins before this time; absent: as soon as possible.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<String>")]
    pub starts: Option<Timestamp>,
    pub ends: Ends,
    pub every: Every,
    /// Absent: at any time, which is as soon as possible and then every so often.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<At>,
    /// The IANA name of the time zone whose clock counts, such as `Europe/Copenhagen`.
    pub time_zone: String,
}

/// Why something is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("a schedule repeats every 1 to {COUNT_MAX} units, not every {0}")]
    Count(u32),
    #[error("a schedule by the minute has no fixed time: leave it out")]
    MinuteAt,
    #[error("a schedule by the {unit} runs at {wanted}")]
    At { unit: Unit, wanted: &'static str },
    #[error("a schedule that runs 0 times never runs: write how often, or for ever")]
    NoTimes,
    #[error("the schedule ends ({ends}) before it starts ({starts})")]
    EndsFirst { starts: Timestamp, ends: Timestamp },
    #[error("\"{0}\" is not a time zone: write a name such as UTC or Europe/Copenhagen")]
    TimeZone(String),
}

/// A thousand months is more than eighty years: whoever wants more wants no schedule.
const COUNT_MAX: u32 = 1000;

impl Schedule {
    /// The four that come with Grange.
    pub fn shipped() -> [Self; 4] {
        [("hourly", Unit::Hour), ("daily", Unit::Day), ("weekly", Unit::Week), ("monthly", Unit::Month)].map(
            |(name, unit)| Self {
                // Plain words are always names.
                name: name.parse().unwrap_or_else(|_| unreachable!("{name} is a name")),
                comments: String::new(),
                starts: None,
                ends: Ends::Forever,
                every: Every { count: 1, unit },
                at: None,
                time_zone: "UTC".to_owned(),
            },
        )
    }

    pub fn zone(&self) -> Result<TimeZone, ScheduleError> {
        TimeZone::get(&self.time_zone).map_err(|_| ScheduleError::TimeZone(self.time_zone.clone()))
    }

    /// Whether this is a schedule at all.
    pub fn check(&self) -> Result<(), ScheduleError> {
        if !(1..=COUNT_MAX).contains(&self.every.count) {
            return Err(ScheduleError::Count(self.every.count));
        }
        if let Some(at) = self.at {
            self.check_at(at)?;
        }
        if self.ends == Ends::Times(0) {
            return Err(ScheduleError::NoTimes);
        }
        if let (Some(starts), Ends::Until(ends)) = (self.starts, self.ends)
            && ends < starts
        {
            return Err(ScheduleError::EndsFirst { starts, ends });
        }
        self.zone().map(|_| ())
    }

    fn check_at(&self, at: At) -> Result<(), ScheduleError> {
        let unit = self.every.unit;
        let hour = at.hour.is_some_and(|hour| hour < 24);
        let day = at.day.is_some_and(|day| (1..=31).contains(&day));
        let weekday = at.weekday.is_some_and(|weekday| (1..=7).contains(&weekday));
        let absent = (at.hour.is_none(), at.weekday.is_none(), at.day.is_none());
        let (fits, wanted) = match unit {
            Unit::Minute => return Err(ScheduleError::MinuteAt),
            Unit::Hour => (absent == (true, true, true), "a minute (0–59)"),
            Unit::Day => (hour && absent == (false, true, true), "an hour (0–23) and a minute (0–59)"),
            Unit::Week => (
                hour && weekday && absent == (false, false, true),
                "a weekday (1 Monday to 7 Sunday), an hour (0–23) and a minute (0–59)",
            ),
            Unit::Month => (
                hour && day && absent == (false, true, false),
                "a day of the month (1–31), an hour (0–23) and a minute (0–59)",
            ),
        };
        if fits && at.minute < 60 { Ok(()) } else { Err(ScheduleError::At { unit, wanted }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(unit: Unit, at: Option<At>) -> Schedule {
        let [hourly, ..] = Schedule::shipped();
        Schedule { every: Every { count: 1, unit }, at, ..hourly }
    }

    #[test]
    fn the_shipped_ones_are_right_and_read_back() {
        for schedule in Schedule::shipped() {
            schedule.check().unwrap();
            let text = serde_json::to_string(&schedule).unwrap();
            assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
        }
    }

    #[test]
    fn what_does_not_fit_the_unit_is_refused() {
        let at = |hour, weekday, day| Some(At { minute: 5, hour, weekday, day });
        for (unit, at, fits) in [
            (Unit::Minute, None, true),
            (Unit::Minute, at(None, None, None), false),
            (Unit::Hour, at(None, None, None), true),
            (Unit::Hour, at(Some(1), None, None), false),
            (Unit::Day, at(Some(23), None, None), true),
            (Unit::Day, at(Some(24), None, None), false),
            (Unit::Day, at(None, None, None), false),
            (Unit::Week, at(Some(1), Some(7), None), true),
            (Unit::Week, at(Some(1), Some(0), None), false),
            (Unit::Week, at(Some(1), None, None), false),
            (Unit::Month, at(Some(1), None, Some(31)), true),
            (Unit::Month, at(Some(1), None, Some(32)), false),
            (Unit::Month, at(Some(1), Some(1), Some(1)), false),
        ] {
            assert_eq!(schedule(unit, at).check().is_ok(), fits, "{unit} {at:?}");
        }
        let plain = schedule(Unit::Day, None);
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(1).unwrap());
        for wrong in [
            Schedule { every: Every { count: 0, unit: Unit::Day }, ..plain.clone() },
            Schedule { ends: Ends::Times(0), ..plain.clone() },
            Schedule { starts: Some(late), ends: Ends::Until(early), ..plain.clone() },
            Schedule { time_zone: "Mars/Phobos".to_owned(), ..plain },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
