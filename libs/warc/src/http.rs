//! The head of an HTTP message as it was recorded, read as leniently as browsers would.

use crate::fields::{Fields, HeadEnd, head_end, trim_line_end};
use crate::problem::Kind;

/// The longest HTTP head that is read.
pub(crate) const HEAD_MAX: usize = 256 << 10;
/// The longest HTTP head that is passed over to get at the body: it has to lie in memory. Only attacks are longer.
pub(crate) const HEAD_PASSED_MAX: usize = 4 << 20;

/// The head of an HTTP request or response.
#[derive(Debug, Default, Clone)]
pub struct HttpHead {
    fields: Fields,
    start: Start,
    len: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Start {
    /// The length of the start line without its end.
    len: usize,
    status: Option<u16>,
    reason: (usize, usize),
    method: usize,
    target: (usize, usize),
    request: bool,
}

impl HttpHead {
    /// The start line, without its line end.
    pub fn start_line(&self) -> &[u8] {
        &self.fields.raw()[..self.start.len]
    }

    /// Whether this is a request.
    pub fn is_request(&self) -> bool {
        self.start.request
    }

    /// The status code of a response, if its start line has one.
    pub fn status(&self) -> Option<u16> {
        self.start.status
    }

    /// What follows the status code.
    pub fn reason(&self) -> &[u8] {
        &self.fields.raw()[self.start.reason.0..self.start.reason.1]
    }

    /// The method of a request; empty for a response.
    pub fn method(&self) -> &[u8] {
        &self.fields.raw()[..self.start.method]
    }

    /// What was asked for, of a request; empty for a response.
    pub fn target(&self) -> &[u8] {
        &self.fields.raw()[self.start.target.0..self.start.target.1]
    }

    /// The value of the first header of that name, in any case of letters.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }

    /// The values of all headers of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.all(name)
    }

    /// All headers, names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// The media type of `Content-Type`: what stands before the first `;`, without space around it.
    pub fn mime(&self) -> Option<&[u8]> {
        let value = self.get("Content-Type")?;
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        Some(value[..end].trim_ascii())
    }

    /// Whether the body is said to be chunked.
    pub fn is_chunked(&self) -> bool {
        self.all("Transfer-Encoding").any(|value| {
            value.split(|&b| b == b',').any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
        })
    }

    /// Reads the first fields of a head that takes `len` bytes, more than are read: up to the last whole line.
    pub(crate) fn parse_start_of(&mut self, bytes: &[u8], len: usize) -> bool {
        let start = &bytes[..len.min(HEAD_MAX)];
        let end = memchr::memrchr(b'\n', start).map_or(start.len(), |at| at + 1);
        let found = self.parse(&start[..end], true, &mut |_| {}) == Found::Head;
        self.len = len;
        found
    }

    /// The length of the head in the block, the blank line included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the head has no bytes. It never has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the head as they were found.
    pub fn raw(&self) -> &[u8] {
        self.fields.raw()
    }

    /// Reads a head that stands at the start of `bytes`, which are all there is of the message.
    /// Answers `None` if there is no head.
    pub fn from_bytes(bytes: &[u8]) -> Option<(HttpHead, Vec<Kind>)> {
        let mut head = HttpHead::default();
        let mut kinds = Vec::new();
        let found = head.parse(bytes, true, &mut |kind| kinds.push(kind));
        (found == Found::Head).then_some((head, kinds))
    }

    /// Reads the head at the start of `bytes`; `whole` tells that nothing follows them.
    pub(crate) fn parse(&mut self, bytes: &[u8], whole: bool, note: &mut dyn FnMut(Kind)) -> Found {
        self.fields.clear();
        let Some(line_end) = memchr::memchr(b'\n', bytes).or(whole.then_some(bytes.len())) else {
            // Do not gather a quarter of a megabyte of something that cannot become a head.
            return if bytes.len() < 16 || start_line(&bytes[..16]).is_some() {
                Found::More
            } else {
                Found::Nothing
            };
        };
        let Some((start, usual)) = start_line(trim_line_end(&bytes[..line_end])) else {
            return Found::Nothing;
        };
        let len = match head_end(bytes, |_| false) {
            HeadEnd::Blank(len) | HeadEnd::Stopped(len) => len,
            HeadEnd::Open if whole => {
                note(Kind::HttpUnterminatedHead);
                bytes.len()
            }
            HeadEnd::Open => return Found::More,
        };
        if !usual {
            note(Kind::HttpBadStatusLine);
        }
        let notes = self.fields.parse(&bytes[..len], (line_end + 1).min(len));
        (self.start, self.len) = (start, len);
        for (set, kind) in [
            (notes.bare_lf, Kind::HttpBareLf),
            (notes.no_colon, Kind::HttpLineWithoutColon),
            (notes.space_before_colon, Kind::HttpSpaceBeforeColon),
        ] {
            if set {
                note(kind);
            }
        }
        Found::Head
    }
}

/// What parsing found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole head.
    Head,
    /// What may become one with more bytes.
    More,
    /// No head.
    Nothing,
}

