//! URLs in the strings of scripts and JSON.
//!
//! No script is parsed. A URL holds no quotes and no blanks, so a string that is one is a run of URL characters
//! between two equal quotes; that can be seen at the place itself, and a quote within a comment or a regular
//! expression elsewhere cannot confuse it.

use std::borrow::Cow;

use encoding_rs::Encoding;
use memchr::{memchr, memchr3};

use super::charset::decode;
use super::likely::{Need, is_likely, is_url_byte};
use super::links::Links;
use super::settings::Guess;
use crate::hops::Hop;

/// A longer string is no URL of ours (escapes may double one).
const LONGEST: usize = 4_200;

/// Adds what strings of `script` look like URLs.
pub(super) fn script(script: &[u8], guess: Guess, encoding: &'static Encoding, links: &mut Links) {
    let need = match guess {
        Guess::Off => return,
        Guess::Cautious => Need::Cautious,
        Guess::Eager => Need::Eager,
    };
    strings(script, need, encoding, links);
}

/// The same for an event handler or a `javascript:` URL, which often name the next page.
pub(super) fn handler(script: &[u8], guess: Guess, encoding: &'static Encoding, links: &mut Links) {
    let need = match guess {
        Guess::Off => return,
        Guess::Cautious => Need::Page,
        Guess::Eager => Need::Eager,
    };
    strings(script, need, encoding, links);
}

fn strings(script: &[u8], need: Need, encoding: &'static Encoding, links: &mut Links) {
    let mut at = 0;
    while let Some(next) = memchr3(b'"', b'\'', b'`', &script[at..]) {
        let open = at + next;
        at = open + 1;
        let Some(len) = run(&script[at..]) else { continue };
        // The quote that ends the run may also begin the next string, if this one was none.
        if script.get(at + len) != Some(&script[open]) {
            at += len;
            continue;
        }
        let raw = &script[at..at + len];
        if len >= 4 && need_not_be_joined(script, open, at + len, need) {
            candidate(raw, need, encoding, links);
        }
        at += len;
    }
}

/// Adds what strings of the JSON document `json` look like URLs. Keys are none.
pub(super) fn json(json: &[u8], guess: Guess, encoding: &'static Encoding, links: &mut Links) {
    let need = match guess {
        Guess::Off => return,
        Guess::Cautious => Need::Cautious,
        Guess::Eager => Need::Eager,
    };
    let mut at = 0;
    while let Some(next) = memchr(b'"', &json[at..]) {
        at += next + 1;
        let Some(len) = run(&json[at..]) else { continue };
        let end = at + len;
        if json.get(end) == Some(&b'"') {
            let key = json[end + 1..].trim_ascii_start().first() == Some(&b':');
            if len >= 4 && !key {
                candidate(&json[at..end], need, encoding, links);
            }
        }
        at = end;
    }
}

/// The length of the run of URL characters and escapes at the beginning; none if it is too long for a URL.
fn run(text: &[u8]) -> Option<usize> {
    let window = &text[..text.len().min(LONGEST)];
    let end = window.iter().position(|b| !is_url_byte(*b) && *b != b'\\');
    end.or((window.len() < LONGEST).then_some(window.len()))
}

/// A piece of a longer string, put together by `+`, is no URL by itself.
fn need_not_be_joined(script: &[u8], open: usize, close: usize, need: Need) -> bool {
    // Blanks around `+` are few; looking further would make long runs of blanks costly.
    const NEAR: usize = 16;
    let before = script[open.saturating_sub(NEAR)..open].trim_ascii_end().last();
    let after = script[close + 1..(close + 1 + NEAR).min(script.len())].trim_ascii_start().first();
    need == Need::Eager || before != Some(&b'+') && after != Some(&b'+')
}

fn candidate(raw: &[u8], need: Need, encoding: &'static Encoding, links: &mut Links) {
    // A string within a string: `"{\"url\":\"https:\\/\\/…\"}"`.
    let raw = raw.trim_ascii();
    let end = raw.iter().rposition(|b| *b != b'\\').map_or(0, |last| last + 1);
    let mut text = decode(encoding, &raw[..end]);
    for _ in 0..2 {
        if !text.contains('\\') {
            break;
        }
        text = Cow::Owned(unescape(&text));
    }
    if is_likely(text.as_bytes(), need) {
        // In HTML within scripts, and in scripts made for HTML.
        let text = if text.contains("&amp;") { text.replace("&amp;", "&") } else { text.into_owned() };
        links.add(&text, Hop::Speculative, "=JS_MISC");
    }
}

/// `\/`, `\x2f` and `\u002f`.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = match rest.as_bytes() {
            [b'x', ..] => rest.get(1..3).map(|digits| (digits, 3)),
            [b'u', ..] => rest.get(1..5).map(|digits| (digits, 5)),
            _ => None,
        };
        let decoded = digits.and_then(|(digits, len)| {
            let code = u32::from_str_radix(digits, 16).ok()?;
            Some((char::from_u32(code)?, len))
        });
        if let Some((c, len)) = decoded {
            out.push(c);
            rest = &rest[len..];
        } else if let Some(c) = rest.chars().next() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.push_str(rest);
    out
}
