//! One line of crawl.log: what became of one URI.
//!
//! ```text
//! 2026-11-16T00:51:01.123Z   200       5120 http://example.com/ - - text/html #007 20261116005100900+81 sha1:3I42… http://example.com/ 2t {"contentSize":5403,…}
//! ```
//!
//! Thirteen columns apart by blanks, the second and third right-aligned; `-` stands for nothing. Readers split on
//! runs of blanks, so no column ever has one inside, whatever servers send.

use std::borrow::Cow;

use jiff::Timestamp;

use super::annotations;
use super::column;
use super::extra::Extra;
use super::time;
use crate::hops::Hops;
use crate::status::FetchStatus;

/// When the fetch began and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub began: Timestamp,
    pub millis: u64,
}

/// One finished URI, in the columns of crawl.log. Written from it and read back into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlLine<'a> {
    /// When the line was written, not when the page was fetched.
    pub logged: Timestamp,
    pub status: FetchStatus,
    /// Bytes of the body, without headers; nothing when there was no answer.
    pub size: Option<u64>,
    /// As fetched.
    pub url: Cow<'a, str>,
    pub hops: Cow<'a, Hops>,
    pub via: Option<Cow<'a, str>>,
    /// May carry parameters when it is written; they are cut off. Empty is written `no-type`.
    pub mime: Cow<'a, str>,
    pub worker: u32,
    pub fetched: Option<Fetched>,
    /// `sha1:` and base32 of the payload.
    pub digest: Option<Cow<'a, str>>,
    /// The seed it descends from.
    pub source: Option<Cow<'a, str>>,
    /// Joined by commas, as [`super::Annotations`] makes them; empty when there are none.
    pub annotations: Cow<'a, str>,
    pub extra: Option<Extra<'a>>,
}

/// A line that is not one of crawl.log, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("a line of crawl.log has at least 11 columns, this one has {0}")]
    Short(usize),
    #[error("column {column} ({name}) of a line of crawl.log cannot be {value:?}")]
    Column { column: u8, name: &'static str, value: String },
}

/// How much of a faulty column an error shows, in bytes.
const SHOWN_BYTES_MAX: usize = 80;

impl<'a> CrawlLine<'a> {
    /// Appends the line and its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        time::push_millis(out, self.logged);
        out.push(b' ');
        column::push_right(out, i64::from(self.status.0), 5);
        out.push(b' ');
        match self.size {
            Some(size) => column::push_right(out, size.min(i64::MAX as u64) as i64, 10),
            None => column::push_padded(out, b"-", 10),
        }
        out.push(b' ');
        column::push(out, &self.url);
        out.push(b' ');
        if self.hops.is_seed() {
            out.push(b'-');
        } else {
            use std::io::Write as _;
            // Writing to memory cannot fail.
            let _ = write!(out, "{}", self.hops);
        }
        out.push(b' ');
        column::push(out, self.via.as_deref().unwrap_or_default());
        out.push(b' ');
        column::push(out, mime_column(&self.mime));
        out.extend_from_slice(b" #");
        for (floor, zeros) in [(10, "00"), (100, "0")] {
            if self.worker < floor {
                out.extend_from_slice(zeros.as_bytes());
                break;
            }
        }
        column::push_number(out, u64::from(self.worker));
        out.push(b' ');
        match self.fetched {
            Some(Fetched { began, millis }) => {
                time::push_seventeen(out, began);
                out.push(b'+');
                column::push_number(out, millis);
            }
            None => out.push(b'-'),
        }
        out.push(b' ');
        column::push(out, self.digest.as_deref().unwrap_or_default());
        out.push(b' ');
        column::push(out, self.source.as_deref().unwrap_or_default());
        out.push(b' ');
        column::push(out, &self.annotations);
        if let Some(extra) = &self.extra {
            out.push(b' ');
            extra.push(out);
        }
        out.push(b'\n');
    }

    /// Reads a line of ours or of Heritrix, with or without the extra column.
    pub fn parse(line: &'a str) -> Result<CrawlLine<'a>, LineError> {
        let (columns, rest) = split(line)?;
        let [logged, status, size, url, hops, via, mime, worker, fetched, digest, source] = columns;
        let (annotations, extra) = tail(rest);
        Ok(CrawlLine {
            logged: read(1, "log time", logged, |text| text.parse().ok())?,
            status: FetchStatus(read(2, "fetch status", status, |text| text.parse().ok())?),
            size: optional(3, "size", size, |text| text.parse().ok())?,
            url: Cow::Borrowed(url),
            hops: Cow::Owned(read(5, "discovery path", hops, |text| text.parse().ok())?),
            via: column::value(via).map(Cow::Borrowed),
            mime: Cow::Borrowed(mime),
            worker: read(8, "worker", worker, |text| text.strip_prefix('#')?.parse().ok())?,
            fetched: optional(9, "fetch time", fetched, fetch_time)?,
            digest: column::value(digest).map(Cow::Borrowed),
            source: column::value(source).map(Cow::Borrowed),
            annotations: Cow::Borrowed(annotations),
            extra,
        })
    }

    /// Headers and body in bytes, from whichever column says it; the body alone when none does.
    pub fn content_size(&self) -> u64 {
        let extra = self.extra.as_ref().and_then(|extra| extra.content_size);
        extra.or_else(|| annotations::content_size(&self.annotations)).or(self.size).unwrap_or(0)
    }

    /// Whether this answer was archived before.
    pub fn revisit(&self) -> Option<super::Revisit> {
        annotations::revisit(&self.annotations)
    }

    /// Where the capture lies that this one is a duplicate of, if the line says it.
    pub fn original(&self) -> Option<super::Original<'_>> {
        annotations::original(&self.annotations)
    }

    /// The annotations one by one.
    pub fn annotations(&self) -> impl Iterator<Item = &str> {
        annotations::split(&self.annotations)
    }
}

