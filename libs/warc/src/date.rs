//! Dates as archives write them: any precision, any damage.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// How much of a date was stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// Only the year.
    Year,
    /// Up to the month.
    Month,
    /// Up to the day.
    Day,
    /// Up to the hour.
    Hour,
    /// Up to the minute.
    Minute,
    /// Up to the second.
    Second,
    /// With this many digits of a second.
    Fraction(u8),
}

/// A moment, in UTC, with the precision it was stated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    time: Timestamp,
    precision: Precision,
    exact: bool,
}

impl Date {
    /// Reads the W3CDTF of `WARC-Date` (a year up to nanoseconds, `Z` or an offset) and the digits of ARC
    /// (padded with zeros or cut to 14). `None` if not even a year, month and day make sense.
    pub fn parse(text: &[u8]) -> Option<Date> {
        let text = text.trim_ascii();
        // The two common forms.
        match text.len() {
            14 if text.iter().all(u8::is_ascii_digit) => return from_digits(text, true),
            20 if text[4] == b'-' && text[10] == b'T' && text[19] == b'Z' => {
                if let Some(date) = from_iso(text) {
                    return Some(date);
                }
            }
            _ => {}
        }
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits >= 5 || (digits == 4 && text.len() == 4) {
            return from_digits(&text[..digits], digits == text.len());
        }
        from_iso(text)
    }

    /// The moment.
    pub fn timestamp(&self) -> Timestamp {
        self.time
    }

    /// How much of it was stated.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Whether the text was read in full. Dates with too many digits or text behind them are not.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The 14 digits of CDX and Wayback: `YYYYMMDDhhmmss`.
    pub fn digits14(&self) -> [u8; 14] {
        let civil = self.civil();
        let mut out = [b'0'; 14];
        let mut put = |at: usize, width: usize, mut value: u32| {
            for digit in out[at..at + width].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, civil.year().unsigned_abs().into());
        for (at, value) in [
            (4, civil.month()),
            (6, civil.day()),
            (8, civil.hour()),
            (10, civil.minute()),
            (12, civil.second()),
        ] {
            put(at, 2, value.unsigned_abs().into());
        }
        out
    }

    fn civil(&self) -> DateTime {
        TimeZone::UTC.to_datetime(self.time)
    }
}

impl From<Timestamp> for Date {
    /// Takes the moment to the microsecond, the finest that clocks of crawlers mean.
    fn from(time: Timestamp) -> Date {
        let micros = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
        Date { time: micros, precision: Precision::Fraction(6), exact: true }
    }
}

/// As `WARC-Date` writes it, in the stated precision but at least to the second.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.precision {
            Precision::Fraction(digits) => write!(f, "{:.*}", usize::from(digits), self.time),
            _ => write!(f, "{:.0}", self.time),
        }
    }
}

fn number(digits: &[u8]) -> Option<i16> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits.iter().try_fold(0_i16, |sum, b| sum.checked_mul(10)?.checked_add(i16::from(b - b'0')))
}

fn build(parts: [i16; 6], nanos: i32, offset: i64, precision: Precision, exact: bool) -> Option<Date> {
    let [year, month, day, hour, minute, second] = parts;
    let small = |value: i16| i8::try_from(value).ok();
    // A leap second is told as the second before it.
    let second = if second == 60 { 59 } else { second };
    let civil =
        DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, nanos)
            .ok()?;
    let time = TimeZone::UTC.to_timestamp(civil).ok()?;
    let time =
        if offset == 0 { time } else { time.checked_sub(jiff::SignedDuration::from_secs(offset)).ok()? };
    Some(Date { time, precision, exact })
}

/// Digits without separators. Missing ones are zero, but a month or day that is zero becomes one.
fn from_digits(digits: &[u8], whole: bool) -> Option<Date> {
    let mut padded = [b'0'; 14];
    let used = digits.len().min(14);
    padded[..used].copy_from_slice(&digits[..used]);
    let part = |from: usize, to: usize| number(&padded[from..to]);
    let parts =
        [part(0, 4)?, part(4, 6)?.max(1), part(6, 8)?.max(1), part(8, 10)?, part(10, 12)?, part(12, 14)?];
    let precision = match used {
        ..=5 => Precision::Year,
        6..=7 => Precision::Month,
        8..=9 => Precision::Day,
        10..=11 => Precision::Hour,
        12..=13 => Precision::Minute,
        _ => Precision::Second,
    };
    if !(1900..=2999).contains(&parts[0]) {
        return None;
    }
    // 17 digits are 14 and milliseconds; anything else beyond 14 is noise.
    if let (17, Some(millis)) = (digits.len(), digits.get(14..17).and_then(number)) {
        return build(parts, i32::from(millis) * 1_000_000, 0, Precision::Fraction(3), whole);
    }
    let exact = whole && matches!(digits.len(), 4 | 6 | 8 | 10 | 12 | 14);
    build(parts, 0, 0, precision, exact).or_else(|| {
        // The time of day is nonsense, the day may still be good.
        build([parts[0], parts[1], parts[2], 0, 0, 0], 0, 0, Precision::Day, false)
    })
}

