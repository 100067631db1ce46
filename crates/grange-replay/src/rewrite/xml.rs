//! XML, above all SVG pictures: addresses in `href` (under any prefix) and `src`, those that animations put there, refreshes, and
//! styles in attributes and in elements.

use std::ops::Range;

use super::headers::refresh_value;
use super::modifier::Modifier;
use super::place::Place;
use super::{animated, css, work};

/// A document on its way out, with changes in between.
struct Document<'a> {
    text: &'a str,
    place: &'a Place,
    out: String,
    /// Everything before this offset is out, or replaced.
    copied: usize,
    /// Those of the tag at hand.
    attributes: Vec<(&'a str, Range<usize>)>,
}

/// The document with its links rewritten; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let bytes = text.as_bytes();
    let mut document = Document { text, place, out: String::new(), copied: 0, attributes: Vec::new() };
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]).map(|len| at + len) {
        let from = at;
        let rest = &bytes[open..];
        at = if let Some(end) = not_a_tag(bytes, open) {
            end
        } else {
            let is_instruction = rest.starts_with(b"<?");
            let modifier = if is_instruction { Modifier::Style } else { modifier_of(rest) };
            let end = document.tag(open + 1, modifier);
            if !is_instruction && local_name(rest) == b"style" && bytes[open..end].ends_with(b">") {
                if bytes[open..end].ends_with(b"/>") { end } else { document.style(end) }
            } else {
                end
            }
        };
        work::spend(at - from);
        if work::is_over() || work::is_outgrown(text.len(), document.out.len()) {
            return None;
        }
    }
    work::spend(bytes.len() - at);
    let Document { mut out, copied, .. } = document;
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Behind the comment, the data, the declaration or the instruction that begins at `open`; `None` if it is a tag, or an
/// instruction that names a style sheet.
fn not_a_tag(bytes: &[u8], open: usize) -> Option<usize> {
    let rest = &bytes[open..];
    Some(if rest.starts_with(b"<!--") {
        after(bytes, open + 4, b"-->")
    } else if rest.starts_with(DATA) {
        after(bytes, open + DATA.len(), b"]]>")
    } else if rest.starts_with(b"<!") {
        after(bytes, open + 2, b">")
    } else if rest.starts_with(b"<?") && !rest.starts_with(b"<?xml-stylesheet") {
        after(bytes, open + 2, b"?>")
    } else {
        return None;
    })
}

const DATA: &[u8] = b"<![CDATA[";

/// The name of the tag that `tag` begins with, without the prefix of its namespace.
fn local_name(tag: &[u8]) -> &[u8] {
    let end = tag.iter().skip(1).position(|byte| !byte.is_ascii_alphanumeric() && *byte != b':');
    let name = &tag[1..end.map_or(tag.len(), |end| end + 1)];
    name.rsplit(|byte| *byte == b':').next().unwrap_or(name)
}

fn modifier_of(tag: &[u8]) -> Modifier {
    match local_name(tag) {
        b"image" | b"feImage" | b"use" => Modifier::Image,
        b"script" => Modifier::Script,
        _ => Modifier::Main,
    }
}

