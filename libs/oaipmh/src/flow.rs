//! What to do with an HTTP answer before its XML is looked at: pure decisions, no clock and no sockets.
//!
//! Servers say "later" with 503 or 429 and Retry-After (seconds or a date), move without notice, and send HTML
//! error pages with status 200. Waiting is the caller's; here is only what is right.

use std::time::Duration;

use jiff::Timestamp;

/// What the first bytes of a body look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// Nothing, or only blanks.
    Empty,
    /// XML, or near enough to try.
    Xml,
    /// An HTML page.
    Html,
    /// A gzip member, whatever Content-Encoding says: unpack it, then look again.
    Gzip,
    /// A zstd frame, likewise.
    Zstd,
    /// None of these.
    Other,
}

impl BodyKind {
    /// Bytes worth waiting for before sniffing.
    pub const SNIFF_BYTES: usize = 1024;

    /// Looks at the first bytes of a body.
    pub fn sniff(start: &[u8]) -> BodyKind {
        match start {
            [0x1f, 0x8b, ..] => return BodyKind::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => return BodyKind::Zstd,
            // Byte order marks of UTF-16, and UTF-16 without one.
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'<', 0, ..] | [0, b'<', ..] => return BodyKind::Xml,
            _ => {}
        }
        let start = &start[..start.len().min(BodyKind::SNIFF_BYTES)];
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        if text.is_empty() {
            return BodyKind::Empty;
        }
        // A notice of PHP before the answer is HTML too, so XML is looked for first and anywhere.
        if contains(text, b"<?xml") && !contains(text, b"<html") || contains(text, b"OAI-PMH") {
            return BodyKind::Xml;
        }
        let lower = text.to_ascii_lowercase();
        if [&b"<!doctype html"[..], b"<html", b"<head", b"<body"].iter().any(|mark| contains(&lower, mark)) {
            BodyKind::Html
        } else if text[0] == b'<' {
            BodyKind::Xml
        } else {
            BodyKind::Other
        }
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(text, what).is_some()
}

/// What an answer's head says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    /// The value of Retry-After.
    pub retry_after: Option<&'a str>,
    /// The value of Location.
    pub location: Option<&'a str>,
}

/// How patient a harvester is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The wait before the first repetition when the server names none; doubled with each further one.
    pub first_wait: Duration,
    /// No own wait is longer.
    pub wait_max: Duration,
    /// A Retry-After beyond this ends the harvest: better tomorrow than a process that sleeps for a week.
    pub retry_after_max: Duration,
    /// Failures in a row before giving up.
    pub attempts_max: u32,
    /// Redirects in a row before giving up.
    pub hops_max: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            // As the validator of the Open Archives Initiative waits.
            first_wait: Duration::from_secs(10),
            wait_max: Duration::from_secs(300),
            // One hour: the same validator aborts beyond it.
            retry_after_max: Duration::from_secs(3600),
            attempts_max: 5,
            // Load balancers need one, moved servers one more.
            hops_max: 5,
        }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Read the body as an answer.
    Read,
    /// Ask the same again after this long.
    Retry {
        /// At least this long.
        after: Duration,
        /// Why.
        reason: Reason,
    },
    /// Ask the same at this place; the repository stays known by its old base URL.
    Follow {
        /// The value of Location, still to be resolved against the URL asked.
        location: String,
        /// The server says the move is for good; the operator should know.
        permanent: bool,
    },
    /// Stop.
    Fail(Reason),
}

/// Why an answer is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 503, 429.
    Busy(u16),
    /// 408, 500, 502, 504 and other failures of the server.
    ServerError(u16),
    /// 401, 403, 404 and the like: needs a person.
    Refused(u16),
    /// A status the protocol has no use for.
    Unexpected(u16),
    /// The wait asked for is longer than patience lasts.
    WaitTooLong(Duration),
    /// More redirects in a row than believable.
    TooManyRedirects,
    /// A redirect to nowhere.
    NoLocation,
    /// Status 200 and nothing in it.
    EmptyBody,
    /// Status 200 and an HTML page.
    HtmlBody,
    /// Status 200 and neither XML nor HTML.
    ForeignBody,
    /// The last of several failures in a row.
    GaveUp(Box<Reason>),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Busy(status) => write!(f, "the server is busy (HTTP {status})"),
            Reason::ServerError(status) => write!(f, "the server failed (HTTP {status})"),
            Reason::Refused(status) => write!(f, "the server refuses (HTTP {status})"),
            Reason::Unexpected(status) => write!(f, "the server answered HTTP {status}"),
            Reason::WaitTooLong(wait) => write!(f, "the server asks to wait {} s", wait.as_secs()),
            Reason::TooManyRedirects => f.write_str("too many redirects in a row"),
            Reason::NoLocation => f.write_str("a redirect without a Location"),
            Reason::EmptyBody => f.write_str("the answer is empty"),
            Reason::HtmlBody => f.write_str("the answer is an HTML page"),
            Reason::ForeignBody => f.write_str("the answer is not XML"),
            Reason::GaveUp(last) => write!(f, "gave up after several tries: {last}"),
        }
    }
}

