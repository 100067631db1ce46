//! What is said about the charset of a document, in the order in which browsers believe it: by its byte order mark, by its header,
//! by a declaration in it. Labels only: which encodings there are is for the reader to know.

use memchr::memmem;

use crate::is_space;

/// How far into a document a declaration is looked for. The standard says 1024 bytes; pages with long comments in
/// front of it exist, and browsers find some of those too.
const DECLARATION_WITHIN: usize = 4096;

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Mark,
    /// The `charset` parameter of the content type.
    Header,
    /// `<?xml … encoding="…"?>`
    Xml,
    /// `@charset "…"` of a style sheet.
    Css,
    /// `<meta charset=…>`, or the one that speaks for the header.
    Html,
    /// Nobody: the bytes of the first letters look like UTF-16.
    Letters,
}

/// A label and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharsetLabel<'a> {
    /// As it stands there; known or not.
    pub label: &'a [u8],
    pub source: CharsetSource,
}

impl CharsetLabel<'_> {
    /// What counts of the label. A declaration that could be read byte by byte is not in UTF-16, whatever it says.
    pub fn meant(&self) -> &[u8] {
        let declared = matches!(self.source, CharsetSource::Xml | CharsetSource::Css | CharsetSource::Html);
        let wide = self.label.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"utf-16"))
            || self.label.eq_ignore_ascii_case(b"unicode");
        if declared && wide { b"utf-8" } else { self.label }
    }
}

/// Every label for a document that begins with `head`, the most believable first.
pub fn charset_labels<'a>(
    content_type: Option<&'a str>,
    head: &'a [u8],
) -> impl Iterator<Item = CharsetLabel<'a>> {
    let said = |label: Option<&'a [u8]>, source| label.map(|label| CharsetLabel { label, source });
    let declared = || declared_label(&head[..head.len().min(DECLARATION_WITHIN)]);
    let steps: [Box<dyn FnOnce() -> Option<CharsetLabel<'a>> + 'a>; 4] = [
        Box::new(move || said(mark(head), CharsetSource::Mark)),
        Box::new(move || said(content_type.and_then(header_label).map(str::as_bytes), CharsetSource::Header)),
        Box::new(declared),
        Box::new(move || said(letters(head), CharsetSource::Letters)),
    ];
    steps.into_iter().filter_map(|step| step())
}

fn mark(head: &[u8]) -> Option<&'static [u8]> {
    match head {
        [0xEF, 0xBB, 0xBF, ..] => Some(b"utf-8"),
        [0xFF, 0xFE, ..] => Some(b"utf-16le"),
        [0xFE, 0xFF, ..] => Some(b"utf-16be"),
        _ => None,
    }
}

/// UTF-16 that came without its mark: markup has a zero in every other byte.
fn letters(head: &[u8]) -> Option<&'static [u8]> {
    match head {
        [b'<', 0, second, 0, ..] if *second != 0 => Some(b"utf-16le"),
        [0, b'<', 0, second, ..] if *second != 0 => Some(b"utf-16be"),
        _ => None,
    }
}

/// The `charset` parameter of a content type.
fn header_label(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\''));
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

fn declared_label(head: &[u8]) -> Option<CharsetLabel<'_>> {
    let said = |label, source| CharsetLabel { label, source };
    let body = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    if body.starts_with(b"<?xml") {
        let declaration = &body[..memchr::memchr(b'>', body).unwrap_or(body.len())];
        if let Some(at) = memmem::find(declaration, b"encoding") {
            return value_after_equals(&declaration[at + 8..]).map(|label| said(label, CharsetSource::Xml));
        }
    }
    if let Some(rest) = body.strip_prefix(b"@charset \"") {
        return Some(said(&rest[..memchr::memchr(b'"', rest)?], CharsetSource::Css));
    }
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'<', &body[from..]) {
        let start = from + at + 1;
        from = start;
        if !is_meta(&body[start..]) {
            continue;
        }
        let tag = &body[start..start + memchr::memchr(b'>', &body[start..]).unwrap_or(body.len() - start)];
        let lower = tag.to_ascii_lowercase();
        if let Some(at) = memmem::find(&lower, b"charset")
            && let Some(label) = value_after_equals(&tag[at + 7..])
        {
            return Some(said(label, CharsetSource::Html));
        }
    }
    None
}

fn is_meta(tag: &[u8]) -> bool {
    tag.len() > 4 && tag[..4].eq_ignore_ascii_case(b"meta") && (is_space(tag[4]) || tag[4] == b'/')
}

/// The word behind `=`, quoted or not.
fn value_after_equals(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let text = text.strip_prefix(b"\"").or_else(|| text.strip_prefix(b"'")).unwrap_or(text);
    let end = text
        .iter()
        .position(|b| matches!(b, b'"' | b'\'' | b';' | b'/' | b'>' | b'?') || b.is_ascii_whitespace());
    let value = &text[..end.unwrap_or(text.len())];
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_in_the_order_in_which_browsers_believe_them() {
        use CharsetSource::{Css, Header, Html, Letters, Mark, Xml};
        type Case = (Option<&'static str>, &'static [u8], &'static [(&'static str, CharsetSource)]);
        let cases: &[Case] = &[
            (None, b"", &[]),
            (Some("text/html"), b"<p>", &[]),
            (
                Some("text/html; Charset='koi8-r'"),
                b"\xef\xbb\xbf<META charset=x>",
                &[("utf-8", Mark), ("koi8-r", Header), ("x", Html)],
            ),
            (Some("text/html; charset="), b"\xff\xfe<\0", &[("utf-16le", Mark)]),
            (None, b"\xfe\xff\0<", &[("utf-16be", Mark)]),
            (None, b"<?xml version='1.0' encoding='ISO-8859-15'?><a/>", &[("ISO-8859-15", Xml)]),
            (
                None,
                b"<meta http-equiv=x content='text/html; charset=windows-1251'>",
                &[("windows-1251", Html)],
            ),
            (None, b"<metadata charset=x>", &[]),
            (None, b"@charset \"euc-jp\";", &[("euc-jp", Css)]),
            (None, b"<\0p\0", &[("utf-16le", Letters)]),
            (None, b"\0<\0p", &[("utf-16be", Letters)]),
        ];
        for (content_type, head, expected) in cases {
            let found: Vec<_> = charset_labels(*content_type, head)
                .map(|one| (std::str::from_utf8(one.label).unwrap(), one.source))
                .collect();
            assert_eq!(found, *expected, "{content_type:?} {}", head.escape_ascii());
        }
    }

    #[test]
    fn a_declaration_that_can_be_read_is_not_in_utf_16() {
        for (label, source, meant) in [
            ("UTF-16", CharsetSource::Html, "utf-8"),
            ("utf-16le", CharsetSource::Xml, "utf-8"),
            ("utf-16le", CharsetSource::Header, "utf-16le"),
            ("koi8-r", CharsetSource::Html, "koi8-r"),
        ] {
            let one = CharsetLabel { label: label.as_bytes(), source };
            assert_eq!(one.meant(), meant.as_bytes(), "{label} {source:?}");
        }
    }
}
