//! Sitemaps: indexes and lists with their extensions for images, videos, news and languages, or plain lines.

use std::io::{BufRead, BufReader, Read};

use encoding_rs::Encoding;
use htmlscan::{Dialect, Token};

use super::charset::decode;
use super::links::Links;
use super::source::Source;
use super::xml::{attribute, local, unescape};
use crate::hops::Hop;

const CONTEXT: &str = "=MANIFEST_MISC";

/// A longer `loc` or line is none.
const LOCATION_MAX: usize = 8 * 1024;

/// Adds the entries of an XML sitemap.
pub(super) fn sitemap(source: Source<'_>, encoding: &'static Encoding, limit: u64, links: &mut Links) {
    let mut within = false;
    let mut text = Vec::new();
    source.tokens(Dialect::Xml, limit, |token, attributes| match token {
        Token::Start { name, .. } => {
            text.clear();
            within = is_location(local(name));
            if local(name) == b"link"
                && let Some(href) = attribute(attributes, b"href", encoding)
            {
                links.add(&href, Hop::Manifest, CONTEXT);
            }
        }
        Token::Text(piece) | Token::Data(piece) => {
            if within && text.len() + piece.len() <= LOCATION_MAX {
                text.extend_from_slice(piece);
            }
        }
        Token::End { .. } => {
            if within {
                links.add(&unescape(text.trim_ascii(), encoding), Hop::Manifest, CONTEXT);
            }
            within = false;
            text.clear();
        }
        Token::Comment(_) | Token::Instruction(_) => {}
    });
}

/// `loc` of a page, a sitemap or an image, and the parts of a video.
fn is_location(name: &[u8]) -> bool {
    matches!(name, b"loc" | b"thumbnail_loc" | b"content_loc" | b"player_loc")
}

/// Adds the lines of a text sitemap. Lines that are no absolute URL are junk.
pub(super) fn lines(source: Source<'_>, encoding: &'static Encoding, limit: u64, links: &mut Links) {
    each_line(source, limit, |line| {
        if super::likely::is_absolute(line) {
            links.add(&decode(encoding, line), Hop::Manifest, CONTEXT);
        }
    });
}

/// Calls `each` with every line, blanks around it cut. Of a line that is too long nothing is told.
pub(super) fn each_line(source: Source<'_>, limit: u64, mut each: impl FnMut(&[u8])) {
    let mut reader = BufReader::new(source.into_read().take(limit));
    let mut line = Vec::new();
    let mut skipping = false;
    loop {
        line.clear();
        let read = reader.by_ref().take(LOCATION_MAX as u64).read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 {
            return;
        }
        let whole = line.ends_with(b"\n") || read < LOCATION_MAX;
        if whole && !skipping {
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            // Old files end their lines with a carriage return alone.
            for text in text.split(|b| *b == b'\r') {
                each(text.trim_ascii());
            }
        }
        skipping = !whole;
    }
}
