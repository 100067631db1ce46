//! Finding the start of the next record.

use std::io;

use crate::arc;
use crate::fields::trim_line_end;
use crate::problem::Kind;
use crate::reader::{Current, Place, Reader};
use crate::resync::{VERSION_LINE_MAX, find_record, starts_warc};

/// What stands at the current position.
enum At {
    Warc,
    /// An ARC header line of that length, its end included.
    Arc(usize),
    Garbage,
    End,
}

impl Reader {
    /// Goes to the next record and reads its header. Answers whether there is one.
    pub(crate) fn start_record(&mut self) -> io::Result<bool> {
        let mut garbage: Option<(u64, u64)> = None;
        let at = loop {
            let at = self.look(garbage.is_some())?;
            if matches!(at, At::Garbage) {
                let (offset, plain) = (self.tape.offset(), self.tape.plain());
                if garbage.is_none() && self.swallowed()? {
                    continue;
                }
                // A damaged member has said already that it is.
                if !self.tape.is_broken() {
                    garbage.get_or_insert((offset, plain));
                }
                self.skip_garbage()?;
            } else {
                break at;
            }
        };
        if let Some((offset, plain)) = garbage {
            self.report_garbage(offset, plain, &at);
        }
        if matches!(at, At::End) {
            let empty = self.tape.is_plain() && self.tape.plain() == 0;
            if empty && !self.seen.told_empty {
                self.seen.told_empty = true;
                self.tape.add(Kind::NotAnArchive);
            }
            return Ok(false);
        }
        let place = self.place();
        if self.stop.is_some_and(|stop| place.offset >= stop) {
            return Ok(false);
        }
        self.current = Current { place, border: place.plain, ..Current::default() };
        match at {
            At::Arc(len) => self.read_arc_line(len),
            _ => self.read_warc_header()?,
        }
        self.seen.records += 1;
        if place.inner > 0 && !self.seen.shared_member {
            self.seen.shared_member = true;
            self.tape.problems.add(place.offset, Kind::SeveralRecordsInMember);
        }
        Ok(true)
    }

    fn place(&self) -> Place {
        let plain = self.tape.plain();
        match self.tape.member() {
            Some(member) if !self.tape.is_plain() => {
                Place { offset: member.offset, inner: plain - member.plain, plain }
            }
            _ => Place { offset: plain, inner: 0, plain },
        }
    }

    /// Passes over empty lines and tells what comes then.
    fn look(&mut self, lost: bool) -> io::Result<At> {
        loop {
            if self.tape.fill(1)? == 0 {
                if self.tape.is_broken() {
                    self.tape.mend();
                    continue;
                }
                return Ok(At::End);
            }
            let window = self.tape.window();
            let blank = window.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
            if blank > 0 {
                self.tape.consume(blank);
                continue;
            }
            if window.len() < VERSION_LINE_MAX && memchr::memchr(b'\n', window).is_none() {
                self.tape.fill(VERSION_LINE_MAX)?;
            }
            if starts_warc(self.tape.window()) {
                return Ok(At::Warc);
            }
            return self.look_for_arc(lost);
        }
    }

    fn look_for_arc(&mut self, lost: bool) -> io::Result<At> {
        let mut want = 1024;
        let end = loop {
            match memchr::memchr(b'\n', self.tape.window()) {
                Some(end) => break end + 1,
                None if want > arc::LINE_MAX => return Ok(At::Garbage),
                None if self.tape.fill(want)? < want
                    && memchr::memchr(b'\n', self.tape.window()).is_none() =>
                {
                    break self.tape.window().len();
                }
                None => want *= 4,
            }
        };
        let window = self.tape.window();
        if arc::starts_arc(window) {
            return Ok(At::Arc(end));
        }
        // In an ARC file, or where an index says that a record is, a line is taken for a header if it has
        // the shape at all.
        let expected =
            (self.seen.arc || (self.seen.part && self.seen.records == 0)) && !lost && !self.current.endless;
        let line = trim_line_end(&window[..end]);
        let shaped =
            || arc::parse(line).is_some_and(|arc| memchr::memchr(b':', arc.url).is_some() && !arc.short);
        if window.starts_with(b"filedesc:") || (expected && shaped()) {
            return Ok(At::Arc(end));
        }
        Ok(At::Garbage)
    }

    /// Passes over bytes that are no record, up to the next that may be, within the member.
    fn skip_garbage(&mut self) -> io::Result<()> {
        const STEP: usize = 64 << 10;
        let have = self.tape.fill(STEP)?;
        let member_end = self.tape.member().and_then(|member| member.end);
        let to_end = member_end.map_or(usize::MAX, |end| (end.plain - self.tape.plain()) as usize);
        let view = &self.tape.window()[..have.min(to_end)];
        let closed = have >= to_end || have < STEP;
        let skip = match (find_record(view, 1, self.seen.arc, false), memchr::memrchr(b'\n', view)) {
            (Some(at), _) => at,
            // The last line may go on; it is looked at again with what follows.
            (None, Some(last)) if !closed && last + 1 < view.len() && view.len() - last < STEP / 2 => {
                last + 1
            }
            _ => view.len(),
        };
        self.tape.consume(skip.max(1));
        Ok(())
    }

    fn report_garbage(&mut self, offset: u64, plain: u64, at: &At) {
        let len = self.tape.plain() - plain;
        let nothing = self.seen.records == 0 && !self.seen.part && matches!(at, At::End);
        let kind = match () {
            () if nothing => Kind::NotAnArchive,
            () if self.current.endless && self.seen.records > 0 => Kind::ContentLengthTooShort,
            () => Kind::GarbageBetweenRecords,
        };
        self.tape.problems.add_with(offset, kind, || format!("{len} bytes"));
    }
}
