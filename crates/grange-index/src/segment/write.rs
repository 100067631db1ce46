//! Writes a segment from rows that come in order.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::footer::{Footer, Place};
use super::parts::{BlockEntry, Top, TopEntry, put_entry};
use super::postings::{BLOCK_ROWS_MAX, PostingsWriter};
use super::{MAGIC, PART_BLOCKS, VERSION, filter, frame};
use crate::block::BlockEncoder;
use crate::digest;
use crate::durable::sync_file;
use crate::error::{Error, Result};
use crate::row::{self, DELETED, REVISIT, Row, SHARED, Tables};

/// How a segment is written.
#[derive(Debug, Clone)]
pub(crate) struct SegmentOptions {
    /// Bytes of a block before compression, digests and offsets not counted.
    pub(crate) block_bytes: usize,
    /// zstd's level; `None` stores blocks as they are, for segments in memory.
    pub(crate) level: Option<i32>,
    pub(crate) dictionary: Option<Vec<u8>>,
}

impl SegmentOptions {
    /// For segments in memory: read at once, gone soon.
    pub(crate) const fn memory() -> Self {
        Self { block_bytes: 4 << 10, level: None, dictionary: None }
    }
}

/// Bytes written at a time.
const BUFFER_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Output {
    /// None: everything stays in `buffer`.
    file: Option<(File, PathBuf)>,
    buffer: Vec<u8>,
    written: u64,
    hasher: blake3::Hasher,
}

impl Output {
    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn path(&self) -> &Path {
        self.file.as_ref().map_or(Path::new("memory"), |(_, path)| path)
    }

    fn folder(&self) -> Option<&Path> {
        self.file.as_ref().and_then(|(_, path)| path.parent())
    }

    fn relieve(&mut self, at_least: usize) -> io::Result<()> {
        if let Some((file, _)) = &mut self.file
            && self.buffer.len() >= at_least
        {
            file.write_all(&self.buffer)?;
            self.hasher.update(&self.buffer);
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Takes rows in order and writes a segment.
pub(crate) struct SegmentWriter {
    options: SegmentOptions,
    compressor: Option<Compressor<'static>>,
    output: Output,
    pub(crate) tables: Tables,
    block: BlockEncoder,
    packed: Vec<u8>,
    plain: Vec<u8>,
    /// Hashes of the different keys of this block.
    hashes: Vec<u64>,
    postings: PostingsWriter,
    separator: Vec<u8>,
    part: Vec<u8>,
    part_separator: Box<[u8]>,
    part_blocks: usize,
    top: Top,
    footer: Footer,
    last_surt: Vec<u8>,
    last_key: Vec<u8>,
    /// Time, file and offset of the last row, from which its whole key is made when a block ends.
    last: (crate::stamp::Stamp, u32, u64),
}

impl std::fmt::Debug for SegmentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SegmentWriter({}, {} rows)", self.output.path().display(), self.footer.rows)
    }
}

impl SegmentWriter {
    /// Writes to a new file at `path`, which must not be there yet.
    pub(crate) fn create(path: &Path, options: SegmentOptions) -> Result<Self> {
        let file = File::create_new(path).map_err(Error::io("create", path))?;
        Self::new(Some((file, path.to_owned())), options)
    }

    /// Writes into memory.
    pub(crate) fn in_memory(options: SegmentOptions) -> Result<Self> {
        Self::new(None, options)
    }

    fn new(file: Option<(File, PathBuf)>, options: SegmentOptions) -> Result<Self> {
        let mut buffer = Vec::new();
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        let output = Output { file, buffer, written: 0, hasher: blake3::Hasher::new() };
        let compressor = options
            .level
            .map(|level| {
                let mut compressor =
                    Compressor::with_dictionary(level, options.dictionary.as_deref().unwrap_or_default())?;
                // Both are known from elsewhere; nine bytes a block matter.
                compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
                compressor.set_parameter(CParameter::DictIdFlag(false))?;
                Ok(compressor)
            })
            .transpose()
            .map_err(Error::io("set up compression for", output.path()))?;
        Ok(Self {
            options,
            compressor,
            output,
            tables: Tables::default(),
            block: BlockEncoder::default(),
            packed: Vec::new(),
            plain: Vec::new(),
            hashes: Vec::new(),
            postings: PostingsWriter::default(),
            separator: Vec::new(),
            part: Vec::new(),
            part_separator: Box::default(),
            part_blocks: 0,
            top: Top::default(),
            footer: Footer { times: (u64::MAX, 0), ..Footer::default() },
            last_surt: Vec::new(),
            last_key: Vec::new(),
            last: <_>::default(),
        })
    }

    pub(crate) const fn rows(&self) -> u64 {
        self.footer.rows
    }

    /// Bytes written so far.
    pub(crate) fn position(&self) -> u64 {
        self.output.position()
    }

    /// Adds a row, whose numbers are those of [`tables`](Self::tables). Rows come in ascending order.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<()> {
        let is_full =
            self.block.packed_len() >= self.options.block_bytes || self.block.rows() >= BLOCK_ROWS_MAX;
        let flags = self.tables.kinds.get(row.kind as usize).map_or(0, |kind| kind.flags);
        // A search for a capture begins in one block: all its rows are there.
        if is_full && (flags & SHARED == 0 || !self.is_last_capture(row)) {
            self.end_block()?;
        }
        let begins = self.block.rows() == 0;
        let fresh = row.surt != self.last_surt || self.footer.rows == 0;
        if begins {
            self.set_separator(row);
        }
        if fresh {
            self.footer.surts += 1;
            self.last_surt.clear();
            self.last_surt.extend_from_slice(row.surt);
        }
        if begins || fresh {
            self.hashes.push(filter::hash(row.surt));
        }
        if flags & DELETED != 0 {
            self.footer.deleted += 1;
        } else {
            let essence = digest::essence(row.form, row.digest);
            if !essence.is_empty() {
                self.postings.note(digest::hash(essence), flags & REVISIT != 0, row.time.seconds());
            }
        }
        let code = row.time.code();
        self.footer.times = (self.footer.times.0.min(code), self.footer.times.1.max(code));
        self.block.push(row);
        self.last = (row.time, row.file, row.offset);
        self.footer.rows += 1;
        Ok(())
    }

