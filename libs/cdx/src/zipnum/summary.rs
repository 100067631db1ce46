//! The summary of a cluster, held in memory: a few hundred bytes for thousands of lines.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::ops::Range;
use urlkey::KeyRange;

/// One block of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// How its first line begins: key and timestamp.
    pub first: String,
    /// Which data file it is in: the shard of a classic summary, the file name of a WACZ one.
    pub shard: String,
    /// Where its gzip member begins.
    pub offset: u64,
    /// The bytes of the gzip member.
    pub length: u64,
    /// The digest of the member, if the writer gave one.
    pub digest: Option<String>,
}

/// The blocks of a cluster in order.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The blocks, by their first line.
    pub blocks: Vec<Block>,
    /// Lines that could not be read, counted from 1.
    pub bad_lines: Vec<u64>,
}

/// The JSON of a WACZ summary line.
#[derive(serde::Deserialize)]
struct Place {
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    length: Option<u64>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    filename: Option<String>,
}

impl Summary {
    /// Reads a summary of either kind. Lines that cannot be read are counted and passed over.
    pub fn read(mut input: impl BufRead) -> io::Result<Self> {
        let mut summary = Self::default();
        let mut filename = String::new();
        let mut line = Vec::new();
        let mut number = 0;
        while input.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end();
            if let Some(meta) = text.strip_prefix('!') {
                if let Some(name) = meta_filename(meta) {
                    filename = name;
                }
            } else if let Some(block) = classic(text).or_else(|| wacz(text, &filename)) {
                summary.blocks.push(block);
            } else if !text.is_empty() {
                summary.bad_lines.push(number);
            }
            line.clear();
        }
        if !summary.blocks.is_sorted_by(|a, b| a.first <= b.first) {
            summary.blocks.sort_by(|a, b| a.first.cmp(&b.first));
        }
        Ok(summary)
    }

    /// Which blocks may hold lines of `range`: the last that begins before it, and all that begin in it.
    #[must_use]
    pub fn blocks_in(&self, range: &KeyRange) -> Range<usize> {
        let first = self.blocks.partition_point(|block| block.first.as_str() < range.start.as_str());
        let end = self.blocks.partition_point(|block| block.first.as_str() < range.end.as_str());
        // Equal firsts in a row: the block before the first of them may end with such a line too.
        first.saturating_sub(1)..end
    }

    /// How many pages of `page_blocks` blocks a range has; the unit in which CDX servers page.
    #[must_use]
    pub fn pages(&self, range: &KeyRange, page_blocks: usize) -> usize {
        self.blocks_in(range).len().div_ceil(page_blocks.max(1))
    }
}

fn classic(text: &str) -> Option<Block> {
    let mut columns = text.split('\t');
    let (first, shard) = (columns.next()?, columns.next()?);
    let (offset, length) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
    Some(Block { first: first.to_owned(), shard: shard.to_owned(), offset, length, digest: None })
}

fn wacz(text: &str, filename: &str) -> Option<Block> {
    let (first, json) = text.split_at(text.find(" {")?);
    let place: Place = serde_json::from_str(json).ok()?;
    Some(Block {
        first: first.to_owned(),
        shard: place.filename.unwrap_or_else(|| filename.to_owned()),
        offset: place.offset?,
        length: place.length?,
        digest: place.digest,
    })
}

fn meta_filename(meta: &str) -> Option<String> {
    let json = &meta[meta.find('{')?..];
    let fields: HashMap<String, serde_json::Value> = serde_json::from_str(json).ok()?;
    Some(fields.get("filename")?.as_str()?.to_owned())
}
