//! One record, borrowed from the reader.

use std::io::{self, BufRead, Read};

use crate::date::Date;
use crate::fields::{HeadEnd, head_end};
use crate::header::{Header, Known, RecordType};
use crate::http::{self, Found, HttpHead};
use crate::problem::{Kind, Problem};
use crate::reader::{HttpState, Limit, Place, Reader};
use crate::resync::Version;

/// One record of a file. It borrows the reader; its block is read at most once, from start to end.
#[derive(Debug)]
pub struct Record<'r> {
    pub(crate) reader: &'r mut Reader,
}

impl<'r> Record<'r> {
    pub(crate) fn new(reader: &'r mut Reader) -> Record<'r> {
        reader.current.delivered = true;
        Record { reader }
    }

    /// Where the record lies.
    pub fn place(&self) -> Place {
        self.reader.current.place
    }

    /// How many bytes of the file the record takes, from its [`place`](Record::place) to the end of its
    /// last member or of the line ends after it. Known at once for most packed records, for the others
    /// after [`finish`](Record::finish). For a record that shares a member it is the length of the member.
    pub fn stored_len(&self) -> Option<u64> {
        self.reader.stored_length()
    }

    /// Whether the record is of an ARC file.
    pub fn is_arc(&self) -> bool {
        self.reader.current.arc
    }

    /// The version line; `None` for ARC.
    pub fn version(&self) -> Option<Version> {
        self.reader.current.version
    }

    /// The header fields. For ARC they are made from the header line.
    pub fn header(&self) -> &Header {
        &self.reader.header
    }

    /// The type. Records of ARC are responses, except the first, which is like a warcinfo.
    pub fn kind(&self) -> RecordType {
        self.reader.current.kind.unwrap_or(RecordType::Unknown)
    }

    /// The target URI without angle brackets around it, otherwise as it was written.
    pub fn target_uri(&self) -> Option<&[u8]> {
        let uri = self.header().known(Known::TargetUri)?;
        Some(uri.strip_prefix(b"<").and_then(|uri| uri.strip_suffix(b">")).unwrap_or(uri))
    }

    /// The date, if it can be read.
    pub fn date(&self) -> Option<Date> {
        Date::parse(self.header().known(Known::Date)?)
    }

    /// The record id, without angle brackets.
    pub fn record_id(&self) -> Option<&[u8]> {
        self.header().known(Known::RecordId).map(unbracket)
    }

    /// The `Content-Type` of the block; for ARC the MIME type of the header line.
    pub fn content_type(&self) -> Option<&[u8]> {
        self.header().known(Known::ContentType)
    }

    /// The `Content-Length`, if the block is taken to be that long. `None` if it is missing or wrong.
    pub fn content_length(&self) -> Option<u64> {
        let current = &self.reader.current;
        match current.limit {
            Limit::Bytes(left) if !current.damaged => Some(current.read + left),
            _ => None,
        }
    }

    /// The problems known so far: what lay before the record, its header, and what has been read of it.
    pub fn problems(&self) -> &[Problem] {
        self.reader.tape.problems.list()
    }

    /// The head of the HTTP message in the block. `None` if the record is none, or the head cannot be
    /// found any more because the block has been read past it.
    pub fn http(&mut self) -> io::Result<Option<&HttpHead>> {
        if self.reader.current.http == HttpState::Unknown {
            let found = self.is_http() && self.reader.read_http()?;
            self.reader.current.http = if found { HttpState::Some } else { HttpState::None };
        }
        Ok((self.reader.current.http == HttpState::Some).then_some(&self.reader.http))
    }

    /// Whether the block should be an HTTP message.
    pub fn is_http(&self) -> bool {
        let starts = |text: Option<&[u8]>, with: &[u8]| {
            text.and_then(|text| text.get(..with.len())).is_some_and(|first| first.eq_ignore_ascii_case(with))
        };
        let web = starts(self.target_uri(), b"http:") || starts(self.target_uri(), b"https:");
        if self.is_arc() {
            return web && self.content_type() != Some(b"alexa/dat");
        }
        match self.kind() {
            RecordType::Response | RecordType::Request | RecordType::Revisit => match self.content_type() {
                Some(text) => starts(Some(text), b"application/http"),
                None => web || self.target_uri().is_none(),
            },
            _ => false,
        }
    }

    /// The whole block as it is stored, the HTTP head included.
    pub fn block(&mut self) -> Block<'_> {
        Block { reader: self.reader }
    }

