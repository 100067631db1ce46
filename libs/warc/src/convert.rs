//! ARC into WARC 1.1.
//!
//! | ARC | WARC |
//! |---|---|
//! | `filedesc:` | `metadata` about the new file, holding the version block as it was |
//! | `dns:` | `response` of type `text/dns` |
//! | an HTTP reply | `response` of type `application/http;msgtype=response`, block as it was |
//! | anything else | `resource` of the MIME type in the header line |
//!
//! URL, date and IP address come from the header line; a date that cannot be read becomes that of the record
//! before. What the line also said (result code, checksum, …) is kept in fields named `ARC-…`, and the line itself
//! in `ARC-Header-Line`. A digest of block and payload is computed for each.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::date::Date;
use crate::header::RecordType;
use crate::record::Record;
use crate::write::{Compression, FileOptions, NewRecord, WarcFile};

/// Writes the records of an ARC file into a new WARC file.
#[derive(Debug)]
pub struct Converter {
    file: WarcFile,
    /// The date of the record before, for those without one.
    last: Date,
}

impl Converter {
    /// Creates the WARC file. Its warcinfo names `source`, the ARC file, and the software that converts.
    pub fn create(
        path: impl AsRef<Path>,
        compression: Compression,
        source: &Path,
        software: &str,
    ) -> io::Result<Converter> {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let info = vec![
            ("software".to_owned(), software.to_owned()),
            (
                "description".to_owned(),
                format!("converted from the ARC file {}", name.replace(['\r', '\n'], " ")),
            ),
        ];
        let options = FileOptions { compression, info, ..FileOptions::default() };
        let now = Date::from(Timestamp::now());
        Ok(Converter { file: WarcFile::create(path, &options, now)?, last: now })
    }

    /// Writes one ARC record as WARC.
    pub fn push(&mut self, record: &mut Record<'_>) -> io::Result<()> {
        let date = record.date().unwrap_or(self.last);
        self.last = date;
        let uri =
            record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned()).unwrap_or_default();
        let mime = record.content_type().map(|mime| String::from_utf8_lossy(mime).trim().to_owned());
        let mime = mime.filter(|mime| is_mime(mime)).unwrap_or_else(|| "application/octet-stream".to_owned());
        let head = record.http()?.map(|head| head.raw().to_vec());
        let kept = kept_fields(record);
        let ip =
            record.header().get("WARC-IP-Address").and_then(|ip| std::str::from_utf8(ip).ok()?.parse().ok());
        let line = record.header().raw().trim_ascii().to_vec();
        let (mut body, len) = crate::write::spool(&mut record.body()?)?;
        let mut new = if uri.starts_with("filedesc:") {
            NewRecord::new(RecordType::Metadata, date).target_uri(&uri).content_type("text/plain")
        } else if head.is_some() {
            let kind = NewRecord::new(RecordType::Response, date).target_uri(&uri);
            kind.content_type("application/http; msgtype=response")
        } else if uri.starts_with("dns:") {
            NewRecord::new(RecordType::Response, date).target_uri(&uri).content_type("text/dns")
        } else {
            NewRecord::new(RecordType::Resource, date).target_uri(&uri).content_type(&mime)
        };
        // An address of all zeros says that none was known.
        if let Some(ip) = ip.filter(|ip: &IpAddr| !ip.is_unspecified()) {
            new = new.ip(ip);
        }
        for (name, value) in &kept {
            new = new.field(name, value);
        }
        new = new.field("ARC-Header-Line", &printable(&line));
        let head = head.unwrap_or_default();
        self.file.write(&mut new.stream(&head, &mut body, len)).map(|_| ())
    }

    /// Closes the file; gives its path and how many records were converted.
    pub fn finish(self) -> io::Result<(PathBuf, u64)> {
        let records = self.file.records() - 1;
        Ok((self.file.close()?, records))
    }

    /// Takes the unfinished file away again.
    pub fn abandon(self) {
        self.file.abandon();
    }
}

/// What the header line said beyond the five fields of version 1.
fn kept_fields(record: &Record<'_>) -> Vec<(String, Vec<u8>)> {
    let arc = record.header().iter().filter(|(name, _)| name.starts_with(b"ARC-"));
    arc.map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), printable(value))).collect()
}

fn printable(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }).collect()
}

/// Whether a MIME type may stand in a header: the field of old crawlers holds anything.
fn is_mime(text: &str) -> bool {
    let (kind, sub) = text.split(';').next().unwrap_or_default().trim().split_once('/').unwrap_or_default();
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    token(kind) && token(sub) && !text.contains(['\r', '\n'])
}
