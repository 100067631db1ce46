//! When a schedule fires: pure functions of the schedule and a time.
//!
//! The rules are NetarchiveSuite's (reference §3), with two repairs: the first run also looks at the end of the
//! schedule, and the clock that counts is that of the schedule's time zone. A time that a change to summer time leaves
//! out becomes the same minute one hour later; one that occurs twice is taken the first time.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};

use super::schedule::{At, Ends, Schedule, ScheduleError, Unit};

/// What comes after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Absent: never again.
    pub at: Option<Timestamp>,
    /// Runs that were due before now and are left out. They are told, not made up for, and do not count as runs.
    pub skipped: u64,
}

impl Schedule {
    /// The first run of a harvest that is made or rescheduled at `now`.
    pub fn first(&self, now: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        let zone = self.zone()?;
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let base = self.starts.map_or(now, |starts| starts.max(now));
        let first = fit(self, base.to_zoned(zone)).map(|first| first.timestamp());
        Ok(first.filter(|first| !self.is_over(*first)))
    }

    /// The run after the one that was due at `due`, with `runs` runs made by now, the first one that is not before
    /// `now`.
    pub fn next(&self, due: Timestamp, runs: u64, now: Timestamp) -> Result<Next, ScheduleError> {
        if matches!(self.ends, Ends::Times(times) if runs >= u64::from(times)) {
            return Ok(Next::default());
        }
        let zone = self.zone()?;
        let mut next = Next { at: self.after(due, &zone), skipped: 0 };
        if self.every.unit == Unit::Minute
            && let Some(at) = next.at.filter(|at| *at < now)
        {
            // Absolute time, so the steps of a long stand-still can be counted instead of taken.
            let step = i64::from(self.every.count) * 60;
            let steps = (now.as_second() - at.as_second()) / step;
            let moved = Timestamp::from_second(at.as_second().saturating_add(steps * step));
            if let Ok(moved) = moved
                && !self.is_over(moved)
            {
                next = Next { at: Some(moved), skipped: steps as u64 };
            }
        }
        while let Some(at) = next.at.filter(|at| *at < now) {
            next = Next { at: self.after(at, &zone), skipped: next.skipped + 1 };
        }
        Ok(next)
    }

    /// The run after `due`, whatever time it is now.
    fn after(&self, due: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let due_here = due.to_zoned(zone.clone());
        let next = match (self.at, self.every.unit) {
            // Counted on the clock's face: what a change to summer time moved today does not move tomorrow.
            (Some(at), unit @ (Unit::Day | Unit::Week | Unit::Month)) => {
                let later = wanted(unit, at, &due_here)?.checked_add(self.step()).ok()?;
                on_the_clock(unit, at, later)?.to_zoned(zone.clone()).ok()?
            }
            _ => fit(self, fit(self, due_here)?.checked_add(self.step()).ok()?)?,
        };
        let next = next.timestamp();
        // A step always leads onward; if the calendar ends it does not lead anywhere.
        (next > due && !self.is_over(next)).then_some(next)
    }

    fn is_over(&self, at: Timestamp) -> bool {
        matches!(self.ends, Ends::Until(until) if at > until)
    }

    fn step(&self) -> Span {
        let count = i64::from(self.every.count);
        match self.every.unit {
            Unit::Minute => count.minutes(),
            Unit::Hour => count.hours(),
            Unit::Day => count.days(),
            Unit::Week => count.weeks(),
            Unit::Month => count.months(),
        }
    }
}

/// The first time at or after `time` that fits the schedule's clock. Seconds are kept.
fn fit(schedule: &Schedule, time: Zoned) -> Option<Zoned> {
    match (schedule.at, schedule.every.unit) {
        (None, _) | (Some(_), Unit::Minute) => Some(time),
        (Some(at), Unit::Hour) => {
            let minute = time.with().minute(i8::try_from(at.minute).ok()?).build().ok()?;
            if minute >= time { Some(minute) } else { minute.checked_add(1.hour()).ok() }
        }
        (Some(at), unit) => wanted(unit, at, &time)?.to_zoned(time.time_zone().clone()).ok(),
    }
}

/// The face of the clock at the first time at or after `time` that is wanted.
fn wanted(unit: Unit, at: At, time: &Zoned) -> Option<DateTime> {
    let here = on_the_clock(unit, at, time.datetime())?;
    if here.to_zoned(time.time_zone().clone()).ok()? >= *time {
        return Some(here);
    }
    let later = match unit {
        Unit::Week => here.checked_add(1.week()),
        Unit::Month => here.checked_add(1.month()),
        _ => here.checked_add(1.day()),
    };
    // Once more: a month may be longer than the one before.
    on_the_clock(unit, at, later.ok()?)
}

/// The wanted time in the same day, week or month.
fn on_the_clock(unit: Unit, at: At, time: DateTime) -> Option<DateTime> {
    let mut date = time.date();
    match (unit, at.weekday, at.day) {
        (Unit::Week, Some(weekday), _) => {
            let wanted = Weekday::from_monday_one_offset(i8::try_from(weekday).ok()?).ok()?;
            let days = wanted.to_monday_zero_offset() - date.weekday().to_monday_zero_offset();
            date = date.checked_add(i64::from(days).days()).ok()?;
        }
        (Unit::Month, _, Some(day)) => {
            let day = i8::try_from(day).ok()?.min(date.days_in_month());
            date = date.with().day(day).build().ok()?;
        }
        _ => {}
    }
    let (hour, minute) = (i8::try_from(at.hour?).ok()?, i8::try_from(at.minute).ok()?);
    Some(date.at(hour, minute, time.second(), 0))
}

#[cfg(test)]
#[path = "schedule_dates_tests.rs"]
mod tests;
