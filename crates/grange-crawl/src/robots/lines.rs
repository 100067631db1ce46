//! The lines of a robots.txt that mean something.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::READ_BYTES_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// Calls `each` with the number, the field and the value of every line that has a field we know. Lines end with CR, LF
/// or both; `#` begins a comment.
pub(super) fn fields(text: &[u8], mut each: impl FnMut(u32, Field, &str)) {
    let text = as_text(text);
    let mut number = 0;
    for line in text.split('\n') {
        number += 1;
        for (index, line) in line.strip_suffix('\r').unwrap_or(line).split('\r').enumerate() {
            number += u32::from(index > 0);
            if let Some((field, value)) = field(line) {
                each(number, field, value);
            }
        }
    }
}

/// The sitemaps that a robots.txt names.
pub fn sitemaps_in(text: &[u8]) -> Vec<String> {
    let mut sitemaps = Vec::new();
    fields(text, |_, field, value| {
        if field == Field::Sitemap && !value.is_empty() {
            sitemaps.push(value.to_owned());
        }
    });
    sitemaps
}

fn as_text(text: &[u8]) -> Cow<'_, str> {
    let mut bytes = text;
    if bytes.len() > READ_BYTES_MAX {
        bytes = &bytes[..READ_BYTES_MAX];
        // A rule cut in two would forbid more than was meant.
        let end = bytes.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
        bytes = &bytes[..end.unwrap_or(0)];
    }
    match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding.decode_with_bom_removal(bytes).0,
        None => lossless(bytes),
    }
}

/// The file should be UTF-8. Bytes that are not stand for themselves in a path, so they become their percent codes.
fn lossless(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            super::pattern::encode(*byte, &mut out);
        }
    }
    Cow::Owned(out)
}

/// `field: value`. The colon may be forgotten between two words.
fn field(line: &str) -> Option<(Field, &str)> {
    let line = line.split('#').next().unwrap_or("").trim();
    let (name, value) = line
        .split_once(':')
        .or_else(|| line.split_once([' ', '\t']).filter(|(_, value)| !value.trim().contains([' ', '\t'])))?;
    let (name, value) = (name.trim(), value.trim());
    let is = |word: &str| name.eq_ignore_ascii_case(word);
    let field = if is("user-agent") {
        Field::UserAgent
    } else if is("disallow") {
        Field::Disallow
    } else if is("allow") {
        Field::Allow
    } else if is("crawl-delay") {
        Field::CrawlDelay
    } else if is("sitemap") || is("site-map") {
        Field::Sitemap
    } else {
        return None;
    };
    Some((field, value))
}
