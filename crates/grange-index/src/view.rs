//! A capture where it lies, decoded only as far as somebody asks.

use std::borrow::Cow;

use crate::address;
use crate::capture::Capture;
use crate::digest::{self, Form};
use crate::row::{
    DELETED, FileEntry, HAS_LENGTH, HAS_MIME, HAS_OFFSET, HAS_STATUS, Kind, REVISIT, Row, SHARED,
};
use crate::segment::{Position, Segment};
use crate::stamp::Stamp;
use crate::varint;

/// A capture borrowed from the index.
#[derive(Debug, Clone, Copy)]
pub struct CaptureView<'a> {
    row: Row<'a>,
    file: Option<&'a FileEntry>,
    kind: Option<&'a Kind>,
}

impl<'a> CaptureView<'a> {
    pub(crate) fn new(row: Row<'a>, segment: &'a Segment) -> Self {
        Self { row, file: segment.files.get(row.file as usize), kind: segment.kinds.get(row.kind as usize) }
    }

    fn has(&self, flag: u8) -> bool {
        self.kind.is_some_and(|kind| kind.flags & flag != 0)
    }

    pub fn surt_bytes(&self) -> &'a [u8] {
        self.row.surt
    }

    /// The sort key of the URL.
    pub fn surt(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.row.surt)
    }

    pub fn time(&self) -> Stamp {
        self.row.time
    }

    pub fn status(&self) -> Option<u16> {
        self.kind.filter(|_| self.has(HAS_STATUS)).map(|kind| kind.status)
    }

    pub fn mime(&self) -> Option<&'a str> {
        self.kind.filter(|_| self.has(HAS_MIME)).map(|kind| &*kind.mime)
    }

    /// Whether the payload stands in an earlier record.
    pub fn is_revisit(&self) -> bool {
        self.has(REVISIT)
    }

    /// Whether the row is of a record that only describes a capture, as Heritrix writes them. Older versions indexed these under
    /// the key of what they describe.
    pub(crate) fn is_description(&self) -> bool {
        const TYPES: [&str; 2] = ["text/anvl", "application/warc-fields"];
        self.kind.is_some_and(|kind| {
            kind.flags & HAS_STATUS == 0
                && kind.flags & HAS_MIME != 0
                && TYPES.iter().any(|one| kind.mime.eq_ignore_ascii_case(one))
        }) && !crate::key::is_paper_key(self.row.surt)
    }

    /// Whether other rows of its segment are the same capture.
    pub(crate) fn is_shared(&self) -> bool {
        self.has(SHARED)
    }

    /// Whether both are of the same file and job, given that they are of one segment.
    pub(crate) const fn is_row_of(&self, other: &Self) -> bool {
        self.row.file == other.row.file
    }

    /// Whether it gives way to the same capture in another segment.
    pub(crate) fn yields(&self) -> bool {
        self.file.is_some_and(FileEntry::yields)
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.has(DELETED)
    }

    pub fn length(&self) -> Option<u64> {
        self.has(HAS_LENGTH).then_some(self.row.length)
    }

    pub fn offset(&self) -> Option<u64> {
        self.has(HAS_OFFSET).then_some(self.row.offset)
    }

    /// The file; empty if none was named.
    pub fn file(&self) -> &'a str {
        self.file.map_or("", |file| &file.name)
    }

    pub fn job(&self) -> Option<&'a str> {
        self.file.and_then(|file| file.job.as_deref())
    }

    /// Appends the digest; false if there is none.
    pub fn digest_into(&self, out: &mut String) -> bool {
        digest::unpack(self.row.form, self.row.digest, out);
        self.row.form != Form::None
    }

    /// The digest without label, as bytes: equal for equal contents whatever the spelling.
    pub(crate) fn digest_essence(&self) -> &'a [u8] {
        digest::essence(self.row.form, self.row.digest)
    }

    /// Whether the row has a URL that its key does not suggest.
    pub(crate) fn url_differs(&self) -> bool {
        self.row.address & address::DIFFERS != 0
    }

    pub(crate) const fn has_no_url(&self) -> bool {
        self.row.address & address::ABSENT != 0
    }

    /// How the URL differs from the one that the key suggests.
    pub(crate) const fn address_code(&self) -> u8 {
        self.row.address
    }

    /// Appends the URL; false if there is none.
    pub fn url_into(&self, out: &mut String) -> bool {
        let mut bytes = std::mem::take(out).into_bytes();
        let start = bytes.len();
        let there = address::decode(self.row.surt, self.row.address, self.row.literals, &mut 0, &mut bytes);
        if there.is_err() {
            bytes.truncate(start);
        }
        *out = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        there.unwrap_or_default()
    }

    /// Further fields as a JSON object, if there are any.
    pub fn extra(&self) -> Option<&'a str> {
        if self.row.address & address::EXTRA == 0 {
            return None;
        }
        let at = &mut 0;
        address::skip(self.row.address, self.row.literals, at).ok()?;
        std::str::from_utf8(varint::get_bytes(self.row.literals, at).ok()?).ok()
    }

    /// Its place in the order of captures.
    pub fn position(&self) -> Position {
        Position {
            surt: self.row.surt.to_vec(),
            time: self.row.time,
            file: self.file().to_owned(),
            offset: self.row.offset,
        }
    }

    /// A copy that owns everything.
    pub fn to_capture(&self) -> Capture {
        let (mut url, mut digest) = (String::new(), String::new());
        Capture {
            surt: self.surt().into_owned(),
            time: self.time(),
            url: self.url_into(&mut url).then_some(url),
            mime: self.mime().map(ToOwned::to_owned),
            status: self.status(),
            digest: self.digest_into(&mut digest).then_some(digest),
            length: self.length(),
            offset: self.offset(),
            file: self.file().to_owned(),
            job: self.job().map(ToOwned::to_owned),
            extra: self.extra().and_then(|extra| serde_json::from_str(extra).ok()).unwrap_or_default(),
        }
    }
}
