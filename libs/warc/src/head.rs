//! Reading the header of a record, and judging it.

use std::io;

use crate::arc;
use crate::date::Date;
use crate::fields::{HeadEnd, Notes, head_end, trim_line_end};
use crate::header::{Known, RecordType};
use crate::problem::{Kind, quote};
use crate::reader::{Limit, Reader};
use crate::record::Record;
use crate::resync::version_line;

/// The longest record header that is read. Values of 64 kB exist.
const HEAD_MAX: usize = 1 << 20;
/// A length beyond which nobody has written a record: 16 TiB.
const LENGTH_MAX: u64 = 1 << 44;

impl Reader {
    pub(crate) fn read_warc_header(&mut self) -> io::Result<()> {
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
            && self.tape.borders().any(|member| member.plain > start && member.plain < head_end)
        {
            self.seen.spanning = true;
            self.tape.problems.add(self.current.place.offset, Kind::RecordSpansMembers);
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
            problems
                .add_with(offset, Kind::UnknownVersion, || quote(trim_line_end(first_line(header.raw()))));
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
                let needed =
                    [RecordType::Response, RecordType::Request, RecordType::Resource, RecordType::Revisit];
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
            self.tape.problems.add_with(offset, Kind::BadContentLength, || quote(text));
            self.current.damaged = true;
            return Limit::NextRecord;
        };
        // If the file is not packed and its length is known, a length beyond it is known to be wrong; the
        // records it would swallow are not.
        if self.tape.is_plain()
            && let Some(len) = self.tape.source.len()
            && length > len.saturating_sub(self.tape.plain())
        {
            self.tape.problems.add_with(offset, Kind::ContentLengthTooLong, || quote(text));
            self.current.damaged = true;
            return Limit::NextRecord;
        }
        Limit::Bytes(length)
    }

    pub(crate) fn read_arc_line(&mut self, len: usize) {
        let offset = self.current.place.offset;
        let raw = &self.tape.window()[..len];
        let line = trim_line_end(raw);
        let arc =
            arc::parse(line).unwrap_or_else(|| arc::ArcLine { url: line, short: true, ..Default::default() });
        arc::fill_header(&mut self.header, raw, &arc);
        let filedesc = arc.url.starts_with(b"filedesc:");
        let odd = is_odd_uri(arc.url);
        let good_date = Date::parse(arc.date).is_some_and(|date| date.is_exact());
        let date = quote_if(!good_date, arc.date);
        for (set, kind) in [
            (self.seen.records == 0 && !filedesc && offset == 0, Kind::ArcWithoutFiledesc),
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
        self.current.kind = Some(if filedesc { RecordType::Warcinfo } else { RecordType::Response });
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
