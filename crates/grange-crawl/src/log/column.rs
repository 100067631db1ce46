//! One column of a line: never empty, never with a blank in it.

/// Appends `text` as a column: `-` when empty, and every blank or control byte percent-encoded.
pub(super) fn push(out: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        out.push(b'-');
        return;
    }
    push_kept(out, text);
}

/// Appends `text` with every blank or control byte percent-encoded.
pub(super) fn push_kept(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    // Nearly every text is clean; then it is one copy.
    if !text.bytes().any(breaks) && !text.chars().any(|c| c > '\x7f' && c.is_whitespace()) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        let mut utf8 = [0; 4];
        let bytes = c.encode_utf8(&mut utf8).as_bytes();
        if c.is_whitespace() || c.is_control() {
            for byte in bytes {
                out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        } else {
            out.extend_from_slice(bytes);
        }
    }
}

const fn breaks(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// Appends a number right-aligned in `width` columns; longer ones take the room they need.
pub(super) fn push_right(out: &mut Vec<u8>, number: i64, width: usize) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    push_padded(out, &digits[at..], width);
}

/// Appends bytes right-aligned in `width` columns.
pub(super) fn push_padded(out: &mut Vec<u8>, text: &[u8], width: usize) {
    out.resize(out.len() + width.saturating_sub(text.len()), b' ');
    out.extend_from_slice(text);
}

/// Appends a number as it is.
pub(super) fn push_number(out: &mut Vec<u8>, number: u64) {
    push_right(out, number.min(i64::MAX as u64) as i64, 0);
}

/// The text of a column, or none where it says `-`.
pub(super) fn value(column: &str) -> Option<&str> {
    (column != "-").then_some(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(text: &str) -> String {
        let mut out = Vec::new();
        push(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_column_has_no_blanks_and_is_never_empty() {
        for (text, column) in [
            ("", "-"),
            ("a", "a"),
            ("a b", "a%20b"),
            ("a\r\nb\t", "a%0D%0Ab%09"),
            ("a\u{a0}b\u{2028}", "a%C2%A0b%E2%80%A8"),
            ("\u{85}\x7f", "%C2%85%7F"),
            ("blåbær", "blåbær"),
        ] {
            assert_eq!(pushed(text), column);
        }
    }

    #[test]
    fn numbers_stand_right() {
        for (number, width, text) in
            [(200, 5, "  200"), (-5003, 5, "-5003"), (-123_456, 5, "-123456"), (0, 1, "0")]
        {
            let mut out = Vec::new();
            push_right(&mut out, number, width);
            assert_eq!(out, text.as_bytes());
        }
        let mut out = Vec::new();
        push_right(&mut out, i64::MIN, 0);
        assert_eq!(out, i64::MIN.to_string().as_bytes());
    }
}
