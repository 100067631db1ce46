//! One capture out of its file: what the record says, the HTTP head as it was sent, and the body as a stream.
//!
//! Small records are read and unpacked at once; large ones by a thread of their own that stays a few pieces ahead of
//! the reader. Memory is bounded either way, whatever a record claims.

mod body;
mod encoding;
mod lately;
mod open;
mod original;
mod original_finder;
mod record_match;
mod stream;

#[cfg(test)]
mod tests;

use warc::{Date, HttpHead, Profile, Record, RecordType};

pub use body::{Body, BodyError};
pub(crate) use encoding::{Accepted, is_packed, label};
pub(crate) use lately::Lately;
pub(crate) use open::open_at;
pub use open::{OpenError, open};
pub(crate) use original::described;
pub use original::{Loaded, NoPayload, Original, load};
pub(crate) use original_finder::OriginalFinder;
pub(crate) use record_match::{Fit, fits};
pub(crate) use stream::reader_at;

/// Where a record lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: String,
    pub offset: u64,
    /// The bytes it takes there, if the index knows.
    pub length: Option<u64>,
    /// What the index says it is about: tells records apart that share a gzip member. Empty matches all.
    pub url: String,
    /// The first 14 digits of its time as a number; zero matches all.
    pub time: u64,
    /// The digest of its payload, if the index knows.
    pub digest: Option<String>,
}

impl Place {
    /// Where a capture lies; `None` if the index line named no file or no offset.
    pub fn of(capture: &grange_index::Capture) -> Option<Self> {
        let offset = capture.offset.filter(|_| !capture.file.is_empty())?;
        Some(Self {
            file: capture.file.clone(),
            offset,
            length: capture.length,
            url: capture.url.clone().unwrap_or_default(),
            time: capture.time.leading(14),
            digest: capture.digest.clone(),
        })
    }
}

/// How much of a body's packing is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// The transfer coding: the bytes as their content encodings left them.
    Transfer,
    /// The content encodings too, up to so many bytes of content: beyond it the body breaks off.
    Content { bytes_max: u64 },
    /// Nothing: no body at all is wanted.
    Skip,
}

/// What a record says of itself and of the HTTP message in it.
#[derive(Debug, Clone)]
pub struct About {
    pub kind: RecordType,
    pub uri: Option<String>,
    pub date: Option<Date>,
    /// The type of the block; for a resource that of the content.
    pub content_type: Option<String>,
    pub payload_digest: Option<String>,
    pub http: Option<HttpHead>,
    pub refers: Option<Refers>,
    /// The bytes of the body with transfer codings undone, where they can be known beforehand.
    pub payload_len: Option<u64>,
}

/// What a revisit stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refers {
    pub profile: Profile,
    pub uri: Option<String>,
    pub date: Option<Date>,
}

impl About {
    pub(crate) fn of(record: &mut Record<'_>) -> std::io::Result<Self> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let http = record.http()?.filter(|head| !head.is_request()).cloned();
        let refers = record.revisit().map(|revisit| Refers {
            profile: revisit.profile,
            uri: revisit.target_uri.map(text),
            date: revisit.date,
        });
        let head = http.as_ref().map_or(0, |head| head.len() as u64);
        let chunked = http.as_ref().is_some_and(HttpHead::is_chunked);
        Ok(Self {
            kind: record.kind(),
            uri: record.target_uri().map(text),
            date: record.date(),
            content_type: record.content_type().map(text),
            payload_digest: record.header().get("WARC-Payload-Digest").map(text),
            payload_len: record.content_length().filter(|_| !chunked).map(|len| len.saturating_sub(head)),
            http,
            refers,
        })
    }

    /// The status that was answered; what is no HTTP was there, so it is 200.
    pub fn status(&self) -> Option<u16> {
        self.http.as_ref().map_or(Some(200), HttpHead::status)
    }

    /// The media type that the server named, or the record for content that came without HTTP.
    pub fn mime(&self) -> Option<String> {
        let mime = match &self.http {
            Some(head) => head.mime().map(|mime| String::from_utf8_lossy(mime).into_owned()),
            None => {
                self.content_type.as_deref().and_then(|t| t.split(';').next()).map(|t| t.trim().to_owned())
            }
        };
        mime.map(|mime| mime.to_ascii_lowercase())
    }
}
