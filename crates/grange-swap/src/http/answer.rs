//! The bytes of an answer: one buffer, one write.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// What everything we serve carries: browsers neither guess types nor run what is stored.
const SAFE: &str = "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox; default-src 'none'; style-src 'unsafe-inline'\r\n";

pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        428 => "Precondition Required",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        _ => "Unknown",
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

/// A time as HTTP writes it.
pub(crate) fn http_date(seconds: i64) -> String {
    const FORM: &str = "%a, %d %b %Y %H:%M:%S GMT";
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    time.strftime(FORM).to_string()
}

/// A time as HTTP writes it, read.
pub(crate) fn read_http_date(text: &str) -> Option<i64> {
    let civil = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", text).ok()?;
    Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

thread_local! {
    /// The Date line of this second.
    static DATE: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    /// The last time written as a Last-Modified: neighbours were often stored in one second.
    static MODIFIED: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
}

/// Builds a head into a buffer.
#[derive(Debug)]
pub(crate) struct Head<'b>(&'b mut Vec<u8>);

impl<'b> Head<'b> {
    pub(crate) fn new(out: &'b mut Vec<u8>, status: u16, keep_alive: bool) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        let digits =
            [b'0' + (status / 100) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8, b' '];
        out.extend_from_slice(&digits);
        out.extend_from_slice(reason(status).as_bytes());
        out.extend_from_slice(b"\r\nServer: Grange\r\nDate: ");
        let second = now();
        DATE.with_borrow_mut(|(of, text)| {
            if *of != second {
                *of = second;
                *text = http_date(second.cast_signed());
            }
            out.extend_from_slice(text.as_bytes());
        });
        out.extend_from_slice(b"\r\n");
        if !keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        Self(out)
    }

    pub(crate) fn line(self, name: &str, value: &str) -> Self {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        self.0.extend_from_slice(value.as_bytes());
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// Lines that already end as lines do.
    pub(crate) fn lines(self, lines: &str) -> Self {
        self.0.extend_from_slice(lines.as_bytes());
        self
    }

    pub(crate) fn modified(self, seconds: i64) -> Self {
        MODIFIED.with_borrow_mut(|(of, text)| {
            if *of != seconds {
                *of = seconds;
                *text = http_date(seconds);
            }
            self.line("Last-Modified", text)
        })
    }

    pub(crate) fn safe(self) -> Self {
        self.lines(SAFE)
    }

    pub(crate) fn length(self, bytes: u64) {
        // Writing into a vector cannot fail.
        let _ = write!(self.0, "Content-Length: {bytes}\r\n\r\n");
    }
}

/// A whole answer of a sentence for people.
pub(crate) fn sentence(out: &mut Vec<u8>, status: u16, keep_alive: bool, lines: &str, text: &str) {
    let head =
        Head::new(out, status, keep_alive).lines(lines).line("Content-Type", "text/plain; charset=utf-8");
    head.safe().length(text.len() as u64 + 1);
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(read_http_date("yesterday"), None);
    }

    #[test]
    fn an_answer_is_whole() {
        let mut out = Vec::new();
        sentence(&mut out, 503, false, "Retry-After: 5\r\n", "away");
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\nServer: Grange\r\nDate: "), "{text}");
        assert!(text.contains("\r\nConnection: close\r\nRetry-After: 5\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 5\r\n\r\naway\n"), "{text}");
    }
}
