//! Searching a cluster.

use super::summary::{Block, Summary};
use flate2::bufread::GzDecoder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use urlkey::KeyRange;

/// Where the data files of a cluster lie.
#[derive(Debug, Clone, Default)]
pub struct Location {
    dir: PathBuf,
    shards: HashMap<String, Vec<PathBuf>>,
}

impl Location {
    /// Data files are looked for in `dir`: the shard's name as it is, or with `.cdx.gz` or `.gz` behind it.
    #[must_use]
    pub fn dir(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shards: HashMap::new() }
    }

    /// Reads a `.loc` file. Relative paths in it are relative to `dir`.
    pub fn read_loc(mut self, input: impl BufRead) -> io::Result<Self> {
        for line in input.lines() {
            let line = line?;
            let mut columns = line.trim_end().split('\t');
            if let Some(shard) = columns.next().filter(|shard| !shard.is_empty()) {
                self.shards.entry(shard.to_owned()).or_default().extend(columns.map(PathBuf::from));
            }
        }
        Ok(self)
    }

    /// The first file that exists for a shard.
    #[must_use]
    pub fn find(&self, shard: &str) -> Option<PathBuf> {
        let named = self.shards.get(shard).into_iter().flatten().map(|path| self.dir.join(path));
        let usual = ["", ".cdx.gz", ".gz", ".cdxj.gz"].map(|end| self.dir.join(format!("{shard}{end}")));
        named.chain(usual).find(|path| path.is_file())
    }
}

/// A summary and the data files it speaks of.
#[derive(Debug)]
pub struct Cluster {
    summary: Summary,
    location: Location,
}

impl Cluster {
    /// Opens the cluster with the summary at `path`; data files lie beside it. A `.loc` file of the same name
    /// is followed.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let summary = Summary::read(BufReader::new(File::open(path)?))?;
        let mut location = Location::dir(path.parent().unwrap_or(Path::new("")));
        let loc = path.with_extension("loc");
        if loc.is_file() {
            location = location.read_loc(BufReader::new(File::open(loc)?))?;
        }
        Ok(Self { summary, location })
    }

    /// A cluster of parts found elsewhere.
    #[must_use]
    pub const fn new(summary: Summary, location: Location) -> Self {
        Self { summary, location }
    }

    /// The summary.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The lines of a range.
    #[must_use]
    pub fn lines_in(&self, range: &KeyRange) -> ClusterLines<'_> {
        ClusterLines {
            cluster: self,
            blocks: self.summary.blocks_in(range),
            range: range.clone(),
            open: None,
            packed: Vec::new(),
            text: Vec::new(),
            at: 0,
        }
    }

    fn read_block(
        &self,
        block: &Block,
        open: &mut Option<(String, File)>,
        packed: &mut Vec<u8>,
    ) -> io::Result<()> {
        if open.as_ref().is_none_or(|(shard, _)| *shard != block.shard) {
            let path = self.location.find(&block.shard).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("no data file for shard {:?}", block.shard))
            })?;
            *open = Some((block.shard.clone(), File::open(path)?));
        }
        let Some((_, file)) = open else { return Ok(()) };
        file.seek(SeekFrom::Start(block.offset))?;
        packed.clear();
        // `take` grows with what is there, not with what the summary claims.
        file.take(block.length).read_to_end(packed)?;
        Ok(())
    }
}

/// The lines of a range, read block by block.
#[derive(Debug)]
pub struct ClusterLines<'c> {
    cluster: &'c Cluster,
    blocks: Range<usize>,
    range: KeyRange,
    open: Option<(String, File)>,
    packed: Vec<u8>,
    text: Vec<u8>,
    at: usize,
}

/// No block of honest lines is near this; more is a bomb.
const BLOCK_TEXT_BYTES_MAX: u64 = 256 << 20;

impl ClusterLines<'_> {
    /// Reads the next line into `line`, which is emptied first; false when the range is over.
    pub fn next_into(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        loop {
            while self.at < self.text.len() {
                let rest = &self.text[self.at..];
                let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let text = &rest[..len];
                self.at += len + 1;
                if text >= self.range.end.as_bytes() {
                    self.blocks = 0..0;
                    self.text.clear();
                    return Ok(false);
                }
                if text >= self.range.start.as_bytes() {
                    line.extend_from_slice(text);
                    return Ok(true);
                }
            }
            let Some(next) = self.blocks.next() else {
                return Ok(false);
            };
            self.load(next)?;
        }
    }

    fn load(&mut self, block: usize) -> io::Result<()> {
        let block = &self.cluster.summary.blocks[block];
        self.cluster.read_block(block, &mut self.open, &mut self.packed)?;
        self.text.clear();
        self.at = 0;
        GzDecoder::new(self.packed.as_slice()).take(BLOCK_TEXT_BYTES_MAX).read_to_end(&mut self.text)?;
        Ok(())
    }
}

impl Iterator for ClusterLines<'_> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.next_into(&mut line) {
            Ok(true) => Some(Ok(line)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
