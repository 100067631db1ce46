//! Every URL that was ever taken into the frontier, as 64-bit fingerprints: exact, on disk, with fixed memory in front.
//!
//! A question passes three doors. A table of fingerprints met lately answers most repeats (links of a page mostly
//! lead where its neighbours' links led). A Bloom filter answers most new ones. What is left asks the disk.

use fastbloom::BloomFilter;
use fjall::Keyspace;

/// Entries of the table of recent ones: 2²¹ × 8 bytes = 16 MiB. A look on disk costs microseconds, and pages have many
/// links.
const RECENT: usize = 1 << 21;

/// Hashes per entry of the filter: best at 10 bits per URL, good from 5 to 20.
const HASHES: u32 = 7;

pub(super) struct Seen {
    disk: Keyspace,
    filter: BloomFilter,
    recent: Box<[u64]>,
}

impl Seen {
    /// Reads all fingerprints once to fill the filter: about a second for ten million.
    pub(super) fn open(disk: Keyspace, filter_bytes: u64) -> fjall::Result<Seen> {
        let bits = usize::try_from(filter_bytes.clamp(1 << 16, 1 << 34)).unwrap_or(1 << 24) * 8;
        let mut filter = BloomFilter::with_num_bits(bits).hashes(HASHES);
        for entry in disk.iter() {
            if let Some(fingerprint) = read(&entry.key()?) {
                filter.insert_hash(fingerprint);
            }
        }
        Ok(Seen { disk, filter, recent: vec![0; RECENT].into_boxed_slice() })
    }

    pub(super) fn contains(&mut self, fingerprint: u64) -> fjall::Result<bool> {
        let slot = fingerprint as usize % RECENT;
        if self.recent[slot] == fingerprint && fingerprint != 0 {
            return Ok(true);
        }
        let known = self.filter.contains_hash(fingerprint) && self.disk.contains_key(bytes(fingerprint))?;
        if known {
            self.recent[slot] = fingerprint;
        }
        Ok(known)
    }

    /// Takes note of what was just committed to disk.
    pub(super) fn committed(&mut self, fingerprint: u64) {
        self.filter.insert_hash(fingerprint);
        self.recent[fingerprint as usize % RECENT] = fingerprint;
    }
}

/// Its key on disk.
pub(super) fn bytes(fingerprint: u64) -> [u8; 8] {
    fingerprint.to_be_bytes()
}

fn read(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.try_into().ok()?))
}