/// Reads a start line, and whether it is of the usual form.
fn start_line(line: &[u8]) -> Option<(Start, bool)> {
    let version = [&b"HTTP"[..], b"ICY"].iter().any(|name| {
        line.get(..name.len()).is_some_and(|first| first.eq_ignore_ascii_case(name))
            && line.get(name.len()).is_none_or(|&b| b == b'/' || b == b' ' || b.is_ascii_digit())
    });
    if version {
        return Some(status_line(line));
    }
    request_line(line).map(|start| (start, true))
}

fn status_line(line: &[u8]) -> (Start, bool) {
    let mut start = Start { len: line.len(), ..Start::default() };
    let space = memchr::memchr2(b' ', b'\t', line).unwrap_or(line.len());
    let skip = |from: usize| from + line[from..].iter().take_while(|&&b| b == b' ' || b == b'\t').count();
    let at = skip(space);
    let digits = line[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let after = line.get(at + digits).copied();
    if (1..=3).contains(&digits) && after.is_none_or(|b| b == b' ' || b == b'\t') {
        start.status = std::str::from_utf8(&line[at..at + digits]).ok().and_then(|text| text.parse().ok());
        start.reason = (skip(at + digits), line.len());
    } else {
        start.reason = (at, line.len());
    }
    let usual = line.starts_with(b"HTTP/") && at == space + 1 && digits == 3 && start.status.is_some();
    (start, usual)
}

fn request_line(line: &[u8]) -> Option<Start> {
    let method = line.iter().take_while(|b| b.is_ascii_uppercase() || **b == b'-' || **b == b'_').count();
    if method == 0 || line.get(method) != Some(&b' ') {
        return None;
    }
    let rest = &line[method + 1..];
    let end = memchr::memmem::rfind(rest, b" HTTP/").unwrap_or(rest.len());
    Some(Start {
        len: line.len(),
        method,
        target: (method + 1, method + 1 + end),
        request: true,
        ..Start::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_every_form() {
        use Kind::{
            HttpBadStatusLine as Line, HttpBareLf as Lf, HttpLineWithoutColon as Colon,
            HttpSpaceBeforeColon as Space, HttpUnterminatedHead as Open,
        };
        // Bytes; status, reason, length of the head, kinds.
        type Case = (&'static str, Option<u16>, &'static str, usize, &'static [Kind]);
        let cases: &[Case] = &[
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", Some(200), "OK", 25, &[]),
            ("HTTP/1.1 200\r\n\r\nbody", Some(200), "", 16, &[]),
            ("HTTP/1.1 200  \r\n\r\n", Some(200), "", 18, &[]),
            ("HTTP/2 204 \r\n\r\n", Some(204), "", 15, &[]),
            ("HTTP 200 OK\r\n\r\n", Some(200), "OK", 15, &[Line]),
            ("HTTP/1.1 0 unknown\r\n\r\n", Some(0), "unknown", 22, &[Line]),
            ("ICY 200 OK\r\n\r\n", Some(200), "OK", 14, &[Line]),
            ("HTTP/1.1 OK\r\n\r\n", None, "OK", 15, &[Line]),
            ("HTTP/1.1  404  gone away\r\n\r\n", Some(404), "gone away", 28, &[Line]),
            ("HTTP/1.1 200 OK\nA: b\n\nbody", Some(200), "OK", 22, &[Lf]),
            ("HTTP/1.1 200 OK\r\nA: b", Some(200), "OK", 21, &[Open]),
            ("HTTP/1.1 200 OK", Some(200), "OK", 15, &[Open]),
            ("HTTP/1.1 410 Gone\r\r\n\r\n", Some(410), "Gone", 22, &[]),
            ("HTTP/1.1 200 OK\r\nA : b\r\nnothing\r\n\r\n", Some(200), "OK", 35, &[Colon, Space]),
        ];
        for (bytes, status, reason, len, kinds) in cases {
            let (head, got) = HttpHead::from_bytes(bytes.as_bytes()).expect(bytes);
            assert_eq!(
                (head.status(), head.reason(), head.len()),
                (*status, reason.as_bytes(), *len),
                "{bytes:?}"
            );
            assert_eq!(got, *kinds, "{bytes:?}");
        }
        for bytes in ["<html>", "", "\r\n\r\n", "HTTPS://x", "hello world\r\n\r\n"] {
            assert!(HttpHead::from_bytes(bytes.as_bytes()).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn requests() {
        for (line, method, target) in [
            ("GET / HTTP/1.1\r\n\r\n", "GET", "/"),
            ("POST /a b HTTP/1.0\r\n\r\n", "POST", "/a b"),
            ("GET /old\r\n\r\n", "GET", "/old"),
        ] {
            let (head, _) = HttpHead::from_bytes(line.as_bytes()).unwrap();
            assert!(head.is_request());
            assert_eq!((head.method(), head.target()), (method.as_bytes(), target.as_bytes()));
        }
    }

    #[test]
    fn chunked_in_any_case() {
        for (value, expected) in
            [("chunked", true), ("Chunked", true), ("gzip, CHUNKED", true), ("identity", false)]
        {
            let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {value}\r\n\r\n");
            assert_eq!(HttpHead::from_bytes(text.as_bytes()).unwrap().0.is_chunked(), expected);
        }
    }
}
