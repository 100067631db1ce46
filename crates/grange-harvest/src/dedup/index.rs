//! An index file that is asked.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use grange_crawl::record::Original;
use warc::Digest;

use super::entry::{ENTRY_BYTES, Entry, KEY_BYTES, Key};
use super::layout::{BLOCK_BYTES, HEADER_BYTES, Header, u32_at};
use super::map::Map;
use super::stored::FileEvidence;

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("cannot read the index of duplicates {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("the index of duplicates {} is damaged: {what}; it must be made anew", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("the index of duplicates {} has version {version}, which this program does not read", path.display())]
    OtherVersion { path: PathBuf, version: u32 },
}

/// An open index. Cheap to ask from many threads.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    map: Map,
    header: Header,
    /// A bit for every block of entries whose checksum was found right.
    proven: Box<[AtomicU64]>,
}

impl Index {
    /// Opens an index. Its frame is checked now, each block of entries when it is first looked at.
    pub fn open(path: &Path) -> Result<Index, IndexError> {
        let io = |error| IndexError::Io(path.to_owned(), error);
        let file = File::open(path).map_err(io)?;
        let map = Map::new(&file).map_err(io)?;
        if let Some(version) = Header::other_version(&map) {
            return Err(IndexError::OtherVersion { path: path.to_owned(), version });
        }
        let damaged = |what: String| IndexError::Damaged { path: path.to_owned(), what };
        let header = Header::from_bytes(&map, map.len()).map_err(damaged)?;
        let part = |name: &str, from: usize, to: usize, crc: u32| {
            let right = map.get(from..to).is_some_and(|bytes| crc32c::crc32c(bytes) == crc);
            if right { Ok(()) } else { Err(damaged(format!("the checksum of its {name} is wrong"))) }
        };
        part("names", HEADER_BYTES, header.directory_at(), header.names_crc)?;
        part("directory", header.directory_at(), header.entries_at(), header.directory_crc)?;
        part("checksums", header.checksums_at(), header.file_len(), header.checksums_crc)?;
        map.random();
        let blocks = header.entries_len().div_ceil(BLOCK_BYTES);
        let proven = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Index { path: path.to_owned(), map, header, proven })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn len(&self) -> u64 {
        self.header.entries
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// The original of this URL with this payload.
    pub fn find(&self, url: &str, payload: &Digest) -> Result<Option<Original>, IndexError> {
        self.find_key(url, Key::new(url, payload))
    }

    /// The original of this payload, in an index of payloads. Its URL is not known here: it is left empty.
    pub fn find_payload(&self, payload: &Digest) -> Result<Option<Original>, IndexError> {
        self.find_key("", Key::of_payload(payload))
    }

    fn find_key(&self, url: &str, key: Key) -> Result<Option<Original>, IndexError> {
        let Some(entry) = self.entry(key)? else { return Ok(None) };
        let file = self.name(entry.file)?.to_owned();
        let (date, offset) = (entry.date(), entry.offset);
        Ok(Some(Original { url: url.to_owned(), date, file, offset, record: None }))
    }

    /// The entry of a key.
    pub fn entry(&self, key: Key) -> Result<Option<Entry>, IndexError> {
        let at = self.header.directory_at() + key.bucket(self.header.bits) * 4;
        let (from, to) = (u32_at(&self.map, at) as usize, u32_at(&self.map, at + 4) as usize);
        let start = self.header.entries_at();
        let range = start + from * ENTRY_BYTES..start + to * ENTRY_BYTES;
        let bucket = self.map.get(range.clone()).filter(|_| range.end <= self.header.checksums_at());
        let bucket = bucket.ok_or_else(|| self.damaged("its directory leads out of it"))?;
        if bucket.is_empty() {
            return Ok(None);
        }
        self.prove(from * ENTRY_BYTES, to * ENTRY_BYTES)?;
        let found = bucket.chunks_exact(ENTRY_BYTES).find(|entry| entry[..KEY_BYTES] == key.0);
        Ok(found.and_then(|bytes| bytes.try_into().ok()).map(Entry::from_bytes))
    }

    /// The name of a file by its number.
    pub fn name(&self, file: u32) -> Result<&str, IndexError> {
        self.file_text(file).map(|text| text.rsplit_once('\n').map_or(text, |(name, _)| name))
    }

    /// The files that were named when the index was built, with what the archive said of each.
    pub fn files(&self) -> Result<HashMap<String, FileEvidence>, IndexError> {
        let file = |number| {
            let text = self.file_text(number)?;
            let (name, evidence) = text.rsplit_once('\n').unwrap_or((text, ""));
            Ok((name.to_owned(), FileEvidence::from_text(evidence)))
        };
        (0..self.header.files).map(file).collect()
    }

    fn file_text(&self, file: u32) -> Result<&str, IndexError> {
        let names = &self.map[HEADER_BYTES..self.header.directory_at()];
        let texts = (self.header.files as usize + 1) * 4;
        let end = |number: usize| texts + u32_at(names, number * 4) as usize;
        let text = (file < self.header.files).then(|| names.get(end(file as usize)..end(file as usize + 1)));
        let text = text.flatten().and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| self.damaged("an entry names a file it does not know"))
    }

    /// Checks every block now.
    pub fn verify(&self) -> Result<(), IndexError> {
        self.prove(0, self.header.entries_len())
    }

    /// Checks the blocks of these bytes of entries, those that were not checked before.
    fn prove(&self, from: usize, to: usize) -> Result<(), IndexError> {
        for block in from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES) {
            let (word, bit) = (&self.proven[block / 64], 1_u64 << (block % 64));
            if word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            let start = self.header.entries_at() + block * BLOCK_BYTES;
            let end = (start + BLOCK_BYTES).min(self.header.checksums_at());
            let crc = u32_at(&self.map, self.header.checksums_at() + block * 4);
            if crc32c::crc32c(&self.map[start..end]) != crc {
                return Err(self.damaged("the checksum of some of its entries is wrong"));
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }

    fn damaged(&self, what: &str) -> IndexError {
        IndexError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}

impl Key {
    /// The bucket it is looked for in: its first `bits`.
    pub(super) fn bucket(self, bits: u32) -> usize {
        (u64::from(self.head()) >> (32 - bits)) as usize
    }
}
