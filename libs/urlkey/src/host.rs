//! Hosts: IDN to ASCII, odd IPv4 spellings to dotted quads, `www` dropped, labels reversed.

use crate::escape::{escape_lower, unescape_repeatedly};
use crate::idn;
use std::io::Write as _;

/// Writes the canonical host of `raw` to `host`, which is empty when nothing is left of it.
///
/// `massage` drops a leading `www.`, `www1.` and so on.
pub(crate) fn canonical_host(raw: &[u8], massage: bool, scratch: &mut Vec<u8>, host: &mut Vec<u8>) {
    host.clear();
    scratch.clear();
    scratch.extend_from_slice(raw);
    unescape_repeatedly(scratch);
    if !scratch.is_ascii()
        && let Some(ascii) = idn::to_ascii_2003(scratch)
    {
        scratch.clear();
        scratch.extend_from_slice(ascii.as_bytes());
    }
    join_double_dots(scratch);
    let name = trim_dots(scratch);
    if let Some(ip) = ipv4(name) {
        let [a, b, c, d] = ip.to_be_bytes();
        // A Vec never fails to be written to.
        let _ = write!(host, "{a}.{b}.{c}.{d}");
    } else {
        escape_lower(name, host);
    }
    if massage {
        let len = www_len(host);
        host.drain(..len);
    }
}

/// The length of a leading `www.`, `www2.` and the like.
pub(crate) fn www_len(host: &[u8]) -> usize {
    let Some(rest) = host.strip_prefix(b"www") else {
        return 0;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if rest.get(digits) == Some(&b'.') { 3 + digits + 1 } else { 0 }
}

/// Replaces each `..` by `.` once, from the left: three dots leave two.
fn join_double_dots(host: &mut Vec<u8>) {
    let (mut read, mut write) = (0, 0);
    while read < host.len() {
        let double = host[read..].starts_with(b"..");
        host[write] = host[read];
        read += if double { 2 } else { 1 };
        write += 1;
    }
    host.truncate(write);
}

fn trim_dots(host: &[u8]) -> &[u8] {
    let start = host.iter().position(|b| *b != b'.').unwrap_or(host.len());
    let end = host.iter().rposition(|b| *b != b'.').map_or(start, |at| at + 1);
    &host[start..end]
}

/// The address that `host` spells in one to four numbers, as the C library reads them.
///
/// A lone number counts modulo 2^32 (old live-web archives wrote such hosts). Hexadecimal numbers are left
/// alone: no archive tool reads them, although browsers do.
pub(crate) fn ipv4(host: &[u8]) -> Option<u32> {
    if !host.first()?.is_ascii_digit() {
        return None;
    }
    if host.iter().all(u8::is_ascii_digit) {
        return Some(host.iter().fold(0u32, |n, d| n.wrapping_mul(10).wrapping_add(u32::from(d - b'0'))));
    }
    // With a leading zero the tools only try an address when every digit is octal.
    let digit_max = if host[0] == b'0' { b'7' } else { b'9' };
    if !host.iter().all(|b| *b == b'.' || (b'0'..=digit_max).contains(b)) {
        return None;
    }
    let mut address = 0u32;
    let mut parts = host.split(|b| *b == b'.').peekable();
    for place in 0..4u32 {
        let value = c_number(parts.next()?)?;
        if parts.peek().is_none() {
            // The last number fills all bytes that are left.
            let bits = 32 - 8 * place;
            return (bits == 32 || value < 1 << bits).then_some(address | value as u32);
        }
        if value > 255 || place == 3 {
            return None;
        }
        address |= (value as u32) << (24 - 8 * place);
    }
    None
}

fn c_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let radix = if text.len() > 1 && text[0] == b'0' { 8 } else { 10 };
    let mut value = 0u64;
    for &digit in text {
        let digit = u64::from(digit - b'0');
        if digit >= radix {
            return None;
        }
        value = value * radix + digit;
        if value > u64::from(u32::MAX) {
            return None;
        }
    }
    Some(value)
}

/// Appends `host` with its labels reversed and divided by commas.
pub(crate) fn push_reversed(host: &[u8], out: &mut Vec<u8>) {
    let mut end = host.len();
    while let Some(dot) = memchr::memrchr(b'.', &host[..end]) {
        out.extend_from_slice(&host[dot + 1..end]);
        out.push(b',');
        end = dot;
    }
    out.extend_from_slice(&host[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_addresses() {
        for (host, want) in [
            ("192.168.1.1", Some(0xc0a8_0101)),
            ("3279880203", Some(0xc37f_000b)),
            ("1.2.3", Some(0x0102_0003)),
            ("1.2", Some(0x0100_0002)),
            ("192.168.010.1", Some(0xc0a8_0801)),
            ("0127.0.0.1", Some(0x5700_0001)),
            ("0", Some(0)),
            ("4294967296", Some(0)),
            ("256.1.1.1", None),
            ("1.2.3.4.5", None),
            ("09.1.1.1", None),
            ("1.2.3.", None),
            ("1..2", None),
            ("0x7f000001", None),
            ("1a", None),
            ("", None),
        ] {
            assert_eq!(ipv4(host.as_bytes()), want, "{host}");
        }
    }
}
