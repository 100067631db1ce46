//! One line of an index, whatever its spelling.

use serde_json::Value;
use std::borrow::Cow;

/// The MIME type that marks a capture whose payload stands in an earlier record.
pub const REVISIT_MIME: &str = "warc/revisit";

/// One capture as an index knows it. Absent fields are `None`, never `-`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry<'a> {
    /// The sort key of the URL.
    pub key: Cow<'a, str>,
    /// When it was captured: 14 digits, 17 with milliseconds, fewer if a writer knew no better.
    pub timestamp: Cow<'a, str>,
    /// The URL as captured.
    pub url: Option<Cow<'a, str>>,
    /// The MIME type that the server named, without parameters.
    pub mime: Option<Cow<'a, str>>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The payload digest, with or without its label, as it stood.
    pub digest: Option<Cow<'a, str>>,
    /// Where the capture redirects to; hardly any writer fills it.
    pub redirect: Option<Cow<'a, str>>,
    /// The robot flags of CDX (`A` noarchive, `F` nofollow, `I` noindex, `P` password).
    pub robots: Option<Cow<'a, str>>,
    /// The bytes of the stored record, compressed if the file is.
    pub length: Option<u64>,
    /// Where the record (or its gzip member) begins.
    pub offset: Option<u64>,
    /// The file that holds the record.
    pub filename: Option<Cow<'a, str>>,
    /// The digest of the stored bytes, if asked for.
    pub record_digest: Option<Cow<'a, str>>,
    /// The body of a POST or PUT as it went into the key.
    pub request_body: Option<Cow<'a, str>>,
    /// The request method, if it was not GET.
    pub method: Option<Cow<'a, str>>,
    /// Where the payload of a revisit stands, if that was resolved.
    pub original: Option<Original<'a>>,
    /// Fields of a JSON line that have no name here, in their order.
    pub extra: Vec<(Cow<'a, str>, Value)>,
}

/// The record that a revisit repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Original<'a> {
    /// The bytes of the stored record.
    pub length: Option<u64>,
    /// Where the record begins.
    pub offset: Option<u64>,
    /// The file that holds it.
    pub filename: Option<Cow<'a, str>>,
}

impl Entry<'_> {
    /// Whether the payload stands in an earlier record.
    #[must_use]
    pub fn is_revisit(&self) -> bool {
        self.mime.as_deref() == Some(REVISIT_MIME)
    }

    /// The digest without its `sha1:` or other label, as CDX lines carry it.
    #[must_use]
    pub fn bare_digest(&self) -> Option<&str> {
        self.digest.as_deref().map(|digest| digest.rsplit(':').next().unwrap_or(digest))
    }

    /// The same entry, owning its text.
    #[must_use]
    pub fn into_owned(self) -> Entry<'static> {
        fn own(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
            text.map(|text| Cow::Owned(text.into_owned()))
        }
        Entry {
            key: Cow::Owned(self.key.into_owned()),
            timestamp: Cow::Owned(self.timestamp.into_owned()),
            url: own(self.url),
            mime: own(self.mime),
            status: self.status,
            digest: own(self.digest),
            redirect: own(self.redirect),
            robots: own(self.robots),
            length: self.length,
            offset: self.offset,
            filename: own(self.filename),
            record_digest: own(self.record_digest),
            request_body: own(self.request_body),
            method: own(self.method),
            original: self.original.map(|original| Original {
                length: original.length,
                offset: original.offset,
                filename: own(original.filename),
            }),
            extra: self
                .extra
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value))
                .collect(),
        }
    }
}