/// `YYYY-MM-DDThh:mm:ss.fffffffffZ` cut off anywhere.
fn from_iso(text: &[u8]) -> Option<Date> {
    let mut parts = [0_i16, 1, 1, 0, 0, 0];
    let mut precision = Precision::Year;
    let mut rest = text;
    let after = [&b"-"[..], b"-", b"Tt ", b":", b":", b"."];
    let names = [
        Precision::Year,
        Precision::Month,
        Precision::Day,
        Precision::Hour,
        Precision::Minute,
        Precision::Second,
    ];
    for (at, separators) in after.iter().enumerate() {
        let width = if at == 0 { 4 } else { 2 };
        let Some(value) = rest.get(..width).and_then(number) else {
            // Cut off in the middle of a part: what came before stands.
            if at == 0 {
                return None;
            }
            return build(parts, 0, 0, precision, false);
        };
        parts[at] = value;
        precision = names[at];
        rest = &rest[width..];
        let Some(&next) = rest.first() else {
            return build(parts, 0, 0, precision, at <= 2);
        };
        if !separators.contains(&next) {
            let (offset, exact) = zone(rest);
            return build(parts, 0, offset, precision, exact && at >= 3);
        }
        rest = &rest[1..];
    }
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut nanos = 0_i32;
    for at in 0..9 {
        nanos = nanos * 10 + rest.get(at).filter(|_| at < digits).map_or(0, |b| i32::from(b - b'0'));
    }
    let (offset, exact) = zone(&rest[digits..]);
    let precision = if digits == 0 { Precision::Second } else { Precision::Fraction(digits.min(9) as u8) };
    build(parts, nanos, offset, precision, exact && (1..=9).contains(&digits))
}

/// A zone designator: seconds east of UTC, and whether that was all there was.
fn zone(text: &[u8]) -> (i64, bool) {
    match text {
        b"Z" | b"z" => (0, true),
        [sign @ (b'+' | b'-'), h1, h2, rest @ ..] => {
            let minutes = rest.strip_prefix(b":").unwrap_or(rest);
            let (Some(hours), Some(minutes)) =
                (number(&[*h1, *h2]), number(minutes).or(minutes.is_empty().then_some(0)))
            else {
                return (0, false);
            };
            let east = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            (if *sign == b'-' { -east } else { east }, hours < 24 && minutes < 60)
        }
        _ => (0, false),
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    #[test]
    fn dates_of_every_form() {
        for (text, expected, exact) in [
            ("2004", "2004-01-01T00:00:00Z", true),
            ("2004-11", "2004-11-01T00:00:00Z", true),
            ("2004-11-05", "2004-11-05T00:00:00Z", true),
            ("2004-11-05T13:34Z", "2004-11-05T13:34:00Z", true),
            ("2004-11-05T13:34:57Z", "2004-11-05T13:34:57Z", true),
            ("2016-01-11T23:24:25.412030Z", "2016-01-11T23:24:25.412030Z", true),
            ("2016-01-11T23:24:25.412030123Z", "2016-01-11T23:24:25.412030123Z", true),
            ("2016-01-11T23:24:25+01:00", "2016-01-11T22:24:25Z", true),
            ("2016-01-11T23:24:25-0130", "2016-01-12T00:54:25Z", true),
            ("2016-01-11T23:24:25", "2016-01-11T23:24:25Z", false),
            ("2016-01-11T23:", "2016-01-11T23:00:00Z", false),
            ("2016-01-11T23:24:25.Z", "2016-01-11T23:24:25Z", false),
            ("2016-01-11T23:24:60Z", "2016-01-11T23:24:59Z", true),
            ("20041105", "2004-11-05T00:00:00Z", true),
            ("2004110513", "2004-11-05T13:00:00Z", true),
            ("200411051334", "2004-11-05T13:34:00Z", true),
            ("20041105133457", "2004-11-05T13:34:57Z", true),
            ("20041105133457123", "2004-11-05T13:34:57.123Z", true),
            ("201512000000000", "2015-12-01T00:00:00Z", false),
            ("2000082305410049", "2000-08-23T05:41:00Z", false),
            ("200009180023002953", "2000-09-18T00:23:00Z", false),
            ("20160211000000jpg", "2016-02-11T00:00:00Z", false),
            ("2000091800230029532000091800", "2000-09-18T00:23:00Z", false),
            ("20040230", "", false),
            ("20041105996000", "2004-11-05T00:00:00Z", false),
            ("deadbeef", "", false),
            ("", "", false),
            ("-", "", false),
            ("99999999999999", "", false),
            ("2016-13-11T23:24:25Z", "", false),
        ] {
            let date = Date::parse(text.as_bytes());
            assert_eq!(date.map(|d| d.to_string()).unwrap_or_default(), expected, "{text}");
            assert_eq!(date.is_some_and(|d| d.is_exact()), exact, "{text}");
        }
    }

    #[test]
    fn fourteen_digits() {
        let date = Date::parse(b"2004-01-05T03:04:07.9Z").unwrap();
        assert_eq!(&date.digits14(), b"20040105030407");
    }
}
