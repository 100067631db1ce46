//! Links in XML: feeds by their elements, other documents by what looks like an absolute URL.

use std::borrow::Cow;

use encoding_rs::Encoding;
use htmlscan::{Attribute, Dialect, Token};

use super::charset::decode;
use super::likely::is_absolute;
use super::links::Links;
use super::source::Source;
use crate::hops::Hop;

/// Longer text is prose, not a URL.
const TEXT_MAX: usize = 8 * 1024;

/// Adds what a feed (RSS in all versions, Atom) links to, and what it encloses.
pub(super) fn feed(source: Source<'_>, encoding: &'static Encoding, limit: u64, links: &mut Links) {
    let mut element = Vec::new();
    let mut text = Vec::new();
    source.tokens(Dialect::Xml, limit, |token, attributes| match token {
        Token::Start { name, .. } => {
            element.clear();
            element.extend_from_slice(name);
            text.clear();
            let value = |wanted: &[u8]| attribute(attributes, wanted, encoding);
            match local(name) {
                b"link" => {
                    if let Some(href) = value(b"href") {
                        let enclosed = value(b"rel").is_some_and(|rel| rel == "enclosure");
                        links.add(&href, if enclosed { Hop::Embed } else { Hop::Link }, "link/@href");
                    }
                }
                b"enclosure" | b"content" | b"thumbnail" | b"player" => {
                    for (wanted, context) in [
                        (&b"url"[..], "enclosure/@url"),
                        (b"src", "content/@src"),
                        (b"href", "enclosure/@href"),
                    ] {
                        if let Some(url) = value(wanted) {
                            links.add(&url, Hop::Embed, context);
                        }
                    }
                }
                b"image" => {
                    if let Some(url) = value(b"href") {
                        links.add(&url, Hop::Embed, "image/@href");
                    }
                }
                _ => {}
            }
        }
        Token::Text(piece) | Token::Data(piece) => {
            if text.len() + piece.len() <= TEXT_MAX {
                text.extend_from_slice(piece);
            }
        }
        Token::End { name } => {
            // Only the text of an element without others in it.
            if element == name {
                let (hop, context) = match local(name) {
                    b"link" => (Hop::Link, "link"),
                    b"comments" => (Hop::Link, "comments"),
                    b"url" | b"icon" | b"logo" => (Hop::Embed, "image"),
                    b"guid" if is_absolute(text.trim_ascii()) => (Hop::Link, "guid"),
                    _ => return,
                };
                links.add(&unescape(&text, encoding), hop, context);
            }
            element.clear();
            text.clear();
        }
        Token::Instruction(instruction) => stylesheet(instruction, encoding, links),
        Token::Comment(_) => {}
    });
}

/// Adds what in any other XML document is an absolute URL. Names of vocabularies are none.
pub(super) fn xml(source: Source<'_>, encoding: &'static Encoding, limit: u64, links: &mut Links) {
    source.tokens(Dialect::Xml, limit, |token, attributes| match token {
        Token::Start { .. } => {
            for Attribute { name, value, .. } in attributes.iter().filter(|attribute| !attribute.repeated) {
                let vocabulary = name.starts_with(b"xmlns") || name.ends_with(b"schemaLocation");
                if !vocabulary && is_absolute(value.trim_ascii()) {
                    links.add(&unescape(value, encoding), Hop::Speculative, "=SPECULATIVE_MISC");
                }
            }
        }
        Token::Text(text) | Token::Data(text) => {
            let text = text.trim_ascii();
            let single = text.len() <= TEXT_MAX && !text.iter().any(u8::is_ascii_whitespace);
            if single && is_absolute(text) {
                links.add(&unescape(text, encoding), Hop::Speculative, "=SPECULATIVE_MISC");
            }
        }
        Token::Instruction(instruction) => stylesheet(instruction, encoding, links),
        Token::End { .. } | Token::Comment(_) => {}
    });
}

/// `<?xml-stylesheet href="…"?>`
fn stylesheet(instruction: &[u8], encoding: &'static Encoding, links: &mut Links) {
    let Some(rest) = instruction.strip_prefix(b"xml-stylesheet") else { return };
    let Some(at) = memchr::memmem::find(rest, b"href") else { return };
    let rest = rest[at + 4..].trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else { return };
    if let Some(&quote @ (b'"' | b'\'')) = rest.first()
        && let Some(end) = memchr::memchr(quote, &rest[1..])
    {
        links.add(&unescape(&rest[1..=end], encoding), Hop::Embed, "=EMBED_MISC");
    }
}

/// A name without its prefix.
pub(super) fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|b| *b == b':').next().unwrap_or(name)
}

pub(super) fn attribute(
    attributes: &[Attribute<'_>],
    name: &[u8],
    encoding: &'static Encoding,
) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.name == name)?;
    Some(unescape(found.value, encoding).into_owned())
}

/// Text with its entities decoded, those of HTML as well: feeds are written by hand. A bare `&` stays.
pub(super) fn unescape<'a>(text: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    let text = decode(encoding, text);
    if text.contains('&') { htmlize::unescape_attribute(text) } else { text }
}
