//! Writing a cluster.

use crate::write::push_json_string;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Which kind of summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavour {
    /// Tab-separated, as the Internet Archive, Common Crawl and pywb use it.
    #[default]
    Classic,
    /// `!meta` line and JSON, as WACZ files carry it.
    Wacz,
}

/// How a cluster is written.
#[derive(Debug, Clone)]
pub struct ZipNumOptions {
    /// Lines per block: more compress better, fewer make a search read less.
    pub lines: usize,
    /// The shard name (classic) or the name of the data file (WACZ) that goes into the summary.
    pub name: String,
    /// Which summary.
    pub flavour: Flavour,
    /// Whether WACZ summary lines carry the SHA-256 of each block.
    pub digest: bool,
    /// The gzip level, 0 to 9.
    pub level: u32,
}

impl Default for ZipNumOptions {
    fn default() -> Self {
        // 3000 is what the great archives use; WACZ writers use 300 to 1024 because browsers fetch the blocks.
        Self { lines: 3000, name: "cdx-00000".to_owned(), flavour: Flavour::Classic, digest: false, level: 6 }
    }
}

/// Writes sorted lines into gzip blocks and a summary. Call [`finish`](Self::finish) to end the last block.
#[derive(Debug)]
pub struct ZipNumWriter<D: Write, S: Write> {
    data: D,
    summary: S,
    options: ZipNumOptions,
    block: Vec<u8>,
    block_lines: usize,
    first: Vec<u8>,
    offset: u64,
    blocks: u64,
    packed: Vec<u8>,
}

impl<D: Write, S: Write> ZipNumWriter<D, S> {
    /// Writes blocks to `data` and their places to `summary`.
    pub fn new(data: D, summary: S, mut options: ZipNumOptions) -> Self {
        options.lines = options.lines.max(1);
        Self {
            data,
            summary,
            options,
            block: Vec::new(),
            block_lines: 0,
            first: Vec::new(),
            offset: 0,
            blocks: 0,
            packed: Vec::new(),
        }
    }

    /// Takes the next line, with or without its line end.
    pub fn push(&mut self, line: &[u8]) -> io::Result<()> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if self.block_lines == 0 {
            self.first.clear();
            self.first.extend_from_slice(key_and_timestamp(line));
        }
        self.block.extend_from_slice(line);
        self.block.push(b'\n');
        self.block_lines += 1;
        if self.block_lines == self.options.lines { self.end_block() } else { Ok(()) }
    }

    /// Writes what is left and gives the two outputs back.
    pub fn finish(mut self) -> io::Result<(D, S)> {
        if self.block_lines > 0 {
            self.end_block()?;
        }
        self.data.flush()?;
        self.summary.flush()?;
        Ok((self.data, self.summary))
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.blocks == 0 && self.options.flavour == Flavour::Wacz {
            let mut head = b"!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": ".to_vec();
            push_json_string(&self.options.name, &mut head);
            head.extend_from_slice(b"}\n");
            self.summary.write_all(&head)?;
        }
        self.packed.clear();
        let mut gzip = GzEncoder::new(&mut self.packed, Compression::new(self.options.level.min(9)));
        gzip.write_all(&self.block)?;
        gzip.finish()?;
        self.data.write_all(&self.packed)?;
        self.blocks += 1;
        self.write_summary_line()?;
        self.offset += self.packed.len() as u64;
        self.block.clear();
        self.block_lines = 0;
        Ok(())
    }

    fn write_summary_line(&mut self) -> io::Result<()> {
        self.summary.write_all(&self.first)?;
        let (offset, length) = (self.offset, self.packed.len());
        match self.options.flavour {
            Flavour::Classic => {
                writeln!(self.summary, "\t{}\t{offset}\t{length}\t{}", self.options.name, self.blocks)
            }
            Flavour::Wacz if self.options.digest => {
                let digest = warc::Digest::of(warc::Algorithm::Sha256, &self.packed).hex();
                writeln!(
                    self.summary,
                    " {{\"offset\": {offset}, \"length\": {length}, \"digest\": \"sha256:{digest}\"}}"
                )
            }
            Flavour::Wacz => writeln!(self.summary, " {{\"offset\": {offset}, \"length\": {length}}}"),
        }
    }
}

/// The first two columns of a line.
fn key_and_timestamp(line: &[u8]) -> &[u8] {
    let end = memchr::memchr_iter(b' ', line).nth(1).unwrap_or(line.len());
    &line[..end]
}
