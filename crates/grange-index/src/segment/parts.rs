//! The sparse index: parts with an entry per block, and a top with an entry per part.

use crate::varint::{self, Malformed};

/// What the index knows of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockEntry<'p> {
    pub(super) separator: &'p [u8],
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) rows: u64,
    pub(super) filter: &'p [u8],
}

pub(super) fn put_entry(out: &mut Vec<u8>, entry: &BlockEntry<'_>) {
    varint::put_bytes(out, entry.separator);
    varint::put(out, entry.offset);
    varint::put(out, entry.len);
    varint::put(out, entry.rows);
    varint::put_bytes(out, entry.filter);
}

/// The entries of up to [`PART_BLOCKS`](super::PART_BLOCKS) blocks.
#[derive(Debug)]
pub(super) struct Part {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    separator: (u32, u32),
    filter: (u32, u32),
    offset: u64,
    len: u64,
    rows: u64,
}

impl Part {
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let at = &mut 0;
        let mut slots = Vec::new();
        while *at < bytes.len() {
            let span = |taken: &[u8], at: usize| ((at - taken.len()) as u32, at as u32);
            let separator = span(varint::get_bytes(&bytes, at)?, *at);
            let offset = varint::get(&bytes, at)?;
            let len = varint::get(&bytes, at)?;
            let rows = varint::get(&bytes, at)?;
            let filter = span(varint::get_bytes(&bytes, at)?, *at);
            slots.push(Slot { separator, filter, offset, len, rows });
        }
        Ok(Self { bytes, slots })
    }

    pub(super) fn blocks(&self) -> usize {
        self.slots.len()
    }

    /// What it takes in memory.
    pub(super) fn weight(&self) -> usize {
        self.bytes.len() + self.slots.len() * size_of::<Slot>()
    }

    pub(super) fn entry(&self, at: usize) -> Option<BlockEntry<'_>> {
        let slot = self.slots.get(at)?;
        let part = |(from, to): (u32, u32)| &self.bytes[from as usize..to as usize];
        Some(BlockEntry {
            separator: part(slot.separator),
            filter: part(slot.filter),
            offset: slot.offset,
            len: slot.len,
            rows: slot.rows,
        })
    }

    /// The last block whose separator is not above `key`; the first if all are.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        let separator = |slot: &Slot| &self.bytes[slot.separator.0 as usize..slot.separator.1 as usize];
        self.slots.partition_point(|slot| separator(slot) <= key).saturating_sub(1)
    }
}

/// One entry per part, always in memory.
#[derive(Debug, Default)]
pub(super) struct Top {
    pub(super) parts: Vec<TopEntry>,
    pub(super) first: Box<[u8]>,
    pub(super) last: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct TopEntry {
    pub(super) separator: Box<[u8]>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Top {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        varint::put_bytes(out, &self.first);
        varint::put_bytes(out, &self.last);
        for part in &self.parts {
            varint::put_bytes(out, &part.separator);
            varint::put(out, part.offset);
            varint::put(out, part.len);
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let at = &mut 0;
        let mut top = Self {
            first: varint::get_bytes(bytes, at)?.into(),
            last: varint::get_bytes(bytes, at)?.into(),
            parts: Vec::new(),
        };
        while *at < bytes.len() {
            top.parts.push(TopEntry {
                separator: varint::get_bytes(bytes, at)?.into(),
                offset: varint::get(bytes, at)?,
                len: varint::get(bytes, at)?,
            });
        }
        Ok(top)
    }

    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.parts.partition_point(|part| &*part.separator <= key).saturating_sub(1)
    }
}
