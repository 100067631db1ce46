//! Rows to values. A row that cannot be read names its table's column, never its content.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::error::{Error, Fail};

/// Reading columns by name.
pub(crate) trait Columns {
    fn text(&self, column: &'static str) -> Result<String, Fail>;
    fn text_or_none(&self, column: &'static str) -> Result<Option<String>, Fail>;
    fn int(&self, column: &'static str) -> Result<i64, Fail>;
    fn int_or_none(&self, column: &'static str) -> Result<Option<i64>, Fail>;

    fn time(&self, column: &'static str) -> Result<Timestamp, Fail> {
        self.int(column).and_then(|micros| from_micros(column, micros))
    }

    fn time_or_none(&self, column: &'static str) -> Result<Option<Timestamp>, Fail> {
        self.int_or_none(column)?.map(|micros| from_micros(column, micros)).transpose()
    }

    fn parsed<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<T, Fail> {
        self.text(column)?.parse().map_err(|error| unreadable(column, &error))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<T, Fail> {
        serde_json::from_str(&self.text(column)?).map_err(|error| unreadable(column, &error))
    }

    fn json_or_none<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, Fail> {
        let text = self.text_or_none(column)?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| unreadable(column, &error))).transpose()
    }
}

impl Columns for AnyRow {
    fn text(&self, column: &'static str) -> Result<String, Fail> {
        Ok(self.try_get(column)?)
    }

    fn text_or_none(&self, column: &'static str) -> Result<Option<String>, Fail> {
        Ok(self.try_get(column)?)
    }

    fn int(&self, column: &'static str) -> Result<i64, Fail> {
        Ok(self.try_get(column)?)
    }

    fn int_or_none(&self, column: &'static str) -> Result<Option<i64>, Fail> {
        Ok(self.try_get(column)?)
    }
}

/// Times are stored as microseconds since 1970, UTC.
pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

pub(crate) fn micros_or_none(time: Option<Timestamp>) -> Option<i64> {
    time.map(micros)
}

/// A length of time in the same unit; one too long to count ends with the calendar.
pub(crate) fn length(period: std::time::Duration) -> i64 {
    // Half the range, so that adding it to any time the calendar knows does not overflow.
    i64::try_from(period.as_micros()).unwrap_or(i64::MAX).min(LENGTH_MAX)
}

/// About 7,900 years: together with today it stays within the calendar.
const LENGTH_MAX: i64 = 250_000_000_000_000_000;

fn from_micros(column: &'static str, micros: i64) -> Result<Timestamp, Fail> {
    Timestamp::from_microsecond(micros).map_err(|error| unreadable(column, &error))
}

fn unreadable(column: &'static str, reason: &dyn Display) -> Fail {
    Error::Row { column, reason: reason.to_string() }.into()
}
