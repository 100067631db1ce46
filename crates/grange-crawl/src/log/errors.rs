//! Lines of the error logs.

use jiff::Timestamp;

use super::column;
use super::line::CrawlLine;
use super::time;

/// How grave an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertLevel {
    /// Something to look at in time.
    Warning,
    /// Something to look at now.
    Severe,
}

impl AlertLevel {
    const fn as_str(self) -> &'static str {
        match self {
            AlertLevel::Warning => "WARNING",
            AlertLevel::Severe => "SEVERE",
        }
    }
}

/// How much of a reason is written, in bytes: one line of a log, not a dump.
const REASON_BYTES_MAX: usize = 4096;

/// Appends a line of uri-errors.log: `found`, a text that is no URI, in the page `page`, and why it is none.
pub fn uri_error(now: Timestamp, page: Option<&str>, reason: &str, found: &str, out: &mut Vec<u8>) {
    time::push_millis(out, now);
    out.push(b' ');
    column::push(out, page.unwrap_or("n/a"));
    out.extend_from_slice(b" \"");
    push_sentence(out, reason);
    out.extend_from_slice(b"\" ");
    push_sentence(out, found);
    out.push(b'\n');
}

/// Appends to nonfatal-errors.log: the line of crawl.log, and what went wrong along the way.
pub fn nonfatal_error(line: &CrawlLine<'_>, reason: &str, out: &mut Vec<u8>) {
    with_reason(line, reason, out);
}

/// Appends to runtime-errors.log: the line of crawl.log, and the fault of our own.
pub fn runtime_error(line: &CrawlLine<'_>, reason: &str, out: &mut Vec<u8>) {
    with_reason(line, reason, out);
}

/// Appends a line of alerts.log.
pub fn alert(now: Timestamp, level: AlertLevel, part: &str, text: &str, out: &mut Vec<u8>) {
    time::push_millis(out, now);
    out.push(b' ');
    out.extend_from_slice(level.as_str().as_bytes());
    out.push(b' ');
    column::push(out, part);
    out.push(b' ');
    push_sentence(out, text);
    out.push(b'\n');
}

/// Heritrix puts the reason on lines of its own, each begun by a blank, after the line of crawl.log.
fn with_reason(line: &CrawlLine<'_>, reason: &str, out: &mut Vec<u8>) {
    line.write(out);
    out.push(b' ');
    push_sentence(out, reason);
    out.push(b'\n');
}

/// Text that may have blanks but no line ends.
fn push_sentence(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(REASON_BYTES_MAX)];
    for part in text.split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        out.extend_from_slice(part.as_bytes());
        out.push(b' ');
    }
    out.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_uri_is_told_with_its_page() {
        let mut out = Vec::new();
        let now: Timestamp = "2026-11-16T00:51:01.123Z".parse().unwrap();
        uri_error(now, Some("http://a.example/"), "empty host", "http://\n/x", &mut out);
        uri_error(now, None, "no scheme", "x", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-11-16T00:51:01.123Z http://a.example/ \"empty host\" http:// /x\n\
             2026-11-16T00:51:01.123Z n/a \"no scheme\" x\n"
        );
    }

    #[test]
    fn alerts_are_one_line_each() {
        let mut out = Vec::new();
        alert(Timestamp::UNIX_EPOCH, AlertLevel::Severe, "disk", "below\r\nthe floor", &mut out);
        alert(Timestamp::UNIX_EPOCH, AlertLevel::Warning, "virus gate", "", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "1970-01-01T00:00:00.000Z SEVERE disk below  the floor\n\
             1970-01-01T00:00:00.000Z WARNING virus%20gate \n"
        );
    }
}
