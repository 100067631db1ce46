//! Times of captures as indexes write them: up to 17 digits, `yyyyMMddHHmmssSSS`.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time of one to seventeen digits, or none at all (shown as `-`).
///
/// Ordered by time, and among equal times by how exact they are. Digits that name no day of any calendar are
/// kept: they come from other people's indexes, and the capture exists nevertheless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(u64);

/// Milliseconds are the finest that any index writes.
const DIGITS_MAX: usize = 17;

/// Bits of the number of digits, below the digits themselves.
const DIGITS_BITS: u32 = 5;

impl Stamp {
    /// Before every time.
    pub const MIN: Self = Self(0);
    /// After every time.
    pub const MAX: Self = Self(u64::MAX);

    /// Reads 1 to 17 digits.
    pub fn parse(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > DIGITS_MAX {
            return None;
        }
        Some(Self::pack(padded(text, b'0')?, text.len()))
    }

    /// The earliest time that `text` can mean: `2014` is the first moment of that year.
    pub fn earliest(text: &str) -> Option<Self> {
        Self::parse(text).map(|stamp| Self(stamp.0 & !((1 << DIGITS_BITS) - 1)))
    }

    /// The latest time that `text` can mean: `2014` ends with that year.
    pub fn latest(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > DIGITS_MAX {
            return None;
        }
        Some(Self(padded(text.as_bytes(), b'9')? << DIGITS_BITS | ((1 << DIGITS_BITS) - 1)))
    }

    const fn pack(padded: u64, digits: usize) -> Self {
        Self(padded << DIGITS_BITS | digits as u64)
    }

    /// The number by which stamps sort.
    pub(crate) const fn code(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_code(code: u64) -> Self {
        Self(code)
    }

    const fn padded(self) -> u64 {
        self.0 >> DIGITS_BITS
    }

    /// How many digits were given.
    pub fn digits(self) -> usize {
        ((self.0 & ((1 << DIGITS_BITS) - 1)) as usize).min(DIGITS_MAX)
    }

    /// The first `n` digits as a number, for comparing by year, day or hour.
    pub fn leading(self, n: usize) -> u64 {
        self.padded() / 10u64.pow((DIGITS_MAX - n.min(DIGITS_MAX)) as u32)
    }

    fn fields(self) -> [u64; 6] {
        let mut rest = self.padded() / 1000;
        let mut fields = [0; 6];
        for field in fields[1..].iter_mut().rev() {
            *field = rest % 100;
            rest /= 100;
        }
        fields[0] = rest;
        fields
    }

    /// Seconds on a line long enough for every four-digit year. Fields out of their range count on: the 32nd of
    /// January is the 1st of February.
    pub fn seconds(self) -> i64 {
        let [year, month, day, hour, minute, second] = self.fields().map(|field| field as i64);
        // Days from the civil calendar, years beginning in March so that the leap day is the last.
        let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
        let day_of_year = (153 * month + 2) / 5 + day - 1;
        let days =
            year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year;
        days * 86_400 + hour * 3600 + minute * 60 + second
    }

    /// The second of a moment, in 14 digits. Years before the first count as year 0.
    pub fn of(moment: Timestamp) -> Self {
        let at = TimeZone::UTC.to_datetime(moment);
        let fields = [at.month(), at.day(), at.hour(), at.minute(), at.second()];
        let year = at.year().max(0) as u64;
        let number = fields.into_iter().fold(year, |number, field| number * 100 + field as u64);
        Self::pack(number * 1000, 14)
    }

    /// A dense number for a 14-digit time whose fields are in range; it grows with the time.
    pub(crate) fn dense(self) -> Option<i64> {
        let [year, month, day, hour, minute, second] = self.fields();
        let plain = self.digits() == 14
            && self.padded().is_multiple_of(1000)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        plain.then(|| {
            let days = (year * 12 + month - 1) * 31 + day - 1;
            (((days * 24 + hour) * 60 + minute) * 61 + second) as i64
        })
    }

    /// The inverse of [`dense`](Self::dense), for any number that it can give.
    pub(crate) fn from_dense(dense: i64) -> Option<Self> {
        let mut rest = u64::try_from(dense).ok()?;
        let mut digit = |radix: u64| {
            let field = rest % radix;
            rest /= radix;
            field
        };
        let (second, minute, hour, day, month) = (digit(61), digit(60), digit(24), digit(31), digit(12));
        if rest > 9999 {
            return None;
        }
        let fields = [month + 1, day + 1, hour, minute, second];
        let number = fields.into_iter().fold(rest, |number, field| number * 100 + field);
        Some(Self::pack(number * 1000, 14))
    }
}

fn padded(text: &[u8], fill: u8) -> Option<u64> {
    let digits = text.iter().copied().chain(std::iter::repeat_n(fill, DIGITS_MAX - text.len()));
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    Some(number)
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; DIGITS_MAX];
        f.pad(self.write(&mut digits))
    }
}

