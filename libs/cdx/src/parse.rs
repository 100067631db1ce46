//! Entries out of lines. Whatever can be read is read; what cannot is named.

use crate::entry::{Entry, Original};
use crate::json;
use crate::legend::{Column, Legend};
use std::borrow::Cow;

/// What a line turned out to be.
#[derive(Debug, Clone, PartialEq)]
// Nearly every line is an entry: boxing it would cost an allocation per line to save nothing.
#[allow(clippy::large_enum_variant)]
pub enum Line<'a> {
    /// A capture, with what was wrong with it.
    Entry(Entry<'a>, Vec<LineProblem>),
    /// The legend of a CDX file: use it for the lines that follow.
    Legend(Legend),
    /// A `!meta` or `!context` line, or the header of a WACZ summary: no capture.
    Meta(Cow<'a, str>),
    /// Nothing on it.
    Blank,
    /// Neither key nor timestamp could be read.
    Unreadable,
}

impl<'a> Line<'a> {
    /// The entry, if there is one, whatever was wrong with it.
    #[must_use]
    pub fn entry(self) -> Option<Entry<'a>> {
        match self {
            Self::Entry(entry, _) => Some(entry),
            _ => None,
        }
    }
}

/// What was wrong with a line that gave an entry nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LineProblem {
    /// The bytes are not UTF-8; those that are not were replaced.
    #[error("not UTF-8")]
    NotUtf8,
    /// Fewer columns than the legend names; the missing ones are empty.
    #[error("too few columns")]
    TooFewColumns,
    /// More columns than the legend names. The surplus was taken as spaces inside the URL.
    #[error("too many columns")]
    TooManyColumns,
    /// The timestamp is not 4 to 17 digits.
    #[error("bad timestamp")]
    BadTimestamp,
    /// The status is no number from 0 to 999.
    #[error("bad status")]
    BadStatus,
    /// The offset is no number.
    #[error("bad offset")]
    BadOffset,
    /// The length is no number.
    #[error("bad length")]
    BadLength,
    /// The JSON block does not parse; only key and timestamp are known.
    #[error("bad JSON")]
    BadJson,
}

/// Reads one line, with or without its line end.
///
/// `legend` is that of the file, if one was seen. CDXJ lines are recognised by their brace whatever it says.
///
/// ```
/// use cdx::{Line, parse_line};
/// let line = b"com,example)/ 20260102030405 {\"url\": \"http://example.com/\", \"status\": 200, \"offset\": \"7\"}";
/// let Line::Entry(entry, problems) = parse_line(line, None) else { panic!() };
/// assert_eq!((entry.status, entry.offset, problems.len()), (Some(200), Some(7), 0));
/// ```
#[must_use]
pub fn parse_line<'a>(line: &'a [u8], legend: Option<&Legend>) -> Line<'a> {
    // One line only: what stands behind its end belongs to the next.
    let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
    let end = line.iter().rposition(|b| *b != b'\r').map_or(0, |at| at + 1);
    match String::from_utf8_lossy(&line[..end]) {
        Cow::Borrowed(text) => parse_text(text, legend),
        Cow::Owned(text) => match parse_text(&text, legend) {
            Line::Entry(entry, mut problems) => {
                problems.push(LineProblem::NotUtf8);
                Line::Entry(entry.into_owned(), problems)
            }
            Line::Meta(text) => Line::Meta(Cow::Owned(text.into_owned())),
            Line::Legend(legend) => Line::Legend(legend),
            Line::Blank => Line::Blank,
            Line::Unreadable => Line::Unreadable,
        },
    }
}

fn parse_text<'a>(text: &'a str, legend: Option<&Legend>) -> Line<'a> {
    if text.trim().is_empty() {
        return Line::Blank;
    }
    if let Some(legend) = Legend::parse(text.as_bytes()) {
        return Line::Legend(legend);
    }
    if text.starts_with('!') {
        return Line::Meta(Cow::Borrowed(text));
    }
    if let Some(line) = parse_cdxj(text) {
        return line;
    }
    parse_cdx(text, legend)
}

/// `key SP timestamp SP {json}`, or `None` if the third column is no JSON block.
fn parse_cdxj(text: &str) -> Option<Line<'_>> {
    let (key, rest) = text.split_once(' ')?;
    let (timestamp, block) = rest.split_once(' ').map(|(timestamp, block)| (timestamp, block.trim()))?;
    if key.is_empty() || !block.starts_with('{') {
        return None;
    }
    let mut problems = Vec::new();
    let mut entry =
        Entry { key: Cow::Borrowed(key), timestamp: Cow::Borrowed(timestamp), ..Entry::default() };
    check_timestamp(timestamp, &mut problems);
    json::read_block(block, &mut entry, &mut problems);
    Some(Line::Entry(entry, problems))
}

