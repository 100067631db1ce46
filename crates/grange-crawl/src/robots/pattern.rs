//! Paths and patterns, compared in one normal form of percent-encoding.
//!
//! Encoded characters that need no encoding are decoded; characters beyond ASCII, and those with a meaning in
//! patterns, are encoded. So `/~a`, `/%7Ea` and `/%7ea` are one path, and `%2A` in a pattern is a star that is
//! written, not one that stands for anything.

use std::borrow::Cow;

use memchr::memmem;

/// A path as it is compared.
pub(super) fn normal_path(path: &str) -> Cow<'_, str> {
    let path = path.split('#').next().unwrap_or(path);
    if path.is_empty() {
        return Cow::Borrowed("/");
    }
    let plain = path.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'%' | b'*' | b'$'));
    if plain { Cow::Borrowed(path) } else { Cow::Owned(normal(path.as_bytes(), |_| false)) }
}

/// A pattern as it is compared: a star is a sign anywhere, a dollar at the end.
pub(super) fn normal_pattern(pattern: &str) -> String {
    let end = pattern.len() - 1;
    let bytes = pattern.as_bytes();
    normal(bytes, |at| bytes[at] == b'*' || bytes[at] == b'$' && at == end)
}

fn normal(bytes: &[u8], is_sign: impl Fn(usize) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'%'
            && let Some(code) = hex(bytes.get(at + 1..at + 3))
        {
            if code.is_ascii_alphanumeric() || matches!(code, b'-' | b'.' | b'_' | b'~') {
                out.push(char::from(code));
            } else {
                encode(code, &mut out);
            }
            at += 3;
            continue;
        }
        if is_sign(at) || byte.is_ascii_graphic() && !matches!(byte, b'*' | b'$') {
            out.push(char::from(byte));
        } else {
            encode(byte, &mut out);
        }
        at += 1;
    }
    out
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = digits? else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

pub(super) fn encode(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Whether the pattern matches the beginning of the path, or all of it if the pattern ends with `$`. Both in normal
/// form. Each piece between stars is taken at its first place; only a last piece before `$` must be at the end.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        if let Some(before) = last.replace(piece) {
            match memmem::find(rest.as_bytes(), str::as_bytes(before)) {
                Some(at) => rest = &rest[at + before.len()..],
                None => return false,
            }
        }
    }
    match last {
        None => !whole || rest.is_empty(),
        Some(last) if whole => rest.ends_with(last),
        Some(last) => rest.contains(last),
    }
}