/// The type without its parameters, or `no-type`.
pub fn mime_column(mime: &str) -> &str {
    // As Heritrix cuts: at the first comma, semicolon or blank.
    let end = mime.find(|c: char| matches!(c, ';' | ',') || c.is_whitespace()).unwrap_or(mime.len());
    let mime = &mime[..mime.floor_char_boundary(end.min(MIME_BYTES_MAX))];
    if mime.is_empty() { "no-type" } else { mime }
}

/// How much of a type is written, in bytes; registered names have at most 255 (RFC 6838).
const MIME_BYTES_MAX: usize = 255;

/// The first eleven columns and what follows them.
fn split(line: &str) -> Result<([&str; 11], &str), LineError> {
    let mut rest = line.trim_matches([' ', '\t', '\r', '\n']);
    let mut columns = [""; 11];
    for (index, column) in columns.iter_mut().enumerate() {
        if rest.is_empty() {
            return Err(LineError::Short(index));
        }
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        *column = &rest[..end];
        rest = rest[end..].trim_start_matches([' ', '\t']);
    }
    Ok((columns, rest))
}

/// The annotations, and the JSON after them. Annotations of old logs may have blanks inside; JSON has none before
/// its opening brace.
fn tail(rest: &str) -> (&str, Option<Extra<'_>>) {
    let (annotations, extra) = match rest.find(" {") {
        Some(at) => match Extra::parse(&rest[at + 1..]) {
            Some(extra) => (rest[..at].trim_end(), Some(extra)),
            None => (rest, None),
        },
        None => (rest, None),
    };
    (column::value(annotations).unwrap_or_default(), extra)
}

fn fetch_time(text: &str) -> Option<Fetched> {
    // The manual of Heritrix says `;`, its code writes `+`; logs without a duration exist too.
    let (began, millis) = text.split_once(['+', ';']).unwrap_or((text, "0"));
    Some(Fetched { began: time::seventeen(began)?, millis: millis.parse().ok()? })
}

fn read<T>(
    column: u8,
    name: &'static str,
    value: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, LineError> {
    parse(value).ok_or_else(|| {
        let end = value.floor_char_boundary(SHOWN_BYTES_MAX);
        LineError::Column { column, name, value: value[..end].to_owned() }
    })
}

fn optional<'a, T>(
    column: u8,
    name: &'static str,
    value: &'a str,
    parse: impl FnOnce(&'a str) -> Option<T>,
) -> Result<Option<T>, LineError> {
    match column::value(value) {
        None => Ok(None),
        Some(value) => match parse(value) {
            Some(read) => Ok(Some(read)),
            None => read(column, name, value, |_| None),
        },
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