impl Stamp {
    /// The digits, written into `buffer`.
    pub(crate) fn write(self, buffer: &mut [u8; DIGITS_MAX]) -> &str {
        let mut rest = self.padded();
        for place in buffer.iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        match self.digits() {
            0 => "-",
            digits => std::str::from_utf8(&buffer[..digits]).unwrap_or("-"),
        }
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stamp({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_times_mean_the_whole_span() {
        let at = Stamp::parse("20140228120000").unwrap();
        for (from, to, inside) in [
            ("2014", "2014", true),
            ("2014022812", "20140228", true),
            ("2015", "2016", false),
            ("201402281200005", "2", false),
        ] {
            let (from, to) = (Stamp::earliest(from).unwrap(), Stamp::latest(to).unwrap());
            assert_eq!(from <= at && at <= to, inside, "{from:?} {to:?}");
        }
    }

    #[test]
    fn seconds_follow_the_calendar() {
        let seconds = |text| Stamp::parse(text).unwrap().seconds();
        assert_eq!(seconds("20000301000000") - seconds("20000228000000"), 2 * 86_400);
        assert_eq!(seconds("21000301000000") - seconds("21000228000000"), 86_400);
        assert_eq!(seconds("20260101000000") - seconds("20251231235959"), 1);
        assert_eq!(seconds("20260101000001999"), seconds("20260101000001"));
    }

    #[test]
    fn moments_become_digits() {
        for (moment, digits) in [
            ("1970-01-01T00:00:00.999Z", "19700101000000"),
            ("2000-02-29T01:00:00+02:00", "20000228230000"),
            ("2016-12-31T23:59:59Z", "20161231235959"),
            ("-000001-05-06T07:08:09Z", "00000506070809"),
        ] {
            assert_eq!(Stamp::of(moment.parse().unwrap()).to_string(), digits, "{moment}");
        }
    }

    proptest! {
        #[test]
        fn digits_are_shown_as_given(text in "[0-9]{1,17}") {
            let stamp = Stamp::parse(&text).unwrap();
            prop_assert_eq!(stamp.to_string(), text);
            if let Some(dense) = stamp.dense() {
                prop_assert_eq!(Stamp::from_dense(dense), Some(stamp));
            }
        }

        #[test]
        fn stamps_sort_as_their_text_padded(a in "[0-9]{1,17}", b in "[0-9]{1,17}") {
            let pad = |text: &str| (format!("{text:0<17}"), text.len());
            prop_assert_eq!(Stamp::parse(&a).cmp(&Stamp::parse(&b)), pad(&a).cmp(&pad(&b)));
        }

        #[test]
        fn dense_numbers_grow_with_time(a in 0u64..200_000_000, b in 0u64..200_000_000) {
            let stamp = |n: u64| Stamp::from_dense(60_000_000_000 + n as i64 * 50).unwrap();
            prop_assert_eq!(a.cmp(&b), stamp(a).cmp(&stamp(b)));
        }
    }
}