fn parse_cdx<'a>(text: &'a str, legend: Option<&Legend>) -> Line<'a> {
    let delimiter = legend.map_or(' ', |legend| char::from(legend.delimiter()));
    let mut columns: Vec<Cow<'a, str>> = text.split(delimiter).map(Cow::Borrowed).collect();
    let mut problems = Vec::new();
    let guessed;
    let legend = if let Some(legend) = legend {
        legend
    } else {
        let Some(known) = guess(&columns) else {
            return Line::Unreadable;
        };
        guessed = known;
        &guessed
    };
    let wanted = legend.columns().len();
    if columns.len() > wanted {
        problems.push(LineProblem::TooManyColumns);
        join_url(&mut columns, legend, delimiter);
    } else if columns.len() < wanted {
        problems.push(LineProblem::TooFewColumns);
    }
    let mut entry = Entry::default();
    for (column, text) in legend.columns().iter().zip(columns) {
        set(&mut entry, *column, text, &mut problems);
    }
    if entry.key.is_empty() {
        // A legend without `N` (wget): the key is that of the URL.
        let Some(url) = &entry.url else {
            return Line::Unreadable;
        };
        entry.key = Cow::Owned(urlkey::key(url));
    }
    check_timestamp(&entry.timestamp, &mut problems);
    Line::Entry(entry, problems)
}

/// The legend of a line in a file without one. A URL with spaces makes the count useless; most are CDX 11.
fn guess(columns: &[Cow<'_, str>]) -> Option<Legend> {
    let timestamp = columns.get(1)?;
    let plausible = timestamp.len() >= 4 && timestamp.bytes().all(|b| b.is_ascii_digit());
    if columns.len() < 3 || !plausible {
        return None;
    }
    Some(Legend::by_count(columns.len()).unwrap_or_else(Legend::cdx11))
}

fn join_url(columns: &mut Vec<Cow<'_, str>>, legend: &Legend, delimiter: char) {
    let surplus = columns.len() - legend.columns().len();
    if let Some(at) = legend.columns().iter().position(|column| *column == Column::Url) {
        let url = columns[at..=at + surplus].join(&delimiter.to_string());
        columns.splice(at..=at + surplus, [Cow::Owned(url)]);
    }
}

fn set<'a>(entry: &mut Entry<'a>, column: Column, text: Cow<'a, str>, problems: &mut Vec<LineProblem>) {
    if (text.is_empty() || text == "-") && column != Column::Key {
        return;
    }
    let mut number = |problem| {
        let number = text.parse().ok();
        if number.is_none() {
            problems.push(problem);
        }
        number
    };
    match column {
        Column::Key => entry.key = text,
        Column::Timestamp => entry.timestamp = text,
        Column::Url => entry.url = Some(text),
        Column::Mime => entry.mime = Some(text),
        Column::Digest => entry.digest = Some(text),
        Column::Redirect => entry.redirect = Some(text),
        Column::Robots => entry.robots = Some(text),
        Column::Filename => entry.filename = Some(text),
        Column::Status => entry.status = status(&text, problems),
        Column::Length => entry.length = number(LineProblem::BadLength),
        Column::Offset => entry.offset = number(LineProblem::BadOffset),
        Column::OriginalLength => original(entry).length = number(LineProblem::BadLength),
        Column::OriginalOffset => original(entry).offset = number(LineProblem::BadOffset),
        Column::OriginalFilename => original(entry).filename = Some(text),
        Column::Ignored => {}
    }
}

pub(crate) fn original<'e, 'a>(entry: &'e mut Entry<'a>) -> &'e mut Original<'a> {
    entry.original.get_or_insert_default()
}

pub(crate) fn status(text: &str, problems: &mut Vec<LineProblem>) -> Option<u16> {
    let status = text.parse().ok().filter(|status| *status < 1000);
    if status.is_none() {
        problems.push(LineProblem::BadStatus);
    }
    status
}

fn check_timestamp(timestamp: &str, problems: &mut Vec<LineProblem>) {
    if !(4..=17).contains(&timestamp.len()) || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
        problems.push(LineProblem::BadTimestamp);
    }
}
