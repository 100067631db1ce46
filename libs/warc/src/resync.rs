//! Recognising where a record starts: in order, and in the middle of bytes that make no sense.

use memchr::memmem;

use crate::arc;

/// A version line, such as `WARC/1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The number before the dot.
    pub major: u8,
    /// The number after the dot.
    pub minor: u8,
}

impl Version {
    /// The current version of the standard.
    pub const V1_1: Version = Version { major: 1, minor: 1 };

    /// Whether this library knows the version: 0.9, 0.17, 0.18, 1.0 and 1.1 exist.
    pub fn is_known(self) -> bool {
        matches!((self.major, self.minor), (0, 9 | 17 | 18) | (1, 0 | 1))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WARC/{}.{}", self.major, self.minor)
    }
}

/// Reads a version line without its line end. Blanks at its end are passed over.
pub(crate) fn version_line(line: &[u8]) -> Option<Version> {
    // Lower case occurs in the wild.
    let rest = line.get(5..).filter(|_| line[..5].eq_ignore_ascii_case(b"WARC/"))?.trim_ascii_end();
    let dot = rest.iter().position(|&b| b == b'.')?;
    let number = |digits: &[u8]| -> Option<u8> { std::str::from_utf8(digits).ok()?.parse().ok() };
    if rest.first() == Some(&b'+') || rest.get(dot + 1) == Some(&b'+') {
        return None;
    }
    Some(Version { major: number(&rest[..dot])?, minor: number(&rest[dot + 1..])? })
}

/// The longest version line worth considering.
pub(crate) const VERSION_LINE_MAX: usize = 32;

/// Whether `bytes` start with a version line.
pub(crate) fn starts_warc(bytes: &[u8]) -> bool {
    if !bytes.get(..5).is_some_and(|first| first.eq_ignore_ascii_case(b"WARC/")) {
        return false;
    }
    let near = &bytes[..bytes.len().min(VERSION_LINE_MAX)];
    let line = memchr::memchr(b'\n', near).map_or(near, |end| &near[..end]);
    version_line(line).is_some()
}

/// Whether `bytes` start a WARC or, beyond doubt, an ARC record. Empty lines before it are passed over.
pub(crate) fn starts_record(bytes: &[u8]) -> bool {
    let blank = bytes.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
    starts_warc(&bytes[blank..]) || arc::starts_arc(&bytes[blank..])
}

/// The first place at or after `from` where a record starts a line. The start of `bytes` is one.
///
/// Inside a block only a start after an empty line counts (`after_blank`): text that quotes a version
/// line is more likely there than a record without line ends before it.
pub(crate) fn find_record(bytes: &[u8], from: usize, arc: bool, after_blank: bool) -> Option<usize> {
    let at_line = |at: usize| {
        let before = &bytes[..at];
        if after_blank {
            before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n") || (arc && before.ends_with(b"\n"))
        } else {
            at == 0 || before.ends_with(b"\n")
        }
    };
    if arc {
        let mut at = from;
        loop {
            if at_line(at) && (arc::starts_arc(&bytes[at..]) || starts_warc(&bytes[at..])) {
                return Some(at);
            }
            at += memchr::memchr(b'\n', &bytes[at..])? + 1;
        }
    }
    let search = |name: &'static [u8; 5]| {
        memmem::find_iter(bytes.get(from..)?, name)
            .map(|at| from + at)
            .find(|&at| at_line(at) && starts_warc(&bytes[at..]))
    };
    match (search(b"WARC/"), search(b"warc/")) {
        (Some(upper), Some(lower)) => Some(upper.min(lower)),
        (upper, lower) => upper.or(lower),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_lines() {
        for (line, expected) in [
            ("WARC/1.0", Some((1, 0))),
            ("WARC/1.1\r", Some((1, 1))),
            ("WARC/0.17", Some((0, 17))),
            ("WARC/0.18  ", Some((0, 18))),
            ("WARC/2.0", Some((2, 0))),
            ("WARC/1", None),
            ("WARC/", None),
            ("WARC/+1.0", None),
            ("WARC/1.0 response", None),
            ("warc/1.0", Some((1, 0))),
        ] {
            assert_eq!(version_line(line.as_bytes()).map(|v| (v.major, v.minor)), expected, "{line}");
        }
    }

    #[test]
    fn finds_records_only_at_line_starts() {
        let text = b"see WARC/1.0 there\nWARC/1.0\r\nx";
        assert_eq!(find_record(text, 0, false, false), Some(19));
        assert_eq!(find_record(text, 0, false, true), None);
        assert_eq!(find_record(b"x\r\n\r\nWARC/1.1\r\n", 0, false, true), Some(5));
        assert_eq!(find_record(b"WARC/1.1\r\n", 0, false, false), Some(0));
    }
}
