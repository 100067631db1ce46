//! The end of a segment: counts, and where its pieces are.

use super::{MAGIC, VERSION};

/// Where a piece lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) len: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) rows: u64,
    pub(crate) blocks: u64,
    /// Different keys.
    pub(crate) surts: u64,
    /// Rows that take others away.
    pub(crate) deleted: u64,
    /// Codes of the first and last time.
    pub(crate) times: (u64, u64),
    pub(super) dictionary: Place,
    pub(super) tables: Place,
    pub(super) top: Place,
    pub(super) postings: Place,
    pub(super) blake3: [u8; 32],
}

const NUMBERS: usize = 14;
/// Numbers, hash, checksum, version, magic.
pub(super) const FOOTER_BYTES: usize = NUMBERS * 8 + 32 + 4 + 4 + 8;

impl Footer {
    fn numbers(&self) -> [u64; NUMBERS] {
        let [d, t, o, p] = [self.dictionary, self.tables, self.top, self.postings];
        [
            self.rows,
            self.blocks,
            self.surts,
            self.deleted,
            self.times.0,
            self.times.1,
            d.offset,
            d.len,
            t.offset,
            t.len,
            o.offset,
            o.len,
            p.offset,
            p.len,
        ]
    }

    /// The bytes that are part of the file's hash.
    pub(super) fn hashed(&self) -> Vec<u8> {
        self.numbers().iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = self.hashed();
        out.extend_from_slice(&self.blake3);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; FOOTER_BYTES] = bytes.try_into().ok()?;
        let (body, tail) = bytes.split_at(NUMBERS * 8 + 32);
        let crc = u32::from_le_bytes(tail[..4].try_into().ok()?);
        let version = u32::from_le_bytes(tail[4..8].try_into().ok()?);
        if crc32c::crc32c(body) != crc || version != VERSION || &tail[8..] != MAGIC {
            return None;
        }
        let mut numbers = [0; NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(body.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let place = |at: usize| Place { offset: numbers[at], len: numbers[at + 1] };
        Some(Self {
            rows: numbers[0],
            blocks: numbers[1],
            surts: numbers[2],
            deleted: numbers[3],
            times: (numbers[4], numbers[5]),
            dictionary: place(6),
            tables: place(8),
            top: place(10),
            postings: place(12),
            blake3: body[NUMBERS * 8..].try_into().ok()?,
        })
    }
}
