//! The bytes of an answer: one buffer, one write.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::{BASE64, HEXLOWER};
use jiff::Timestamp;

use crate::digest::Sum;

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
    String::from_utf8_lossy(&date_bytes(seconds)).into_owned()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, laid out by hand: every answer carries one, and formatting by a pattern takes a
/// tenth of the time of the whole answer.
fn date_bytes(seconds: i64) -> [u8; 29] {
    const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    const MONTHS: [&[u8; 3]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    // A time beyond what HTTP can write (a file from the year 10,000) is told as the epoch.
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    let civil = jiff::tz::Offset::UTC.to_datetime(time);
    let digits = |value: i8| [b'0' + value.unsigned_abs() / 10 % 10, b'0' + value.unsigned_abs() % 10];
    let mut text = *b"Sun, 06 Nov 1994 08:49:37 GMT";
    text[..3].copy_from_slice(DAYS[civil.weekday().to_monday_zero_offset().unsigned_abs() as usize % 7]);
    text[5..7].copy_from_slice(&digits(civil.day()));
    text[8..11].copy_from_slice(MONTHS[(civil.month().unsigned_abs() as usize + 11) % 12]);
    let year = civil.year().unsigned_abs();
    text[12..14].copy_from_slice(&digits((year / 100) as i8));
    text[14..16].copy_from_slice(&digits((year % 100) as i8));
    text[17..19].copy_from_slice(&digits(civil.hour()));
    text[20..22].copy_from_slice(&digits(civil.minute()));
    text[23..25].copy_from_slice(&digits(civil.second()));
    text
}

/// A time as HTTP writes it, read.
pub(crate) fn read_http_date(text: &str) -> Option<i64> {
    let civil = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", text).ok()?;
    Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

thread_local! {
    /// The Date line of this second.
    static DATE: Cell<(u64, [u8; 29])> = const { Cell::new((u64::MAX, [0; 29])) };
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
        let (mut of, mut text) = DATE.get();
        if of != second {
            (of, text) = (second, date_bytes(second.cast_signed()));
            DATE.set((of, text));
        }
        out.extend_from_slice(&text);
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
        self.0.extend_from_slice(b"Last-Modified: ");
        self.0.extend_from_slice(&date_bytes(seconds));
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The strong tag and the checksum, of which it is made.
    pub(crate) fn sum(self, sum: &Sum) -> Self {
        let mut hex = [0; 128];
        HEXLOWER.encode_mut(&sum.0, &mut hex);
        let mut base64 = [0; 88];
        BASE64.encode_mut(&sum.0, &mut base64);
        for piece in [&b"ETag: \"sha512-"[..], &hex, b"\"\r\nRepr-Digest: sha-512=:", &base64, b":\r\n"] {
            self.0.extend_from_slice(piece);
        }
        self
    }

    pub(crate) fn safe(self) -> Self {
        self.lines(SAFE)
    }

    pub(crate) fn length(self, bytes: u64) {
        self.0.extend_from_slice(b"Content-Length: ");
        let mut digits = [0; 20];
        let (mut at, mut left) = (digits.len(), bytes);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
        self.0.extend_from_slice(b"\r\n\r\n");
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_written_and_read() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(read_http_date("yesterday"), None);
        assert_eq!(http_date(i64::MAX), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn the_hand_made_date_is_that_of_the_calendar(seconds in -60_000_000_000_i64..253_000_000_000) {
            let time = Timestamp::from_second(seconds).unwrap();
            prop_assert_eq!(http_date(seconds), time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }

        #[test]
        fn lengths_are_written_as_numbers(bytes: u64) {
            let mut out = Vec::new();
            Head(&mut out).length(bytes);
            prop_assert_eq!(out, format!("Content-Length: {bytes}\r\n\r\n").into_bytes());
        }
    }

    #[test]
    fn the_tag_is_the_checksum() {
        let (mut out, sum) = (Vec::new(), Sum::of(b"x"));
        let _ = Head(&mut out).sum(&sum);
        let expected = format!("ETag: \"sha512-{sum}\"\r\nRepr-Digest: sha-512=:{}:\r\n", sum.base64());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
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