    /// The body as it is stored: what follows the HTTP head, or the whole block where there is none.
    pub fn body(&mut self) -> io::Result<Block<'_>> {
        self.skip_http_head()?;
        Ok(Block { reader: self.reader })
    }

    pub(crate) fn skip_http_head(&mut self) -> io::Result<()> {
        if self.http()?.is_some() && self.reader.current.read == 0 {
            let len = self.reader.http.len();
            self.reader.peek_block(len)?;
            self.reader.consume_block(len);
        }
        Ok(())
    }

    /// Passes over what is left of the record. Afterwards [`stored_len`](Record::stored_len) and
    /// [`problems`](Record::problems) are complete.
    pub fn finish(&mut self) -> io::Result<()> {
        self.reader.finish_block()
    }
}

/// A value without angle brackets around it.
pub(crate) fn unbracket(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|inner| inner.strip_suffix(b">")).unwrap_or(value)
}

impl Reader {
    /// Looks for the HTTP head at the start of the block, without taking it.
    fn read_http(&mut self) -> io::Result<bool> {
        if self.current.read > 0 || self.current.finished {
            return Ok(false);
        }
        let offset = self.current.place.offset;
        let mut want = 1;
        loop {
            let have = self.peek_block(want)?;
            let whole =
                have <= http::HEAD_MAX && (have < want || self.current.limit == Limit::Bytes(have as u64));
            let bytes = &self.tape.window()[..have.min(http::HEAD_MAX)];
            let mut kinds = Vec::new();
            let found = self.http.parse(bytes, whole, &mut |kind| kinds.push(kind));
            for kind in kinds {
                self.tape.problems.add(offset, kind);
            }
            match found {
                Found::Head => return Ok(true),
                Found::Nothing => break,
                Found::More if have >= http::HEAD_MAX => {
                    self.tape.problems.add(offset, Kind::HttpHeadTooLong);
                    return self.read_long_http();
                }
                Found::More => want = (have * 2).max(4096),
            }
        }
        let empty = self.current.limit == Limit::Bytes(0);
        if !empty || self.current.kind != Some(RecordType::Revisit) {
            self.tape.problems.add(offset, Kind::HttpNoHead);
        }
        Ok(false)
    }
}

impl Reader {
    /// Looks for the end of a head that is longer than is read: its first fields count, and what follows it is the body.
    fn read_long_http(&mut self) -> io::Result<bool> {
        let mut want = http::HEAD_MAX * 2;
        loop {
            let have = self.peek_block(want)?;
            let bytes = &self.tape.window()[..have.min(http::HEAD_PASSED_MAX)];
            let len = match head_end(bytes, |_| false) {
                HeadEnd::Blank(len) | HeadEnd::Stopped(len) => len,
                // There is nothing but a head.
                HeadEnd::Open if have < want && have < http::HEAD_PASSED_MAX => have,
                HeadEnd::Open if have >= http::HEAD_PASSED_MAX => return Ok(false),
                HeadEnd::Open => {
                    want = have * 2;
                    continue;
                }
            };
            return Ok(self.http.parse_start_of(bytes, len));
        }
    }
}

/// Reads the bytes of a block where they lie.
#[derive(Debug)]
pub struct Block<'a> {
    reader: &'a mut Reader,
}

impl BufRead for Block<'_> {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let have = self.reader.peek_block(1)?;
        Ok(&self.reader.tape.window()[..have])
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.reader.consume_block(n);
    }
}

impl Read for Block<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}
