//! Payloads under whatever URL, for crawls that ask for them (`dedup.by = "digest"`).
//!
//! An index does not know the URLs of its records: they would make it four times as large. So the record itself is
//! read in the archive, once for each payload that a crawl meets again. That also proves that it is there, and of this
//! payload; what cannot be read in time is stored in full.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use grange_archive::ArchiveClient;
use grange_crawl::record::{DuplicateOracle, Original};
use tokio::runtime::{Handle, RuntimeFlavor};
use warc::write::RecordId;
use warc::{Digest, Reader, RecordType};

use super::entry::Key;
use super::index::Index;
use super::oracle::believed;

/// Bytes read of a record: its header is in the first kilobytes.
pub(super) const HEADER_READ_BYTES: u64 = 16 << 10;
/// A replica that takes longer costs the crawl more than the bytes that a revisit saves.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Answers remembered: pictures that stand on every page are asked for again and again. Some 3 MB.
const REMEMBERED_MAX: usize = 10_000;

/// Knows captures by URL and payload, and by payload alone.
#[derive(Debug)]
pub(super) struct Anywhere {
    urls: Index,
    payloads: Index,
    archive: Arc<dyn ArchiveClient>,
    runtime: Handle,
    remembered: Mutex<HashMap<Key, Option<Original>>>,
}

impl Anywhere {
    /// Within a runtime, which is asked for records later.
    pub(super) fn new(urls: Index, payloads: Index, archive: Arc<dyn ArchiveClient>) -> Anywhere {
        Anywhere { urls, payloads, archive, runtime: Handle::current(), remembered: Mutex::default() }
    }

    /// The original with the URL that its record has.
    async fn read(&self, found: Original, payload: &Digest) -> Option<Original> {
        let name = found.file.parse().ok()?;
        let reading = self.archive.read_at(&name, found.offset, HEADER_READ_BYTES);
        let bytes = match tokio::time::timeout(ANSWER_WITHIN, reading).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                let error = grange_base::Chain(&error);
                tracing::debug!(file = found.file, %error, "the original of a payload cannot be read");
                return None;
            }
            Err(_) => {
                tracing::debug!(file = found.file, "the original of a payload is not read in time");
                return None;
            }
        };
        described(found, payload, bytes)
    }
}

/// The original as the beginning of its record describes it; none if it is not of this payload.
fn described(found: Original, payload: &Digest, bytes: Bytes) -> Option<Original> {
    let mut reader = Reader::new(Cursor::new(bytes)).ok()?;
    let record = reader.next().ok()??;
    let digest = Digest::parse(record.header().get("WARC-Payload-Digest")?).ok()?;
    // The reader passes over what is not a record; the one it finds then lies elsewhere.
    if record.place().offset != 0 || record.kind() != RecordType::Response || digest != *payload {
        return None;
    }
    let url = String::from_utf8(record.target_uri()?.to_vec()).ok()?;
    let (date, id) = (record.date()?.timestamp(), record.record_id().and_then(RecordId::parse));
    Some(Original { url, date, record: id, ..found })
}

impl DuplicateOracle for Anywhere {
    fn same_url(&self, url: &str, payload: &Digest) -> Option<Original> {
        self.urls.same_url(url, payload)
    }

    fn same_payload(&self, payload: &Digest) -> Option<Original> {
        let found = believed(&self.payloads, self.payloads.find_payload(payload))?;
        let key = Key::of_payload(payload);
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = remembered().get(&key) {
            return known.clone();
        }
        // Where there is but one thread, waiting on it would be waiting for ever.
        if self.runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let read = tokio::task::block_in_place(|| self.runtime.block_on(self.read(found, payload)));
        let mut remembered = remembered();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(key, read.clone());
        read
    }
}
