//! The header of a record: its fields, and the type they name.

use std::borrow::Cow;

use crate::fields::{Fields, Notes};

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// Describes the file and the crawl; also the `filedesc` record of ARC.
    Warcinfo,
    /// What a server answered.
    Response,
    /// A resource without the protocol around it.
    Resource,
    /// What was sent to the server.
    Request,
    /// Says something about another record.
    Metadata,
    /// The same as an earlier capture.
    Revisit,
    /// Another form of an archived resource.
    Conversion,
    /// A later segment of a record.
    Continuation,
    /// Any other, or none at all.
    Unknown,
}

impl RecordType {
    /// The name in `WARC-Type`, empty if unknown.
    pub const fn as_str(self) -> &'static str {
        match self {
            RecordType::Warcinfo => "warcinfo",
            RecordType::Response => "response",
            RecordType::Resource => "resource",
            RecordType::Request => "request",
            RecordType::Metadata => "metadata",
            RecordType::Revisit => "revisit",
            RecordType::Conversion => "conversion",
            RecordType::Continuation => "continuation",
            RecordType::Unknown => "",
        }
    }

    /// Reads a `WARC-Type`, in any case of letters.
    pub fn parse(text: &[u8]) -> RecordType {
        const ALL: [RecordType; 8] = [
            RecordType::Response,
            RecordType::Request,
            RecordType::Metadata,
            RecordType::Revisit,
            RecordType::Warcinfo,
            RecordType::Resource,
            RecordType::Conversion,
            RecordType::Continuation,
        ];
        ALL.into_iter()
            .find(|t| t.as_str().as_bytes().eq_ignore_ascii_case(text))
            .unwrap_or(RecordType::Unknown)
    }
}

/// The fields that the reader itself looks at; their places are noted while parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Known {
    Type,
    Date,
    RecordId,
    ContentLength,
    ContentType,
    TargetUri,
    PayloadDigest,
    BlockDigest,
}

const KNOWN: usize = 8;
const ABSENT: u16 = u16::MAX;

impl Known {
    fn of(name: &[u8]) -> Option<Known> {
        let (known, full): (Known, &[u8]) = match name.len() {
            9 if name[5] | 0x20 == b't' => (Known::Type, b"warc-type"),
            9 => (Known::Date, b"warc-date"),
            12 => (Known::ContentType, b"content-type"),
            14 if name[0] | 0x20 == b'c' => (Known::ContentLength, b"content-length"),
            14 => (Known::RecordId, b"warc-record-id"),
            15 => (Known::TargetUri, b"warc-target-uri"),
            17 => (Known::BlockDigest, b"warc-block-digest"),
            19 => (Known::PayloadDigest, b"warc-payload-digest"),
            _ => return None,
        };
        name.eq_ignore_ascii_case(full).then_some(known)
    }
}

/// The header of a record. For ARC the fields are made from the header line, under the names of WARC.
#[derive(Debug, Clone)]
pub struct Header {
    fields: Fields,
    known: [u16; KNOWN],
    duplicate: bool,
}

impl Default for Header {
    fn default() -> Header {
        Header { fields: Fields::default(), known: [ABSENT; KNOWN], duplicate: false }
    }
}

impl Header {
    pub(crate) fn parse(&mut self, head: &[u8], from: usize) -> Notes {
        let notes = self.fields.parse(head, from);
        self.note_known();
        notes
    }

    /// Starts a header whose fields do not stand in its bytes by name.
    pub(crate) fn start(&mut self, raw: &[u8]) {
        self.fields.set_raw(raw);
        self.note_known();
    }

    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.fields.push(name, value);
        if let Some(known) = Known::of(name.as_bytes()) {
            self.known[known as usize] = (self.fields.len() - 1).min(usize::from(ABSENT)) as u16;
        }
    }

    fn note_known(&mut self) {
        self.known = [ABSENT; KNOWN];
        self.duplicate = false;
        for index in 0..self.fields.len().min(usize::from(ABSENT)) {
            if let Some(known) = self.fields.at(index).and_then(|(name, _)| Known::of(name)) {
                let place = &mut self.known[known as usize];
                if *place == ABSENT {
                    *place = index as u16;
                } else {
                    self.duplicate = true;
                }
            }
        }
    }

    #[inline]
    pub(crate) fn known(&self, known: Known) -> Option<&[u8]> {
        match self.known[known as usize] {
            ABSENT => None,
            index => self.fields.at(usize::from(index)).map(|(_, value)| value),
        }
    }

    pub(crate) fn has_duplicate(&self) -> bool {
        self.duplicate
    }

    /// The value of the first field of that name, in any case of letters, without the space around it.
    /// Folded lines are joined by one space.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        match Known::of(name.as_bytes()) {
            Some(known) => self.known(known),
            None => self.fields.get(name),
        }
    }

    /// The same as text; bytes that are not UTF-8 become U+FFFD.
    pub fn get_text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(String::from_utf8_lossy)
    }

    /// The values of all fields of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.all(name)
    }

    /// All fields, names and values, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// The bytes of the header as they were found: version line, fields and blank line; for ARC the line.
    pub fn raw(&self) -> &[u8] {
        self.fields.raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_any_case() {
        for (text, expected) in [
            ("response", RecordType::Response),
            ("Response", RecordType::Response),
            ("CONTINUATION", RecordType::Continuation),
            ("monkeys", RecordType::Unknown),
            ("", RecordType::Unknown),
        ] {
            assert_eq!(RecordType::parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn known_fields_are_found_in_any_case() {
        let mut header = Header::default();
        header.parse(
            b"WARC/1.0\r\nwarc-TYPE: request\r\ncontent-LENGTH: 5\r\nWARC-Type: x\r\nOther: y\r\n\r\n",
            10,
        );
        assert_eq!(header.known(Known::Type), Some(&b"request"[..]));
        assert_eq!(header.get("Content-Length"), Some(&b"5"[..]));
        assert_eq!(header.get("OTHER"), Some(&b"y"[..]));
        assert!(header.has_duplicate());
    }
}
