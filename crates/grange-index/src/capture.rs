//! One capture as the index keeps it, and the way from and to index lines.

use std::borrow::Cow;

use cdx::{Entry, Original, REVISIT_MIME};
use serde_json::{Map, Value};

use crate::stamp::Stamp;

/// One capture: where a URL's answer of a moment lies.
///
/// Key, time, file and offset together name it; two captures of one second do not overwrite each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capture {
    /// The sort key of the URL.
    pub surt: String,
    pub time: Stamp,
    /// The URL as captured.
    pub url: Option<String>,
    /// The MIME type that the server named; `warc/revisit` marks a revisit.
    pub mime: Option<String>,
    pub status: Option<u16>,
    /// The payload digest, with or without its label, as it stood.
    pub digest: Option<String>,
    /// The bytes of the stored record.
    pub length: Option<u64>,
    /// Where the record begins in its file.
    pub offset: Option<u64>,
    /// The name of the file; empty if the line that told of the capture named none.
    pub file: String,
    /// The job that made the file.
    pub job: Option<String>,
    /// Fields that few captures have, under their CDXJ names: redirect, robotflags, method, requestBody,
    /// recordDigest, orig.length, orig.offset, orig.filename, and what other tools add.
    pub extra: Map<String, Value>,
}

impl Capture {
    /// Whether the payload stands in an earlier record.
    pub fn is_revisit(&self) -> bool {
        self.mime.as_deref() == Some(REVISIT_MIME)
    }

    /// The capture that an index line tells of.
    pub fn from_entry(entry: Entry<'_>) -> Self {
        let mut extra = Map::new();
        let mut text = |name: &str, value: Option<Cow<'_, str>>| {
            if let Some(value) = value {
                extra.insert(name.to_owned(), Value::String(value.into_owned()));
            }
        };
        text("redirect", entry.redirect);
        text("robotflags", entry.robots);
        text("recordDigest", entry.record_digest);
        text("requestBody", entry.request_body);
        text("method", entry.method);
        if let Some(original) = entry.original {
            text("orig.filename", original.filename);
            let mut number = |name: &str, value: Option<u64>| {
                if let Some(value) = value {
                    extra.insert(name.to_owned(), value.into());
                }
            };
            number("orig.length", original.length);
            number("orig.offset", original.offset);
        }
        for (name, value) in entry.extra {
            extra.insert(name.into_owned(), value);
        }
        Self {
            surt: entry.key.into_owned(),
            time: Stamp::parse(entry.timestamp.as_bytes()).unwrap_or_default(),
            url: entry.url.map(Cow::into_owned),
            mime: entry.mime.map(Cow::into_owned),
            status: entry.status,
            digest: entry.digest.map(Cow::into_owned),
            length: entry.length,
            offset: entry.offset,
            file: entry.filename.map(Cow::into_owned).unwrap_or_default(),
            job: None,
            extra,
        }
    }

    /// The capture as an index line. Jobs are the index's own business and are not in it.
    pub fn to_entry(&self) -> Entry<'_> {
        let mut entry = Entry {
            key: Cow::Borrowed(&self.surt),
            timestamp: Cow::Owned(self.time.to_string()),
            url: self.url.as_deref().map(Cow::Borrowed),
            mime: self.mime.as_deref().map(Cow::Borrowed),
            status: self.status,
            digest: self.digest.as_deref().map(Cow::Borrowed),
            length: self.length,
            offset: self.offset,
            filename: Some(self.file.as_str()).filter(|file| !file.is_empty()).map(Cow::Borrowed),
            ..Entry::default()
        };
        let mut original = Original::default();
        for (name, value) in &self.extra {
            let text = value.as_str().map(Cow::Borrowed);
            match (name.as_str(), text, value.as_u64()) {
                ("redirect", Some(text), _) => entry.redirect = Some(text),
                ("robotflags", Some(text), _) => entry.robots = Some(text),
                ("recordDigest", Some(text), _) => entry.record_digest = Some(text),
                ("requestBody", Some(text), _) => entry.request_body = Some(text),
                ("method", Some(text), _) => entry.method = Some(text),
                ("orig.filename", Some(text), _) => original.filename = Some(text),
                ("orig.length", _, Some(number)) => original.length = Some(number),
                ("orig.offset", _, Some(number)) => original.offset = Some(number),
                _ => entry.extra.push((Cow::Borrowed(name), value.clone())),
            }
        }
        if original != Original::default() {
            entry.original = Some(original);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cdx::{Line, parse_line};

    #[test]
    fn a_line_comes_back_as_it_was() {
        for line in [
            r#"com,example)/ 20260102030405 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:AA", "length": "7", "offset": "9", "filename": "a.warc.gz"}"#,
            r#"com,example)/ 20260102030405123 {"url": "http://example.com/", "mime": "warc/revisit", "redirect": "x", "robotflags": "A", "offset": "9", "filename": "a.warc.gz", "source": {"a":[1]}, "requestBody": "q=1", "method": "POST", "orig.length": "1", "orig.offset": "2", "orig.filename": "b"}"#,
            "com,example)/ - {}",
        ] {
            let Line::Entry(entry, _) = parse_line(line.as_bytes(), None) else { panic!("{line}") };
            let mut out = Vec::new();
            Capture::from_entry(entry).to_entry().write_cdxj(&mut out);
            assert_eq!(String::from_utf8(out).unwrap().trim_end(), line);
        }
    }
}
