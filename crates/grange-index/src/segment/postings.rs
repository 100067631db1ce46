//! Digest → blocks that hold rows with it.
//!
//! A posting names a block, not a row: rows of one URL with the same content stand in one block and share a posting, and
//! the block must be read to know the digest for certain anyway (postings keep forty bits of a hash).

use std::io;
use std::path::Path;

use super::footer::Place;
use super::spill::Spill;
use crate::digest::HASH_BITS;
use crate::varint::{self, Malformed};

/// One block that holds a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) block: u64,
    /// Rows in the block with a digest of this number.
    pub(crate) rows: u64,
}

/// Postings in one piece: a lookup reads about six kilobytes.
const GROUP: usize = 1024;

const TIME_BITS: u32 = 36;
const BLOCK_BITS: u32 = 36;
const ROWS_BITS: u32 = 15;

/// No block holds more rows than a posting can count: these, and some hundred that are the same capture as the last.
pub(super) const BLOCK_ROWS_MAX: u32 = 1 << 12;

/// Collects postings while rows are written.
#[derive(Debug, Default)]
pub(super) struct PostingsWriter {
    block: Vec<(u64, u64)>,
    all: Spill,
}

impl PostingsWriter {
    /// Notes a digest of the current block.
    pub(super) fn note(&mut self, hash: u64, revisit: bool, seconds: i64) {
        let seconds = (seconds.max(0) as u64).min((1 << TIME_BITS) - 1);
        self.block.push((hash, u64::from(revisit) << TIME_BITS | seconds));
    }

    pub(super) fn end_block(&mut self, number: u64, folder: Option<&Path>) -> io::Result<()> {
        self.block.sort_unstable();
        let mut rest = &self.block[..];
        while let Some((hash, order)) = rest.first().copied() {
            let rows = rest.iter().take_while(|(other, _)| *other == hash).count();
            rest = &rest[rows..];
            let mut packed = u128::from(hash);
            packed = packed << (TIME_BITS + 1) | u128::from(order);
            packed = packed << BLOCK_BITS | u128::from(number);
            packed = packed << ROWS_BITS | rows as u128;
            self.all.push(packed, folder)?;
        }
        self.block.clear();
        Ok(())
    }

    /// Hands over pieces of postings; `write` says where it put each. The answer is the index of the pieces.
    pub(super) fn finish(self, mut write: impl FnMut(&[u8]) -> io::Result<Place>) -> io::Result<Vec<u8>> {
        const { assert!(HASH_BITS + TIME_BITS + 1 + BLOCK_BITS + ROWS_BITS <= 128) }
        let (mut index, mut piece) = (Vec::new(), Vec::new());
        let (mut count, mut first, mut last) = (0, 0, 0);
        let mut end = |piece: &mut Vec<u8>, first: u64| -> io::Result<()> {
            let place = write(piece)?;
            varint::put(&mut index, first);
            varint::put(&mut index, place.offset);
            varint::put(&mut index, place.len);
            piece.clear();
            Ok(())
        };
        self.all.finish(|packed| {
            let field = |shift: u32, bits: u32| ((packed >> shift) & ((1 << bits) - 1)) as u64;
            let rows = field(0, ROWS_BITS);
            let block = field(ROWS_BITS, BLOCK_BITS);
            let hash = (packed >> (ROWS_BITS + BLOCK_BITS + TIME_BITS + 1)) as u64;
            if count == 0 {
                (first, last) = (hash, hash);
            }
            varint::put(&mut piece, (hash - last) << 1 | u64::from(rows > 1));
            last = hash;
            varint::put(&mut piece, block);
            if rows > 1 {
                varint::put(&mut piece, rows);
            }
            count += 1;
            if count == GROUP {
                count = 0;
                end(&mut piece, first)?;
            }
            Ok(())
        })?;
        if count > 0 {
            end(&mut piece, first)?;
        }
        Ok(index)
    }
}

/// First digest number and place of each piece.
#[derive(Debug, Default)]
pub(super) struct PostingsIndex {
    pub(super) pieces: Vec<(u64, Place)>,
}

impl PostingsIndex {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let at = &mut 0;
        let mut pieces = Vec::new();
        while *at < bytes.len() {
            let first = varint::get(bytes, at)?;
            let place = Place { offset: varint::get(bytes, at)?, len: varint::get(bytes, at)? };
            pieces.push((first, place));
        }
        Ok(Self { pieces })
    }

    /// The pieces in which `hash` may be.
    pub(super) fn find(&self, hash: u64) -> &[(u64, Place)] {
        // A digest may begin at the end of the piece before the first that begins with it.
        let from = self.pieces.partition_point(|(first, _)| *first < hash).saturating_sub(1);
        let to = self.pieces.partition_point(|(first, _)| *first <= hash);
        &self.pieces[from.min(to)..to]
    }
}

/// Hands each posting of a piece to `sink`, with its number.
pub(super) fn read_piece(
    piece: &[u8],
    first: u64,
    mut sink: impl FnMut(u64, Posting),
) -> Result<(), Malformed> {
    let (at, mut hash) = (&mut 0, first);
    while *at < piece.len() {
        let step = varint::get(piece, at)?;
        hash = hash.checked_add(step >> 1).ok_or(Malformed)?;
        let block = varint::get(piece, at)?;
        let rows = if step & 1 == 0 { 1 } else { varint::get(piece, at)? };
        sink(hash, Posting { block, rows });
    }
    Ok(())
}
