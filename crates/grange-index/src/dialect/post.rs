//! Lines that are posted to be added or taken away, as OutbackCDX takes them.

use std::io::{self, BufRead, Read};

use cdx::{Legend, Line, parse_line};

use crate::batch::Batch;
use crate::capture::Capture;
use crate::store::Index;

/// What posted lines came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Posted {
    pub captures: u64,
    /// Lines that were passed over.
    pub bad_count: u64,
}

/// Why posted lines were not all taken. Those of earlier pieces are in the index; posting all again changes nothing of them.
#[derive(Debug, thiserror::Error)]
pub enum PostFailure {
    #[error("line {number} is no CDX or CDXJ line")]
    Line { number: u64 },
    #[error("the lines did not come whole")]
    Receive(#[source] io::Error),
    #[error("the index could not be changed")]
    Index(#[from] crate::Error),
}

/// Captures of one commit: some tens of megabytes in memory, and few commits for many lines.
const PIECE_CAPTURES: u64 = 100_000;

/// Bytes of the lines of one commit: captures with long bodies or notes are few in number and still fill the memory.
const PIECE_BYTES: usize = 32 << 20;

/// Bytes of a line. URLs and form bodies stay far below; what is longer is no index line.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Adds the captures of CDX 9 to 14 or CDXJ lines to an index, or takes them away. Their keys are made anew from their URLs,
/// and those of requests with a body of that too, as OutbackCDX does. Lines of aliases (`@alias`) are bad ones: keys here
/// have none. With `skip_bad` bad lines are counted,
/// else the first one ends it.
pub fn post(
    mut lines: impl BufRead,
    index: &Index,
    delete: bool,
    skip_bad: bool,
) -> Result<Posted, PostFailure> {
    let mut posted = Posted::default();
    let (mut legend, mut line, mut number): (Option<Legend>, _, _) = (None, Vec::new(), 0);
    let (mut batch, mut waiting, mut waiting_bytes) = (Batch::new(), 0, 0);
    loop {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(PostFailure::Receive)? == 0 {
            break;
        }
        number += 1;
        let whole = line.ends_with(b"\n") || (line.len() as u64) < LINE_BYTES_MAX;
        if !whole {
            skip_line(&mut lines).map_err(PostFailure::Receive)?;
        }
        match parse_line(&line, legend.as_ref()) {
            Line::Legend(found) => legend = Some(found),
            Line::Blank | Line::Meta(_) => {}
            Line::Entry(entry, _) if whole && is_sound(&line, legend.is_some()) => {
                let mut capture = Capture::from_entry(entry);
                if let Some(key) = key_of(&capture) {
                    capture.surt = key;
                }
                posted.captures += 1;
                waiting += 1;
                waiting_bytes += line.len();
                if delete { batch.delete(&capture) } else { batch.add(&capture) }
            }
            _ if skip_bad => posted.bad_count += 1,
            _ => return Err(PostFailure::Line { number }),
        }
        if waiting >= PIECE_CAPTURES || waiting_bytes >= PIECE_BYTES {
            index.commit(std::mem::take(&mut batch))?;
            (waiting, waiting_bytes) = (0, 0);
        }
    }
    index.commit(batch)?;
    Ok(posted)
}

/// Whether a line has what a line must have: 9, 10, 11 or 14 fields (or those of a legend), a whole time, a status that is one.
/// CDXJ is judged by its reader. Aliases are lines of another kind.
fn is_sound(line: &[u8], has_legend: bool) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return !line.starts_with(b"@") };
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (Some(first), Some(time), Some(third)) = (fields.first(), fields.get(1), fields.get(2)) else {
        return false;
    };
    if first.starts_with('@') {
        return false;
    }
    if has_legend || third.starts_with('{') {
        return true;
    }
    let is_time = time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit());
    let status = fields.get(4).copied().unwrap_or_default();
    matches!(fields.len(), 9 | 10 | 11 | 14) && is_time && (status == "-" || status.parse::<u16>().is_ok())
}

/// The key made of the URL, and of method and body for a request that had one.
fn key_of(capture: &Capture) -> Option<String> {
    let url = capture.url.as_deref()?;
    let field = |name: &str| capture.extra.get(name).and_then(|value| value.as_str());
    match field("method").filter(|method| !method.eq_ignore_ascii_case("get")) {
        None if crate::key::has_body(&capture.surt) => None,
        None => Some(crate::key::line_key(url)),
        // Its own key may hold a body that the line itself leaves out.
        Some(_) if field("requestBody").is_none() && capture.surt != "-" => None,
        Some(method) => {
            let body = field("requestBody").unwrap_or_default();
            Some(crate::key::key(&cdx::url_with_body(url, method, body)))
        }
    }
}

fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let len = end.map_or(buffer.len(), |at| at + 1);
        lines.consume(len);
        if end.is_some() || len == 0 {
            return Ok(());
        }
    }
}