/// Decides on one answer. `failures` and `hops` count those in a row before this one; `now` is for a Retry-After
/// that is a date. The answers to look out for are tables in the tests.
pub fn decide(
    head: Head<'_>,
    body: BodyKind,
    failures: u32,
    hops: u32,
    now: Timestamp,
    patience: &Patience,
) -> Decision {
    let retry = |reason: Reason| {
        if failures + 1 >= patience.attempts_max {
            return Decision::Fail(Reason::GaveUp(Box::new(reason)));
        }
        let own = own_wait(failures, patience);
        let asked = head.retry_after.and_then(|text| retry_after(text, now));
        match asked {
            Some(asked) if asked > patience.retry_after_max => Decision::Fail(Reason::WaitTooLong(asked)),
            // "At once" from a server that just failed is not believed.
            Some(asked) => Decision::Retry { after: asked.max(Duration::from_secs(1)), reason },
            None => Decision::Retry { after: own, reason },
        }
    };
    match head.status {
        200 => match body {
            BodyKind::Xml | BodyKind::Gzip | BodyKind::Zstd => Decision::Read,
            BodyKind::Empty => retry(Reason::EmptyBody),
            BodyKind::Html => retry(Reason::HtmlBody),
            BodyKind::Other => retry(Reason::ForeignBody),
        },
        301 | 302 | 303 | 307 | 308 => match head.location.map(str::trim) {
            _ if hops >= patience.hops_max => Decision::Fail(Reason::TooManyRedirects),
            None | Some("") => Decision::Fail(Reason::NoLocation),
            Some(location) => Decision::Follow {
                location: location.to_owned(),
                permanent: matches!(head.status, 301 | 308),
            },
        },
        429 | 503 => retry(Reason::Busy(head.status)),
        // Errors of the protocol with an HTTP status to match are still answers.
        400 | 404 | 410 | 422 if body == BodyKind::Xml => Decision::Read,
        408 | 425 | 500..=599 => retry(Reason::ServerError(head.status)),
        400..=499 => Decision::Fail(Reason::Refused(head.status)),
        status => Decision::Fail(Reason::Unexpected(status)),
    }
}

/// The wait of a harvester that was told nothing: doubled with each failure in a row. Also for broken
/// connections, which have no answer to decide on.
pub fn own_wait(failures: u32, patience: &Patience) -> Duration {
    patience.first_wait.saturating_mul(1 << failures.min(20)).min(patience.wait_max)
}

