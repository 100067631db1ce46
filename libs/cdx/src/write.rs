//! Lines out of entries.
//!
//! CDXJ is written as Python's json module writes it (`", "` and `": "`, ASCII with `\u` escapes, numbers as
//! strings), because that is what every index of cdxj-indexer and pywb looks like.

use crate::entry::Entry;
use crate::legend::{Column, Legend};
use std::io::Write as _;

impl Entry<'_> {
    /// Appends the entry as a CDXJ line, with its line end.
    pub fn write_cdxj(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.timestamp.as_bytes());
        out.extend_from_slice(b" {");
        let mut json = Json { out, first: true };
        json.text("url", self.url.as_deref());
        json.text("mime", self.mime.as_deref());
        json.number("status", self.status.map(u64::from));
        json.text("digest", self.digest.as_deref());
        json.text("redirect", self.redirect.as_deref());
        json.text("robotflags", self.robots.as_deref());
        json.number("length", self.length);
        json.number("offset", self.offset);
        json.text("filename", self.filename.as_deref());
        json.text("recordDigest", self.record_digest.as_deref());
        for (name, value) in &self.extra {
            json.value(name, value);
        }
        json.text("requestBody", self.request_body.as_deref());
        json.text("method", self.method.as_deref());
        if let Some(original) = &self.original {
            json.number("orig.length", original.length);
            json.number("orig.offset", original.offset);
            json.text("orig.filename", original.filename.as_deref());
        }
        out.extend_from_slice(b"}\n");
    }

    /// Appends the entry as a CDX line in the columns of `legend`, with its line end.
    pub fn write_cdx(&self, legend: &Legend, out: &mut Vec<u8>) {
        let original = self.original.as_ref();
        for (i, column) in legend.columns().iter().enumerate() {
            if i > 0 {
                out.push(legend.delimiter());
            }
            let text = match column {
                Column::Key => Some(self.key.as_ref()),
                Column::Timestamp => Some(self.timestamp.as_ref()),
                Column::Url => self.url.as_deref(),
                Column::Mime => self.mime.as_deref(),
                Column::Digest => self.bare_digest(),
                Column::Redirect => self.redirect.as_deref(),
                Column::Robots => self.robots.as_deref(),
                Column::Filename => self.filename.as_deref(),
                Column::OriginalFilename => original.and_then(|original| original.filename.as_deref()),
                _ => None,
            };
            let number = match column {
                Column::Status => self.status.map(u64::from),
                Column::Length => self.length,
                Column::Offset => self.offset,
                Column::OriginalLength => original.and_then(|original| original.length),
                Column::OriginalOffset => original.and_then(|original| original.offset),
                _ => None,
            };
            match (text, number) {
                (Some(text), _) if !text.is_empty() => push_column(text, legend.delimiter(), out),
                (_, Some(number)) => push_number(number, out),
                _ => out.push(b'-'),
            }
        }
        out.push(b'\n');
    }
}

/// A delimiter or line end inside a column would shift the others.
fn push_column(text: &str, delimiter: u8, out: &mut Vec<u8>) {
    let unsafe_byte = |b: u8| b == delimiter || b == b'\n' || b == b'\r';
    if !text.bytes().any(unsafe_byte) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        if unsafe_byte(byte) {
            // A Vec never fails to be written to.
            let _ = write!(out, "%{byte:02x}");
        } else {
            out.push(byte);
        }
    }
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{number}");
}

struct Json<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl Json<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.extend_from_slice(b", ");
        }
        push_json_string(name, self.out);
        self.out.extend_from_slice(b": ");
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.name(name);
            push_json_string(value, self.out);
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.name(name);
            self.out.push(b'"');
            push_number(value, self.out);
            self.out.push(b'"');
        }
    }

    fn value(&mut self, name: &str, value: &serde_json::Value) {
        self.name(name);
        match value {
            serde_json::Value::String(text) => push_json_string(text, self.out),
            // Foreign values keep their form; only text is ever escaped to ASCII.
            other => {
                let _ = write!(self.out, "{other}");
            }
        }
    }
}

/// Appends `text` as a JSON string of ASCII.
pub(crate) fn push_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let plain = |b: &u8| matches!(b, 0x20..=0x7f) && *b != b'"' && *b != b'\\';
    if bytes.iter().all(plain) {
        out.extend_from_slice(bytes);
    } else {
        for c in text.chars() {
            push_json_char(c, out);
        }
    }
    out.push(b'"');
}

fn push_json_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        ' '..='\u{7f}' => out.push(c as u8),
        c => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}
