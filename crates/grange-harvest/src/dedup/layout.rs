//! The index file, version 2. Numbers of the frame are little-endian.
//!
//! ```text
//! header       96 bytes: magic, version, bits, counts, lengths, checksums of the parts, checksum of the header
//! names        (files + 1) × u32 ends, then one behind the other: name, line feed, what the archive said of the file
//! directory    (2^bits + 1) × u32: how many entries stand before the bucket
//! entries      26 bytes each, sorted; a bucket holds those whose keys share their first bits
//! checksums    CRC-32C of every 64 KiB of entries
//! ```

use std::io;

/// Ends in bytes that a transfer as text would change.
pub(super) const MAGIC: [u8; 8] = *b"GRDUP\r\n\x1a";
/// Version 1 believed crawl logs: it may name files that were never stored.
pub(super) const VERSION: u32 = 2;
pub(super) const HEADER_BYTES: usize = 96;
/// Entries are checked in pieces of this size, each when it is first looked at: opening need not read them all.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Entries in a bucket, about: two or three lines of the processor's cache, and a directory of half a byte per entry.
const BUCKET_ENTRIES: u64 = 8;
/// Directories grow no further: 64 MiB. Buckets of larger indexes hold more.
const BITS_MAX: u32 = 24;

/// The frame of an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) bits: u32,
    pub(super) entries: u64,
    pub(super) files: u32,
    pub(super) names_len: u64,
    pub(super) names_crc: u32,
    pub(super) directory_crc: u32,
    pub(super) checksums_crc: u32,
}

impl Header {
    /// How many first bits of a key choose its bucket.
    pub(super) fn bits_for(entries: u64) -> u32 {
        (entries / BUCKET_ENTRIES).checked_ilog2().unwrap_or(0).min(BITS_MAX)
    }

    pub(super) fn directory_at(&self) -> usize {
        HEADER_BYTES + self.names_len as usize
    }

    pub(super) fn directory_len(&self) -> usize {
        ((1_usize << self.bits) + 1) * 4
    }

    pub(super) fn entries_at(&self) -> usize {
        self.directory_at() + self.directory_len()
    }

    pub(super) fn entries_len(&self) -> usize {
        self.entries as usize * super::entry::ENTRY_BYTES
    }

    pub(super) fn checksums_at(&self) -> usize {
        self.entries_at() + self.entries_len()
    }

    pub(super) fn checksums_len(&self) -> usize {
        self.entries_len().div_ceil(BLOCK_BYTES) * 4
    }

    pub(super) fn file_len(&self) -> usize {
        self.checksums_at() + self.checksums_len()
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.bits.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.entries.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.files.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.names_len.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.names_crc.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.directory_crc.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.checksums_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The version of an undamaged header that this program does not read.
    pub(super) fn other_version(bytes: &[u8]) -> Option<u32> {
        let header = bytes.get(..HEADER_BYTES).filter(|header| header[..8] == MAGIC)?;
        let sound = crc32c::crc32c(&header[..HEADER_BYTES - 4]) == u32_at(header, HEADER_BYTES - 4);
        Some(u32_at(header, 8)).filter(|version| sound && *version != VERSION)
    }

    /// Reads the header of a file that is `len` bytes long, or says what is wrong with it.
    pub(super) fn from_bytes(bytes: &[u8], len: usize) -> Result<Header, String> {
        let header = bytes.get(..HEADER_BYTES).ok_or("it is too short")?;
        if header[..8] != MAGIC {
            return Err("it does not begin as an index of duplicates does".to_owned());
        }
        let version = u32_at(header, 8);
        if version != VERSION {
            return Err(format!("it has version {version}, this program reads {VERSION}"));
        }
        if crc32c::crc32c(&header[..HEADER_BYTES - 4]) != u32_at(header, HEADER_BYTES - 4) {
            return Err("the checksum of its header is wrong".to_owned());
        }
        let read = Header {
            bits: u32_at(header, 12),
            entries: u64_at(header, 16),
            files: u32_at(header, 24),
            names_len: u64_at(header, 32),
            names_crc: u32_at(header, 40),
            directory_crc: u32_at(header, 44),
            checksums_crc: u32_at(header, 48),
        };
        // The numbers are under a checksum, but sums of them must not overflow whatever they are.
        let sane = read.bits <= BITS_MAX && read.names_len < 1 << 40 && u32::try_from(read.entries).is_ok();
        if !sane || read.file_len() != len {
            return Err(format!("it is {len} bytes long, which is not what its header says"));
        }
        Ok(read)
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The names as the file holds them.
pub(super) fn names(files: &[String]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut end = 0_u32;
    bytes.extend_from_slice(&end.to_le_bytes());
    for name in files {
        let len = u32::try_from(name.len()).ok();
        end = len
            .and_then(|len| end.checked_add(len))
            .ok_or_else(|| io::Error::other("the names of the files are too long"))?;
        bytes.extend_from_slice(&end.to_le_bytes());
    }
    for name in files {
        bytes.extend_from_slice(name.as_bytes());
    }
    Ok(bytes)
}
