//! The bytes of the current record's block: how many there are, and what comes after them.

use std::io;

use crate::problem::Kind;
use crate::reader::{Limit, Reader};
use crate::resync::{VERSION_LINE_MAX, find_record, starts_record};

/// Bytes kept back while looking for the next record: a version line and the line ends before it.
const KEEP: usize = VERSION_LINE_MAX + 8;
/// The same where the next record may be ARC, whose header lines are longer.
const KEEP_ARC: usize = 8 << 10;

impl Reader {
    /// Makes at least `want` bytes of the block stand at the start of the window, if it has as many.
    /// Answers how many do; zero only at the end of the block. `want` is bounded by the callers' constants.
    #[inline]
    pub(crate) fn peek_block(&mut self, want: usize) -> io::Result<usize> {
        match self.current.limit {
            Limit::Bytes(0) => Ok(0),
            Limit::Bytes(left) => {
                // The common case: the window holds what is wanted, one member holds the window, and the
                // start of that member has been looked at.
                let have = self.tape.window().len();
                let known = self.tape.member().is_some_and(|member| member.plain <= self.current.border);
                if have as u64 >= left.min(want as u64) && have > 0 && known && !self.tape.has_borders() {
                    return Ok((have as u64).min(left) as usize);
                }
                self.peek_over_borders(left, want)
            }
            Limit::NextRecord => self.peek_to_next(want),
        }
    }

    fn peek_over_borders(&mut self, left: u64, want: usize) -> io::Result<usize> {
        let want = left.min(want as u64) as usize;
        loop {
            let have = self.tape.fill(want)?;
            let usable = (have as u64).min(left) as usize;
            if let Some(cut) = self.border_within(usable)? {
                self.cut_short(cut as u64, Kind::ContentLengthTooLong);
                return Ok(cut);
            }
            // Looking behind a border may have brought in more members.
            if self.tape.window().len() > have {
                continue;
            }
            if usable < want {
                let kind =
                    if self.tape.is_plain() { Kind::TruncatedRecord } else { Kind::ContentLengthTooLong };
                self.cut_short(usable as u64, kind);
            }
            return Ok(usable);
        }
    }

    /// Looks at the member borders within the first `len` bytes of the window. A member that starts like a
    /// record ends this one; otherwise the record runs over the border.
    fn border_within(&mut self, len: usize) -> io::Result<Option<usize>> {
        loop {
            let (from, border) = (self.tape.plain(), self.current.border);
            let next = self.tape.borders().find(|member| {
                member.plain > border && member.plain >= from && member.plain < from + len as u64
            });
            let Some(member) = next else { return Ok(None) };
            let at = (member.plain - from) as usize;
            self.tape.fill(at + VERSION_LINE_MAX)?;
            if starts_record(&self.tape.window()[at..]) {
                return Ok(Some(at));
            }
            self.current.border = member.plain;
            if !self.seen.spanning {
                self.seen.spanning = true;
                self.tape.problems.add(self.current.place.offset, Kind::RecordSpansMembers);
            }
        }
    }

    fn cut_short(&mut self, left: u64, kind: Kind) {
        self.current.limit = Limit::Bytes(left);
        self.current.damaged = true;
        // A broken tape has said already what happened.
        if !self.tape.is_broken() {
            self.tape.problems.add(self.current.place.offset, kind);
        }
    }

    /// For a block without a believable length.
    fn peek_to_next(&mut self, want: usize) -> io::Result<usize> {
        let arc = self.seen.arc;
        let keep = if arc { KEEP_ARC } else { KEEP };
        let mut fill = want + keep;
        loop {
            let have = self.tape.window().len();
            let member_end = self.tape.member().and_then(|member| member.end);
            let (len, closed) = match member_end {
                Some(end) => ((end.plain - self.tape.plain()) as usize, true),
                None => (have, false),
            };
            let view = &self.tape.window()[..len.min(have)];
            // Nothing stands before the first byte of the block but its header, which ends in a blank line.
            let blank = view.starts_with(b"\r") || view.starts_with(b"\n");
            let at_once = self.current.read == 0 && !blank && starts_record(view);
            let found = if at_once { Some(0) } else { find_record(view, 0, arc, true) };
            if let Some(at) = found {
                return Ok(self.end_before(at));
            }
            if closed {
                return Ok(self.end_before(len));
            }
            if have >= want + keep {
                return Ok(have - keep);
            }
            if self.tape.fill(fill)? == have {
                // The end of the file, or a break; a member's end may have become known.
                if self.tape.member().and_then(|member| member.end).is_none() {
                    return Ok(self.end_before(have));
                }
                if member_end.is_none() {
                    continue;
                }
            }
            fill = fill.max(have + keep);
        }
    }

    /// Ends the block `at` bytes ahead, less the line ends there.
    fn end_before(&mut self, at: usize) -> usize {
        let mut block = &self.tape.window()[..at];
        let ends = if self.current.arc { 1 } else { 2 };
        for _ in 0..ends {
            let Some(rest) = block.strip_suffix(b"\n") else {
                break;
            };
            block = rest.strip_suffix(b"\r").unwrap_or(rest);
        }
        let len = block.len();
        self.current.limit = Limit::Bytes(len as u64);
        len
    }

