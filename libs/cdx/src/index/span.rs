//! Where one thread's part of a file begins and ends.

use super::options::IndexOptions;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use warc::Reader;

/// Records from an offset to before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Span {
    pub(super) const fn whole() -> Self {
        Self { start: 0, end: u64::MAX }
    }

    pub(super) const fn is_behind(&self, offset: u64) -> bool {
        offset >= self.end
    }
}

/// How much is read at a time while looking for a member.
const LOOK_BYTES: usize = 64 << 10;
/// A record that may pair with the one before is no place to begin; after so many of them there is none here.
const PAIRED_MAX: usize = 64;

/// The first offset in `span` at which a member with a record begins that does not belong to the one before.
///
/// The bytes that begin a gzip member may stand inside one by chance, or because a WARC file was archived:
/// a reader has to find a record there. The caller checks the place once more from the other side.
pub(super) fn find_start(path: &Path, options: &IndexOptions, span: Span) -> io::Result<Option<u64>> {
    const MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(span.start))?;
    let mut window = Vec::with_capacity(LOOK_BYTES + MAGIC.len());
    let mut base = span.start;
    while !span.is_behind(base) {
        let kept = window.len();
        (&mut file).take(LOOK_BYTES as u64).read_to_end(&mut window)?;
        if window.len() == kept {
            return Ok(None);
        }
        for at in memchr::memmem::find_iter(&window, MAGIC) {
            let offset = base + at as u64;
            if span.is_behind(offset) {
                return Ok(None);
            }
            if let Some(start) = record_start(path, options, offset)? {
                return Ok((!span.is_behind(start)).then_some(start));
            }
        }
        // The magic may lie across the border of two windows.
        let keep = window.len().min(MAGIC.len() - 1);
        base += (window.len() - keep) as u64;
        window.drain(..window.len() - keep);
    }
    Ok(None)
}

fn record_start(path: &Path, options: &IndexOptions, offset: u64) -> io::Result<Option<u64>> {
    let mut reader = Reader::open_at(path, offset)?;
    for seen in 0..PAIRED_MAX {
        let Some(record) = reader.next()? else {
            return Ok(None);
        };
        let place = record.place();
        if seen == 0 && (place.offset != offset || !place.is_seekable()) {
            return Ok(None);
        }
        let paired = options.pairs() && record.header().get("WARC-Concurrent-To").is_some();
        if !paired && place.is_seekable() {
            return Ok(Some(place.offset));
        }
    }
    Ok(None)
}
