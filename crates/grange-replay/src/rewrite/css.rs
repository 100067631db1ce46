//! Style sheets: `url(…)`, `@import "…"` and the strings of `image-set(…)`.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::modifier::Modifier;
use super::place::Place;
use super::work;

/// What the next string or `url(…)` is by the `@` rule it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A style sheet to load.
    Import,
    /// A name that looks like an address. As a link it would name something else.
    Namespace,
    Other,
}

/// Work is counted in pieces of this: most steps are one byte.
const COUNTED_BYTES: usize = 1024;

/// The style sheet with its links rewritten; `None` when there is nothing to change.
pub(super) fn rewrite(text: &str, place: &Place) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    // Which strings are addresses: the one behind `@import`, and those inside `image-set(`.
    let mut rule = Rule::Other;
    let mut image_set_depth = 0_usize;
    let mut counted = 0;
    while let Some(&byte) = bytes.get(at) {
        if at - counted >= COUNTED_BYTES {
            work::spend(at - counted);
            counted = at;
        }
        match byte {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = memchr::memmem::find(&bytes[at + 2..], b"*/").map_or(bytes.len(), |len| at + len + 4);
            }
            b'"' | b'\'' => {
                let end = string_end(bytes, at);
                let modifier = match rule {
                    Rule::Import => Some(Modifier::Style),
                    Rule::Namespace => None,
                    Rule::Other => (image_set_depth > 0).then_some(Modifier::Image),
                };
                if let Some(modifier) = modifier {
                    let inner_end = if end > at + 1 && bytes[end - 1] == byte { end - 1 } else { end };
                    change(text, at + 1, inner_end, place, modifier, &mut out, &mut copied)?;
                }
                rule = Rule::Other;
                at = end;
            }
            b'@' => {
                rule = match () {
                    () if name_at(bytes, at + 1, b"import") => Rule::Import,
                    () if name_at(bytes, at + 1, b"namespace") => Rule::Namespace,
                    () => Rule::Other,
                };
                at += 1;
            }
            b';' | b'{' | b'}' => {
                rule = Rule::Other;
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
                let modifier = if rule == Rule::Import { Modifier::Style } else { Modifier::Object };
                if rule != Rule::Namespace {
                    change(text, start, end, place, modifier, &mut out, &mut copied)?;
                }
                rule = Rule::Other;
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
    work::spend(bytes.len().saturating_sub(counted));
    if copied == 0 || work::is_over() {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Rewrites the address between two offsets, if it needs it. `None` when there is no more to be done to the whole.
fn change(
    text: &str,
    start: usize,
    end: usize,
    place: &Place,
    modifier: Modifier,
    out: &mut String,
    copied: &mut usize,
) -> Option<()> {
    let (Some(raw), true) = (text.get(start..end), end > start) else { return Some(()) };
    let address = unescape(raw);
    work::spend(raw.len());
    if let Some(link) = place.changed(&address, modifier) {
        out.push_str(&text[*copied..start]);
        work::spend(link.len());
        escape(&link, out);
        *copied = end;
    }
    let goes_on = !work::is_over() && !work::is_outgrown(text.len(), out.len());
    goes_on.then_some(())
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

/// The same for a whole name.
fn name_at(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    word_at(bytes, at, name) && bytes.get(at + name.len()).is_none_or(|byte| !is_name_byte(*byte))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || byte >= 0x80
}

/// The byte at `at` is inside a longer name.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_name_byte(bytes[at - 1])
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
            (
                "@namespace 'http://n.org/'; a{b:url(/x)}",
                format!("@namespace 'http://n.org/'; a{{b:url({o}example.org/x)}}"),
            ),
            ("@namespaces url(/x)", format!("@namespaces url({o}example.org/x)")),
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
            "@namespace url(http://www.w3.org/1999/xhtml);",
            "@NAMESPACE svg url( 'http://www.w3.org/2000/svg' );",
            "@namespace/**/svg \"http://www.w3.org/2000/svg\";",
            "@namespace url(http://www.w3.org/1999/xhtml)",
            "@important '/x';",
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
