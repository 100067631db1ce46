//! Immutable sorted files of captures. One can be copied, checked and opened anywhere, without the index it is from.
//!
//! ```text
//! header       "GRANGEIX", version (4 bytes)
//! blocks       rows in order, some sixty each; after every 128 blocks a part of the index:
//!                per block: separator, place, rows, filter of its keys
//! postings     digest number → blocks that hold such a digest, originals before revisits, oldest first
//! postings index, dictionary, tables (file names, jobs, kinds), top of the index
//! footer       counts, places of the above, BLAKE3 of all before it, CRC-32C of itself, "GRANGEIX"
//! ```
//!
//! Every piece carries a CRC-32C, so that damage is named by file and byte and does not reach beyond its piece. Numbers are
//! little-endian or, where the text says number, of varying length. A separator is the shortest text above every key
//! before its block and not above the first key in it.
//!
//! Reading goes through `pread`, not a memory map: a disk error or a file cut short by somebody else must be an error
//! of one request, and under a map it is a signal that ends the process.

mod anything;
mod cursor;
mod dictionary;
mod filter;
mod footer;
mod frame;
mod parts;
mod postings;
mod read;
mod source;
mod spill;
mod verify;
mod write;

pub(crate) use anything::read_anything;
pub use cursor::Position;
pub(crate) use cursor::{BackCursor, Cursor};
pub(crate) use dictionary::{Sampler, train};
pub(crate) use read::{Cache, Segment, new_cache};
pub use verify::{SegmentReport, verify};
pub(crate) use write::{SegmentOptions, SegmentWriter};

const MAGIC: &[u8; 8] = b"GRANGEIX";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;

/// Blocks in one part of the index: its search touches a few kilobytes, and the top has one entry for 8,000 rows.
const PART_BLOCKS: usize = 128;
