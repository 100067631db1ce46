//! The frontier on disk: three trees of one log-structured store, written in atomic batches.
//!
//! ```text
//! seen     fingerprint u64                    → nothing
//! queued   see `key`                          → see `item`
//! facts    f                                  → what the frontier was begun with, as text
//!          t                                  → totals
//!          q queue u32                        → a queue: temper, name, domain
//!          d domain name                      → objects, bytes, began
//!          m mark name                        → the recorder's bytes
//!          h host 0 key                       → the engine's bytes
//! ```
//!
//! A batch reaches the operating system before it counts as committed, so a killed process loses nothing; [`Store::sync`]
//! makes it safe against a dying machine. A batch that was torn is as if it had never been.

use std::path::{Path, PathBuf};

use fjall::config::{CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use rustix::fs::FallocateFlags;

use super::budget::Spent;
use super::error::{FrontierError, Result};
use super::item::{number, read_number, read_text};
use super::queue::Temper;
use crate::politeness::{Strain, Visit};

/// Memory for what is not yet written to tables, per tree; each may be there twice while it is written. Small enough
/// for the memory a crawl may take, large enough that tables are written every few ten thousand URLs.
const SEEN_BUFFER_BYTES: u64 = 8 << 20;
const QUEUED_BUFFER_BYTES: u64 = 16 << 20;
const FACTS_BUFFER_BYTES: u64 = 4 << 20;

/// The least the store allows; older journals go once their tables are written.
const JOURNAL_BYTES: u64 = 64 << 20;

pub(super) const TOTALS: &[u8] = b"t";
pub(super) const BEGUN_WITH: &[u8] = b"f";

pub(super) struct Store {
    folder: PathBuf,
    db: Database,
    pub(super) seen: Keyspace,
    pub(super) queued: Keyspace,
    pub(super) facts: Keyspace,
}

impl Store {
    pub(super) fn open(folder: &Path, cache_bytes: u64) -> Result<Store> {
        std::fs::create_dir_all(folder)
            .map_err(|source| FrontierError::Folder { folder: folder.to_owned(), source })?;
        let store = || {
            let db = Database::builder(folder)
                .cache_size(cache_bytes)
                .max_journaling_size(JOURNAL_BYTES)
                .worker_threads(1)
                .open()?;
            let none = || CompressionPolicy::all(CompressionType::None);
            // Single keys are asked for. Filters and indexes in one piece are megabytes for millions of URLs; the cache
            // holds no piece so large, and all of it would be read again for every key.
            let in_pieces = |options: KeyspaceCreateOptions| {
                options
                    .filter_block_partitioning_policy(PartitioningPolicy::all(true))
                    .index_block_partitioning_policy(PartitioningPolicy::all(true))
            };
            // Fingerprints are noise: nothing to compress.
            let seen = db.keyspace("seen", || {
                in_pieces(KeyspaceCreateOptions::default())
                    .max_memtable_size(SEEN_BUFFER_BYTES)
                    .data_block_compression_policy(none())
            })?;
            // Only ranges are read, never single keys: filters would be idle.
            let queued = db.keyspace("queued", || {
                in_pieces(KeyspaceCreateOptions::default())
                    .max_memtable_size(QUEUED_BUFFER_BYTES)
                    .filter_policy(FilterPolicy::all(FilterPolicyEntry::None))
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            })?;
            let facts = db.keyspace("facts", || {
                in_pieces(KeyspaceCreateOptions::default()).max_memtable_size(FACTS_BUFFER_BYTES)
            })?;
            Ok(Store { folder: folder.to_owned(), db, seen, queued, facts })
        };
        store().map_err(|source: fjall::Error| FrontierError::Store {
            doing: "open",
            folder: folder.to_owned(),
            source: Box::new(source),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn batch(&self) -> OwnedWriteBatch {
        self.db.batch().durability(Some(PersistMode::Buffer))
    }

    pub(super) fn commit(&self, batch: OwnedWriteBatch) -> Result<()> {
        batch.commit().map_err(self.failed("write to"))
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncData).map_err(self.failed("sync"))
    }

    /// Takes the space of the journal on the disk now instead of when it is written, where the system can do that: a
    /// store whose journal cannot be written is of no use any more.
    pub(super) fn reserve(&self) -> std::io::Result<()> {
        let mut newest = None;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            if path.extension().is_some_and(|extension| extension == "jnl") {
                newest = newest.max(number.map(|number| (number, path)));
            }
        }
        let Some((_, path)) = newest else { return Ok(()) };
        let file = std::fs::OpenOptions::new().write(true).open(path)?;
        Ok(rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, JOURNAL_BYTES)?)
    }

    pub(super) fn failed(&self, doing: &'static str) -> impl Fn(fjall::Error) -> FrontierError + '_ {
        move |source| FrontierError::Store { doing, folder: self.folder.clone(), source: Box::new(source) }
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> FrontierError {
        FrontierError::Damaged { folder: self.folder.clone(), what: what.into() }
    }
}

pub(super) fn queue_key(queue: u32) -> [u8; 5] {
    let [a, b, c, d] = queue.to_be_bytes();
    [b'q', a, b, c, d]
}

pub(super) fn read_queue_key(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(key.strip_prefix(b"q")?.try_into().ok()?))
}

pub(super) fn named(kind: u8, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 1);
    key.push(kind);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(super) fn host_key(host: &str, name: &str) -> Vec<u8> {
    let mut key = named(b'h', host);
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key
}

pub(super) fn encode_queue(temper: &Temper, name: &str, domain: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + domain.len() + 24);
    number(&mut out, u64::from(temper.is_retired));
    number(&mut out, temper.pace_at.max(0).unsigned_abs());
    number(&mut out, u64::from(temper.strain.0));
    number(&mut out, u64::from(temper.failures));
    number(&mut out, u64::from(temper.parks));
    for text in [name, domain] {
        number(&mut out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// Temper, name and domain of a queue.
pub(super) fn decode_queue(mut bytes: &[u8]) -> Option<(Temper, &str, &str)> {
    let rest = &mut bytes;
    let temper = Temper {
        is_retired: read_number(rest)? != 0,
        pace_at: i64::try_from(read_number(rest)?).ok()?,
        strain: Strain(u8::try_from(read_number(rest)?).ok()?),
        failures: u32::try_from(read_number(rest)?).ok()?,
        parks: u32::try_from(read_number(rest)?).ok()?,
    };
    Some((temper, read_text(rest)?, read_text(rest)?))
}

pub(super) fn encode_spent(spent: &Spent) -> Vec<u8> {
    let mut out = Vec::with_capacity(20);
    number(&mut out, spent.objects);
    number(&mut out, spent.bytes);
    // Off by one, so that 0 says not begun.
    number(&mut out, spent.began.map_or(0, |began| began.saturating_add(1)));
    out
}

pub(super) fn decode_spent(mut bytes: &[u8]) -> Option<Spent> {
    let rest = &mut bytes;
    Some(Spent {
        objects: read_number(rest)?,
        bytes: read_number(rest)?,
        began: read_number(rest)?.checked_sub(1),
    })
}

/// What is counted over the whole crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) discovered: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) disregarded: u64,
    /// Of all answers.
    pub(super) bytes: u64,
    /// What is charged to the crawl's budget.
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
    /// The largest answer so far, in bytes.
    pub(super) largest: u64,
    /// Milliseconds of running time.
    pub(super) ran: u64,
    /// The next sequence number.
    pub(super) sequence: u64,
}

impl Totals {
    pub(super) fn finished(&self) -> u64 {
        self.succeeded + self.failed + self.disregarded
    }

    /// Counts a visit that is over, and charges it to the crawl and to its domain.
    pub(super) fn charge(&mut self, domain: &mut Spent, visit: &Visit, is_prerequisite: bool) {
        self.bytes = self.bytes.saturating_add(visit.bytes);
        if visit.status.is_disregarded() {
            self.disregarded += 1;
        } else if visit.status.is_success() {
            self.succeeded += 1;
        } else {
            self.failed += 1;
        }
        if visit.status.is_success() && !is_prerequisite {
            domain.objects += 1;
            domain.bytes = domain.bytes.saturating_add(visit.bytes);
            self.objects += 1;
            self.object_bytes = self.object_bytes.saturating_add(visit.bytes);
            self.largest = self.largest.max(visit.bytes);
        }
    }

    /// The crawl began when its running time did.
    pub(super) fn spent(&self) -> Spent {
        Spent { objects: self.objects, bytes: self.object_bytes, began: Some(0) }
    }

    fn fields(&mut self) -> [&mut u64; 10] {
        [
            &mut self.discovered,
            &mut self.succeeded,
            &mut self.failed,
            &mut self.disregarded,
            &mut self.bytes,
            &mut self.objects,
            &mut self.object_bytes,
            &mut self.largest,
            &mut self.ran,
            &mut self.sequence,
        ]
    }

    pub(super) fn encode(mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        for field in self.fields() {
            number(&mut out, *field);
        }
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Totals> {
        let mut totals = Totals::default();
        for field in totals.fields() {
            *field = read_number(&mut bytes)?;
        }
        Some(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_of_the_journal_is_taken_beforehand() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        match store.reserve() {
            // Not every file system can.
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => return,
            reserved => reserved.unwrap(),
        }
        let files = std::fs::read_dir(&store.folder).unwrap().map(|entry| entry.unwrap());
        let journals = files.filter(|file| file.path().extension().is_some_and(|end| end == "jnl"));
        let taken: u64 = journals.map(|file| file.metadata().unwrap().blocks() * 512).sum();
        assert!(taken >= JOURNAL_BYTES, "{taken}");
    }

    #[test]
    fn facts_come_back_as_they_were() {
        let temper = Temper { pace_at: 1 << 41, strain: Strain(3), failures: 7, parks: 2, is_retired: true };
        let bytes = encode_queue(&temper, "www.example.org:81", "example.org");
        assert_eq!(decode_queue(&bytes), Some((temper, "www.example.org:81", "example.org")));
        for began in [None, Some(0), Some(1 << 40)] {
            let spent = Spent { objects: 1, bytes: u64::MAX, began };
            assert_eq!(decode_spent(&encode_spent(&spent)), Some(spent));
        }
        let totals = Totals { discovered: 9, sequence: 1 << 50, ran: 77, ..Totals::default() };
        assert_eq!(Totals::decode(&totals.encode()), Some(totals));
        assert_eq!(read_queue_key(&queue_key(258)), Some(258));
        for cut in 0..bytes.len() {
            assert_eq!(decode_queue(&bytes[..cut]), None, "{cut}");
        }
    }
}
