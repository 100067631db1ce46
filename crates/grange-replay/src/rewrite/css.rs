//! Style sheets: `url(…)`, `@import "…"` and the strings of `image-set(…)`.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::modifier::Modifier;
use super::place::Place;

/// The style sheet with its links rewritten; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    // Which strings are addresses: the one behind `@import`, and those inside `image-set(`.
    let mut import = false;
    let mut image_set_depth = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = memchr::memmem::find(&bytes[at + 2..], b"*/").map_or(bytes.len(), |len| at + len + 4);
            }
            b'"' | b'\'' => {
                let end = string_end(bytes, at);
                if import || image_set_depth > 0 {
                    let modifier = if import { Modifier::Style } else { Modifier::Image };
                    let inner_end = if end > at + 1 && bytes[end - 1] == byte { end - 1 } else { end };
                    change(text, at + 1, inner_end, place, modifier, &mut out, &mut copied);
                }
                import = false;
                at = end;
            }
            b'@' => {
                import = word_at(bytes, at + 1, b"import");
                at += 1;
            }
            b';' | b'{' | b'}' => {
                import = false;
                image_set_depth = 0;
                at += 1;
            }
            b'(' if image_set_depth > 0 => {
                image_set_depth += 1;
                at += 1;
            }
            b')' => {
                image_set_depth = image_set_depth.saturating_sub(1);
                at += 1;
            }
            b'u' | b'U' if word_at(bytes, at, b"url(") && !continues_word(bytes, at) => {
                let (start, end, next) = url_argument(bytes, at + 4);
                let modifier = if import { Modifier::Style } else { Modifier::Object };
                change(text, start, end, place, modifier, &mut out, &mut copied);
                import = false;
                at = next;
            }
            b'i' | b'I' if word_at(bytes, at, b"image-set(") => {
                image_set_depth = 1;
                at += b"image-set(".len();
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Rewrites the address between two offsets, if it needs it.
fn change(
    text: &str,
    start: usize,
    end: usize,
    place: &Place,
    modifier: Modifier,
    out: &mut String,
    copied: &mut usize,
) {
    let (Some(raw), true) = (text.get(start..end), end > start) else { return };
    let address = unescape(raw);
    if let Some(link) = place.changed(&address, modifier) {
        out.push_str(&text[*copied..start]);
        escape(&link, out);
        *copied = end;
    }
}

/// Behind `url(`: where the address begins and ends, and where to go on.
fn url_argument(bytes: &[u8], mut at: usize) -> (usize, usize, usize) {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    if let Some(&quote @ (b'"' | b'\'')) = bytes.get(at) {
        let end = string_end(bytes, at);
        let inner_end = if end > at + 1 && bytes[end - 1] == quote { end - 1 } else { end };
        return (at + 1, inner_end, end);
    }
    let start = at;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b')' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    let end = at.min(bytes.len());
    let mut inner_end = end;
    while inner_end > start && bytes[inner_end - 1].is_ascii_whitespace() {
        inner_end -= 1;
    }
    (start, inner_end, end)
}

/// Behind the closing quote, or at the end of the line that has none.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return at,
            _ if byte == bytes[start] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn word_at(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    bytes.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
}

/// The byte at `at` is inside a longer name.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    at > 0
        && (bytes[at - 1].is_ascii_alphanumeric()
            || matches!(bytes[at - 1], b'-' | b'_')
            || bytes[at - 1] >= 0x80)
}

/// CSS escapes: a backslash and up to six hexadecimal digits with one space, or a backslash and the letter itself.
fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut letters = raw.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let mut code = String::new();
        while code.len() < 6
            && let Some(digit) = letters.next_if(char::is_ascii_hexdigit)
        {
            code.push(digit);
        }
        if code.is_empty() {
            // A line end after a backslash is no part of the string.
            out.extend(letters.next().filter(|letter| *letter != '\n'));
        } else {
            letters.next_if(char::is_ascii_whitespace);
            let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
            out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }
    Cow::Owned(out)
}

/// Safe both in a string and without quotes.
fn escape(link: &str, out: &mut String) {
    for letter in link.chars() {
        match letter {
            '"' => out.push_str("%22"),
            '\'' => out.push_str("%27"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '\\' => out.push_str("%5C"),
            letter if letter <= ' ' => {
                let _ = write!(out, "%{:02X}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/css/a.css")
    }

    #[test]
    fn links_of_a_style_sheet() {
        let o = "/c/20200102030405oe_/https://";
        let s = "/c/20200102030405cs_/https://";
        let i = "/c/20200102030405im_/https://";
        let cases = [
            ("a{background:url(/x.png)}", format!("a{{background:url({o}example.org/x.png)}}")),
            ("a{b:url( \"//c.org/x\" )}", format!("a{{b:url( \"{o}c.org/x\" )}}")),
            ("a{b:URL('https://c.org/x')}", format!("a{{b:URL('{o}c.org/x')}}")),
            (
                "a{b:url(/x.png), url(/y.png)}",
                format!("a{{b:url({o}example.org/x.png), url({o}example.org/y.png)}}"),
            ),
            ("@import '/b.css' screen;", format!("@import '{s}example.org/b.css' screen;")),
            ("@IMPORT url(../b.css);", format!("@IMPORT url({s}example.org/b.css);")),
            ("@import/**/\"/b.css\";", format!("@import/**/\"{s}example.org/b.css\";")),
            (
                "a{b:image-set('/1.png' 1x, url(/2.png) 2x)}",
                format!("a{{b:image-set('{i}example.org/1.png' 1x, url({o}example.org/2.png) 2x)}}"),
            ),
            ("a{b:url(https\\3a //c.org/x)}", format!("a{{b:url({o}c.org/x)}}")),
            ("a{b:url(/x\\(1\\).png)}", format!("a{{b:url({o}example.org/x%281%29.png)}}")),
            ("a{b:url(/x", format!("a{{b:url({o}example.org/x")),
        ];
        for (text, expected) in cases {
            assert_eq!(rewrite(text, &place()).as_deref(), Some(expected.as_str()), "{text}");
        }
    }

    #[test]
    fn what_is_no_link_is_left_alone() {
        for text in [
            "",
            "a{b:url(x.png)}",
            "a{b:url(data:image/png;base64,AA)}",
            "a{b:url(#id)}",
            "/* url(/x) @import '/y' */",
            "a:before{content:'url(/x)'}",
            "a{b:my-url(/x)}",
            "@media '/x' {}",
            "a{b:url()}",
            "a{b:url(",
            "a\\",
        ] {
            assert_eq!(rewrite(text, &place()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_goes_through(text in "\\PC{0,40}|[@a-z(){}'\"/\\\\* \n;é]{0,60}|(url\\(|@import |image-set\\(|['\"]|/x|\\\\|é|\\)|;){0,12}") {
            rewrite(&text, &place());
        }
    }
}
