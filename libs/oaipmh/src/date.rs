//! Datestamps: UTC, to the day or to the second, read with patience and written by the book.

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How fine the datestamps of a repository are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// `YYYY-MM-DD`, which every repository must understand.
    #[default]
    Day,
    /// `YYYY-MM-DDThh:mm:ssZ`.
    Second,
}

impl Granularity {
    /// Reads what Identify says, in any case: repositories write `yyyy-mm-dd` and worse.
    pub fn parse(text: &str) -> Option<Granularity> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("YYYY-MM-DD") {
            Some(Granularity::Day)
        } else if text.eq_ignore_ascii_case("YYYY-MM-DDThh:mm:ssZ") {
            Some(Granularity::Second)
        } else {
            None
        }
    }

    /// As Identify writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Granularity::Day => "YYYY-MM-DD",
            Granularity::Second => "YYYY-MM-DDThh:mm:ssZ",
        }
    }

    const fn length(self) -> SignedDuration {
        match self {
            Granularity::Day => SignedDuration::from_hours(24),
            Granularity::Second => SignedDuration::from_secs(1),
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A moment of a repository: its first second, and how much of it was stated.
///
/// Ordered by the moment, so a day stands before every later second of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Datestamp {
    /// UTC. Not a `Timestamp`, whose range ends a day before 9999-12-31, which people do ask for.
    start: DateTime,
    granularity: Granularity,
}

impl Datestamp {
    /// Reads exactly the two forms of the protocol.
    pub fn parse(text: &str) -> Option<Datestamp> {
        let bytes = text.as_bytes();
        match bytes.len() {
            10 => Some(Datestamp::of_day(day(bytes)?)),
            20 if bytes[10] == b'T' && bytes[19] == b'Z' => {
                let start = clock(day(&bytes[..10])?, &bytes[11..19])?;
                Some(Datestamp { start, granularity: Granularity::Second })
            }
            _ => None,
        }
    }

    /// Reads what repositories really send: fractions of a second, offsets, a blank for the `T`, no `Z`, no
    /// seconds. A stamp that makes sense only up to its day is that day.
    pub fn parse_lenient(text: &str) -> Option<Datestamp> {
        let text = text.trim();
        if let Some(exact) = Datestamp::parse(text) {
            return Some(exact);
        }
        let bytes = text.as_bytes();
        let date = day(bytes.get(..10)?)?;
        if !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) {
            return Some(Datestamp::of_day(date));
        }
        let mut rest = &bytes[11..];
        let start = if let Some(start) = rest.get(..8).and_then(|hms| clock(date, hms)) {
            rest = &rest[8..];
            start
        } else if let Some(hm) = rest.get(..5) {
            let mut hms = *b"00:00:00";
            hms[..5].copy_from_slice(hm);
            let Some(start) = clock(date, &hms) else { return Some(Datestamp::of_day(date)) };
            rest = &rest[5..];
            start
        } else {
            return Some(Datestamp::of_day(date));
        };
        if let [b'.' | b',', fraction @ ..] = rest {
            rest = &fraction[fraction.iter().take_while(|b| b.is_ascii_digit()).count()..];
        }
        let start = start.checked_sub(offset(rest)).ok().filter(|start| start.year() >= 0)?;
        Some(Datestamp { start, granularity: Granularity::Second })
    }

    fn of_day(date: Date) -> Datestamp {
        Datestamp { start: date.at(0, 0, 0, 0), granularity: Granularity::Day }
    }

    /// The granule that holds this moment. Moments before the year 0 cannot be stated and become its start.
    pub fn from_timestamp(time: Timestamp, granularity: Granularity) -> Datestamp {
        let civil = time.to_zoned(TimeZone::UTC).datetime();
        let civil = if civil.year() < 0 { DateTime::constant(0, 1, 1, 0, 0, 0, 0) } else { civil };
        let start = civil.date().at(civil.hour(), civil.minute(), civil.second(), 0);
        Datestamp { start, granularity: Granularity::Second }.to_granularity(granularity)
    }

    /// Its first second; on the last day of the year 9999, the last moment there is.
    pub fn timestamp(self) -> Timestamp {
        self.start.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |zoned| zoned.timestamp())
    }

    /// How much of it was stated.
    pub fn granularity(self) -> Granularity {
        self.granularity
    }

    /// The same moment in another granularity: a second's day, or a day's first second.
    #[must_use]
    pub fn to_granularity(self, granularity: Granularity) -> Datestamp {
        match granularity {
            Granularity::Day => Datestamp::of_day(self.start.date()),
            Granularity::Second => Datestamp { granularity, ..self },
        }
    }

    /// Its last second, stated to the second: what an inclusive `until` must say.
    #[must_use]
    pub fn last_second(self) -> Datestamp {
        let start = match self.granularity {
            Granularity::Day => self.start.date().at(23, 59, 59, 0),
            Granularity::Second => self.start,
        };
        Datestamp { start, granularity: Granularity::Second }
    }

    /// One granule later. Stops at the end of the year 9999, the last the form can state.
    #[must_use]
    pub fn next(self) -> Datestamp {
        self.shifted(self.granularity.length())
    }

    /// One granule earlier. Stops at the start of the year 0.
    #[must_use]
    pub fn previous(self) -> Datestamp {
        self.shifted(-self.granularity.length())
    }

    fn shifted(self, by: SignedDuration) -> Datestamp {
        let start = self.start.checked_add(by).ok().filter(|start| start.year() >= 0);
        Datestamp { start: start.unwrap_or(self.start), ..self }
    }
}

