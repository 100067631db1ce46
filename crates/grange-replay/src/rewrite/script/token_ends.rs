//! Where a token ends, by the bytes alone.

use crate::rewrite::work;

pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

pub(super) fn word_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\\' {
            at += 2;
        } else if byte >= 0x80 && space_len(&bytes[at..]) > 0 {
            break;
        } else if is_word_byte(byte)
            || (byte == b'{' && bytes[at - 1] == b'u' && at >= 2 && bytes[at - 2] == b'\\')
        {
            at += 1;
        } else {
            break;
        }
    }
    whole_letters(bytes, at)
}

pub(super) fn number_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        let exponent_sign = matches!(byte, b'+' | b'-')
            && matches!(bytes[at - 1], b'e' | b'E')
            && bytes.get(start + 1).is_none_or(|second| !matches!(second, b'x' | b'X'));
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || exponent_sign {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// A string ends with its line even without a closing quote.
pub(super) fn text_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1) == Some(&b'\r') && bytes.get(at + 2) == Some(&b'\n') => at += 3,
            b'\\' => at += 2,
            b'\n' | b'\r' => break,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    whole_letters(bytes, at)
}

/// A `/` at `start` that was followed to the end of its line, at `end`, without finding another that closes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unclosed {
    start: usize,
    end: usize,
}

/// Behind the regular expression at `start`. An error when its line ends first: then it was a division.
///
/// `known`: such an error from further ahead. Of everything that begins on that line, nothing is followed beyond the first
/// bracket again: from there on both readings agree on what is inside of brackets. Otherwise a line of many slashes
/// would be walked over once for each.
pub(super) fn regex_end(bytes: &[u8], start: usize, known: Option<Unclosed>) -> Result<usize, Unclosed> {
    // Behind a backslash the two readings could be out of step.
    let in_step = start > 0 && bytes[start - 1] != b'\\';
    let known = known.filter(|known| in_step && (known.start..known.end).contains(&start));
    let mut at = start + 1;
    let mut in_class = false;
    loop {
        match bytes.get(at) {
            None | Some(b'\n' | b'\r') => break,
            Some(b'\\') if matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => break,
            Some(b'\\') => at += 1,
            Some(b'[' | b']') if known.is_some() => break,
            Some(b'[') => in_class = true,
            Some(b']') => in_class = false,
            Some(b'/') if !in_class => {
                at += 1;
                while bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                    at += 1;
                }
                return Ok(at);
            }
            _ => {}
        }
        at += 1;
    }
    work::spend(at.min(bytes.len()) - start);
    Err(known.unwrap_or(Unclosed { start, end: at }))
}

/// Only those that must not be cut are kept together; everything else is one byte.
pub(super) fn punct_end(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    for sign in [
        b">>>=".as_slice(),
        b"...",
        b"===",
        b"!==",
        b"**=",
        b"<<=",
        b">>=",
        b">>>",
        b"&&=",
        b"||=",
        b"??=",
        b"=>",
        b"==",
        b"!=",
        b"<=",
        b">=",
        b"++",
        b"--",
        b"&&",
        b"||",
        b"??",
        b"?.",
        b"+=",
        b"-=",
        b"*=",
        b"/=",
        b"%=",
        b"&=",
        b"|=",
        b"^=",
        b"**",
        b"<<",
        b">>",
    ] {
        if rest.starts_with(sign) && !(sign == b"?." && rest.get(2).is_some_and(u8::is_ascii_digit)) {
            return start + sign.len();
        }
    }
    whole_letters(bytes, start + 1)
}

/// Behind space and comments, and whether a line ended there.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut line_end = at == 0;
    loop {
        match bytes.get(at..) {
            Some([b'\n' | b'\r', ..]) => {
                line_end = true;
                at += 1;
            }
            Some([b' ' | b'\t' | 0x0b | 0x0c, ..]) => at += 1,
            Some([b'/', b'/', ..] | [b'<', b'!', b'-', b'-', ..]) => at = line_end_from(bytes, at),
            Some([b'#', b'!', ..]) if at == 0 => at = line_end_from(bytes, at),
            Some([b'-', b'-', b'>', ..]) if line_end => at = line_end_from(bytes, at),
            Some([b'/', b'*', rest @ ..]) => {
                let len = memchr::memmem::find(rest, b"*/").map_or(rest.len(), |len| len + 2);
                line_end |= memchr::memchr2(b'\n', b'\r', &rest[..len]).is_some();
                at += 2 + len;
            }
            Some(rest) if space_len(rest) > 0 => {
                line_end |=
                    rest.starts_with("\u{2028}".as_bytes()) || rest.starts_with("\u{2029}".as_bytes());
                at += space_len(rest);
            }
            _ => return (at, line_end),
        }
    }
}

/// Bytes of the space beyond ASCII that `bytes` begins with.
pub(super) fn space_len(bytes: &[u8]) -> usize {
    match bytes {
        [0xC2, 0xA0, ..] => 2,
        [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

pub(super) fn line_end_from(bytes: &[u8], at: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &bytes[at..]).map_or(bytes.len(), |len| at + len)
}

/// The next place at or behind `at` where no letter is cut.
pub(super) fn whole_letters(bytes: &[u8], at: usize) -> usize {
    let mut at = at.min(bytes.len());
    while bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80) {
        at += 1;
    }
    at
}

pub(super) fn boundary(text: &str, at: usize) -> usize {
    whole_letters(text.as_bytes(), at)
}
