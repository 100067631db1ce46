//! Reads metadata files of any age: ours and NetarchiveSuite's, WARC and ARC, packed or not. Line by line, so that a
//! crawl log of gigabytes passes through a small buffer.

use std::io::{self, BufRead, Read};
use std::path::Path;

use warc::{Reader, Record};

use super::address::Address;

/// What a line stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    CrawlLog,
    Cdx,
}

/// What was read of a metadata file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub records: u64,
    pub crawl_log_lines: u64,
    pub cdx_lines: u64,
    /// Lines too long to be what they should be; they are passed over.
    pub long_lines: u64,
    /// Things wrong with the file itself, as the reader counts them.
    pub problems: u64,
}

/// No line of a log or index is longer, in bytes: a URL has a few thousand, annotations a few hundred.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Gives every line of the crawl log and of the index records to `take`, without its line end. It ends early, without
/// an error, when `take` answers false.
pub fn lines_of_file(
    path: &Path,
    wanted: &[Part],
    take: &mut dyn FnMut(Part, &[u8]) -> bool,
) -> io::Result<Tally> {
    walk(Reader::open(path)?, wanted, take)
}

/// The same over a stream, such as a file that another machine holds.
pub fn lines(
    input: impl Read + Send + 'static,
    wanted: &[Part],
    take: &mut dyn FnMut(Part, &[u8]) -> bool,
) -> io::Result<Tally> {
    walk(Reader::new(input)?, wanted, take)
}

fn walk(mut reader: Reader, wanted: &[Part], take: &mut dyn FnMut(Part, &[u8]) -> bool) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut line = Vec::new();
    while let Some(mut record) = reader.next()? {
        tally.records += 1;
        if let Some(part) = part(&record).filter(|part| wanted.contains(part)) {
            let go_on = each_line(&mut record, &mut line, &mut tally, part, take)?;
            if !go_on {
                break;
            }
        }
        tally.problems += record.problems().len() as u64;
    }
    Ok(tally)
}

fn part(record: &Record<'_>) -> Option<Part> {
    let uri = std::str::from_utf8(record.target_uri()?).ok()?;
    let address = Address::parse(uri)?;
    if address.is_crawl_log() {
        Some(Part::CrawlLog)
    } else if address.is_cdx() {
        Some(Part::Cdx)
    } else {
        None
    }
}

fn each_line(
    record: &mut Record<'_>,
    line: &mut Vec<u8>,
    tally: &mut Tally,
    part: Part,
    take: &mut dyn FnMut(Part, &[u8]) -> bool,
) -> io::Result<bool> {
    let mut block = record.block();
    loop {
        line.clear();
        let (whole, more) = bounded_line(&mut block, line)?;
        if !more && line.is_empty() {
            return Ok(true);
        }
        if !whole {
            tally.long_lines += 1;
            continue;
        }
        match part {
            Part::CrawlLog => tally.crawl_log_lines += 1,
            Part::Cdx => tally.cdx_lines += 1,
        }
        if !take(part, line) {
            return Ok(false);
        }
    }
}

/// Reads up to the line end, which is taken but not kept. Whether the line was short enough to be kept whole, and
/// whether there was anything at all.
fn bounded_line(block: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(bool, bool)> {
    let (mut whole, mut any) = (true, false);
    loop {
        let bytes = block.fill_buf()?;
        if bytes.is_empty() {
            return Ok((whole, any));
        }
        any = true;
        let end = memchr::memchr(b'\n', bytes);
        let kept = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + kept.len() > LINE_BYTES_MAX {
            whole = false;
            line.clear();
        } else if whole {
            line.extend_from_slice(kept);
        }
        let taken = kept.len() + usize::from(end.is_some());
        block.consume(taken);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok((whole, true));
        }
    }
}
