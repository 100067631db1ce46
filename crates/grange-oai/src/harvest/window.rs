//! Windows of dates that a long list is cut into. The first has no beginning and the last no end: what a repository
//! says about its earliest record is not to be relied on, and records dated in the future exist.

use grange_model::oai::Slices;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// The dates of one list, both inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Where the next window begins; absent on the last one.
    pub next: Option<Timestamp>,
}

/// A repository in another time zone than it thinks is no reason to distrust its dates.
const TOLERANCE_S: i64 = 86_400;

impl Window {
    /// The first window of a harvest from `from` until `until`. `earliest` is where records may begin, `now` the
    /// server's clock as far as known.
    pub fn first(
        slices: Slices,
        from: Option<Timestamp>,
        until: Option<Timestamp>,
        earliest: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let start = from.or(earliest).unwrap_or(now);
        Self::of(slices, from, start, until, now)
    }

    /// The window that follows, if there is one.
    pub fn after(&self, slices: Slices, until: Option<Timestamp>, now: Timestamp) -> Option<Self> {
        let start = self.next?;
        Some(Self::of(slices, Some(start), start, until, now))
    }

    fn of(
        slices: Slices,
        from: Option<Timestamp>,
        start: Timestamp,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let next = slice_end(slices, start).filter(|next| *next <= until.unwrap_or(now));
        match next {
            Some(next) => Self { from, until: Some(next - 1.second()), next: Some(next) },
            None => Self { from, until, next: None },
        }
    }

    /// Whether a date is so far outside that the server must have ignored the window.
    pub fn excludes(&self, date: Timestamp) -> bool {
        let (date, before) = (date.as_second(), |at: Timestamp| at.as_second() - TOLERANCE_S);
        self.from.is_some_and(|from| date < before(from))
            || self.until.is_some_and(|until| date > until.as_second() + TOLERANCE_S)
    }

    pub fn is_open(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }
}

/// The beginning of the next slice.
fn slice_end(slices: Slices, start: Timestamp) -> Option<Timestamp> {
    let start = start.to_zoned(TimeZone::UTC);
    let next = match slices {
        Slices::Whole => return None,
        Slices::Month => start.first_of_month().ok()?.start_of_day().ok()?.checked_add(1.month()),
        Slices::Day => start.start_of_day().ok()?.checked_add(1.day()),
    };
    next.ok().map(|next| next.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn windows_cover_all_time_without_gap_or_overlap() {
        let (earliest, now) = (at("2025-11-20T10:00:00Z"), at("2026-02-03T00:00:00Z"));
        let mut window = Window::first(Slices::Month, None, None, Some(earliest), now);
        let mut all = vec![window];
        while let Some(next) = window.after(Slices::Month, None, now) {
            window = next;
            all.push(window);
        }
        assert_eq!(all.len(), 4);
        assert_eq!((all[0].from, all[3].until), (None, None), "open at both ends");
        for pair in all.windows(2) {
            assert_eq!(pair[0].until.map(|until| until + 1.second()), pair[1].from);
        }
        assert_eq!(all[1].from, Some(at("2025-12-01T00:00:00Z")));
        let whole = Window::first(Slices::Whole, None, None, Some(earliest), now);
        assert!(whole.is_open() && whole.after(Slices::Whole, None, now).is_none());
        // What was asked for bounds both ends.
        let (from, until) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T12:00:00Z"));
        let day = Window::first(Slices::Day, Some(from), Some(until), Some(earliest), now);
        assert_eq!((day.from, day.until), (Some(from), Some(at("2026-01-01T23:59:59Z"))));
        let last = day.after(Slices::Day, Some(until), now).unwrap();
        assert_eq!((last.until, last.next), (Some(until), None));
    }

    #[test]
    fn a_time_zone_is_forgiven_and_a_month_is_not() {
        let window = Window {
            from: Some(at("2026-01-01T00:00:00Z")),
            until: Some(at("2026-01-31T23:59:59Z")),
            next: None,
        };
        for (date, outside) in [
            ("2025-12-31T12:00:00Z", false),
            ("2025-12-30T12:00:00Z", true),
            ("2026-02-01T12:00:00Z", false),
            ("2026-02-03T12:00:00Z", true),
        ] {
            assert_eq!(window.excludes(at(date)), outside, "{date}");
        }
        assert!(!Window::default().excludes(at("1970-01-01T00:00:00Z")));
    }
}