impl Document<'_> {
    /// What is between two offsets becomes `new`.
    fn replace(&mut self, start: usize, end: usize, new: &str) {
        self.out.push_str(&self.text[self.copied..start]);
        self.out.push_str(new);
        self.copied = end;
        work::spend(new.len());
    }

    /// Changes the attributes of the tag whose inside begins at `from`; returns the offset behind it.
    fn tag(&mut self, from: usize, modifier: Modifier) -> usize {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        let text = self.text;
        let end = read_attributes(text, from, &mut attributes);
        let value = |wanted: &str| {
            let found = attributes.iter().find(|(name, _)| *name == wanted);
            found.map_or_else(String::new, |(_, at)| {
                htmlize::unescape_attribute(&text[at.clone()]).trim().to_ascii_lowercase()
            })
        };
        let tag = local_name(&text.as_bytes()[from - 1..end]);
        let purpose = match tag {
            b"meta" if value("http-equiv") == "refresh" => Purpose::Refresh,
            b"animate" | b"set" if animated::is_link(&value("attributeName")) => Purpose::Animation,
            _ => Purpose::Other(modifier),
        };
        for (name, at) in &attributes {
            if let Some(changed) = attribute(name, &text[at.clone()], purpose, self.place) {
                self.replace(at.start, at.end, &changed);
            }
        }
        self.attributes = attributes;
        end
    }

    /// Changes the texts of a style element, from behind its start tag; returns the offset of the next tag.
    fn style(&mut self, from: usize) -> usize {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = from;
        loop {
            let open = memchr::memchr(b'<', &bytes[at..]).map_or(bytes.len(), |len| at + len);
            if let Some(changed) = css::rewrite(&htmlize::unescape(&text[at..open]), self.place) {
                self.replace(at, open, &escaped(&changed));
            }
            let Some(end) = not_a_tag(bytes, open).filter(|_| open < bytes.len()) else { return open };
            if bytes[open..].starts_with(DATA) {
                let inside = open + DATA.len();
                let close = if bytes[..end].ends_with(b"]]>") { (end - 3).max(inside) } else { end };
                let changed = css::rewrite(&text[inside..close], self.place);
                // An address holds no `>` of its own; what else stands there was there before.
                if let Some(changed) = changed.filter(|changed| !changed.contains("]]>")) {
                    self.replace(inside, close, &changed);
                }
            }
            at = end;
        }
    }
}

