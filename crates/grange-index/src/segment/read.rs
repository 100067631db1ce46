//! Opens a segment and finds blocks in it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use quick_cache::Weighter;
use zstd::zstd_safe::DDict;

use super::footer::{FOOTER_BYTES, Footer, Place};
use super::frame::{self, Packed};
use super::parts::{Part, Top};
use super::postings::{self, Posting, PostingsIndex};
use super::source::Source;
use super::{HEADER_BYTES, MAGIC, PART_BLOCKS, VERSION, filter};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::row::{FileEntry, Kind, Tables};

/// Blocks and index parts that were read lately, of all segments of an index.
#[derive(Debug)]
pub(crate) struct Cache {
    pieces: quick_cache::sync::Cache<(u64, u64), Cached, Weight>,
    /// A piece that was read for it was damaged.
    damaged: AtomicBool,
}

impl Cache {
    pub(crate) fn found_damage(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    fn note(&self, error: &Error) {
        if matches!(error, Error::Damaged { .. }) {
            self.damaged.store(true, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Clone)]
enum Cached {
    Block(Block),
    Part(Arc<Part>),
}

#[derive(Debug, Clone)]
struct Weight;

/// A cache of this many bytes.
pub(crate) fn new_cache(bytes: u64) -> Arc<Cache> {
    // The number of entries is only an estimate for the cache's own tables.
    let pieces = quick_cache::sync::Cache::with_weighter((bytes / 8192) as usize + 16, bytes, Weight);
    Arc::new(Cache { pieces, damaged: AtomicBool::new(false) })
}

impl Weighter<(u64, u64), Cached> for Weight {
    fn weight(&self, _: &(u64, u64), value: &Cached) -> u64 {
        // What the cache itself keeps for an entry.
        const OVERHEAD: usize = 96;
        let bytes = match value {
            Cached::Block(block) => block.packed.len() + block.plain.len(),
            Cached::Part(part) => part.weight(),
        };
        (bytes + OVERHEAD) as u64
    }
}

/// A segment that is open for reading.
pub(crate) struct Segment {
    source: Source,
    /// Its name in the cache.
    id: u64,
    pub(crate) footer: Footer,
    pub(crate) files: Vec<FileEntry>,
    pub(crate) kinds: Vec<Kind>,
    dictionary_bytes: Vec<u8>,
    dictionary: Option<DDict<'static>>,
    top: Top,
    postings: PostingsIndex,
    cache: Arc<Cache>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({}, {} rows)", self.source.path().display(), self.footer.rows)
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Segment {
    pub(crate) fn open(path: &Path, cache: Arc<Cache>) -> Result<Self> {
        Self::read(Source::open(path)?, cache)
    }

    /// A segment in memory; `name` stands for its path in errors.
    pub(crate) fn from_memory(bytes: Bytes, name: &Path, cache: Arc<Cache>) -> Result<Self> {
        Self::read(Source::Memory { bytes, path: name.to_owned() }, cache)
    }

    fn read(source: Source, cache: Arc<Cache>) -> Result<Self> {
        let unknown = || Error::Unknown {
            path: source.path().to_owned(),
            expected: "a whole segment of a capture index that this version can read",
        };
        let footer_at = source
            .len()
            .checked_sub(FOOTER_BYTES as u64)
            .filter(|at| *at >= HEADER_BYTES as u64)
            .ok_or_else(unknown)?;
        let header = source.read(0, HEADER_BYTES as u64, "the header")?;
        if &header[..8] != MAGIC || header[8..] != VERSION.to_le_bytes() {
            return Err(unknown());
        }
        let footer = source.read(footer_at, FOOTER_BYTES as u64, "the footer")?;
        let footer =
            Footer::read(&footer).ok_or_else(|| Error::damaged(source.path(), footer_at, "the footer"))?;
        let damaged = |place: Place, what| Error::at(source.path(), place.offset, what);
        let dictionary_bytes = section(&source, footer.dictionary, "the dictionary")?;
        let tables = section(&source, footer.tables, "the table of files")?;
        let (files, kinds) = Tables::read(&tables).map_err(damaged(footer.tables, "the table of files"))?;
        let top = Top::read(&section(&source, footer.top, "the top of the index")?)
            .map_err(damaged(footer.top, "the top of the index"))?;
        if footer.blocks.div_ceil(PART_BLOCKS as u64) != top.parts.len() as u64 {
            return Err(Error::damaged(source.path(), footer.top.offset, "the top of the index"));
        }
        let postings = PostingsIndex::read(&section(&source, footer.postings, "the digest index")?)
            .map_err(damaged(footer.postings, "the digest index"))?;
        let dictionary =
            Some(dictionary_bytes.as_slice()).filter(|bytes| !bytes.is_empty()).and_then(DDict::try_create);
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            source,
            footer,
            files,
            kinds,
            dictionary_bytes,
            dictionary,
            top,
            postings,
            cache,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.source.len()
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.footer.blocks
    }

    /// What blocks of this segment were compressed with.
    pub(crate) fn dictionary(&self) -> Option<&[u8]> {
        Some(self.dictionary_bytes.as_slice()).filter(|bytes| !bytes.is_empty())
    }

    /// Whether keys from `start` on and before `end` can be here.
    pub(crate) fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        self.footer.rows > 0 && *self.top.last >= *start && end.is_none_or(|end| &*self.top.first < end)
    }

    pub(super) fn part(&self, number: usize) -> Result<Arc<Part>> {
        self.find_part(number).inspect_err(|error| self.cache.note(error))
    }

    fn find_part(&self, number: usize) -> Result<Arc<Part>> {
        let entry = self
            .top
            .parts
            .get(number)
            .ok_or_else(|| Error::damaged(self.path(), self.footer.top.offset, "the top of the index"))?;
        let key = (self.id, entry.offset);
        if let Some(Cached::Part(part)) = self.cache.pieces.get(&key) {
            return Ok(part);
        }
        const WHAT: &str = "a part of the index";
        let place = Place { offset: entry.offset, len: entry.len };
        let part = Part::read(section(&self.source, place, WHAT)?).map_err(Error::at(
            self.path(),
            entry.offset,
            WHAT,
        ))?;
        let expected = (self.footer.blocks - (number * PART_BLOCKS) as u64).min(PART_BLOCKS as u64);
        if part.blocks() as u64 != expected {
            return Err(Error::damaged(self.path(), entry.offset, WHAT));
        }
        let part = Arc::new(part);
        self.cache.pieces.insert(key, Cached::Part(part.clone()));
        Ok(part)
    }

    /// The block in which a row with `key` would be.
    pub(super) fn find_block(&self, key: &[u8]) -> Result<u64> {
        let part = self.top.find(key);
        Ok((part * PART_BLOCKS + self.part(part)?.find(key)) as u64)
    }

    /// The blocks of the part of the index in which a row with `key` would be.
    pub(super) fn part_blocks(&self, key: &[u8]) -> std::ops::Range<u64> {
        let start = (self.top.find(key) * PART_BLOCKS) as u64;
        start..(start + PART_BLOCKS as u64).min(self.footer.blocks)
    }

    /// Whether a key may have rows here. `start` is the key and its NUL, with which all its rows begin.
    pub(crate) fn may_hold(&self, surt: &[u8], start: &[u8]) -> Result<bool> {
        let first = &self.top.first[..self.top.first.len().min(start.len())];
        if self.footer.rows == 0 || *self.top.last < *start || first > start {
            return Ok(false);
        }
        let hash = filter::hash(surt);
        let mut number = self.find_block(start)?;
        loop {
            let part = self.part(number as usize / PART_BLOCKS)?;
            let Some(entry) = part.entry(number as usize % PART_BLOCKS) else { return Ok(false) };
            if filter::admits(entry.filter, hash) {
                return Ok(true);
            }
            number += 1;
            if number >= self.footer.blocks {
                return Ok(false);
            }
            // The next block can hold rows of the key only if its separator is not past them.
            let part = self.part(number as usize / PART_BLOCKS)?;
            let next = part.entry(number as usize % PART_BLOCKS);
            if next.is_none_or(|entry| !entry.separator.starts_with(start)) {
                return Ok(false);
            }
        }
    }

    /// Reads a block. Those asked for by point lookups are kept; scans would only push them out.
    pub(crate) fn block(&self, number: u64, keep: bool) -> Result<Block> {
        self.read_block_or_cache(number, keep).inspect_err(|error| self.cache.note(error))
    }

    fn read_block_or_cache(&self, number: u64, keep: bool) -> Result<Block> {
        let part = self.part((number / PART_BLOCKS as u64) as usize)?;
        let entry = part
            .entry(number as usize % PART_BLOCKS)
            .ok_or_else(|| Error::damaged(self.path(), self.footer.top.offset, "the top of the index"))?;
        let key = (self.id, entry.offset);
        if keep && let Some(Cached::Block(block)) = self.cache.pieces.get(&key) {
            return Ok(block);
        }
        let block = read_block(&self.source, entry.offset, entry.len, self.dictionary.as_ref())?;
        if keep {
            self.cache.pieces.insert(key, Cached::Block(block.clone()));
        }
        Ok(block)
    }

    /// Blocks that hold digests with this number, originals first and then by time, and how many rows.
    pub(crate) fn postings(&self, hash: u64) -> Result<Vec<Posting>> {
        let mut found = Vec::new();
        for (first, place) in self.postings.find(hash) {
            self.postings_piece(*first, *place, |number, posting| {
                if number == hash {
                    found.push(posting);
                }
            })?;
        }
        Ok(found)
    }

    pub(super) fn postings_piece(
        &self,
        first: u64,
        place: Place,
        sink: impl FnMut(u64, Posting),
    ) -> Result<()> {
        const WHAT: &str = "a piece of the digest index";
        let damaged = || Error::at(self.path(), place.offset, WHAT);
        let read = || {
            let piece = self.source.read(place.offset, place.len, WHAT)?;
            let (_, plain) = frame::get(&piece, None).map_err(damaged())?;
            postings::read_piece(&piece[plain..], first, sink).map_err(damaged())
        };
        read().inspect_err(|error| self.cache.note(error))
    }

    pub(super) fn all_postings(&self) -> &[(u64, Place)] {
        &self.postings.pieces
    }

    pub(super) const fn source(&self) -> &Source {
        &self.source
    }
}

fn section(source: &Source, place: Place, what: &'static str) -> Result<Vec<u8>> {
    let piece = source.read(place.offset, place.len, what)?;
    match frame::get(&piece, None).map_err(Error::at(source.path(), place.offset, what))? {
        (Packed::Stored(from, to), _) => Ok(piece[from..to].to_vec()),
        (Packed::Unpacked(bytes), _) => Ok(bytes),
    }
}

fn read_block(source: &Source, offset: u64, len: u64, dictionary: Option<&DDict<'_>>) -> Result<Block> {
    let piece = source.read(offset, len, "a block")?;
    let (packed, plain) =
        frame::get(&piece, dictionary).map_err(Error::at(source.path(), offset, "a block"))?;
    let packed = match packed {
        Packed::Stored(from, to) => piece.slice(from..to),
        Packed::Unpacked(bytes) => bytes.into(),
    };
    Ok(Block { packed, plain: piece.slice(plain..) })
}
