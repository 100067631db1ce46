//! Records that were cut into segments, and putting them together again.

use std::io::{self, BufRead, Write};

use crate::header::RecordType;
use crate::record::{Record, unbracket};

/// The place of a record in a segmented one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Which segment it is, from 1. `None` if the field is missing or no number.
    pub number: Option<u32>,
    /// The id of the first segment. `None` in the first segment itself.
    pub origin: Option<&'a [u8]>,
    /// The length of all segments together; only the last one states it.
    pub total: Option<u64>,
}

impl Segment<'_> {
    /// Whether the fields fit together and the type of the record.
    pub(crate) fn is_sound(&self, kind: RecordType) -> bool {
        match (kind, self.number) {
            (RecordType::Continuation, Some(number)) => number > 1 && self.origin.is_some(),
            (RecordType::Continuation, None) => false,
            (_, number) => number == Some(1) && self.origin.is_none(),
        }
    }
}

impl Record<'_> {
    /// The place of the record in a segmented one; `None` if it is whole.
    pub fn segment(&self) -> Option<Segment<'_>> {
        let header = self.header();
        let number = header.get("WARC-Segment-Number");
        if number.is_none() && self.kind() != RecordType::Continuation {
            return None;
        }
        fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        Some(Segment {
            number: number.and_then(parse),
            origin: header.get("WARC-Segment-Origin-ID").map(unbracket),
            total: header.get("WARC-Segment-Total-Length").and_then(parse),
        })
    }
}

/// Puts the blocks of a segmented record together, segment by segment, from as many files as it takes.
#[derive(Debug, Clone)]
pub struct Reassembly {
    origin: Vec<u8>,
    next: u32,
    written: u64,
    total: Option<u64>,
}

/// What became of an offered record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It belongs to another record, or is no segment.
    Foreign,
    /// It is a segment of this record, but not the next one: the file must be read again later.
    TooEarly,
    /// It is a segment that was taken before.
    Repeated,
    /// Its block was written.
    Taken,
}

impl Reassembly {
    /// Starts with the id of the first segment, without angle brackets.
    pub fn new(origin: &[u8]) -> Reassembly {
        Reassembly { origin: unbracket(origin).to_vec(), next: 1, written: 0, total: None }
    }

    /// Writes the block of `record` to `out` if it is the next segment.
    pub fn offer(&mut self, record: &mut Record<'_>, out: &mut dyn Write) -> io::Result<Offered> {
        let Some(segment) = record.segment() else {
            return Ok(Offered::Foreign);
        };
        let id = segment.origin.or_else(|| record.record_id());
        let Some(number) = segment.number.filter(|_| id == Some(&self.origin[..])) else {
            return Ok(Offered::Foreign);
        };
        if number != self.next {
            return Ok(if number < self.next { Offered::Repeated } else { Offered::TooEarly });
        }
        self.total = self.total.or(segment.total);
        let mut block = record.block();
        loop {
            let bytes = block.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            out.write_all(bytes)?;
            let n = bytes.len();
            self.written += n as u64;
            block.consume(n);
        }
        self.next += 1;
        Ok(Offered::Taken)
    }

    /// How many bytes have been written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether all segments have been taken. `None` as long as the last one, which alone states the total
    /// length, has not been seen.
    pub fn is_complete(&self) -> Option<bool> {
        self.total.map(|total| total == self.written)
    }
}
