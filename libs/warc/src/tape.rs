//! The unpacked bytes of a file as one tape, with the gzip members or zstd frames they came from.
//!
//! The parser above sees a window of plain bytes and positions; it never sees compression. The tape is
//! cut at a break, the end of a damaged member: bytes after it must not be taken as the continuation of
//! bytes before it, so it does not go on until the parser says [`mend`](Tape::mend).

use std::collections::VecDeque;
use std::io;

use crate::gzip::Gzip;
use crate::problem::{Kind, Problems};
use crate::source::Source;
use crate::zstd_frames::Zstd;

/// A gzip member or zstd frame (or the whole file, if it is not packed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Where it starts in the file.
    pub(crate) offset: u64,
    /// Where its first byte stands on the tape.
    pub(crate) plain: u64,
    /// Where it ends, in the file and on the tape, once that is known.
    pub(crate) end: Option<MemberEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberEnd {
    pub(crate) offset: u64,
    pub(crate) plain: u64,
    pub(crate) damaged: bool,
}

/// The members that the window touches.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: VecDeque<Member>,
    /// How many plain bytes the tape has made so far.
    made: u64,
    /// Whether the last member was damaged and the parser has not yet acknowledged it.
    broken: bool,
}

impl Members {
    pub(crate) fn begin(&mut self, offset: u64) {
        self.list.push_back(Member { offset, plain: self.made, end: None });
    }

    /// How many bytes have been made in all.
    pub(crate) fn total(&self) -> u64 {
        self.made
    }

    /// Forgets all members, for a caller that looks only at what is made.
    pub(crate) fn forget(&mut self) {
        if self.list.back().is_some_and(|member| member.end.is_some()) {
            self.list.clear();
        }
    }

    pub(crate) fn made(&mut self, bytes: usize) {
        self.made += bytes as u64;
    }

    pub(crate) fn end(&mut self, offset: u64, damaged: bool, problems: &mut Problems) {
        let Some(member) = self.list.back_mut() else {
            return;
        };
        member.end = Some(MemberEnd { offset, plain: self.made, damaged });
        if member.plain == self.made && !damaged {
            problems.add(member.offset, Kind::EmptyMember);
        }
        self.broken |= damaged;
    }

    /// Forgets the members that end at or before `plain`, except the last: its end is still of interest.
    fn pass(&mut self, plain: u64) {
        while self.list.len() > 1 && self.list[0].end.is_some_and(|end| end.plain <= plain) {
            self.list.pop_front();
        }
    }
}

/// What one step of an unpacker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It made bytes or ended a member; there may be more.
    On,
    /// The file is at its end.
    Eof,
}

/// The plain bytes that unpackers write to.
#[derive(Debug, Default)]
pub(crate) struct Out {
    buf: Vec<u8>,
    start: usize,
    end: usize,
}

impl Out {
    fn window(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Free space of at least `min` bytes behind the window, and all the space there is.
    pub(crate) fn room(&mut self, min: usize) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buf.len() - self.end < min {
            if self.start > 0 {
                self.buf.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.buf.len() - self.end < min {
                self.buf.resize(self.end + min, 0);
            }
        }
        &mut self.buf[self.end..]
    }

    pub(crate) fn wrote(&mut self, n: usize) {
        self.end += n;
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// How the file is packed.
#[derive(Debug)]
pub(crate) enum Pack {
    Plain,
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
    /// Not readable at all: the tape is empty.
    Unsupported,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) source: Source,
    pub(crate) pack: Pack,
    pub(crate) members: Members,
    pub(crate) problems: Problems,
    out: Out,
    plain: u64,
}

impl Tape {
    pub(crate) fn new(source: Source, pack: Pack) -> Tape {
        let mut members = Members::default();
        let plain = if matches!(pack, Pack::Plain) { source.offset() } else { 0 };
        if !matches!(pack, Pack::Gzip(_) | Pack::Zstd(_)) {
            members.begin(source.offset());
        }
        members.made = plain;
        if let Some(member) = members.list.front_mut() {
            member.plain = plain;
        }
        Tape { source, pack, members, problems: Problems::default(), out: Out::default(), plain }
    }

    /// The bytes at hand.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        match self.pack {
            Pack::Plain => self.source.window(),
            _ => self.out.window(),
        }
    }

    /// Where the window starts on the tape. For a plain file that is the offset in the file.
    #[inline]
    pub(crate) fn plain(&self) -> u64 {
        self.plain
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.pack, Pack::Plain)
    }

    /// The offset to name in a message about the current position.
    pub(crate) fn offset(&self) -> u64 {
        if self.is_plain() { self.plain } else { self.member().map_or(0, |member| member.offset) }
    }

    /// The member of the current position.
    pub(crate) fn member(&self) -> Option<Member> {
        self.members.list.front().copied()
    }

    /// Whether the window touches more than one member.
    #[inline]
    pub(crate) fn has_borders(&self) -> bool {
        self.members.list.len() > 1
    }

    /// The current member and those that begin after it, as far as they are known.
    pub(crate) fn borders(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.list.iter().copied()
    }

    pub(crate) fn add(&mut self, kind: Kind) {
        let offset = self.offset();
        self.problems.add(offset, kind);
    }

    /// Makes the window at least `want` long, unless the file ends or the tape is broken before.
    /// `want` is a constant of this library or a step in a loop bounded by one. Answers the length.
    pub(crate) fn fill(&mut self, want: usize) -> io::Result<usize> {
        if matches!(self.pack, Pack::Plain) {
            self.source.fill(want)?;
            return Ok(self.source.window().len());
        }
        while self.out.window().len() < want && !self.members.broken {
            if self.step()? == Step::Eof {
                break;
            }
        }
        self.members.pass(self.plain);
        Ok(self.out.window().len())
    }

    fn step(&mut self) -> io::Result<Step> {
        match &mut self.pack {
            Pack::Gzip(gzip) => {
                gzip.step(&mut self.source, &mut self.out, &mut self.members, &mut self.problems)
            }
            Pack::Zstd(zstd) => {
                zstd.step(&mut self.source, &mut self.out, &mut self.members, &mut self.problems)
            }
            Pack::Plain | Pack::Unsupported => Ok(Step::Eof),
        }
    }

    /// Learns the end of the current member if the position is at it, without starting the next one.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        while self.out.window().is_empty()
            && !self.members.broken
            && self.members.list.back().is_some_and(|member| member.end.is_none())
        {
            if self.is_plain() || self.step()? == Step::Eof {
                break;
            }
        }
        Ok(())
    }

    /// Gives up the first `n` bytes of the window.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        self.plain += n as u64;
        if self.is_plain() {
            self.source.consume(n);
        } else {
            self.out.start += n;
            self.members.pass(self.plain);
        }
    }

    /// Passes over up to `n` plain bytes of an unpacked file, without reading them where possible.
    pub(crate) fn skip_plain(&mut self, n: u64) -> io::Result<u64> {
        let skipped = self.source.skip(n)?;
        self.plain += skipped;
        Ok(skipped)
    }

    /// Goes back to a place of an unpacked file. Answers whether that was possible.
    pub(crate) fn rewind_plain(&mut self, plain: u64) -> io::Result<bool> {
        if !self.is_plain() || !self.source.can_seek(plain) {
            return Ok(false);
        }
        self.source.seek(plain)?;
        self.plain = plain;
        Ok(true)
    }

    /// Whether the tape stops here because a member was damaged.
    pub(crate) fn is_broken(&self) -> bool {
        self.members.broken
    }

    /// Goes on after a break.
    pub(crate) fn mend(&mut self) {
        self.members.broken = false;
    }
}
