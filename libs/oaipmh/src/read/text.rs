//! References in text and attribute values: understood, and put right where they are wrong.

use std::borrow::Cow;

use super::names::is_xml_char;
use crate::Kind;

/// Bytes in which a reference must end. The longest name of HTML has 31 letters.
pub(super) const REFERENCE_MAX: usize = 40;

/// What stands at an ampersand.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A reference XML knows, this many bytes long, and the character it stands for.
    Sound(usize, char),
    /// One it does not know or allow, and what it stands for.
    Foreign(usize, Cow<'static, str>, Kind),
    /// Just an ampersand.
    Bare,
    /// More text is needed to tell.
    Incomplete,
}

/// Looks at text that starts with an ampersand. `last` says that nothing follows it.
pub(super) fn reference(text: &str, last: bool) -> Reference {
    let bytes = text.as_bytes();
    let inside = &bytes[1..bytes.len().min(REFERENCE_MAX)];
    let length = inside.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'#').count();
    match inside.get(length) {
        Some(b';') if length > 0 => {}
        None if bytes.len() < REFERENCE_MAX && !last => return Reference::Incomplete,
        _ => return Reference::Bare,
    }
    let name = &text[1..=length];
    let whole = length + 2;
    if let Some(number) = name.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix('x') {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Reference::Bare;
        }
        let c = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        return match c.filter(|c| is_xml_char(*c)) {
            Some(c) => Reference::Sound(whole, c),
            None => Reference::Foreign(whole, " ".into(), Kind::IllegalCharacter),
        };
    }
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let written = &text[..whole];
            return match htmlize::unescape(written) {
                known if known == written => Reference::Bare,
                known => Reference::Foreign(whole, Cow::Owned(known.into_owned()), Kind::UndefinedEntity),
            };
        }
    };
    Reference::Sound(whole, c)
}

/// How much of a text can be looked at before more of it comes.
pub(super) fn settled(text: &str) -> usize {
    let bytes = text.as_bytes();
    let tail = bytes.len().saturating_sub(REFERENCE_MAX);
    let ampersand = memchr::memrchr(b'&', &bytes[tail..]).map(|at| tail + at);
    if let Some(at) = ampersand.filter(|at| reference(&text[*at..], false) == Reference::Incomplete) {
        return at;
    }
    // The start of `]]>`.
    bytes.len() - bytes.iter().rev().take(2).take_while(|b| **b == b']').count()
}

/// A place in text that is not well-formed: from, length, what must stand there instead.
pub(super) struct Flaw {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) instead: Cow<'static, str>,
    pub(super) kind: Kind,
}

/// Finds what is not well-formed in character data, `<` aside.
pub(super) fn flaws(text: &str, mut found: impl FnMut(Flaw)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(next) = memchr::memchr2(b'&', b']', &bytes[at..]) {
        at += next;
        if bytes[at] == b']' {
            if bytes[at..].starts_with(b"]]>") {
                let instead = Cow::Borrowed("&gt;");
                found(Flaw { at: at + 2, length: 1, instead, kind: Kind::UnescapedSectionEnd });
                at += 2;
            }
            at += 1;
            continue;
        }
        match reference(&text[at..], true) {
            Reference::Sound(length, _) => at += length,
            Reference::Foreign(length, means, kind) => {
                found(Flaw { at, length, instead: escape(means), kind });
                at += length;
            }
            Reference::Bare | Reference::Incomplete => {
                found(Flaw {
                    at,
                    length: 1,
                    instead: Cow::Borrowed("&amp;"),
                    kind: Kind::UnescapedAmpersand,
                });
                at += 1;
            }
        }
    }
}

/// Appends what text means, and says what was wrong with it.
pub(super) fn unescape(text: &str, out: &mut String, mut wrong: impl FnMut(usize, Kind)) {
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'&', &text.as_bytes()[at..]) {
        out.push_str(&text[at..at + next]);
        at += next;
        match reference(&text[at..], true) {
            Reference::Sound(length, c) => {
                out.push(c);
                at += length;
            }
            Reference::Foreign(length, means, kind) => {
                wrong(at, kind);
                out.push_str(&means);
                at += length;
            }
            Reference::Bare | Reference::Incomplete => {
                wrong(at, Kind::UnescapedAmpersand);
                out.push('&');
                at += 1;
            }
        }
    }
    out.push_str(&text[at..]);
}

/// What entities of HTML stand for, as XML may write it.
fn escape(means: Cow<'static, str>) -> Cow<'static, str> {
    if means.contains(['<', '&', '>', '"', '\'']) {
        let mut escaped = String::new();
        crate::write::escape_into(&means, &mut escaped);
        Cow::Owned(escaped)
    } else {
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> (String, Vec<&'static str>) {
        let (mut out, mut kinds, mut done) = (String::new(), Vec::new(), 0);
        flaws(text, |flaw| {
            out.push_str(&text[done..flaw.at]);
            out.push_str(&flaw.instead);
            done = flaw.at + flaw.length;
            kinds.push(flaw.kind.code());
        });
        out.push_str(&text[done..]);
        (out, kinds)
    }

    #[test]
    fn references_are_put_right() {
        for (text, out, kinds) in [
            ("a &amp; b &#233;&#xE9;", "a &amp; b &#233;&#xE9;", &[][..]),
            ("a & b", "a &amp; b", &["unescaped-ampersand"]),
            ("AT&T &", "AT&amp;T &amp;", &["unescaped-ampersand", "unescaped-ampersand"]),
            ("?a=1&b=2;", "?a=1&amp;b=2;", &["unescaped-ampersand"]),
            ("caf&eacute;&nbsp;", "café\u{a0}", &["undefined-entity", "undefined-entity"]),
            ("&nosuch;", "&amp;nosuch;", &["unescaped-ampersand"]),
            ("&LT;b&AMP;", "&lt;b&amp;", &["undefined-entity", "undefined-entity"]),
            ("&#11;&#xFFFF;&#x110000;&#99999999999;", "    ", &["illegal-character"; 4]),
            ("&#;&#x;&#xZ;&;", "&amp;#;&amp;#x;&amp;#xZ;&amp;;", &["unescaped-ampersand"; 4]),
            ("a]]>b]]]>", "a]]&gt;b]]]&gt;", &["unescaped-section-end"; 2]),
            ("&CounterClockwiseContourIntegral;", "∳", &["undefined-entity"]),
            (
                "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
                "&amp;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
                &["unescaped-ampersand"],
            ),
        ] {
            assert_eq!(repaired(text), (out.to_owned(), kinds.to_vec()), "{text}");
        }
    }

    #[test]
    fn text_is_held_back_while_it_is_open() {
        for (text, length) in [
            ("abc", 3),
            ("abc&", 3),
            ("abc&am", 3),
            ("abc& d", 6),
            ("a]", 1),
            ("a]]", 1),
            ("]]]", 1),
            ("a&amp;", 6),
        ] {
            assert_eq!(settled(text), length, "{text}");
        }
    }
}
