//! What a line will say about a record, gathered while the record passes by.
//!
//! A draft is filled anew for each record and keeps its buffers, so indexing allocates next to nothing.

use super::options::{ExtraField, IndexOptions};
use crate::post::{BODY_BYTES_MAX, BODY_BYTES_UNNAMED};
use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use warc::{Algorithm, Hasher, HttpHead, Record, RecordType};

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) kind: Option<RecordType>,
    /// Whether the record gets a line of its own.
    pub(super) wanted: bool,
    pub(super) url: Slot,
    pub(super) timestamp: String,
    pub(super) mime: Slot,
    pub(super) status: Option<u16>,
    pub(super) digest: Slot,
    pub(super) offset: u64,
    pub(super) length: Option<u64>,
    /// Whether the record is the first in its member, so that its offset finds it.
    pub(super) seekable: bool,
    /// Values of extra fields, each with the place of its field in the options.
    pub(super) extra: Vec<(usize, String)>,
    /// For pairs: who the record is and whom it names.
    pub(super) record_id: Slot,
    pub(super) concurrent_to: Slot,
    pub(super) request: Request,
}

/// What a request contributes to the line of its response.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) present: bool,
    pub(super) method: String,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    pub(super) headers: Vec<(usize, String)>,
}

/// Optional text in a buffer that is kept.
#[derive(Debug, Default)]
pub(super) struct Slot {
    text: String,
    set: bool,
}

impl Slot {
    pub(super) fn get(&self) -> Option<&str> {
        self.set.then_some(self.text.as_str())
    }

    fn clear(&mut self) {
        self.text.clear();
        self.set = false;
    }

    fn set(&mut self, value: &[u8]) {
        self.text.clear();
        self.text.push_str(&decode(value));
        self.set = true;
    }

    fn set_opt(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.set(value),
            None => self.clear(),
        }
    }
}

impl Draft {
    /// Cuts the record off where the next one begins. A Content-Length that is too long would make it hand out a part of
    /// that one.
    pub(super) fn end_at(&mut self, next: u64) {
        self.length = self.length.map(|length| length.min(next.saturating_sub(self.offset)));
    }

    /// Reads what the line needs of `record`. Returns false for a record that neither gets a line nor pairs.
    pub(super) fn fill(
        &mut self,
        record: &mut Record<'_>,
        options: &IndexOptions,
        plain: bool,
    ) -> io::Result<bool> {
        let kind = record.kind();
        self.wanted = options.records.wants(kind, record.content_type(), record.target_uri());
        let may_pair = options.pairs() && kind == RecordType::Request;
        if !self.wanted && !may_pair {
            self.kind = None;
            // It stands between its neighbours all the same: they are no pair.
            return Ok(false);
        }
        self.kind = Some(kind);
        self.fill_header(record, options);
        self.fill_http(record, options)?;
        if self.request.present {
            self.read_request_body(record)?;
        }
        if self.digest.get().is_none() && self.wanted {
            self.compute_digest(record, kind)?;
        }
        record.finish()?;
        self.length = stored_length(record, plain);
        Ok(true)
    }

    fn fill_header(&mut self, record: &Record<'_>, options: &IndexOptions) {
        let place = record.place();
        (self.offset, self.seekable) = (place.offset, place.is_seekable());
        self.url.set_opt(record.target_uri());
        if self.url.text.contains(' ') {
            self.url.text = self.url.text.replace(' ', "%20");
        }
        self.timestamp.clear();
        match record.date() {
            Some(date) => self.timestamp.extend(date.digits14().map(char::from)),
            None => self.timestamp.push('-'),
        }
        let header = record.header();
        self.digest.set_opt(header.get("WARC-Payload-Digest").filter(|digest| !digest.is_empty()));
        self.record_id.clear();
        self.concurrent_to.clear();
        if options.pairs() {
            self.record_id.set_opt(header.get("WARC-Record-ID"));
            self.concurrent_to.set_opt(header.get("WARC-Concurrent-To"));
        }
        self.extra.clear();
        for (place, field) in options.extra.iter().enumerate() {
            if let ExtraField::Record(name) = field
                && let Some(value) = header.get(name)
            {
                self.extra.push((place, decode(value).into_owned()));
            }
        }
    }

