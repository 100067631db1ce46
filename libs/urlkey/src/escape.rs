//! Percent-escapes as the archive canonicalizers treat them: undone until nothing changes, then written once.
//!
//! Undoing repeatedly is what makes `%2541`, `%41` and `A` one key. Writing once keeps every printable ASCII
//! byte except `#` and `%` as it is, so that a key never contains a space, a control or a non-ASCII byte.

/// Whether `byte` stands for itself in a canonical URL.
pub(crate) const fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e) && byte != b'#' && byte != b'%'
}

/// Decodes `buf` in place until no escape is left.
///
/// One pass does it: whenever the bytes written so far end in an escape, it is replaced at once. Escapes never
/// overlap, so the order of replacing does not matter, and a URL of a million `25` costs no more than others.
pub(crate) fn unescape_repeatedly(buf: &mut Vec<u8>) {
    let Some(first) = memchr::memchr(b'%', buf) else {
        return;
    };
    let mut write = first;
    for read in first..buf.len() {
        buf[write] = buf[read];
        write += 1;
        while write >= 3
            && buf[write - 3] == b'%'
            && let Some(byte) = escape_at(&buf[..write], write - 3)
        {
            write -= 2;
            buf[write - 1] = byte;
        }
    }
    buf.truncate(write);
}

/// The byte that the escape starting at `at` stands for, if it is one.
pub(crate) fn escape_at(buf: &[u8], at: usize) -> Option<u8> {
    let high = hex_value(*buf.get(at + 1)?)?;
    let low = hex_value(*buf.get(at + 2)?)?;
    Some(high << 4 | low)
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Appends `input` to `out`, lower-cased and escaped once with lower-case hex digits.
pub(crate) fn escape_lower(input: &[u8], out: &mut Vec<u8>) {
    out.reserve(input.len());
    for &byte in input {
        if is_plain(byte) {
            out.push(byte.to_ascii_lowercase());
        } else {
            push_escape(byte, out);
        }
    }
}

/// Appends `input` to `out` with only those bytes escaped that would break a line of an index or its ASCII.
pub(crate) fn escape_unprintable(input: &[u8], out: &mut Vec<u8>) {
    for &byte in input {
        if matches!(byte, 0x21..=0x7e) {
            out.push(byte);
        } else {
            push_escape(byte, out);
        }
    }
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_until_nothing_changes() {
        for (input, want) in [
            ("", ""),
            ("plain", "plain"),
            ("%41", "A"),
            ("%2541", "A"),
            ("%252541%", "A%"),
            ("%%34%31", "A"),
            ("%4", "%4"),
            ("%zz%", "%zz%"),
            ("%e9", "\u{fffd}"),
        ] {
            let mut buf = input.as_bytes().to_vec();
            unescape_repeatedly(&mut buf);
            assert_eq!(String::from_utf8_lossy(&buf), want, "{input}");
        }
    }

    #[test]
    fn escaping_writes_lower_case_and_keeps_printables() {
        let mut out = Vec::new();
        escape_lower(b"A b#%\xe9~\"\x7f", &mut out);
        assert_eq!(out, b"a%20b%23%25%e9~\"%7f");
    }
}
