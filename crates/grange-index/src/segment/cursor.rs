//! Goes through the rows of one segment, up or down.

use std::cmp::Ordering;
use std::sync::Arc;

use super::read::Segment;
use crate::block::{Block, BlockCursor, SavedRow};
use crate::error::{Error, Result};
use crate::row::{self, Row};
use crate::stamp::Stamp;
use crate::varint::Malformed;

/// A place in the order of rows. Also what a caller keeps to go on later, whatever was added meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    pub surt: Vec<u8>,
    pub time: Stamp,
    pub file: String,
    pub offset: u64,
}

impl Position {
    /// Before every row of this key and of those after it.
    pub fn before(surt: impl Into<Vec<u8>>) -> Self {
        Self { surt: surt.into(), ..Self::default() }
    }

    pub(crate) fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.surt.len() + self.file.len() + 18);
        row::key_into(&self.surt, self.time, &self.file, self.offset, &mut key);
        key
    }

    /// How a row stands to this place.
    fn compare(&self, row: &Row<'_>, file: impl FnOnce() -> Ordering) -> Ordering {
        row.surt
            .cmp(&self.surt)
            .then_with(|| row.time.cmp(&self.time))
            .then_with(file)
            .then_with(|| row.offset.cmp(&self.offset))
    }
}

/// Ascending rows.
#[derive(Debug)]
pub(crate) struct Cursor {
    segment: Arc<Segment>,
    /// The block after the one that is being read.
    next: u64,
    rows: BlockCursor,
    start: Option<Position>,
}

impl Cursor {
    /// Before the first row that is not below `start`.
    pub(crate) fn new(segment: Arc<Segment>, start: Position) -> Self {
        Self { segment, next: 0, rows: BlockCursor::default(), start: Some(start) }
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    pub(crate) fn row(&self) -> Row<'_> {
        self.rows.row()
    }

    /// Moves to the next row. After an error the next call goes on behind the damage.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if let Some(start) = self.start.take() {
            return self.seek(&start);
        }
        loop {
            if self.step()? {
                return Ok(true);
            }
            if self.next >= self.segment.blocks() {
                return Ok(false);
            }
            self.load(false)?;
        }
    }

    fn seek(&mut self, start: &Position) -> Result<bool> {
        if self.segment.blocks() == 0 {
            return Ok(false);
        }
        match self.segment.find_block(&start.key()) {
            Ok(number) => self.next = number,
            Err(error) => {
                // Where to begin in this part of the index is not known; what follows it is all behind the beginning.
                self.next = self.segment.part_blocks(&start.key()).end;
                return Err(error);
            }
        }
        self.load(true)?;
        loop {
            while self.step()? {
                let row = self.rows.row();
                let below =
                    start.compare(&row, || file_name(&self.segment, row.file).cmp(&start.file)).is_lt();
                if !below {
                    return Ok(true);
                }
            }
            if self.next >= self.segment.blocks() {
                return Ok(false);
            }
            self.load(true)?;
        }
    }

    fn step(&mut self) -> Result<bool> {
        let stepped = self.rows.advance();
        self.or_damaged(stepped)
    }

    fn load(&mut self, keep: bool) -> Result<()> {
        let number = self.next;
        self.next += 1;
        // What is left of the block before is not to be read again if this one is damaged.
        self.rows = BlockCursor::default();
        let block = self.segment.block(number, keep)?;
        let reset = self.rows.reset(block);
        self.or_damaged(reset)
    }

    fn or_damaged<T>(&mut self, result: Result<T, Malformed>) -> Result<T> {
        result.map_err(|_| {
            self.rows = BlockCursor::default();
            block_damaged(&self.segment, self.next.saturating_sub(1))
        })
    }
}

pub(crate) fn file_name(segment: &Segment, number: u32) -> &str {
    segment.files.get(number as usize).map_or("", |file| &file.name)
}

fn block_damaged(segment: &Segment, number: u64) -> Error {
    let offset = segment
        .part(number as usize / super::PART_BLOCKS)
        .ok()
        .and_then(|part| part.entry(number as usize % super::PART_BLOCKS).map(|entry| entry.offset));
    Error::damaged(segment.path(), offset.unwrap_or_default(), "a block")
}

/// Descending rows: a block is gone through upwards once, keeping its rows.
#[derive(Debug)]
pub(crate) struct BackCursor {
    segment: Arc<Segment>,
    /// Blocks before this one are still to come.
    before: u64,
    end: Option<Position>,
    block: Block,
    surts: Vec<u8>,
    /// Rows of the block; the last is the current one.
    rows: Vec<SavedRow>,
}

impl BackCursor {
    /// Behind the last row that is below `end`.
    pub(crate) fn new(segment: Arc<Segment>, end: Position) -> Self {
        Self {
            segment,
            before: 0,
            end: Some(end),
            block: Block::default(),
            surts: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The row that [`advance`](Self::advance) moved to.
    pub(crate) fn row(&self) -> Option<Row<'_>> {
        self.rows.last().map(|row| row.row(&self.block, &self.surts))
    }

    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.rows.pop();
        if let Some(end) = self.end.take() {
            if self.segment.blocks() == 0 {
                return Ok(false);
            }
            let key = end.key();
            self.before = self.segment.part_blocks(&key).start;
            let number = self.segment.find_block(&key)?;
            self.before = number;
            self.load(number, Some(&end))?;
        }
        while self.rows.is_empty() {
            let Some(number) = self.before.checked_sub(1) else { return Ok(false) };
            self.before = number;
            self.load(number, None)?;
        }
        Ok(true)
    }

    fn load(&mut self, number: u64, end: Option<&Position>) -> Result<()> {
        self.surts.clear();
        self.block = self.segment.block(number, true)?;
        let mut cursor = BlockCursor::default();
        let mut read = || -> Result<(), Malformed> {
            cursor.reset(self.block.clone())?;
            while cursor.advance()? {
                if let Some(end) = end {
                    let row = cursor.row();
                    let order = end.compare(&row, || file_name(&self.segment, row.file).cmp(&end.file));
                    if order.is_ge() {
                        break;
                    }
                }
                self.rows.push(cursor.save(&mut self.surts));
            }
            Ok(())
        };
        let read = read();
        read.map_err(|_| {
            self.rows.clear();
            block_damaged(&self.segment, number)
        })
    }
}
