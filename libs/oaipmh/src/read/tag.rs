//! Tags: where they end, what attributes they have, and how they should have been written.

use std::ops::Range;

use super::text::{Flaw, flaws};
use crate::Kind;

/// Bytes of one tag. Longer ones are text that happens to start with `<`.
pub(super) const TAG_MAX: usize = 64 << 10;

/// Attributes of one tag. Each is compared with all before it.
const ATTRIBUTES_MAX: usize = 256;

/// What stands at a `<`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// A start tag; `end` is behind its `>`, and attributes are between the name and there.
    Start { name: Range<usize>, end: usize, empty: bool },
    /// An end tag.
    End { name: Range<usize>, end: usize },
    /// Text.
    None,
    /// More text is needed to tell.
    Incomplete,
}

/// Looks at text that has `</` or `<` and the start of a name at `at`.
pub(super) fn find(text: &str, at: usize, last: bool) -> Tag {
    let whole = text.as_bytes();
    let bytes = &whole[..whole.len().min(at + TAG_MAX)];
    let more = if last || bytes.len() == at + TAG_MAX { Tag::None } else { Tag::Incomplete };
    let closing = bytes.get(at + 1) == Some(&b'/');
    let from = at + 1 + usize::from(closing);
    let stops = |b: &u8| matches!(b, b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | b'<' | b'"' | b'\'' | b'=');
    let Some(length) = bytes[from..].iter().position(stops) else { return more };
    let name = from..from + length;
    if length == 0 {
        return Tag::None;
    }
    let mut position = name.end;
    let mut quote = None;
    while let Some(byte) = bytes.get(position) {
        match (quote, byte) {
            (None, b'>') => {
                let end = position + 1;
                return if closing {
                    Tag::End { name, end }
                } else {
                    Tag::Start { empty: bytes[position - 1] == b'/', name, end }
                };
            }
            (None, b'<') => return Tag::None,
            (None, b'"' | b'\'') if !closing => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
        position += 1;
    }
    more
}

/// One attribute as it stands. The ranges are of the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// `"`, `'`, or 0 for none.
    quote: u8,
    /// To be left out of the tag.
    pub(super) dropped: bool,
}

/// Collects the attributes of a tag and says whether they are well-formed as far as their syntax goes.
pub(super) fn attributes(text: &str, inside: Range<usize>, found: &mut Vec<Attribute>) -> Option<Kind> {
    found.clear();
    let bytes = &text.as_bytes()[..inside.end];
    let mut wrong = None;
    let mut at = inside.start;
    loop {
        let before = at;
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let Some(byte) = bytes.get(at) else { return wrong };
        if matches!(byte, b'/' | b'=' | b'"' | b'\'') {
            wrong = Some(Kind::BadAttribute);
            at += 1;
            continue;
        }
        if found.len() == ATTRIBUTES_MAX {
            return Some(Kind::TooManyAttributes);
        }
        if before == at {
            wrong = Some(Kind::BadAttribute);
        }
        let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'=' | b'/' | b'"' | b'\'');
        let name = at..at + bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
        at = name.end;
        let skip = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            at
        };
        let equals = skip(at);
        if bytes.get(equals) != Some(&b'=') {
            wrong = Some(Kind::BadAttribute);
            found.push(Attribute { value: at..at, name, quote: 0, dropped: false });
            continue;
        }
        at = skip(equals + 1);
        let (value, quote) = if let Some(quote @ (b'"' | b'\'')) = bytes.get(at) {
            let from = at + 1;
            let to = memchr::memchr(*quote, &bytes[from..]).map_or(bytes.len(), |length| from + length);
            at = (to + 1).min(bytes.len());
            (from..to, *quote)
        } else {
            wrong = Some(Kind::BadAttribute);
            let length = bytes[at..].iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len() - at);
            let value = at..at + length;
            at = value.end;
            (value, 0)
        };
        found.push(Attribute { name, value, quote, dropped: false });
    }
}

