//! Unpacking gzip: members one after another, whatever lies between them.
//!
//! A member that lies in the window and is not huge is inflated by libdeflate in one call; the rest is
//! streamed with zlib-rs. After damage the reader looks for the next member whose content starts a record.

use std::fmt;
use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use crate::deflate::{Failure, Inflater};
use crate::hunt::{self, Budget};
use crate::problem::{Kind, Problems};
use crate::resync::starts_record;
use crate::source::Source;
use crate::tape::{Members, Out, Step};

pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// How much input is at hand before a member is tried in one call. Nearly all members are smaller.
const LOOKAHEAD: usize = 512 << 10;
/// The first guess at the size of a member, and the size beyond which it is streamed instead.
const OUT_FIRST: usize = 256 << 10;
const OUT_MAX: usize = 8 << 20;
/// Bytes made per step when streaming.
const STREAM_STEP: usize = 128 << 10;

/// See the head of this file.
pub(crate) struct Gzip {
    inflater: Option<Inflater>,
    stream: Decompress,
    streaming: Option<Streaming>,
    /// The room that turned out to be needed so far.
    guess: usize,
    budget: Budget,
}

struct Streaming {
    /// Where the member starts.
    offset: u64,
    crc: libdeflater::Crc,
    size: u32,
}

impl fmt::Debug for Gzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gzip").field("streaming", &self.streaming.is_some()).finish_non_exhaustive()
    }
}

impl Gzip {
    pub(crate) fn new() -> Gzip {
        Gzip {
            inflater: Inflater::new(),
            stream: Decompress::new(false),
            streaming: None,
            guess: OUT_FIRST,
            budget: Budget::default(),
        }
    }

    /// Forgets the member that was being streamed; the source has been moved to the start of another.
    pub(crate) fn reset(&mut self) {
        self.streaming = None;
    }

    /// Whether the source stands at the end of a member.
    pub(crate) fn is_between(&self) -> bool {
        self.streaming.is_none()
    }