    fn fill_http(&mut self, record: &mut Record<'_>, options: &IndexOptions) -> io::Result<()> {
        let kind = record.kind();
        self.status = None;
        self.mime.clear();
        self.request.present = false;
        let own_type = match kind {
            RecordType::Revisit => Some(crate::REVISIT_MIME.as_bytes()),
            RecordType::Response | RecordType::Request => None,
            _ => record.content_type().map(bare_type),
        };
        self.mime.set_opt(own_type);
        let Some(http) = record.http()? else { return Ok(()) };
        if kind != RecordType::Request {
            self.status = http.status();
        }
        if matches!(kind, RecordType::Response | RecordType::Request) {
            self.mime.set_opt(http.get("Content-Type").map(bare_type));
        }
        for (place, field) in options.extra.iter().enumerate() {
            if let ExtraField::Http(name) = field
                && let Some(value) = http.get(name)
            {
                self.extra.push((place, decode(value).into_owned()));
            }
        }
        if kind == RecordType::Request && options.pairs() {
            self.request.fill(http, options);
        }
        Ok(())
    }

    fn read_request_body(&mut self, record: &mut Record<'_>) -> io::Result<()> {
        self.request.body.clear();
        if !self.request.has_body() {
            return Ok(());
        }
        let named = match record.http()?.and_then(|http| http.get("Content-Length")) {
            Some(text) => {
                std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
            }
            None => BODY_BYTES_UNNAMED,
        };
        let limit = named.min(BODY_BYTES_MAX) as u64;
        record.content()?.take(limit).read_to_end(&mut self.request.body)?;
        Ok(())
    }

    /// The SHA-1 of the payload as it is stored, for records that carry no digest.
    fn compute_digest(&mut self, record: &mut Record<'_>, kind: RecordType) -> io::Result<()> {
        // A request whose body was decoded for a key has no stored bytes left to read.
        if matches!(kind, RecordType::Revisit | RecordType::Warcinfo) || self.request.has_body() {
            return Ok(());
        }
        let mut hasher = Hasher::new(Algorithm::Sha1);
        let mut body = record.body()?;
        loop {
            let bytes = body.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            hasher.update(bytes);
            let len = bytes.len();
            body.consume(len);
        }
        self.digest.text.clear();
        self.digest.text.push_str("sha1:");
        self.digest.text.push_str(&hasher.finish().base32());
        self.digest.set = true;
        Ok(())
    }

    /// Whether `self`, which came first, and `next` are a request and its response or revisit.
    pub(super) fn pairs_with(&self, next: &Self) -> bool {
        let asks = |kind| kind == Some(RecordType::Request);
        let answers = |kind| matches!(kind, Some(RecordType::Response | RecordType::Revisit));
        let kinds = (asks(self.kind) && answers(next.kind)) || (answers(self.kind) && asks(next.kind));
        let named = next.concurrent_to.get().is_some() && next.concurrent_to.get() == self.record_id.get();
        kinds && named && self.url.get() == next.url.get()
    }
}

impl Request {
    fn fill(&mut self, http: &HttpHead, options: &IndexOptions) {
        self.present = true;
        self.method.clear();
        self.method.push_str(&decode(http.method()));
        self.content_type.clear();
        self.content_type.push_str(&decode(http.get("Content-Type").unwrap_or_default()));
        self.headers.clear();
        for (place, field) in options.extra.iter().enumerate() {
            let value = match field {
                ExtraField::Request(name) => http.get(name),
                ExtraField::Method => Some(http.method()),
                _ => None,
            };
            if let Some(value) = value {
                self.headers.push((place, decode(value).into_owned()));
            }
        }
    }

    pub(super) fn has_body(&self) -> bool {
        self.present && ["POST", "PUT"].iter().any(|method| self.method.eq_ignore_ascii_case(method))
    }
}

/// In files that are not packed the blank lines behind a record do not count.
fn stored_length(record: &Record<'_>, plain: bool) -> Option<u64> {
    if plain && let Some(block) = record.content_length() {
        return Some(record.header().raw().len() as u64 + block);
    }
    record.stored_len()
}

/// What stands before the first `;` or white space.
fn bare_type(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|b| *b == b';' || b.is_ascii_whitespace()).unwrap_or(value.len());
    &value[..end]
}

/// Header values are UTF-8 or, if they are not, Latin-1.
fn decode(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.iter().map(|b| char::from(*b)).collect()),
    }
}
