//! Links in style sheets: `url()`, `@import`, and the strings of `image-set()`.

use std::borrow::Cow;

use encoding_rs::Encoding;
use memchr::{memchr, memchr3, memmem};

use super::charset::decode;
use super::links::Links;
use crate::hops::Hop;

const CONTEXT: &str = "=EMBED_MISC";

/// Adds what the style sheet, style block or style attribute `css` embeds.
pub(super) fn css(css: &[u8], encoding: &'static Encoding, links: &mut Links) {
    references(css, |raw| {
        let text = decode(encoding, raw);
        links.add(&unescape(&text), Hop::Embed, CONTEXT);
    });
}

/// Calls `found` with each reference, still escaped.
fn references(css: &[u8], mut found: impl FnMut(&[u8])) {
    let mut at = 0;
    while let Some(next) = memchr3(b'(', b'@', b'/', &css[at..]) {
        let here = at + next;
        at = here + 1;
        match css[here] {
            b'/' if css.get(at) == Some(&b'*') => {
                at = memmem::find(&css[at + 1..], b"*/").map_or(css.len(), |end| at + 1 + end + 2);
            }
            b'(' => {
                let name = function_before(css, here);
                if name.eq_ignore_ascii_case(b"url") || name.eq_ignore_ascii_case(b"src") {
                    let (reference, end) = argument(css, at);
                    found(reference);
                    at = end;
                } else if name.len() >= 9 && name[name.len() - 9..].eq_ignore_ascii_case(b"image-set") {
                    at = image_set(css, at, &mut found);
                }
            }
            b'@' => {
                if let Some(rest) = keyword(&css[at..], b"import") {
                    let start = css.len() - rest.len();
                    if let Some(&quote @ (b'"' | b'\'')) = rest.first() {
                        let (reference, end) = string(css, start + 1, quote);
                        found(reference);
                        at = end;
                    }
                } else if keyword(&css[at..], b"namespace").is_some() {
                    // Names a vocabulary by a URL; nothing is there to fetch.
                    at = memchr(b';', &css[at..]).map_or(css.len(), |end| at + end);
                }
            }
            _ => {}
        }
    }
}

/// The name of the function whose parenthesis opens at `paren`.
fn function_before(css: &[u8], paren: usize) -> &[u8] {
    let start = css[..paren].iter().rposition(|b| !b.is_ascii_alphanumeric() && *b != b'-');
    // Names are short; a long one is not looked at twice.
    &css[start.map_or(0, |start| start + 1).max(paren.saturating_sub(24))..paren]
}

/// What follows an at-keyword, without blanks; none if it is another keyword.
fn keyword<'a>(rest: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let name = rest.get(..word.len())?;
    let after = &rest[word.len()..];
    let ends = after.first().is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'-');
    (name.eq_ignore_ascii_case(word) && ends).then(|| after.trim_ascii_start())
}

/// The argument of `url(` at `start`, quoted or not, and the offset behind it.
fn argument(css: &[u8], start: usize) -> (&[u8], usize) {
    let rest = css[start..].trim_ascii_start();
    let start = css.len() - rest.len();
    if let Some(&quote @ (b'"' | b'\'')) = rest.first() {
        return string(css, start + 1, quote);
    }
    let mut at = start;
    while at < css.len() && css[at] != b')' {
        at += if css[at] == b'\\' { 2 } else { 1 };
    }
    let end = at.min(css.len());
    (css[start..end].trim_ascii(), end)
}

/// A string up to its quote or the end of the line, and the offset behind it. A backslash may hide the quote.
fn string(css: &[u8], start: usize, quote: u8) -> (&[u8], usize) {
    let mut at = start;
    while at < css.len() && css[at] != quote {
        match css[at] {
            b'\\' => at += 2,
            // An unclosed string ends with its line and means nothing.
            b'\n' => return (&[], at),
            _ => at += 1,
        }
    }
    let end = at.min(css.len());
    (&css[start..end], (end + 1).min(css.len()))
}

/// The bare strings of an `image-set(`; a `url()` in it is found by itself.
fn image_set(css: &[u8], start: usize, found: &mut impl FnMut(&[u8])) -> usize {
    let mut at = start;
    while at < css.len() {
        match css[at] {
            b')' | b';' | b'}' => return at,
            // `type("image/png")` and `url(…)` are not ours: the caller goes on from here.
            b'(' => {
                if function_before(css, at).eq_ignore_ascii_case(b"type") {
                    at = memchr(b')', &css[at..]).map_or(css.len(), |end| at + end + 1);
                } else {
                    let (reference, end) = argument(css, at + 1);
                    found(reference);
                    at = memchr(b')', &css[end..]).map_or(css.len(), |close| end + close + 1);
                }
            }
            quote @ (b'"' | b'\'') => {
                let (reference, end) = string(css, at + 1, quote);
                found(reference);
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    at
}

/// CSS escapes: `\` and up to six hex digits with one blank behind, `\` before a line end, `\` before any other.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            let code = u32::from_str_radix(&rest[..digits], 16).unwrap_or(0);
            out.push(char::from_u32(code).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = &rest[digits..];
            rest = rest.strip_prefix(|c: char| c.is_ascii_whitespace()).unwrap_or(rest);
        } else if let Some(after) = rest.strip_prefix('\n') {
            rest = after;
        } else if let Some(c) = rest.chars().next() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}
