//! Which characters the bytes of a document stand for.

use std::borrow::Cow;

use encoding_rs::{Encoding, ISO_2022_JP, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

/// How far into a document a declaration is looked for. The standard says 1024 bytes; pages with long comments in
/// front of it exist, and browsers find some of those too.
const DECLARATION_WITHIN: usize = 4096;

/// How much is shown to the detector. More changes its mind rarely and costs time always.
const DETECTION_SAMPLE: usize = 32 * 1024;

/// What is known of a document's encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charset {
    pub(super) encoding: &'static Encoding,
    /// For the log, in Heritrix's words.
    pub(super) annotation: Option<String>,
}

/// By byte order mark, header, declaration in the document, or a look at the bytes; in this order, as browsers do.
pub(super) fn charset(content_type: Option<&str>, head: &[u8]) -> Charset {
    let sure = |encoding| Charset { encoding, annotation: None };
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return sure(encoding);
    }
    let mut annotation = None;
    if let Some(label) = content_type.and_then(header_label) {
        match Encoding::for_label(label.as_bytes()) {
            Some(encoding) => return sure(encoding),
            None => {
                annotation = Some(format!("unsatisfiableCharsetInHeader:{}", printable(label.as_bytes())));
            }
        }
    }
    if let Some((label, kind)) = declared_label(&head[..head.len().min(DECLARATION_WITHIN)]) {
        match Encoding::for_label(label) {
            // A declaration that could be read byte by byte is not in UTF-16, whatever it says.
            Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => return sure(UTF_8),
            Some(encoding) => {
                let annotation =
                    annotation.or_else(|| Some(format!("usingCharsetIn{kind}:{}", encoding.name())));
                return Charset { encoding, annotation };
            }
            None => annotation = Some(format!("unsatisfiableCharsetIn{kind}:{}", printable(label))),
        }
    }
    Charset { encoding: detect(&head[..head.len().min(DETECTION_SAMPLE)]), annotation }
}

/// The `charset` parameter of a content type.
fn header_label(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\''));
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

/// `encoding="…"` of an XML declaration, `charset=…` of a meta element, or `@charset "…"` of a style sheet.
fn declared_label(head: &[u8]) -> Option<(&[u8], &'static str)> {
    if head.starts_with(b"<?xml") {
        let declaration = &head[..memchr::memchr(b'>', head).unwrap_or(head.len())];
        if let Some(at) = memmem::find(declaration, b"encoding") {
            return value_after_equals(&declaration[at + 8..]).map(|label| (label, "XML"));
        }
    }
    if let Some(rest) = head.strip_prefix(b"@charset \"") {
        return Some((&rest[..memchr::memchr(b'"', rest)?], "CSS"));
    }
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'<', &head[from..]) {
        let start = from + at + 1;
        from = start;
        if !is_meta(&head[start..]) {
            continue;
        }
        let tag = &head[start..start + memchr::memchr(b'>', &head[start..]).unwrap_or(head.len() - start)];
        let lower = tag.to_ascii_lowercase();
        if let Some(at) = memmem::find(&lower, b"charset")
            && let Some(label) = value_after_equals(&tag[at + 7..])
        {
            return Some((label, "HTML"));
        }
    }
    None
}

fn is_meta(tag: &[u8]) -> bool {
    tag.len() > 4
        && tag[..4].eq_ignore_ascii_case(b"meta")
        && (tag[4].is_ascii_whitespace() || tag[4] == b'/')
}

/// The word behind `=`, quoted or not.
fn value_after_equals(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let text = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    let end = text
        .iter()
        .position(|b| matches!(b, b'"' | b'\'' | b';' | b'/' | b'>' | b'?') || b.is_ascii_whitespace());
    let value = &text[..end.unwrap_or(text.len())];
    (!value.is_empty()).then_some(value)
}

fn detect(sample: &[u8]) -> &'static Encoding {
    if let Some(encoding) = utf16_without_mark(sample) {
        return encoding;
    }
    // The sample may end within a character.
    let whole = match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if whole && !sample.contains(&0x1b) {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(sample, false);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

/// UTF-16 that came without its mark: markup has a zero in every other byte.
fn utf16_without_mark(sample: &[u8]) -> Option<&'static Encoding> {
    match sample {
        [b'<', 0, second, 0, ..] if *second != 0 => Some(UTF_16LE),
        [0, b'<', 0, second, ..] if *second != 0 => Some(UTF_16BE),
        _ => None,
    }
}

/// A label from outside, fit for a log line.
fn printable(label: &[u8]) -> String {
    label
        .iter()
        .take(40)
        .map(|b| if b.is_ascii_graphic() && *b != b',' { char::from(*b) } else { '?' })
        .collect()
}

/// Whether markup can be found in the bytes as they are: ASCII characters stand for themselves, and `<`, `>`,
/// quotes, `=`, `/` and blanks never are a part of another character.
pub(super) fn is_ascii_safe(encoding: &'static Encoding) -> bool {
    encoding != UTF_16LE && encoding != UTF_16BE && encoding != ISO_2022_JP && encoding != REPLACEMENT
}

/// A piece of a document as text. Bytes that mean nothing become U+FFFD.
pub(super) fn decode<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Cow<'a, str> {
    if encoding == UTF_8 || bytes.is_ascii() {
        return String::from_utf8_lossy(bytes);
    }
    encoding.decode_without_bom_handling(bytes).0
}
