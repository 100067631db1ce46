//! Dividing one gzip file among threads, at member borders, so that every record is read exactly once.
//!
//! The bytes `1f 8b 08` also occur inside members: a page that was sent gzipped, or an archived `.warc.gz`,
//! does not compress and stands there verbatim, as valid as a real member. What tells them apart is that
//! deflate stores at most 65,535 bytes in a row: a chain of members that is sound for longer than that
//! cannot lie inside another member. So a border is a place where such a chain starts (or one that reaches
//! the end of the file). It depends on nothing but the file, so the reader on the left stops at exactly the
//! border where the reader on the right starts.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::gzip::{self, Gzip};
use crate::hunt;
use crate::problem::{Level, Problems};
use crate::reader::Reader;
use crate::source::Source;
use crate::tape::{Members, Out, Step};

/// How long a chain of sound members must be. More than one stored block and its head.
const CHAIN: u64 = 128 << 10;
/// How much is unpacked in search of one border before the file is taken to have no more of them. A file
/// without sound chains is then read by the leftmost reader alone.
const UNPACK_MAX: u64 = 256 << 20;

impl Reader {
    /// Reads the records of those members that start in the part of the file from the border at or after
    /// `start` up to the border at or after `end`. Parts that meet, meet exactly: read with parts that
    /// cover `0..length`, every record comes once. Only gzip files can be divided; of any other the part
    /// that starts at zero holds all records.
    pub fn range(path: impl AsRef<Path>, start: u64, end: u64) -> io::Result<Reader> {
        let path = path.as_ref();
        let len = std::fs::metadata(path)?.len();
        let from = border(path, start, len)?;
        let to = border(path, end.max(start), len)?;
        let mut reader = Reader::open_at(path, from)?;
        if from > 0 {
            // A part is not the place to wonder about the start of the file.
            reader.tape.problems.clear();
        }
        reader.seen.part = from > 0;
        reader.stop = (to < len).then_some(to);
        if from >= to && len > 0 {
            reader.stop = Some(0);
        }
        Ok(reader)
    }
}

/// The first border at or after `from`.
fn border(path: &Path, from: u64, len: u64) -> io::Result<u64> {
    if from == 0 || from >= len {
        return Ok(from.min(len));
    }
    let mut source = Source::seekable(File::open(path)?)?;
    source.fill(gzip::MAGIC.len())?;
    if !source.window().starts_with(&gzip::MAGIC) {
        return Ok(len);
    }
    source.seek(from)?;
    source.fill(gzip::MAGIC.len())?;
    let mut left = UNPACK_MAX;
    loop {
        let here = source.window().starts_with(&gzip::MAGIC) && {
            source.fill(64 << 10)?;
            gzip::starts_member(source.window())
        };
        if !here {
            hunt::find(&mut source, &gzip::MAGIC, &mut gzip::starts_member)?;
        }
        let candidate = source.offset();
        if candidate >= len || left == 0 {
            return Ok(len);
        }
        if starts_chain(&mut source, len, &mut left)? {
            return Ok(candidate);
        }
        source.seek(candidate)?;
        hunt::find(&mut source, &gzip::MAGIC, &mut gzip::starts_member)?;
    }
}

/// Whether a chain of sound members starts here, long enough to be no part of a larger member.
fn starts_chain(source: &mut Source, len: u64, left: &mut u64) -> io::Result<bool> {
    let start = source.offset();
    let mut gzip = Gzip::new();
    let (mut out, mut members, mut problems) = (Out::default(), Members::default(), Problems::default());
    loop {
        let before = members.total();
        let step = gzip.step(source, &mut out, &mut members, &mut problems)?;
        out.clear();
        *left = left.saturating_sub(members.total() - before);
        members.forget();
        if *left == 0 || problems.list().iter().any(|problem| problem.kind.level() > Level::Comment) {
            return Ok(false);
        }
        problems.clear();
        if gzip.is_between() && (source.offset() - start > CHAIN || source.offset() >= len) {
            return Ok(true);
        }
        if step == Step::Eof {
            return Ok(false);
        }
    }
}
