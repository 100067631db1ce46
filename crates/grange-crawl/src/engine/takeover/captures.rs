//! The captures in a WARC file of this crawler, one after another.

use std::io::{self, Read as _};
use std::path::Path;

use jiff::Timestamp;
use warc::write::Truncated;
use warc::{Reader, Record, RecordType};

use super::notes::CaptureNotes;
use crate::fetch::Fetched;
use crate::record::recorder::StoredContents;
use crate::virus::{self, Xor};

/// Answers up to this length are kept in memory: robots.txt files are read again. Their rules end at 500 KiB, a head at 64.
const KEPT_BYTES: usize = 1 << 20;

/// No metadata record is longer: a document has some thousand links of at most 2 KiB each.
const NOTES_BYTES_MAX: u64 = 64 << 20;

/// A capture as it is stored.
#[derive(Debug)]
pub(super) struct StoredCapture {
    pub(super) url: String,
    /// Where its main record begins in the file.
    pub(super) offset: u64,
    pub(super) date: Timestamp,
    pub(super) answer: StoredAnswer,
}

#[derive(Debug)]
pub(super) enum StoredAnswer {
    /// What name servers said of a host.
    Name {
        size: u64,
        digest: Option<String>,
    },
    Http(Box<StoredHttp>),
}

#[derive(Debug)]
pub(super) struct StoredHttp {
    pub(super) fetched: Fetched,
    pub(super) digest: String,
    /// Of a revisit: the URL of the capture that has its body.
    pub(super) original_url: Option<String>,
    /// Its record holds the head alone.
    pub(super) is_revisit: bool,
    /// None if the file does not say how the crawl came to it.
    pub(super) notes: Option<CaptureNotes>,
}

/// Gives every capture of the file to `take`, in the order of the file. Damage is passed over.
pub(super) fn read_captures<E: From<io::Error>>(
    path: &Path,
    take: &mut dyn FnMut(StoredCapture) -> Result<(), E>,
) -> Result<StoredContents, E> {
    let mut reader = Reader::open(path)?;
    let mut counts = StoredContents::default();
    // The capture whose metadata record may come next, and the id of its main record.
    let mut pending: Option<(Vec<u8>, StoredCapture)> = None;
    while let Some(mut record) = reader.next()? {
        counts.records += 1;
        counts.block_bytes += record.content_length().unwrap_or_default();
        match record.kind() {
            RecordType::Response | RecordType::Revisit | RecordType::Conversion => {
                if let Some((_, unexplained)) = pending.take() {
                    take(unexplained)?;
                }
                let id = record.record_id().unwrap_or_default().to_vec();
                let Some(capture) = capture(&mut record)? else { continue };
                counts.first = counts.first.or(Some(capture.date));
                counts.last = Some(capture.date);
                match capture.answer {
                    StoredAnswer::Name { .. } => take(capture)?,
                    StoredAnswer::Http(_) => pending = Some((id, capture)),
                }
            }
            RecordType::Metadata => {
                let about =
                    record.header().get("WARC-Concurrent-To").map(bare_id).unwrap_or_default().to_vec();
                let Some((_, mut capture)) = pending.take_if(|(id, _)| *id == about) else { continue };
                let mut lines = Vec::new();
                record.block().take(NOTES_BYTES_MAX).read_to_end(&mut lines)?;
                if let StoredAnswer::Http(http) = &mut capture.answer
                    && (lines.len() as u64) < NOTES_BYTES_MAX
                {
                    http.notes = CaptureNotes::parse(&lines);
                    if let Some(notes) = &http.notes {
                        http.fetched.duration = notes.duration;
                        http.fetched.payload_length = notes.size.unwrap_or(http.fetched.payload_length);
                        http.fetched.wire_length = notes.content_size.unwrap_or(http.fetched.wire_length);
                    }
                }
                take(capture)?;
            }
            _ => {}
        }
    }
    if let Some((_, unexplained)) = pending {
        take(unexplained)?;
    }
    Ok(counts)
}

/// The capture of a main record. None if it is not one of a crawl.
fn capture(record: &mut Record<'_>) -> io::Result<Option<StoredCapture>> {
    let url = record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
    let (Some(url), Some(date)) = (url, record.date()) else { return Ok(None) };
    let (offset, date) = (record.place().offset, date.timestamp());
    let kind = record.kind();
    let text = |name: &str| record.header().get_text(name).map(std::borrow::Cow::into_owned);
    let digest = text("WARC-Payload-Digest");
    if url.starts_with("dns:") {
        let size = record.content_length().unwrap_or_default();
        let answer = StoredAnswer::Name { size, digest };
        return Ok(Some(StoredCapture { url, offset, date, answer }));
    }
    if !url.starts_with("http:") && !url.starts_with("https:") {
        return Ok(None);
    }
    let truncated = text("WARC-Truncated").as_deref().and_then(truncated);
    let not_modified = text("WARC-Profile").is_some_and(|profile| profile.ends_with("/server-not-modified"));
    let original_url = text("WARC-Refers-To-Target-URI").filter(|_| !not_modified);
    let ip = text("WARC-IP-Address").and_then(|ip| ip.parse().ok());
    let mut fetched = if kind == RecordType::Conversion {
        if record.content_type() != Some(virus::CONTENT_TYPE.as_bytes()) {
            return Ok(None);
        }
        Fetched::from_stored(&mut Xor::new(record.block()), date, KEPT_BYTES)?
    } else {
        Fetched::from_stored(&mut record.block(), date, KEPT_BYTES)?
    };
    (fetched.truncated, fetched.ip) = (truncated, ip);
    let is_revisit = kind == RecordType::Revisit;
    // The log has the digest of what came; a record of a 304 that of what it stands for.
    let digest = digest.filter(|_| !not_modified).unwrap_or_else(|| fetched.payload_digest.to_string());
    let http = StoredHttp { fetched, digest, original_url, is_revisit, notes: None };
    Ok(Some(StoredCapture { url, offset, date, answer: StoredAnswer::Http(Box::new(http)) }))
}

fn bare_id(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|inner| inner.strip_suffix(b">")).unwrap_or(value)
}

fn truncated(word: &str) -> Option<Truncated> {
    use Truncated::{Disconnect, Disk, Length, Time, Unspecified};
    [Length, Time, Disconnect, Disk, Unspecified].into_iter().find(|reason| reason.as_str() == word)
}