    pub(crate) fn step(
        &mut self,
        source: &mut Source,
        out: &mut Out,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<Step> {
        if self.streaming.is_some() {
            return self.stream_on(source, out, members, problems).map(|()| Step::On);
        }
        source.fill(LOOKAHEAD)?;
        if source.window().is_empty() {
            return Ok(Step::Eof);
        }
        let offset = source.offset();
        let Some(header) = header_len(source.window()) else {
            if source.window().starts_with(&MAGIC[..2]) && source.window().len() < HEADER_MIN {
                source.consume(source.window().len());
                problems.add(offset, Kind::TruncatedMember);
                return Ok(Step::Eof);
            }
            hunt::skip_junk(source, problems, &MAGIC, &mut starts_member)?;
            return Ok(Step::On);
        };
        members.begin(offset);
        if let Some((used, made)) = self.whole(&source.window()[header..], out) {
            let room = out.room(made);
            let crc = libdeflater::crc32(&room[..made]);
            out.wrote(made);
            members.made(made);
            source.consume(header + used);
            self.trailer(offset, crc, made as u32, source, members, problems)?;
        } else {
            source.consume(header);
            self.stream.reset(false);
            self.streaming = Some(Streaming { offset, crc: libdeflater::Crc::new(), size: 0 });
        }
        Ok(Step::On)
    }

    /// Tries to inflate a member in one call.
    fn whole(&mut self, input: &[u8], out: &mut Out) -> Option<(usize, usize)> {
        let inflater = self.inflater.as_mut()?;
        loop {
            match inflater.inflate(input, out.room(self.guess)) {
                Ok(done) => return Some(done),
                Err(Failure::Space) if self.guess < OUT_MAX => self.guess *= 2,
                Err(_) => return None,
            }
        }
    }

    fn stream_on(
        &mut self,
        source: &mut Source,
        out: &mut Out,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<()> {
        let Some(state) = self.streaming.as_mut() else {
            return Ok(());
        };
        source.fill(1)?;
        let (before_in, before_out) = (self.stream.total_in(), self.stream.total_out());
        let room = out.room(STREAM_STEP);
        let step = room.len().min(STREAM_STEP);
        let status = self.stream.decompress(source.window(), &mut room[..step], FlushDecompress::None);
        let used = (self.stream.total_in() - before_in) as usize;
        let made = (self.stream.total_out() - before_out) as usize;
        state.crc.update(&room[..made]);
        state.size = state.size.wrapping_add(made as u32);
        out.wrote(made);
        members.made(made);
        source.consume(used);
        let offset = state.offset;
        match status {
            Ok(Status::StreamEnd) => {
                let (crc, size) = (state.crc.sum(), state.size);
                self.streaming = None;
                self.trailer(offset, crc, size, source, members, problems)
            }
            Ok(_) if used > 0 || made > 0 => Ok(()),
            Ok(_) => {
                problems.add(offset, Kind::TruncatedMember);
                self.damaged(offset, source, members, problems)
            }
            Err(_) => {
                problems.add_with(offset, Kind::CorruptData, || format!("near byte {}", source.offset()));
                self.damaged(offset, source, members, problems)
            }
        }
    }

    /// Checks the eight bytes after the deflate stream.
    fn trailer(
        &mut self,
        offset: u64,
        crc: u32,
        size: u32,
        source: &mut Source,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<()> {
        source.fill(8)?;
        let Some(trailer) = source.window().first_chunk::<8>() else {
            problems.add(offset, Kind::TruncatedMember);
            source.consume(source.window().len());
            members.end(source.offset(), true, problems);
            return Ok(());
        };
        let mut expected = [0; 8];
        expected[..4].copy_from_slice(&crc.to_le_bytes());
        expected[4..].copy_from_slice(&size.to_le_bytes());
        if *trailer == expected {
            source.consume(8);
            members.end(source.offset(), false, problems);
            return Ok(());
        }
        problems.add(offset, Kind::BadChecksum);
        source.consume(8);
        source.fill(HEADER_MIN)?;
        if source.window().is_empty() || header_len(source.window()).is_some() {
            members.end(source.offset(), true, problems);
            return Ok(());
        }
        self.damaged(offset, source, members, problems)
    }

    /// Ends a damaged member and goes to the next good one. Corrupt data may have led the decoder past
    /// the start of that one, so the search starts behind the damaged member's own start if it can.
    fn damaged(
        &mut self,
        offset: u64,
        source: &mut Source,
        members: &mut Members,
        problems: &mut Problems,
    ) -> io::Result<()> {
        self.streaming = None;
        self.budget.rewind(source, offset + 1)?;
        hunt::find(source, &MAGIC, &mut starts_member)?;
        members.end(source.offset(), true, problems);
        Ok(())
    }
}

const HEADER_MIN: usize = 10;

/// The length of the gzip header at the start of `bytes`; `None` if there is none.
fn header_len(bytes: &[u8]) -> Option<usize> {
    let fixed = bytes.first_chunk::<HEADER_MIN>()?;
    let flags = fixed[3];
    if fixed[..3] != MAGIC || flags & 0xe0 != 0 {
        return None;
    }
    let mut at = HEADER_MIN;
    if flags & 4 != 0 {
        // FEXTRA; among others "sl", the skip lengths of old Heritrix tools. Nothing needs them here.
        let len = bytes.get(at..at + 2)?;
        at += 2 + usize::from(u16::from_le_bytes([len[0], len[1]]));
    }
    for flag in [8, 16] {
        // FNAME, FCOMMENT: to the next zero byte.
        if flags & flag != 0 {
            at += memchr::memchr(0, bytes.get(at..)?)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// Whether `bytes` start a gzip member whose content starts a record.
pub(crate) fn starts_member(bytes: &[u8]) -> bool {
    // Where members are searched for, the byte that RFC 1952 sets to 0, 2 or 4 rules most candidates out.
    let Some(header) = header_len(bytes).filter(|_| matches!(bytes[8], 0 | 2 | 4)) else {
        return false;
    };
    let mut first = [0; 2048];
    let mut stream = Decompress::new(false);
    let _ = stream.decompress(&bytes[header..], &mut first, FlushDecompress::None);
    starts_record(&first[..stream.total_out() as usize])
}
