//! Values and texts out of and into the charset of the page.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use htmlscan::{Attribute, Dialect};
use memchr::memchr2;

use crate::rewrite::charset::label_in;

/// The page's charset, one in which ASCII is ASCII.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charset {
    encoding: &'static Encoding,
    /// Nothing in the page can correct it any more.
    certain: bool,
    /// By which rules the page is read, and must be written.
    dialect: Dialect,
}

impl Charset {
    pub(super) fn new(encoding: &'static Encoding, certain: bool, dialect: Dialect) -> Self {
        let encoding = if encoding.is_ascii_compatible() { encoding } else { UTF_8 };
        Self { encoding, certain, dialect }
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn is_xml(&self) -> bool {
        self.dialect == Dialect::Xml
    }

    pub(super) fn text<'t>(&self, bytes: &'t [u8]) -> Cow<'t, str> {
        if (self.encoding == UTF_8 || bytes.is_ascii())
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Cow::Borrowed(text);
        }
        self.encoding.decode_without_bom_handling(bytes).0
    }

    /// The value of an attribute, entities decoded.
    pub(super) fn value<'t>(&self, bytes: &'t [u8]) -> Cow<'t, str> {
        let mut text = self.text(bytes);
        if self.is_xml() && text.contains(['\t', '\n', '\r']) {
            // A parser of XML does the same, unless they stand there as references.
            text = Cow::Owned(text.replace("\r\n", " ").replace(['\t', '\n', '\r'], " "));
        }
        if text.contains('&') { htmlize::unescape_attribute(text) } else { text }
    }

    /// That of the first attribute of this name, without the space around it and in lower case; empty if there is none.
    pub(super) fn word(&self, attributes: &[Attribute<'_>], name: &[u8]) -> String {
        let found = attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name));
        found.map_or_else(String::new, |found| self.value(found.value).trim().to_ascii_lowercase())
    }

    /// Characters that the charset lacks become numeric references.
    pub(super) fn write(&self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encoding.encode(text).0);
    }

    /// `="…"`
    pub(super) fn write_value(&self, value: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"=\"");
        if self.is_xml() {
            self.write(&escape_xml(value), out);
        } else if self.encoding == UTF_8 || value.is_ascii() {
            escape(value.as_bytes(), out);
        } else {
            // First what was there: the references that encoding gives are no text to escape.
            let mut escaped = Vec::with_capacity(value.len() + 16);
            escape(value.as_bytes(), &mut escaped);
            self.write(&String::from_utf8_lossy(&escaped), out);
        }
        out.push(b'"');
    }

    /// The text of a script or style, so that a parser reads it as it is here.
    pub(super) fn write_held(&self, text: &str, out: &mut Vec<u8>) {
        if self.is_xml() { self.write(&escape_xml(text), out) } else { self.write(text, out) }
    }

    /// Of the first `<meta>` that names a charset we can read, what it says holds from there on.
    pub(super) fn correct(&mut self, name: &[u8], attributes: &[Attribute<'_>]) {
        if self.certain || !name.eq_ignore_ascii_case(b"meta") {
            return;
        }
        let known = |label: &str| {
            Encoding::for_label_no_replacement(label.as_bytes())
                .filter(|encoding| encoding.is_ascii_compatible())
        };
        let declared = known(&self.word(attributes, b"charset")).or_else(|| {
            let is_type = self.word(attributes, b"http-equiv") == "content-type";
            let content = is_type.then(|| self.word(attributes, b"content"))?;
            known(&label_in(&content)?)
        });
        if let Some(encoding) = declared {
            *self = Self { encoding, certain: true, dialect: self.dialect };
        }
    }
}

/// Text for any place in XML. Line ends and tabs as references: in values they would become spaces.
fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            letter => out.push(letter),
        }
    }
    out
}

fn escape(mut value: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr2(b'&', b'"', value) {
        out.extend_from_slice(&value[..at]);
        out.extend_from_slice(if value[at] == b'&' { b"&amp;" } else { b"&quot;" });
        value = &value[at + 1..];
    }
    out.extend_from_slice(value);
}
