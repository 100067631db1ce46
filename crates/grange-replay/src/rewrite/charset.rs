//! Texts out of and back into the charset they were captured in.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use htmlscan::{CharsetSource, charset_labels};

use super::kind::Kind;

/// The encoding that a label means; `None` for none and for unknown ones.
pub(super) fn of_label(label: Option<&str>) -> Option<&'static Encoding> {
    Encoding::for_label(label?.trim().as_bytes())
}

/// The label of the charset of a body that begins with `first`: what its byte order mark, its header or a declaration in it says, as
/// far as that is known. `None`: nobody says.
pub(crate) fn charset_of(kind: Kind, content_type: Option<&str>, first: &[u8]) -> Option<String> {
    let counts = |source| match source {
        CharsetSource::Mark | CharsetSource::Header => true,
        CharsetSource::Xml => matches!(kind, Kind::Html | Kind::Xhtml | Kind::Xml),
        CharsetSource::Html => kind == Kind::Html,
        CharsetSource::Css => kind == Kind::Css,
        CharsetSource::Letters => matches!(kind, Kind::Html | Kind::Xhtml | Kind::Xml),
    };
    let known = charset_labels(content_type, first)
        .filter(|label| counts(label.source))
        .find_map(|label| Encoding::for_label(label.meant()));
    known.map(|encoding| encoding.name().to_owned())
}

/// The label that a content type names.
pub(super) fn label_in(content_type: &str) -> Option<String> {
    let lower = content_type.to_ascii_lowercase();
    let at = lower.find("charset=")? + "charset=".len();
    let value = content_type.get(at..)?.trim_start_matches(['"', '\'', ' ']);
    let end = value.find(['"', '\'', ';', ' ', ',']).unwrap_or(value.len());
    Some(value[..end].to_owned()).filter(|value| !value.is_empty())
}

/// A whole text: what it says, and how to write it again.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) text: String,
    encoding: &'static Encoding,
    mark: &'static [u8],
}

impl Decoded {
    /// A byte order mark outweighs the label. Bytes that are wrong in that charset, or without one not UTF-8, are
    /// taken for windows-1252: every byte is a letter there and comes back as it was.
    pub(super) fn new(bytes: Vec<u8>, label: Option<&str>) -> Self {
        let (encoding, mark): (_, &'static [u8]) = match bytes.as_slice() {
            [0xEF, 0xBB, 0xBF, ..] => (UTF_8, b"\xEF\xBB\xBF"),
            [0xFF, 0xFE, ..] => (UTF_16LE, b"\xFF\xFE"),
            [0xFE, 0xFF, ..] => (UTF_16BE, b"\xFE\xFF"),
            _ => (of_label(label).unwrap_or(UTF_8), b""),
        };
        let rest = &bytes[mark.len()..];
        if encoding == UTF_8 && mark.is_empty() {
            return match String::from_utf8(bytes) {
                Ok(text) => Self { text, encoding, mark },
                Err(error) => Self::byte_for_byte(error.as_bytes(), b""),
            };
        }
        match encoding.decode_without_bom_handling_and_without_replacement(rest) {
            Some(text) => Self { text: text.into_owned(), encoding, mark },
            None => Self::byte_for_byte(rest, mark),
        }
    }

    fn byte_for_byte(bytes: &[u8], mark: &'static [u8]) -> Self {
        let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
        Self { text: text.into_owned(), encoding: WINDOWS_1252, mark }
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u8> {
        let mut out = self.mark.to_vec();
        if self.encoding == UTF_16LE {
            out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        } else if self.encoding == UTF_16BE {
            out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        } else {
            out.extend_from_slice(&self.encoding.encode(text).0);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            label in proptest::sample::select(vec![None, Some("utf-8"), Some("iso-8859-1"), Some("utf-16le"), Some("nonsense")]),
        ) {
            let decoded = Decoded::new(bytes.clone(), label);
            prop_assert_eq!(decoded.encode(&decoded.text), bytes);
        }
    }

    #[test]
    fn a_mark_outweighs_the_header_and_the_header_a_declaration() {
        use Kind::{Css, Html, Js, Xhtml, Xml};
        type Case = (Kind, Option<&'static str>, &'static [u8], Option<&'static str>);
        let cases: &[Case] = &[
            (Html, Some("text/html; charset=koi8-r"), b"\xff\xfe<\0", Some("UTF-16LE")),
            (Html, Some("text/html; charset=koi8-r"), b"\xfe\xff\0<", Some("UTF-16BE")),
            (Html, Some("text/html; charset=koi8-r"), b"\xef\xbb\xbf<meta charset=gbk>", Some("UTF-8")),
            (Html, Some("text/html; charset=koi8-r"), b"<meta charset=gbk>", Some("KOI8-R")),
            (Html, Some("text/html; charset=odd"), b"<meta charset=gbk>", Some("GBK")),
            (Html, Some("text/html"), b"<p><meta charset=utf-16>", Some("UTF-8")),
            (Html, None, b"<\0p\0", Some("UTF-16LE")),
            (Html, None, b"<p>", None),
            (Xhtml, None, b"<?xml version='1.0' encoding='gbk'?><meta charset=koi8-r>", Some("GBK")),
            (Xhtml, None, b"<html><meta charset='koi8-r'/>", None),
            (Xml, None, b"<?xml version='1.0' encoding='gbk'?>", Some("GBK")),
            (Css, None, b"@charset \"gbk\";", Some("GBK")),
            (Js, None, b"'<meta charset=gbk>'", None),
        ];
        for (kind, content_type, first, charset) in cases {
            let found = charset_of(*kind, *content_type, first);
            assert_eq!(found.as_deref(), *charset, "{kind:?} {content_type:?} {}", first.escape_ascii());
        }
    }

    #[test]
    fn multi_byte_charsets_come_back() {
        for (label, bytes) in
            [("shift_jis", b"\x95\x5c".as_slice()), ("gbk", b"\xc4\xe3"), ("euc-kr", b"\xb0\xa1")]
        {
            let decoded = Decoded::new(bytes.to_vec(), Some(label));
            assert_eq!(decoded.text.chars().count(), 1, "{label}");
            assert_eq!(decoded.encode(&decoded.text), bytes, "{label}");
        }
    }
}