/// What is wrong with an attribute's value.
pub(super) fn value_flaws(value: &str, mut found: impl FnMut(Flaw)) {
    // Most values have nothing that could be wrong.
    if memchr::memchr2(b'&', b'<', value.as_bytes()).is_none() {
        return;
    }
    let mut at = 0;
    for piece in value.split_inclusive('<') {
        let text = piece.strip_suffix('<').unwrap_or(piece);
        // `]]>` is allowed in attributes.
        flaws(text, |flaw| {
            if flaw.kind != Kind::UnescapedSectionEnd {
                found(Flaw { at: at + flaw.at, ..flaw });
            }
        });
        if text.len() < piece.len() {
            let at = at + text.len();
            found(Flaw { at, length: 1, instead: "&lt;".into(), kind: Kind::UnescapedLess });
        }
        at += piece.len();
    }
}

/// Writes the attributes as they should have been written.
pub(super) fn rebuild(text: &str, attributes: &[Attribute], out: &mut String) {
    for attribute in attributes.iter().filter(|attribute| !attribute.dropped) {
        let value = &text[attribute.value.clone()];
        let quote = if attribute.quote == b'\'' { '\'' } else { '"' };
        out.push(' ');
        out.push_str(&text[attribute.name.clone()]);
        out.push('=');
        out.push(quote);
        let mut done = 0;
        let start = out.len();
        value_flaws(value, |flaw| {
            out.push_str(&value[done..flaw.at]);
            out.push_str(&flaw.instead);
            done = flaw.at + flaw.length;
        });
        out.push_str(&value[done..]);
        if attribute.quote == 0 && out[start..].contains('"') {
            let escaped = out[start..].replace('"', "&quot;");
            out.truncate(start);
            out.push_str(&escaped);
        }
        out.push(quote);
    }
}

/// Where the name of a document's root ends, if the document has names without a prefix and its root does not say
/// which namespace they are in. Put inside another document, they would get into that one's.
pub(crate) fn unqualified_root(xml: &str) -> Option<usize> {
    let Tag::Start { name: root_name, end, empty } = find(xml, 0, true) else { return None };
    let mut found = Vec::new();
    attributes(xml, root_name.end..end - 1 - usize::from(empty), &mut found);
    if found.iter().any(|attribute| &xml[attribute.name.clone()] == "xmlns") {
        return None;
    }
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'<', &xml.as_bytes()[at..]) {
        at += next;
        // In a comment or section this may find a name that is none, which costs a declaration too many.
        match find(xml, at, true) {
            Tag::Start { name, .. } if !xml[name.clone()].contains(':') => {
                return Some(root_name.end);
            }
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_at_the_bracket_that_is_not_quoted() {
        for (text, tag) in [
            ("<a>", Tag::Start { name: 1..2, end: 3, empty: false }),
            ("<a/>", Tag::Start { name: 1..2, end: 4, empty: true }),
            ("<a b='>' c=\">\" >", Tag::Start { name: 1..2, end: 16, empty: false }),
            ("</a >", Tag::End { name: 2..3, end: 5 }),
            ("<a <b>", Tag::None),
            ("< a>", Tag::None),
            ("</>", Tag::None),
            ("<a b='", Tag::Incomplete),
            ("<a", Tag::Incomplete),
            ("</a", Tag::Incomplete),
        ] {
            assert_eq!(find(text, 0, false), tag, "{text}");
            if tag == Tag::Incomplete {
                assert_eq!(find(text, 0, true), Tag::None, "{text}");
            }
        }
        assert_eq!(find(&format!("<a {}", "x".repeat(TAG_MAX)), 0, false), Tag::None);
    }

    #[test]
    fn attributes_are_written_properly() {
        for (inside, out, wrong) in [
            (" a='1' b=\"2\"", " a='1' b=\"2\"", None),
            (" a = '1'\n\tb=\"2\" ", " a='1' b=\"2\"", None),
            (" a=1 b", " a=\"1\" b=\"\"", Some(Kind::BadAttribute)),
            (" a='1'b='2'", " a='1' b='2'", Some(Kind::BadAttribute)),
            (" a=x\"y", " a=\"x&quot;y\"", Some(Kind::BadAttribute)),
            (" / = \" a='1'", " a='1'", Some(Kind::BadAttribute)),
            (" a='<b>&c'", " a='&lt;b>&amp;c'", None),
        ] {
            let mut found = Vec::new();
            assert_eq!(attributes(inside, 0..inside.len(), &mut found), wrong, "{inside}");
            let mut rebuilt = String::new();
            rebuild(inside, &found, &mut rebuilt);
            assert_eq!(rebuilt, out, "{inside}");
        }
    }
}