/// Reads the names of attributes and where their values stand, from behind the `<` of a tag; returns the offset behind it.
fn read_attributes<'a>(text: &'a str, from: usize, attributes: &mut Vec<(&'a str, Range<usize>)>) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    let mut name_start = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return at + 1,
            // Damage: a new tag begins before this one ended.
            b'<' => return at,
            b'"' | b'\'' => {
                let Some(end) = memchr::memchr(byte, &bytes[at + 1..]).map(|len| at + 1 + len) else {
                    return bytes.len();
                };
                let name = text[name_start..at].trim_end().trim_end_matches('=').trim_end();
                attributes.push((name, at + 1..end));
                at = end + 1;
                name_start = at;
            }
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                // `href = "…"` has space in front of its sign.
                if bytes
                    .get(at)
                    .is_some_and(|next| !next.is_ascii_whitespace() && !matches!(next, b'=' | b'"' | b'\''))
                {
                    name_start = at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// What the attributes of a tag are for.
#[derive(Clone, Copy)]
enum Purpose {
    /// `<meta http-equiv="refresh">` of XHTML inside.
    Refresh,
    /// It changes a link.
    Animation,
    Other(Modifier),
}

fn attribute(name: &str, value: &str, purpose: Purpose, place: &Place) -> Option<String> {
    let is_link = name == "src" || is_href(name);
    let is_known = match purpose {
        Purpose::Refresh => name == "content",
        Purpose::Animation => animated::holds_values(name),
        Purpose::Other(_) => false,
    };
    if !is_link && !is_known && name != "style" {
        return None;
    }
    work::spend(value.len());
    let decoded = htmlize::unescape_attribute(value);
    let changed = match purpose {
        _ if name == "style" => css::rewrite(&decoded, place)?,
        Purpose::Refresh if is_known => refresh_value(&decoded, place)?,
        Purpose::Animation if is_known => animated::rewrite(&decoded, place)?,
        Purpose::Other(modifier) => place.changed(&decoded, modifier)?,
        Purpose::Refresh | Purpose::Animation => place.changed(&decoded, Modifier::Main)?,
    };
    Some(escaped(&changed))
}

/// Whether an attribute is a link of XLink, whose namespace can have any prefix, or one without a prefix.
fn is_href(name: &str) -> bool {
    name == "href" || name.strip_suffix(":href").is_some_and(|prefix| !prefix.is_empty() && prefix != "xmlns")
}

/// As a text or as a value in either kind of quotes.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('\'', "&#39;");
    // Not allowed in a text.
    text.replace("]]>", "]]&gt;")
}

fn after(bytes: &[u8], from: usize, end: &[u8]) -> usize {
    let from = from.min(bytes.len());
    memchr::memmem::find(&bytes[from..], end).map_or(bytes.len(), |len| from + len + end.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/a/b.svg")
    }

    #[test]
    fn links_of_a_document() {
        let cases = [
            (
                "<svg xmlns=\"http://www.w3.org/2000/svg\"><image xlink:href=\"/x.png\"/></svg>",
                "<svg xmlns=\"http://www.w3.org/2000/svg\"><image xlink:href=\"/c/20200102030405im_/https://example.org/x.png\"/></svg>",
            ),
            (
                "<?xml-stylesheet href='/s.css' type='text/css'?><a/>",
                "<?xml-stylesheet href='/c/20200102030405cs_/https://example.org/s.css' type='text/css'?><a/>",
            ),
            (
                "<a title=\"x\" href = 'http://o.org/?a&amp;b'>",
                "<a title=\"x\" href = '/c/20200102030405mp_/http://o.org/?a&amp;b'>",
            ),
            (
                "<a x:href='http://o.org/'/><set attributeName='x:href' to='http://o.org/'/>",
                "<a x:href='/c/20200102030405mp_/http://o.org/'/>\
                 <set attributeName='x:href' to='/c/20200102030405mp_/http://o.org/'/>",
            ),
            (
                "<svg:animate values='#a;http://o.org/' from=\"/x\" by='y' attributeName='href' dur='1s'/>",
                "<svg:animate values='#a;/c/20200102030405mp_/http://o.org/' \
                 from=\"/c/20200102030405mp_/https://example.org/x\" by='y' attributeName='href' dur='1s'/>",
            ),
            (
                "<h:meta content='0; url=http://o.org/' http-equiv='Refresh'/>",
                "<h:meta content='0; url=/c/20200102030405mp_/http://o.org/' http-equiv='Refresh'/>",
            ),
            (
                "<g style='fill:url(/x)'/>",
                "<g style='fill:url(/c/20200102030405oe_/https://example.org/x)'/>",
            ),
            (
                "<svg:style type='text/css'>@import url(/a.css);<!-- url(/x) -->g>a{b:url(\"/x?a&amp;b\")}</svg:style>",
                "<svg:style type='text/css'>@import url(/c/20200102030405cs_/https://example.org/a.css);<!-- url(/x) -->\
                 g>a{b:url(&quot;/c/20200102030405oe_/https://example.org/x?a&amp;b&quot;)}</svg:style>",
            ),
            (
                "<style><![CDATA[ a{b:url('/x')} ]]></style><text>url(/x)</text>",
                "<style><![CDATA[ a{b:url('/c/20200102030405oe_/https://example.org/x')} ]]></style><text>url(/x)</text>",
            ),
            (
                "<style>a{b:url(/x)} ]]&gt;</style>",
                "<style>a{b:url(/c/20200102030405oe_/https://example.org/x)} ]]&gt;</style>",
            ),
            ("<style>a{b:url(/x", "<style>a{b:url(/c/20200102030405oe_/https://example.org/x"),
            (
                "<style><![CDATA[a{b:url(/x",
                "<style><![CDATA[a{b:url(/c/20200102030405oe_/https://example.org/x",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(rewrite(text, &place()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_link_is_left_alone() {
        for text in [
            "",
            "<link>http://example.org/</link>",
            "<!-- <a href='/x'/> -->",
            "<![CDATA[<a href='/x'>]]>",
            "<a href='#x'/>",
            "<a xmlns:href2='/x' hrefx='/y'/>",
            "<a xmlns:href='http://o.org/' :href='http://o.org/'/>",
            "<set attributeName='x' to='http://o.org/'/>",
            "<g attributeName='href' to='http://o.org/' values='http://o.org/'/>",
            "<h:meta content='0; url=http://o.org/' name='refresh'/>",
            "<a href='/x",
            "<",
            "<style/>url(/x)",
            "<styles>url(/x)</styles>",
            "<style>a{b:url(x)}</style>url(/x)",
            "<style>",
        ] {
            assert_eq!(rewrite(text, &place()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_goes_through(text in "\\PC{0,40}|[<>!?a-z='\"/ é\\[\\]-]{0,60}|(<a |<style>|<!\\[CDATA\\[|\\]\\]>|url\\(/x\\)|</|href|=|'|\"|/x|>|<!--|é| ){0,12}") {
            rewrite(&text, &place());
        }
    }
}
