//! Reads every byte of a segment and says what is wrong with it.

use std::path::Path;

use super::footer::FOOTER_BYTES;
use super::read::{Segment, new_cache};
use crate::block::BlockCursor;
use crate::digest;
use crate::error::{Error, Result};
use crate::row::{self, DELETED, SHARED};

/// What was found in a segment.
#[derive(Debug, Default)]
pub struct SegmentReport {
    pub rows: u64,
    pub blocks: u64,
    pub bytes: u64,
    /// The first [`PROBLEMS_MAX`](Self::PROBLEMS_MAX) things that are wrong.
    pub problems: Vec<Error>,
    pub problem_count: u64,
}

impl SegmentReport {
    /// A file of nothing but damage must not fill the memory.
    pub const PROBLEMS_MAX: usize = 100;

    fn note(&mut self, problem: Error) {
        self.problem_count += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

/// Bytes hashed at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Checks a segment file: its hash, every block, their order, the counts, the digest index. Problems inside are in the
/// report; an error means that the file is no segment at all or cannot be read.
pub fn verify(path: impl AsRef<Path>) -> Result<SegmentReport> {
    let segment = Segment::open(path.as_ref(), new_cache(1 << 20))?;
    let mut report = SegmentReport { bytes: segment.bytes(), ..SegmentReport::default() };
    check_hash(&segment, &mut report)?;
    let digests = check_blocks(&segment, &mut report);
    if report.problem_count == 0 && report.rows != segment.footer.rows {
        report.note(Error::damaged(
            segment.path(),
            segment.bytes() - FOOTER_BYTES as u64,
            "the count of rows",
        ));
    }
    let mut posted = 0;
    for (first, place) in segment.all_postings() {
        let counted = segment.postings_piece(*first, *place, |_, posting| posted += posting.rows);
        if let Err(problem) = counted {
            report.note(problem);
        }
    }
    if report.problem_count == 0 && posted != digests {
        report.note(Error::damaged(segment.path(), segment.footer.postings.offset, "the digest index"));
    }
    Ok(report)
}

fn check_hash(segment: &Segment, report: &mut SegmentReport) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let end = segment.bytes() - FOOTER_BYTES as u64;
    let mut at = 0;
    while at < end {
        let len = CHUNK_BYTES.min(end - at);
        hasher.update(&segment.source().read(at, len, "the file")?);
        at += len;
    }
    hasher.update(&segment.footer.hashed());
    if hasher.finalize().as_bytes() != &segment.footer.blake3 {
        report.note(Error::damaged(segment.path(), 0, "the file as a whole"));
    }
    Ok(())
}

/// Reads every block; answers how many rows have a digest that postings know.
fn check_blocks(segment: &Segment, report: &mut SegmentReport) -> u64 {
    let (mut last, mut key, mut digests) = (Vec::new(), Vec::new(), 0);
    for number in 0..segment.blocks() {
        let block = match segment.block(number, false) {
            Ok(block) => block,
            Err(problem) => {
                report.note(problem);
                continue;
            }
        };
        report.blocks += 1;
        let mut cursor = BlockCursor::default();
        let read = || -> Result<(), crate::varint::Malformed> {
            cursor.reset(block)?;
            while cursor.advance()? {
                let row = cursor.row();
                let file = segment.files.get(row.file as usize).ok_or(crate::varint::Malformed)?;
                let kind = segment.kinds.get(row.kind as usize).ok_or(crate::varint::Malformed)?;
                row::key_into(row.surt, row.time, &file.name, row.offset, &mut key);
                let is_alike = kind.flags & SHARED != 0 && key == last;
                if key <= last && !is_alike {
                    return Err(crate::varint::Malformed);
                }
                std::mem::swap(&mut key, &mut last);
                let known = kind.flags & DELETED == 0 && !digest::essence(row.form, row.digest).is_empty();
                digests += u64::from(known);
                report.rows += 1;
            }
            Ok(())
        };
        if read().is_err() {
            report.note(Error::damaged(segment.path(), 0, "the order of rows"));
        }
    }
    digests
}
