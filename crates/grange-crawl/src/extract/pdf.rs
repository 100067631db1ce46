//! Links in PDF documents: the addresses of link annotations.
//!
//! The document is not parsed. Annotations are dictionaries with `/URI (address)`, plain in the file or packed
//! with others into object streams; both are searched. Encrypted documents keep their strings to themselves.

use std::borrow::Cow;
use std::io::Read;

use encoding_rs::{UTF_16BE, WINDOWS_1252};
use memchr::memmem;

use super::links::Links;
use crate::hops::Hop;

/// All object streams of a document together, unpacked. They are a few hundred kilobytes in a large book.
const UNPACKED_MAX: u64 = 32 << 20;

/// How far before its `stream` the dictionary of a stream is looked for.
const DICTIONARY_WITHIN: usize = 512;

/// Each costs a decoder to begin with, even if it is empty.
const OBJECT_STREAMS_MAX: usize = 10_000;

/// A longer address is none.
const ADDRESS_MAX: usize = 4 * 1024;

/// Adds the targets of the document's links.
pub(super) fn pdf(pdf: &[u8], links: &mut Links) {
    if memmem::find(pdf, b"/Encrypt").is_some() {
        return;
    }
    addresses(pdf, links);
    let mut left = UNPACKED_MAX;
    let mut unpacked = Vec::new();
    let mut streams = 0;
    for at in memmem::find_iter(pdf, b"stream") {
        let dictionary = &pdf[at.saturating_sub(DICTIONARY_WITHIN)..at];
        // Not the dictionary of the object before.
        let own = memmem::rfind(dictionary, b"obj").map_or(dictionary, |from| &dictionary[from..]);
        let packed = memmem::find(own, b"/ObjStm").is_some() && memmem::find(own, b"FlateDecode").is_some();
        if !packed {
            continue;
        }
        streams += 1;
        if left == 0 || streams > OBJECT_STREAMS_MAX {
            return;
        }
        let body = &pdf[at + 6..];
        let body = body.strip_prefix(b"\r").unwrap_or(body);
        let body = body.strip_prefix(b"\n").unwrap_or(body);
        unpacked.clear();
        // A damaged stream gives what came before the damage.
        let _ = flate2::read::ZlibDecoder::new(body).take(left).read_to_end(&mut unpacked);
        left = left.saturating_sub(unpacked.len() as u64);
        addresses(&unpacked, links);
    }
}

/// Adds each `/URI (…)` or `/URI <…>` of `objects`.
fn addresses(objects: &[u8], links: &mut Links) {
    let mut at = 0;
    while let Some(next) = memmem::find(&objects[at..], b"/URI") {
        at += next + 4;
        let rest = &objects[at..];
        let rest = rest[..rest.len().min(ADDRESS_MAX)].trim_ascii_start();
        let bytes = match rest.first() {
            Some(b'(') => literal(&rest[1..]),
            // `<<` opens a dictionary.
            Some(b'<') if rest.get(1) != Some(&b'<') => hexadecimal(&rest[1..]),
            _ => continue,
        };
        let Some(bytes) = bytes else {
            // What was looked at in vain is not looked at again.
            at += rest.len();
            continue;
        };
        at += bytes.len();
        let address = text(&bytes);
        if !address.contains(|c: char| c.is_ascii_control()) {
            links.add(&address, Hop::Link, "=NAVLINK_MISC");
        }
    }
}

/// A string up to its closing parenthesis; inner ones come in pairs or escaped.
fn literal(rest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        at += 1;
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(out),
            b')' => depth -= 1,
            b'\\' => {
                let escaped = *rest.get(at)?;
                at += 1;
                match escaped {
                    b'n' | b'r' | b't' | b'b' | b'f' => {}
                    // A line broken in the source is not broken in the string.
                    b'\n' => {}
                    b'\r' => at += usize::from(rest.get(at) == Some(&b'\n')),
                    b'0'..=b'7' => {
                        let mut code = u32::from(escaped - b'0');
                        for _ in 0..2 {
                            let Some(digit @ b'0'..=b'7') = rest.get(at) else { break };
                            code = code * 8 + u32::from(digit - b'0');
                            at += 1;
                        }
                        out.push(code as u8);
                    }
                    other => out.push(other),
                }
                continue;
            }
            _ => {}
        }
        out.push(byte);
    }
    None
}

fn hexadecimal(rest: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'>', rest)?;
    let mut digits = Vec::with_capacity(end);
    for byte in rest[..end].iter().filter(|b| !b.is_ascii_whitespace()) {
        digits.push(char::from(*byte).to_digit(16)? as u8);
    }
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect())
}

/// An address should be ASCII; some are UTF-8 or UTF-16.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return UTF_16BE.decode_without_bom_handling(rest).0;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}
