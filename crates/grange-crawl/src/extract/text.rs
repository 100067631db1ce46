//! URLs in plain text.

use encoding_rs::Encoding;

use super::charset::decode;
use super::likely::{is_absolute, is_url_byte};
use super::links::Links;
use crate::hops::Hop;

/// Adds the absolute URLs that stand in `text`, without the punctuation of the sentence around them.
pub(super) fn text(text: &[u8], encoding: &'static Encoding, links: &mut Links) {
    let mut at = 0;
    while let Some(next) = memchr::memmem::find(&text[at..], b"://") {
        let colon = at + next;
        at = colon + 3;
        let scheme = [&b"https"[..], b"http"].into_iter().find(|scheme| {
            colon.checked_sub(scheme.len()).is_some_and(|from| text[from..colon].eq_ignore_ascii_case(scheme))
        });
        let Some(scheme) = scheme else { continue };
        let len = text[at..].iter().position(|b| !is_url_byte(*b)).unwrap_or(text.len() - at);
        let mut url = &text[colon - scheme.len()..at + len];
        at += len;
        while let Some((b'.' | b',' | b';' | b':' | b'!' | b'?', rest)) = url.split_last() {
            url = rest;
        }
        // A closing parenthesis belongs to the sentence unless one was opened in the URL.
        if url.ends_with(b")") && !url.contains(&b'(') {
            url = &url[..url.len() - 1];
        }
        if is_absolute(url) {
            links.add(&decode(encoding, url), Hop::Speculative, "=SPECULATIVE_MISC");
        }
    }
}