/// Reads Retry-After: seconds, or a date of HTTP in any of its forms. A date that is past means no wait.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // Longer numbers are longer than any patience; they need not be exact.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    if let Some((whole, fraction)) = text.split_once('.')
        && [whole, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    {
        return Some(
            Duration::from_secs(whole.parse::<u32>().unwrap_or(u32::MAX).into()) + Duration::from_secs(1),
        );
    }
    let at = http_date(text)?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The three forms of RFC 9110. Names of days are not checked: servers get them wrong.
fn http_date(text: &str) -> Option<Timestamp> {
    let rest = text.split_once(',').map_or(text, |(_, rest)| rest);
    let words: Vec<&str> = rest.split([' ', '-']).filter(|word| !word.is_empty()).collect();
    let (year, month, day, time) = match words[..] {
        // Sun, 06 Nov 1994 08:49:37 GMT and Sunday, 06-Nov-94 08:49:37 GMT
        [day, month, year, time, ..] if day.bytes().all(|b| b.is_ascii_digit()) => (year, month, day, time),
        // Sun Nov  6 08:49:37 1994
        [_, month, day, time, year] => (year, month, day, time),
        _ => return None,
    };
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = month.get(..3)?.to_ascii_lowercase();
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let mut year: i16 = year.parse().ok()?;
    if year < 100 {
        year += if year < 70 { 2000 } else { 1900 };
    }
    let mut clock = time.split(':').map(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let civil =
        jiff::civil::DateTime::new(year, month as i8, day.parse().ok()?, hour, minute, second.min(59), 0);
    civil.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "1994-11-06T08:49:07Z".parse().unwrap()
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn retry_after_is_seconds_or_any_date_of_http() {
        for (text, wait) in [
            ("120", Some(secs(120))),
            (" 0 ", Some(secs(0))),
            ("1.5", Some(secs(2))),
            ("99999999999999999999999", Some(secs(u64::from(u32::MAX)))),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(secs(30))),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(secs(30))),
            ("Sun Nov  6 08:49:37 1994", Some(secs(30))),
            ("06 Nov 1994 08:49:37 GMT", Some(secs(30))),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(secs(0))),
            ("soon", None),
            ("", None),
            ("-5", None),
            ("Sun, 31 Feb 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(retry_after(text, now()), wait, "{text}");
        }
    }

    #[test]
    fn bodies_are_known_by_their_first_bytes() {
        for (start, kind) in [
            (&b""[..], BodyKind::Empty),
            (b" \r\n\t", BodyKind::Empty),
            (b"\xef\xbb\xbf\n<?xml version='1.0'?>", BodyKind::Xml),
            (b"<OAI-PMH>", BodyKind::Xml),
            (b"<oai:OAI-PMH>", BodyKind::Xml),
            (b"<br />\n<b>Notice</b>: x\n<?xml version='1.0'?><OAI-PMH>", BodyKind::Xml),
            (b"\xff\xfe<\0?\0", BodyKind::Xml),
            (b"<\0?\0", BodyKind::Xml),
            (b"<!DOCTYPE html><html>", BodyKind::Html),
            (b"<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>", BodyKind::Html),
            (b"  <HTML>", BodyKind::Html),
            (b"\x1f\x8b\x08", BodyKind::Gzip),
            (b"\x28\xb5\x2f\xfd", BodyKind::Zstd),
            (b"{\"error\": 1}", BodyKind::Other),
        ] {
            assert_eq!(BodyKind::sniff(start), kind, "{}", start.escape_ascii());
        }
    }

    #[test]
    fn every_answer_has_its_decision() {
        let retry = |after, reason| Decision::Retry { after: secs(after), reason };
        let plain = |status| Head { status, ..Head::default() };
        let later = |status, text| Head { status, retry_after: Some(text), ..Head::default() };
        let moved = |status, to| Head { status, location: Some(to), ..Head::default() };
        let follow = |to: &str, permanent| Decision::Follow { location: to.into(), permanent };
        for (head, body, failures, hops, decision) in [
            (plain(200), BodyKind::Xml, 4, 5, Decision::Read),
            (plain(200), BodyKind::Gzip, 0, 0, Decision::Read),
            (plain(200), BodyKind::Empty, 0, 0, retry(10, Reason::EmptyBody)),
            (plain(200), BodyKind::Html, 1, 0, retry(20, Reason::HtmlBody)),
            (plain(200), BodyKind::Other, 0, 0, retry(10, Reason::ForeignBody)),
            (later(503, "7"), BodyKind::Html, 3, 0, retry(7, Reason::Busy(503))),
            (later(503, "0"), BodyKind::Empty, 0, 0, retry(1, Reason::Busy(503))),
            (
                later(429, "Sun, 06 Nov 1994 08:49:37 GMT"),
                BodyKind::Empty,
                0,
                0,
                retry(30, Reason::Busy(429)),
            ),
            (later(503, "whenever"), BodyKind::Empty, 2, 0, retry(40, Reason::Busy(503))),
            (later(503, "3601"), BodyKind::Empty, 0, 0, Decision::Fail(Reason::WaitTooLong(secs(3601)))),
            (plain(503), BodyKind::Empty, 4, 0, Decision::Fail(Reason::GaveUp(Box::new(Reason::Busy(503))))),
            (plain(502), BodyKind::Html, 0, 0, retry(10, Reason::ServerError(502))),
            (plain(403), BodyKind::Html, 0, 0, Decision::Fail(Reason::Refused(403))),
            (plain(404), BodyKind::Html, 0, 0, Decision::Fail(Reason::Refused(404))),
            (plain(404), BodyKind::Xml, 0, 0, Decision::Read),
            (plain(204), BodyKind::Empty, 0, 0, Decision::Fail(Reason::Unexpected(204))),
            (moved(302, "/new"), BodyKind::Empty, 0, 4, follow("/new", false)),
            (moved(301, "http://y/"), BodyKind::Html, 0, 0, follow("http://y/", true)),
            (moved(308, "http://y/"), BodyKind::Html, 0, 5, Decision::Fail(Reason::TooManyRedirects)),
            (plain(302), BodyKind::Empty, 0, 0, Decision::Fail(Reason::NoLocation)),
        ] {
            let got = decide(head, body, failures, hops, now(), &Patience::default());
            assert_eq!(got, decision, "{head:?} {body:?}");
        }
    }

    #[test]
    fn own_waits_double_up_to_their_limit() {
        let patience = Patience::default();
        let waits: Vec<u64> = (0..7).map(|failures| own_wait(failures, &patience).as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(own_wait(u32::MAX, &patience), patience.wait_max);
    }
}