    /// Takes `n` bytes of the block, which [`peek_block`](Reader::peek_block) has shown.
    #[inline]
    pub(crate) fn consume_block(&mut self, n: usize) {
        if let Limit::Bytes(left) = &mut self.current.limit {
            *left -= (n as u64).min(*left);
        }
        self.current.read += n as u64;
        self.tape.consume(n);
    }

    /// Passes over the rest of the block and the line ends after it, and learns where the record ends.
    pub(crate) fn finish_block(&mut self) -> io::Result<()> {
        if self.current.finished {
            return Ok(());
        }
        loop {
            if let Limit::Bytes(left) = self.current.limit
                && self.tape.is_plain()
            {
                let skipped = self.tape.skip_plain(left)?;
                self.current.read += skipped;
                if skipped < left {
                    self.cut_short(0, Kind::TruncatedRecord);
                }
                self.current.limit = Limit::Bytes(0);
                break;
            }
            let have = self.peek_block(1)?;
            if have == 0 {
                break;
            }
            self.consume_block(have);
        }
        self.current.finished = true;
        self.current.damaged |= self.tape.is_broken();
        self.pass_line_ends()?;
        if self.tape.is_plain() {
            self.current.length = Some(self.tape.plain() - self.current.place.plain);
        } else {
            self.current.length = self.stored_length();
        }
        Ok(())
    }

    /// The stored length of the current record, once the end of its last member is known.
    pub(crate) fn stored_length(&self) -> Option<u64> {
        if self.current.length.is_some() || self.tape.is_plain() {
            return self.current.length;
        }
        let end = self.tape.member()?.end?;
        let done = match self.current.limit {
            Limit::Bytes(left) => self.tape.plain() + left <= end.plain,
            Limit::NextRecord => false,
        };
        done.then(|| end.offset - self.current.place.offset)
    }

    fn pass_line_ends(&mut self) -> io::Result<()> {
        let mut ends = [0_u8; 8];
        let mut count = 0;
        let mut more = false;
        loop {
            if self.tape.is_plain() {
                self.tape.fill(1)?;
            } else if self.at_member_end() {
                break;
            } else {
                self.tape.settle()?;
            }
            match self.tape.window().first() {
                Some(&b) if (b == b'\r' || b == b'\n') && !self.at_member_end() => {
                    if let Some(place) = ends.get_mut(count) {
                        *place = b;
                    }
                    count += 1;
                    self.tape.consume(1);
                }
                first => {
                    more = first.is_some() && !self.at_member_end();
                    break;
                }
            }
        }
        let found = &ends[..count.min(ends.len())];
        self.current.endless = count == 0 && more;
        if self.current.arc || self.current.damaged || self.tape.is_broken() {
            return Ok(());
        }
        let right = found == b"\r\n\r\n" || (self.current.bare_lf && found == b"\n\n");
        let short = self.current.endless && !self.at_record()?;
        if !right && !short {
            self.tape.problems.add_with(self.current.place.offset, Kind::WrongRecordEnd, || {
                format!("{} bytes: {}", count, found.escape_ascii())
            });
        }
        Ok(())
    }

    fn at_record(&mut self) -> io::Result<bool> {
        self.tape.fill(VERSION_LINE_MAX)?;
        Ok(starts_record(self.tape.window()))
    }

    pub(crate) fn at_member_end(&self) -> bool {
        self.tape.member().and_then(|member| member.end).is_some_and(|end| end.plain == self.tape.plain())
    }

    /// Called where a record should start but does not: if the last block, by its Content-Length, has run
    /// over the start of a record, goes back there. Answers whether it has.
    pub(crate) fn swallowed(&mut self) -> io::Result<bool> {
        let current = &self.current;
        if !self.tape.is_plain() || current.read == 0 || current.damaged {
            return Ok(false);
        }
        const LOOK_MAX: u64 = 1 << 20;
        let here = self.tape.plain();
        let block_end = here - if current.endless { 0 } else { here.min(8) };
        let from = here.saturating_sub(current.read.min(LOOK_MAX) + 8).max(current.place.plain + 1);
        if from >= block_end || !self.tape.rewind_plain(from)? {
            return Ok(false);
        }
        let want = (here - from) as usize;
        let have = self.tape.fill(want + VERSION_LINE_MAX)?;
        let found = find_record(&self.tape.window()[..have], 0, self.seen.arc, true);
        match found {
            Some(at) if at < want => {
                self.tape.problems.add(self.current.place.offset, Kind::ContentLengthTooLong);
                self.tape.consume(at);
                self.current.damaged = true;
                self.current.endless = false;
                Ok(true)
            }
            _ => {
                self.tape.rewind_plain(here)?;
                Ok(false)
            }
        }
    }
}
