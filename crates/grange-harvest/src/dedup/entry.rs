//! What is known of one original: 26 bytes.
//!
//! ```text
//! 12  key     the first 96 bits of BLAKE3(URL, 0, algorithm, digest); without a URL in an index of payloads
//!  3  file    the number of its name
//!  5  offset  of the record in the file: up to a terabyte
//!  6  date    milliseconds since 1970, as exact as crawl logs are
//! ```
//! Numbers are big-endian, so that entries sort by their bytes.

use jiff::Timestamp;
use warc::Digest;

pub(super) const KEY_BYTES: usize = 12;
pub(super) const ENTRY_BYTES: usize = 26;

/// A URL with a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) [u8; KEY_BYTES]);

impl Key {
    pub fn new(url: &str, payload: &Digest) -> Key {
        let mut hasher = blake3::Hasher::new();
        hasher.update(url.as_bytes());
        hasher.update(&[0]);
        hasher.update(payload.algorithm().label().as_bytes());
        hasher.update(payload.as_bytes());
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..KEY_BYTES]);
        Key(bytes)
    }

    /// A payload under whatever URL: no URL is empty.
    pub fn of_payload(payload: &Digest) -> Key {
        Key::new("", payload)
    }

    /// The first 32 bits: where to look for it.
    pub(super) fn head(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

/// One original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub key: Key,
    pub(super) date_ms: u64,
    pub file: u32,
    pub offset: u64,
}

pub(super) const FILES_MAX: usize = 1 << 24;
const OFFSET_MAX: u64 = (1 << 40) - 1;
const DATE_MS_MAX: u64 = (1 << 48) - 1;

impl Entry {
    /// None if a number is too large to be kept, or the date is before 1970.
    pub fn new(key: Key, file: u32, offset: u64, date: Timestamp) -> Option<Entry> {
        let date_ms = u64::try_from(date.as_millisecond()).ok().filter(|ms| *ms <= DATE_MS_MAX)?;
        let fits = (file as usize) < FILES_MAX && offset <= OFFSET_MAX;
        fits.then_some(Entry { key, date_ms, file, offset })
    }

    pub fn date(&self) -> Timestamp {
        Timestamp::from_millisecond(self.date_ms as i64).unwrap_or_default()
    }

    pub(super) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..12].copy_from_slice(&self.key.0);
        bytes[12..15].copy_from_slice(&self.file.to_be_bytes()[1..]);
        bytes[15..20].copy_from_slice(&self.offset.to_be_bytes()[3..]);
        bytes[20..26].copy_from_slice(&self.date_ms.to_be_bytes()[2..]);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Entry {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(&bytes[..12]);
        Entry { key: Key(key), file: number(12..15) as u32, offset: number(15..20), date_ms: number(20..26) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_entry_comes_back_from_its_bytes(
            key: [u8; 12], file in 0..FILES_MAX as u32, offset in 0..=OFFSET_MAX, ms in 0..=253_402_207_200_000_i64,
        ) {
            let date = Timestamp::from_millisecond(ms).unwrap();
            let entry = Entry::new(Key(key), file, offset, date).unwrap();
            prop_assert_eq!(Entry::from_bytes(&entry.to_bytes()), entry);
            prop_assert_eq!(entry.date(), date);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (key, now) = (Key([0; 12]), Timestamp::UNIX_EPOCH);
        assert!(Entry::new(key, FILES_MAX as u32, 0, now).is_none());
        assert!(Entry::new(key, 0, OFFSET_MAX + 1, now).is_none());
        assert!(Entry::new(key, 0, 0, Timestamp::from_second(-1).unwrap()).is_none());
    }

    #[test]
    fn a_key_is_a_url_with_a_payload() {
        let (a, b) = (Digest::of(warc::Algorithm::Sha1, b"a"), Digest::of(warc::Algorithm::Sha1, b"b"));
        let key = Key::new("http://e.org/", &a);
        assert_eq!(key, Key::new("http://e.org/", &a));
        assert_ne!(key, Key::new("http://e.org/", &b));
        assert_ne!(key, Key::new("http://e.org", &a));
    }
}
