//! Finding the start of the next record and reading its header.

use std::io;

use crate::arc;
use crate::date::Date;
use crate::fields::{HeadEnd, Notes, head_end, trim_line_end};
use crate::header::{Known, RecordType};
use crate::problem::{Kind, quote};
use crate::reader::{Current, Limit, Place, Reader};
use crate::record::Record;
use crate::resync::{VERSION_LINE_MAX, find_record, starts_warc, version_line};

/// The longest record header that is read. Values of 64 kB exist.
const HEAD_MAX: usize = 1 << 20;
/// A length beyond which nobody has written a record: 16 TiB.
const LENGTH_MAX: u64 = 1 << 44;

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
            if self.seen.records == 0 && garbage.is_none() && self.tape.is_plain() && self.tape.plain() == 0 {
                self.tape.add(Kind::NotAnArchive);
            }
            return Ok(false);
        }
        let place = self.place();
        if self.stop.is_some_and(|stop| place.offset >= stop) {
            return Ok(false);
        }
        self.current = Current {
            place,
            border: place.plain,
            ..Current::default()
        };
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
            Some(member) if !self.tape.is_plain() => Place {
                offset: member.offset,
                inner: plain - member.plain,
                plain,
            },
            _ => Place {
                offset: plain,
                inner: 0,
                plain,
            },
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
        let skip = match (
            find_record(view, 1, self.seen.arc, false),
            memchr::memrchr(b'\n', view),
        ) {
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
        self.tape
            .problems
            .add_with(offset, kind, || format!("{len} bytes"));
    }

    fn read_warc_header(&mut self) -> io::Result<()> {
        let mut want = 4096;
        let is_version = |line: &[u8]| version_line(line).is_some();
        let (end, terminated) = loop {
            match head_end(self.tape.window(), is_version) {
                HeadEnd::Blank(end) => break (end, true),
                HeadEnd::Stopped(end) => break (end, false),
                HeadEnd::Open => {}
            }
            let have = self.tape.window().len();
            if have >= HEAD_MAX {
                self.tape.add(Kind::HeaderTooLong);
                break (HEAD_MAX, true);
            }
            want = want.max(have + 1).min(HEAD_MAX);
            if self.tape.fill(want)? == have {
                break (have, false);
            }
            want *= 2;
        };
        let head_end = self.tape.plain() + end as u64;
        let start = self.current.place.plain;
        if !self.seen.spanning
            && self
                .tape
                .borders()
                .any(|member| member.plain > start && member.plain < head_end)
        {
            self.seen.spanning = true;
            self.tape
                .problems
                .add(self.current.place.offset, Kind::RecordSpansMembers);
        }
        let head = &self.tape.window()[..end];
        let line_end = memchr::memchr(b'\n', head).map_or(end, |at| at + 1);
        self.current.version = version_line(trim_line_end(&head[..line_end]));
        let notes = self.header.parse(head, line_end);
        self.current.bare_lf = notes.bare_lf;
        self.check_warc_header(notes, terminated);
        self.check_segment();
        self.tape.consume(end);
        self.current.limit = self.limit(terminated);
        Ok(())
    }

    fn check_warc_header(&mut self, notes: Notes, terminated: bool) {
        let offset = self.current.place.offset;
        let header = &self.header;
        let problems = &mut self.tape.problems;
        if self.current.version.is_some_and(|version| !version.is_known()) {
            problems.add_with(offset, Kind::UnknownVersion, || {
                quote(trim_line_end(first_line(header.raw())))
            });
        }
        for (set, kind) in [
            (notes.bare_lf, Kind::BareLf),
            (notes.folded, Kind::FoldedHeader),
            (notes.no_colon, Kind::LineWithoutColon),
            (!terminated, Kind::UnterminatedHeader),
            (header.has_duplicate(), Kind::DuplicateField),
            (header.known(Known::RecordId).is_none(), Kind::MissingRecordId),
        ] {
            if set {
                problems.add(offset, kind);
            }
        }
        let kind = match header.known(Known::Type) {
            None => {
                problems.add(offset, Kind::MissingType);
                RecordType::Unknown
            }
            Some(text) => {
                let kind = RecordType::parse(text);
                if kind == RecordType::Unknown {
                    problems.add_with(offset, Kind::UnknownType, || quote(text));
                }
                kind
            }
        };
        self.current.kind = Some(kind);
        match header.known(Known::Date) {
            None => problems.add(offset, Kind::MissingDate),
            Some(text) if !is_usual_date(text) => {
                if !Date::parse(text).is_some_and(|date| date.is_exact()) {
                    problems.add_with(offset, Kind::BadDate, || quote(text));
                }
            }
            Some(_) => {}
        }
        match header.known(Known::TargetUri) {
            None => {
                let needed = [
                    RecordType::Response,
                    RecordType::Request,
                    RecordType::Resource,
                    RecordType::Revisit,
                ];
                if needed.contains(&kind) || kind == RecordType::Conversion {
                    problems.add(offset, Kind::MissingTargetUri);
                }
            }
            Some(uri) => {
                if uri.starts_with(b"<") && uri.ends_with(b">") {
                    problems.add(offset, Kind::BracketedTargetUri);
                }
                if is_odd_uri(uri) {
                    problems.add_with(offset, Kind::OddTargetUri, || quote(uri));
                }
            }
        }
    }

    fn check_segment(&mut self) {
        let offset = self.current.place.offset;
        let record = Record { reader: self };
        let kind = record.kind();
        if record.segment().is_some_and(|segment| !segment.is_sound(kind)) {
            self.tape.problems.add(offset, Kind::BadSegment);
        }
    }

    /// Where the block ends, as far as the header tells.
    fn limit(&mut self, terminated: bool) -> Limit {
        let offset = self.current.place.offset;
        let Some(text) = self.header.known(Known::ContentLength) else {
            if !terminated {
                return Limit::Bytes(0);
            }
            self.tape.problems.add(offset, Kind::MissingContentLength);
            self.current.damaged = true;
            return Limit::NextRecord;
        };
        let Some(length) = parse_length(text) else {
            self.tape
                .problems
                .add_with(offset, Kind::BadContentLength, || quote(text));
            self.current.damaged = true;
            return Limit::NextRecord;
        };
        // If the file is not packed and its length is known, a length beyond it is known to be wrong; the
        // records it would swallow are not.
        if self.tape.is_plain()
            && let Some(len) = self.tape.source.len()
            && length > len.saturating_sub(self.tape.plain())
        {
            self.tape
                .problems
                .add_with(offset, Kind::ContentLengthTooLong, || quote(text));
            self.current.damaged = true;
            return Limit::NextRecord;
        }
        Limit::Bytes(length)
    }

    fn read_arc_line(&mut self, len: usize) {
        let offset = self.current.place.offset;
        let raw = &self.tape.window()[..len];
        let line = trim_line_end(raw);
        let arc = arc::parse(line).unwrap_or_else(|| arc::ArcLine {
            url: line,
            short: true,
            ..Default::default()
        });
        arc::fill_header(&mut self.header, raw, &arc);
        let filedesc = arc.url.starts_with(b"filedesc:");
        let odd = is_odd_uri(arc.url);
        let good_date = Date::parse(arc.date).is_some_and(|date| date.is_exact());
        let date = quote_if(!good_date, arc.date);
        for (set, kind) in [
            (
                self.seen.records == 0 && !filedesc && offset == 0,
                Kind::ArcWithoutFiledesc,
            ),
            (arc.short, Kind::ArcShortHeader),
            (arc.extra, Kind::ArcExtraFields),
            (arc.transposed, Kind::ArcTransposedHeader),
            (odd, Kind::OddTargetUri),
        ] {
            if set {
                self.tape.problems.add(offset, kind);
            }
        }
        if let Some(date) = date {
            self.tape.problems.add_with(offset, Kind::BadDate, || date);
        }
        self.current.arc = true;
        self.seen.arc = true;
        self.current.kind = Some(if filedesc {
            RecordType::Warcinfo
        } else {
            RecordType::Response
        });
        self.tape.consume(len);
        self.current.limit = self.limit(true);
    }
}

fn quote_if(set: bool, bytes: &[u8]) -> Option<String> {
    set.then(|| quote(bytes))
}

fn first_line(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
}

/// Digits only, and no more than anybody has written.
fn parse_length(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (length <= LENGTH_MAX).then_some(length)
}

/// The form of nearly every date, `2004-11-05T13:34:57Z`, checked without building a date from it.
fn is_usual_date(text: &[u8]) -> bool {
    let two = |at: usize, max: u8| {
        let (tens, ones) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
        tens <= 9 && ones <= 9 && tens * 10 + ones <= max
    };
    text.len() == 20
        && two(0, 99)
        && two(2, 99)
        && text[4] == b'-'
        && two(5, 12)
        && &text[5..7] != b"00"
        && text[7] == b'-'
        && two(8, 28)
        && &text[8..10] != b"00"
        && text[10] == b'T'
        && two(11, 23)
        && text[13] == b':'
        && two(14, 59)
        && text[16] == b':'
        && two(17, 59)
        && text[19] == b'Z'
}

/// Whether a URI holds what no URI may: blanks, control bytes, bytes beyond ASCII.
fn is_odd_uri(uri: &[u8]) -> bool {
    uri.iter().any(|&b| b <= b' ' || b >= 0x7f)
}
