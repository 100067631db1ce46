//! Quantities as people write them: `30s`, `1h 30m`, `2GiB`, `500 MB`. In settings, on the command line, in output.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time written with units (`ms`, `s`, `m`, `h`, `d`); a bare number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

/// A number of bytes written with units (`B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`); bare is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Why a quantity could not be read; names what was given and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is not a {noun}: write {wanted}")]
pub struct QuantityError {
    given: String,
    noun: &'static str,
    wanted: &'static str,
}

const PERIOD_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl Period {
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl Size {
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }
}

impl FromStr for Period {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        sum(text, PERIOD_UNITS).map(|ms| Self(Duration::from_millis(ms))).ok_or_else(|| QuantityError {
            given: text.to_owned(),
            noun: "length of time",
            wanted: "a number with a unit, such as 500ms, 30s, 5m, 1h 30m or 7d",
        })
    }
}

impl FromStr for Size {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        sum(text, SIZE_UNITS).map(Self).ok_or_else(|| QuantityError {
            given: text.to_owned(),
            noun: "size",
            wanted: "a number with a unit, such as 512B, 100kB, 64MiB or 2GiB",
        })
    }
}

/// Adds up `number unit` pairs; `None` when anything else stands there or the sum does not fit.
fn sum(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = units.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(times(number, factor)?)?;
        rest = after.trim_start();
    }
    Some(total)
}

/// `number × factor`, exact for whole numbers, rounded to the unit for fractions such as `1.5GiB`.
fn times(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && value < u64::MAX as f64).then(|| value.round() as u64)
}

impl fmt::Display for Period {
    /// The shortest exact form: `1h 30m`, `90s` becomes `1m 30s`, zero is `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis() as u64;
        if rest == 0 {
            return f.write_str("0s");
        }
        let mut gap = "";
        for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
            if rest >= factor {
                write!(f, "{gap}{}{unit}", rest / factor)?;
                rest %= factor;
                gap = " ";
            }
        }
        Ok(())
    }
}

impl fmt::Display for Size {
    /// Exact where a unit divides it (`2GiB`, `500MB`), else with one decimal in the largest binary unit (`1.4MiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let fits = |factor: u64| bytes >= factor && bytes.is_multiple_of(factor) && bytes / factor < 10_000;
        if let Some((unit, factor)) = SIZE_UNITS.iter().rev().find(|(_, factor)| fits(*factor)) {
            return write!(f, "{}{unit}", bytes / factor);
        }
        let (unit, factor) =
            SIZE_UNITS[6..].iter().rev().find(|(_, factor)| bytes >= *factor).unwrap_or(&("B", 1));
        if *factor == 1 {
            write!(f, "{bytes}B")
        } else {
            write!(f, "{:.1}{unit}", bytes as f64 / *factor as f64)
        }
    }
}

impl Period {
    fn exact(self) -> String {
        self.to_string()
    }
}

impl Size {
    /// As people see it where that is exact, else in bytes: settings that are written are read again.
    fn exact(self) -> String {
        let shown = self.to_string();
        if shown.parse() == Ok(self) { shown } else { format!("{}B", self.0) }
    }
}

macro_rules! as_text {
    ($type:ty, $pattern:literal, $name:literal, $description:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.exact())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "title": $description })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

as_text!(Period, r"^\s*[0-9.]+\s*(ms|s|m|min|h|d)", "Period", "length of time");
as_text!(Size, r"^\s*[0-9.]+\s*(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)", "Size", "size");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn large_decimal_sizes_are_shown_in_their_own_unit() {
        assert_eq!(Size(10_000_000_000).to_string(), "10GB");
        assert_eq!(Size(123_456_789).to_string(), "117.7MiB");
        assert_eq!(serde_json::to_string(&Size(123_456_789)).unwrap(), "\"123456789B\"");
    }

    #[test]
    fn periods_read_as_written() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("1h 30m", Some(5_400_000)),
            ("1h30m", Some(5_400_000)),
            ("500 ms", Some(500)),
            ("1.5s", Some(1_500)),
            ("0s", Some(0)),
            ("7d", Some(604_800_000)),
            ("30", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1y", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(text.parse::<Period>().ok().map(|p| p.0.as_millis()), millis, "{text}");
        }
    }

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in [
            ("2GiB", Some(2 << 30)),
            ("100 MB", Some(100_000_000)),
            ("1.5KiB", Some(1536)),
            ("0B", Some(0)),
            ("10", None),
            ("10 bananas", None),
            ("18446744073709551615B", Some(u64::MAX)),
            ("18446744073709551616B", None),
            ("20000000TiB", None),
        ] {
            assert_eq!(text.parse::<Size>().ok().map(|s| s.0), bytes, "{text}");
        }
    }

    #[test]
    fn the_refusal_says_what_would_do() {
        let error = "30".parse::<Period>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"30\" is not a length of time: write a number with a unit, such as 500ms, 30s, 5m, 1h 30m or 7d"
        );
    }

    #[test]
    fn sizes_show_as_people_read_them() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (2 << 30, "2GiB"),
            (500_000_000, "500MB"),
            (1_468_007, "1.4MiB"),
            (999, "999B"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_period_shown_is_read_back_equal(millis in 0_u64..10_000_000_000_000) {
            let period = Period::from_millis(millis);
            prop_assert_eq!(period.to_string().parse::<Period>().unwrap(), period);
        }

        #[test]
        fn a_size_written_is_read_back_equal(bytes in 0_u64..1 << 53) {
            let written = serde_json::to_string(&Size(bytes)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Size>(&written).unwrap(), Size(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<Period>();
            let _ = text.parse::<Size>();
        }
    }
}