impl fmt::Display for Datestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.start;
        write!(f, "{:04}-{:02}-{:02}", at.year(), at.month(), at.day())?;
        match self.granularity {
            Granularity::Day => Ok(()),
            Granularity::Second => write!(f, "T{:02}:{:02}:{:02}Z", at.hour(), at.minute(), at.second()),
        }
    }
}

fn number(digits: &[u8]) -> Option<i16> {
    digits.iter().try_fold(0_i16, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i16::from(b - b'0')))
}

fn day(text: &[u8]) -> Option<Date> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    Date::new(number(&text[..4])?, number(&text[5..7])? as i8, number(&text[8..])? as i8).ok()
}

fn clock(date: Date, hms: &[u8]) -> Option<DateTime> {
    if hms[2] != b':' || hms[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&hms[..2])?, number(&hms[3..5])?, number(&hms[6..])?);
    // A leap second is the second before it here, as in Unix time.
    let second = if second == 60 { 59 } else { second };
    DateTime::new(date.year(), date.month(), date.day(), hour as i8, minute as i8, second as i8, 0).ok()
}

/// `+02:00`, `-0300`; anything else is taken for UTC.
fn offset(text: &[u8]) -> SignedDuration {
    let (sign, rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return SignedDuration::ZERO,
    };
    let minutes = match rest.len() {
        4 => number(&rest[..2]).zip(number(&rest[2..])),
        5 if rest[2] == b':' => number(&rest[..2]).zip(number(&rest[3..])),
        _ => None,
    };
    minutes.map_or(SignedDuration::ZERO, |(hours, minutes)| {
        SignedDuration::from_mins(sign * (i64::from(hours) * 60 + i64::from(minutes)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_forms_and_only_they_are_exact() {
        for (text, granularity) in [
            ("2002-06-01", Granularity::Day),
            ("0001-01-01", Granularity::Day),
            ("2000-02-29T23:59:59Z", Granularity::Second),
        ] {
            let stamp = Datestamp::parse(text).unwrap();
            assert_eq!((stamp.to_string().as_str(), stamp.granularity()), (text, granularity));
        }
        for text in [
            "",
            "2002",
            "2002-13-01",
            "2001-02-29",
            "2002-06-01T10:00Z",
            "2002-06-01T10:00:00",
            "2002-06-01T24:00:00Z",
        ] {
            assert_eq!(Datestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_repositories_send_is_understood() {
        for (text, means) in [
            (" 2002-06-01T10:20:30.123456+00:00 ", "2002-06-01T10:20:30Z"),
            ("2002-06-01T10:20:30+02:00", "2002-06-01T08:20:30Z"),
            ("2002-06-01T00:20:30-0130", "2002-06-01T01:50:30Z"),
            ("2002-06-01 10:20:30", "2002-06-01T10:20:30Z"),
            ("2002-06-01T10:20Z", "2002-06-01T10:20:00Z"),
            ("2002-06-01T10:20:30.5Z", "2002-06-01T10:20:30Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2002-06-01Tsoon", "2002-06-01"),
            ("2002-06-01T", "2002-06-01"),
            ("2002-06-01Z", "2002-06-01"),
        ] {
            assert_eq!(Datestamp::parse_lenient(text).unwrap().to_string(), means, "{text}");
        }
        for text in ["yesterday", "", "01/06/2002", "2002-06-3", "é002-06-01"] {
            assert_eq!(Datestamp::parse_lenient(text), None, "{text}");
        }
    }

    #[test]
    fn a_granule_is_a_day_or_a_second() {
        for (text, previous, next, last) in [
            ("2000-03-01", "2000-02-29", "2000-03-02", "2000-03-01T23:59:59Z"),
            ("2001-01-01T00:00:00Z", "2000-12-31T23:59:59Z", "2001-01-01T00:00:01Z", "2001-01-01T00:00:00Z"),
            ("0000-01-01", "0000-01-01", "0000-01-02", "0000-01-01T23:59:59Z"),
            ("9999-12-31", "9999-12-30", "9999-12-31", "9999-12-31T23:59:59Z"),
        ] {
            let stamp = Datestamp::parse(text).unwrap();
            assert_eq!(stamp.previous().to_string(), previous);
            assert_eq!(stamp.next().to_string(), next);
            assert_eq!(stamp.last_second().to_string(), last);
        }
        let second = Datestamp::parse("2026-11-16T04:05:06Z").unwrap();
        assert_eq!(second.to_granularity(Granularity::Day).to_string(), "2026-11-16");
        assert_eq!(
            second.to_granularity(Granularity::Day).to_granularity(Granularity::Second).to_string(),
            "2026-11-16T00:00:00Z"
        );
    }
}
