//! XML, above all SVG pictures: addresses in `href`, `xlink:href` and `src`, and styles.

use super::css;
use super::modifier::Modifier;
use super::place::Place;

/// The document with its links rewritten; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]).map(|len| at + len) {
        at = open + 1;
        let rest = &bytes[open..];
        if rest.starts_with(b"<!--") {
            at = after(bytes, open + 4, b"-->");
        } else if rest.starts_with(b"<![CDATA[") {
            at = after(bytes, open + 9, b"]]>");
        } else if rest.starts_with(b"<!") {
            at = after(bytes, open + 2, b">");
        } else {
            let is_instruction = rest.starts_with(b"<?");
            if is_instruction && !rest.starts_with(b"<?xml-stylesheet") {
                at = after(bytes, open + 2, b"?>");
                continue;
            }
            let modifier = if is_instruction { Modifier::Style } else { modifier_of(rest) };
            at = tag(text, at, modifier, place, &mut out, &mut copied);
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

fn modifier_of(tag: &[u8]) -> Modifier {
    let end = tag.iter().skip(1).position(|byte| !byte.is_ascii_alphanumeric() && *byte != b':');
    let name = &tag[1..end.map_or(tag.len(), |end| end + 1)];
    let name = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
    match name {
        b"image" | b"feImage" | b"use" => Modifier::Image,
        b"script" => Modifier::Script,
        _ => Modifier::Main,
    }
}

/// Reads one tag from behind its `<` and changes its attributes; returns the offset behind it.
fn tag(
    text: &str,
    from: usize,
    modifier: Modifier,
    place: &Place,
    out: &mut String,
    copied: &mut usize,
) -> usize {
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
                if let Some(changed) = attribute(name, &text[at + 1..end], modifier, place) {
                    out.push_str(&text[*copied..=at]);
                    out.push_str(&changed);
                    *copied = end;
                }
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

fn attribute(name: &str, value: &str, modifier: Modifier, place: &Place) -> Option<String> {
    let decoded = htmlize::unescape_attribute(value);
    let changed = match name {
        "href" | "xlink:href" | "src" => place.changed(&decoded, modifier)?,
        "style" => css::rewrite(&decoded, place)?,
        _ => return None,
    };
    Some(changed.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('\'', "&#39;"))
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
                "<g style='fill:url(/x)'/>",
                "<g style='fill:url(/c/20200102030405oe_/https://example.org/x)'/>",
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
            "<a href='/x",
            "<",
        ] {
            assert_eq!(rewrite(text, &place()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_goes_through(text in "\\PC{0,40}|[<>!?a-z='\"/ é\\[\\]-]{0,60}|(<a |href|=|'|\"|/x|>|<!--|é| ){0,12}") {
            rewrite(&text, &place());
        }
    }
}
