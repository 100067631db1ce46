//! Filters. The same text means three things in three dialects, so each has its own reader.

use std::cell::RefCell;

use regex::{Regex, RegexBuilder};

use super::field::Field;
use crate::view::CaptureView;

/// Leaves captures out by one of their fields.
#[derive(Debug, Clone)]
pub struct Filter {
    /// `None`: the whole line.
    field: Option<Field>,
    negated: bool,
    test: Test,
    /// What an absent field is searched as.
    absent: &'static str,
}

#[derive(Debug, Clone)]
enum Test {
    Equals(String),
    Contains(String),
    Matches(Regex),
}

/// A filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{filter}\" is not a filter: {why}")]
pub struct BadFilter {
    pub filter: String,
    pub why: String,
}

/// What a pattern may take in memory once compiled. Generous for people, too little for attacks.
const PATTERN_BYTES_MAX: usize = 1 << 20;

fn pattern(filter: &str, text: &str, whole: bool) -> Result<Test, BadFilter> {
    let anchored = if whole { format!("^(?:{text})$") } else { format!("^(?:{text})") };
    RegexBuilder::new(&anchored)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map(Test::Matches)
        .map_err(|error| BadFilter { filter: filter.to_owned(), why: error.to_string() })
}

fn halves(text: &str) -> Option<(Field, &str)> {
    text.split_once(':').map(|(name, value)| (Field::parse(name), value))
}

impl Filter {
    /// Internet Archive: `[!]field:regex`, matching the whole field (`-` if it is absent); without a field the whole line.
    pub fn ia(text: &str) -> Result<Self, BadFilter> {
        const NAMES: &[&str] = &[
            "urlkey",
            "timestamp",
            "original",
            "mimetype",
            "statuscode",
            "digest",
            "length",
            "redirect",
            "robotflags",
        ];
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let named = rest.split_once(':').filter(|(name, _)| NAMES.contains(name));
        let (field, value) = named.map_or((None, rest), |(name, value)| (Some(Field::parse(name)), value));
        Ok(Self { field, negated, test: pattern(text, value, true)?, absent: "-" })
    }

    /// pywb: `[!]field:part`, `[!]=field:whole`, `[!]~field:regex` from the beginning of the field. An absent field is empty.
    pub fn pywb(text: &str) -> Result<Self, BadFilter> {
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (mark, rest) = match rest.as_bytes().first() {
            Some(mark @ (b'=' | b'~')) => (*mark, &rest[1..]),
            _ => (0, rest),
        };
        let (field, value) = halves(rest).map_or((None, rest), |(field, value)| (Some(field), value));
        let test = match mark {
            b'=' => Test::Equals(value.to_owned()),
            b'~' => pattern(text, value, false)?,
            _ => Test::Contains(value.to_owned()),
        };
        Ok(Self { field, negated, test, absent: "" })
    }

    /// OutbackCDX: `[!]field:regex` matching the whole field, `~[!]field:part`.
    pub fn outback(text: &str) -> Result<Self, BadFilter> {
        let (contains, rest) = text.strip_prefix('~').map_or((false, text), |rest| (true, rest));
        let (negated, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest));
        let (field, value) = halves(rest).ok_or_else(|| BadFilter {
            filter: text.to_owned(),
            why: "it names no field; write field:pattern".to_owned(),
        })?;
        let test = if contains { Test::Contains(value.to_owned()) } else { pattern(text, value, true)? };
        Ok(Self { field: Some(field), negated, test, absent: "-" })
    }

    /// Whether a capture stays.
    pub fn admits(&self, view: &CaptureView<'_>) -> bool {
        thread_local! {
            static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
        }
        TEXT.with_borrow_mut(|text| {
            text.clear();
            match &self.field {
                Some(field) => {
                    if !field.write(view, text) {
                        text.push_str(self.absent);
                    }
                }
                None => whole_line(view, text),
            }
            let matched = match &self.test {
                Test::Equals(value) => text == value,
                Test::Contains(value) => text.contains(value.as_str()),
                Test::Matches(regex) => regex.is_match(text),
            };
            matched != self.negated
        })
    }
}

fn whole_line(view: &CaptureView<'_>, out: &mut String) {
    use Field as F;
    for field in [F::UrlKey, F::Timestamp, F::Url, F::Mime, F::Status, F::Digest, F::Length] {
        if !out.is_empty() {
            out.push(' ');
        }
        if !field.write(view, out) {
            out.push('-');
        }
    }
}