    fn file_name(&self, number: u32) -> &str {
        self.tables.files.get(number as usize).map_or("", |file| &file.name)
    }

    fn is_last_capture(&self, row: &Row<'_>) -> bool {
        let (time, file, offset) = self.last;
        row.surt == self.last_surt
            && (row.time, row.offset) == (time, offset)
            && self.file_name(row.file) == self.file_name(file)
    }

    fn set_last_key(&mut self) {
        let (time, file, offset) = self.last;
        let mut key = std::mem::take(&mut self.last_key);
        row::key_into(&self.last_surt, time, self.file_name(file), offset, &mut key);
        self.last_key = key;
    }

    fn set_separator(&mut self, row: &Row<'_>) {
        let mut key = std::mem::take(&mut self.separator);
        row::key_into(row.surt, row.time, self.file_name(row.file), row.offset, &mut key);
        if self.footer.rows == 0 {
            self.top.first = key.as_slice().into();
        } else {
            let shared = crate::address::common_prefix(&self.last_key, &key);
            key.truncate(shared + 1);
        }
        self.separator = key;
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.rows() == 0 {
            return Ok(());
        }
        self.set_last_key();
        let rows = u64::from(self.block.rows());
        self.packed.clear();
        self.plain.clear();
        self.block.finish(&mut self.packed, &mut self.plain);
        let offset = self.output.position();
        frame::put(&mut self.output.buffer, &self.packed, &self.plain, |packed, out| {
            let Some(compressor) = &mut self.compressor else { return false };
            out.reserve(zstd::zstd_safe::compress_bound(packed.len()));
            compressor.compress_to_buffer(packed, out).is_ok()
        });
        let filter = filter::build(&self.hashes);
        self.hashes.clear();
        let len = self.output.position() - offset;
        put_entry(
            &mut self.part,
            &BlockEntry { separator: &self.separator, offset, len, rows, filter: &filter },
        );
        if self.part_blocks == 0 {
            self.part_separator = self.separator.as_slice().into();
        }
        let ended = self
            .postings
            .end_block(self.footer.blocks, self.output.folder())
            .and_then(|()| self.output.relieve(BUFFER_BYTES));
        ended.map_err(Error::io("write", self.output.path()))?;
        self.footer.blocks += 1;
        self.part_blocks += 1;
        if self.part_blocks == PART_BLOCKS {
            self.end_part();
        }
        Ok(())
    }

    fn end_part(&mut self) {
        if self.part_blocks > 0 {
            let part = std::mem::take(&mut self.part);
            let Place { offset, len } = self.put_section(&part);
            self.top.parts.push(TopEntry {
                separator: std::mem::take(&mut self.part_separator),
                offset,
                len,
            });
            self.part_blocks = 0;
        }
    }

    /// Appends a piece that needs no dictionary.
    fn put_section(&mut self, bytes: &[u8]) -> Place {
        let offset = self.output.position();
        let level = self.options.level;
        frame::put(&mut self.output.buffer, bytes, &[], |packed, out| {
            level.and_then(|level| zstd::bulk::compress(packed, level).ok()).is_some_and(|stored| {
                *out = stored;
                true
            })
        });
        Place { offset, len: self.output.position() - offset }
    }

    /// Writes everything that is left. After this returns, the file is on disk.
    pub(crate) fn finish(mut self) -> Result<Finished> {
        self.end_block()?;
        self.end_part();
        self.top.last = std::mem::take(&mut self.last_key).into();
        let output = &mut self.output;
        let index = std::mem::take(&mut self.postings).finish(|piece| {
            let offset = output.position();
            frame::put(&mut output.buffer, &[], piece, |_, _| false);
            let len = output.position() - offset;
            output.relieve(BUFFER_BYTES)?;
            Ok(Place { offset, len })
        });
        let index = index.map_err(Error::io("write", self.output.path()))?;
        self.footer.postings = self.put_section(&index);
        let dictionary = self.options.dictionary.take().unwrap_or_default();
        self.footer.dictionary = self.put_section(&dictionary);
        let mut section = Vec::new();
        self.tables.write(&mut section);
        self.footer.tables = self.put_section(&section);
        section.clear();
        self.top.write(&mut section);
        self.footer.top = self.put_section(&section);
        if self.footer.rows == 0 {
            self.footer.times = (0, 0);
        }
        let hashed = self.footer.hashed();
        let Self { mut output, mut footer, .. } = self;
        let path = output.path().to_owned();
        let written = || -> io::Result<Bytes> {
            output.relieve(0)?;
            output.hasher.update(&output.buffer);
            output.hasher.update(&hashed);
            footer.blake3 = *output.hasher.finalize().as_bytes();
            output.buffer.extend_from_slice(&footer.write());
            output.written += output.buffer.len() as u64;
            if let Some((file, _)) = &mut output.file {
                file.write_all(&output.buffer)?;
                sync_file(file, &path)?;
                output.buffer.clear();
            }
            Ok(std::mem::take(&mut output.buffer).into())
        };
        let memory = { written }().map_err(Error::io("write", &path))?;
        Ok(Finished { rows: footer.rows, bytes: output.written, memory })
    }
}

/// What was written.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// The segment itself, if it was written into memory.
    pub(crate) memory: Bytes,
}
