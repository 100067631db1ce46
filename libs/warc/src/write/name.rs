//! The names of files, from a template.

use std::fmt::{self, Write as _};

use crate::date::Date;

/// A template such as `{prefix}-{timestamp17}-{serial:5}-{host}`. The suffix of the compression is added.
///
/// `{timestamp14}` and `{timestamp17}` are the digits of the moment the file was opened, `{serial}` and
/// `{serial:N}` the number of the file in its series; every other name is looked up in the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Timestamp14,
    Timestamp17,
    Serial(usize),
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// A `{` without `}` or the other way round.
    Braces,
    /// A name that has no value.
    Unknown(String),
    /// The width of a serial number that is none.
    Width(String),
    /// A character that must not be in a file name.
    Character(char),
    /// Without `{serial}` two files of a series could have the same name.
    NoSerial,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Braces => f.write_str("the braces of the file name template do not match"),
            NameError::Unknown(name) => {
                write!(f, "the file name template names {name:?}, which has no value")
            }
            NameError::Width(text) => write!(f, "{text:?} is no width for the serial number"),
            NameError::Character(c) => write!(f, "{c:?} must not be in a file name"),
            NameError::NoSerial => f.write_str("the file name template has no {serial}"),
        }
    }
}

impl std::error::Error for NameError {}

impl NameTemplate {
    /// Reads a template and puts the values in.
    pub fn new(template: &str, values: &[(&str, &str)]) -> Result<NameTemplate, NameError> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find(['{', '}']) {
            let (text, after) = rest.split_at(open);
            let Some(inner) = after.strip_prefix('{') else {
                return Err(NameError::Braces);
            };
            let (name, after) = inner.split_once('}').ok_or(NameError::Braces)?;
            parts.push(Part::Text(text.to_owned()));
            parts.push(match name.split_once(':') {
                Some(("serial", width)) => {
                    let width = width.parse().ok().filter(|width| (1..=20).contains(width));
                    Part::Serial(width.ok_or_else(|| NameError::Width(name.to_owned()))?)
                }
                _ if name == "serial" => Part::Serial(5),
                _ if name == "timestamp14" => Part::Timestamp14,
                _ if name == "timestamp17" => Part::Timestamp17,
                _ => {
                    let value = values.iter().find(|(key, _)| *key == name);
                    let (_, value) = value.ok_or_else(|| NameError::Unknown(name.to_owned()))?;
                    Part::Text((*value).to_owned())
                }
            });
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        for part in &parts {
            let Part::Text(text) = part else { continue };
            if let Some(bad) =
                text.chars().find(|c| matches!(c, '/' | '\\') || c.is_control() || c.is_whitespace())
            {
                return Err(NameError::Character(bad));
            }
        }
        if !parts.iter().any(|part| matches!(part, Part::Serial(_))) {
            return Err(NameError::NoSerial);
        }
        Ok(NameTemplate(parts))
    }

    /// The name of a file, without the suffix of the compression.
    pub fn name(&self, opened: Date, serial: u64) -> String {
        let digits = String::from_utf8_lossy(&opened.digits14()).into_owned();
        let mut name = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Timestamp14 => name.push_str(&digits),
                Part::Timestamp17 => {
                    let millis = opened.timestamp().subsec_millisecond();
                    let _ = write!(name, "{digits}{:03}", millis.max(0));
                }
                Part::Serial(width) => {
                    let _ = write!(name, "{serial:0width$}");
                }
            }
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let values = [("prefix", "WEB"), ("host", "crawler1")];
        let opened = Date::parse(b"2026-01-02T03:04:05.678901Z").unwrap();
        for (template, expected) in [
            ("{prefix}-{timestamp17}-{serial:5}-{host}", Ok("WEB-20260102030405678-00042-crawler1")),
            ("{timestamp14}_{serial}", Ok("20260102030405_00042")),
            ("a{serial:1}b", Ok("a42b")),
            ("{prefix}", Err(NameError::NoSerial)),
            ("{other}{serial}", Err(NameError::Unknown("other".into()))),
            ("{serial:x}", Err(NameError::Width("serial:x".into()))),
            ("{serial", Err(NameError::Braces)),
            ("}{serial}", Err(NameError::Braces)),
            ("a/{serial}", Err(NameError::Character('/'))),
        ] {
            let name = NameTemplate::new(template, &values).map(|template| template.name(opened, 42));
            assert_eq!(name.as_deref(), expected.as_ref().copied(), "{template}");
        }
    }
}
