//! Makes an index file out of entries in any order, in bounded memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use warc::Digest;

use super::entry::{ENTRY_BYTES, Entry, FILES_MAX, KEY_BYTES, Key};
use super::join::{LOOSE_BYTES, Loose, join};
use super::layout::{BLOCK_BYTES, HEADER_BYTES, Header, names};
use super::partition::Partitions;
use super::stored::{FileEvidence, SAMPLES_MAX, SampleCapture};

/// How the names of files begin that are not whole yet. Those of crashes are taken away with old indexes.
pub(super) const ASIDE: &str = "papers-";

/// What an index is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// This payload under this URL.
    Url,
    /// This payload anywhere.
    Payload,
}

/// Gathers entries, from many threads if need be.
#[derive(Debug)]
pub struct Builder {
    by: By,
    entries: Partitions<ENTRY_BYTES>,
    loose: Partitions<LOOSE_BYTES>,
    files: Mutex<Files>,
    /// Entries taken, an upper bound of those kept.
    taken: AtomicU64,
}

#[derive(Debug, Default)]
struct Files {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By number: captures that the file should hold.
    samples: Vec<Vec<SampleCapture>>,
}

/// What an index came to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
    pub entries: u64,
    /// Captures whose record could not be found in any index line.
    pub unplaced: u64,
    /// Captures whose file is not verified on every replica, or holds other records.
    pub left_out: u64,
    /// Bytes of the file.
    pub size: u64,
}

impl Builder {
    /// Temporary files go to `folder`.
    pub fn new(by: By, folder: &Path) -> Builder {
        Builder {
            by,
            entries: Partitions::new(folder),
            loose: Partitions::new(folder),
            files: Mutex::default(),
            taken: AtomicU64::new(0),
        }
    }

    pub fn by(&self) -> By {
        self.by
    }

    /// Where a capture stands in this index.
    pub(super) fn key(&self, url: &str, payload: &Digest) -> Key {
        match self.by {
            By::Url => Key::new(url, payload),
            By::Payload => Key::of_payload(payload),
        }
    }

    /// The number of a file's name; none if there are too many.
    pub fn file(&self, name: &str) -> Option<u32> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = files.numbers.get(name) {
            return Some(*number);
        }
        let number = files.names.len();
        if number >= FILES_MAX {
            return None;
        }
        files.names.push(name.to_owned());
        files.samples.push(Vec::new());
        files.numbers.insert(name.to_owned(), number as u32);
        Some(number as u32)
    }

    /// Remembers a capture that a file should hold, unless enough of that file are known.
    pub(super) fn sample(&self, file: u32, capture: impl FnOnce() -> SampleCapture) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(samples) = files.samples.get_mut(file as usize).filter(|known| known.len() < SAMPLES_MAX)
        {
            samples.push(capture());
        }
    }

    /// The files that entries name so far, with captures that each should hold.
    pub(super) fn named_files(&self) -> HashMap<String, Vec<SampleCapture>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.names.iter().cloned().zip(files.samples.iter().cloned()).collect()
    }

    pub fn push(&self, entry: Entry) -> io::Result<()> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.entries.push(&entry.to_bytes())
    }

    pub(super) fn push_loose(&self, url: &str, loose: Loose) -> io::Result<()> {
        self.loose.push(&loose.to_bytes(url))
    }

    /// Writes the index. It has its name once it is whole. Only originals in verified files are kept; of several of one
    /// key, the oldest.
    pub fn finish(self, path: &Path, evidence: &HashMap<String, FileEvidence>) -> io::Result<Built> {
        let mut unplaced = 0;
        for rows in self.loose.sorted() {
            unplaced += join(&rows?, &mut |entry| {
                self.taken.fetch_add(1, Ordering::Relaxed);
                self.entries.push(&entry.to_bytes())
            })?;
        }
        let taken = self.taken.into_inner();
        if taken > u64::from(u32::MAX) {
            return Err(io::Error::other(format!("{taken} captures are more than one index holds")));
        }
        let files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner).names;
        let of = |name: &String| evidence.get(name).cloned().unwrap_or(FileEvidence::Unverified);
        let verified: Vec<_> = files.iter().map(|name| of(name).is_verified()).collect();
        let texts: Vec<_> = files.iter().map(|name| format!("{name}\n{}", of(name).to_text())).collect();
        let names = names(&texts)?;
        let mut left_out = 0;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut header = Header {
            bits: Header::bits_for(taken),
            entries: 0,
            files: files.len() as u32,
            names_len: names.len() as u64,
            names_crc: crc32c::crc32c(&names),
            directory_crc: 0,
            checksums_crc: 0,
        };
        // A name of its own: whoever makes the same index at the same time does not write into this one.
        let mut aside = tempfile::Builder::new().prefix(ASIDE).tempfile_in(folder)?;
        let file = aside.as_file_mut();
        file.seek(SeekFrom::Start(header.entries_at() as u64))?;
        let mut out = Entries::new(BufWriter::with_capacity(1 << 20, &mut *file), header.bits);
        for rows in self.entries.sorted() {
            let rows = rows?;
            for row in rows.chunk_by(|a, b| a[..KEY_BYTES] == b[..KEY_BYTES]) {
                let stored = row.iter().filter(|row| {
                    let file = Entry::from_bytes(row).file as usize;
                    let stored = verified.get(file).copied().unwrap_or_default();
                    left_out += u64::from(!stored);
                    stored
                });
                // Rows of one key differ in file, offset and date.
                if let Some(oldest) = stored.min_by_key(|row| (&row[20..], &row[12..20])) {
                    out.add(oldest)?;
                }
            }
        }
        let (directory, checksums, entries) = out.end()?;
        header.entries = entries;
        header.directory_crc = crc32c::crc32c(&directory);
        header.checksums_crc = crc32c::crc32c(&checksums);
        file.seek(SeekFrom::Start(header.checksums_at() as u64))?;
        file.write_all(&checksums)?;
        file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        file.write_all(&names)?;
        file.write_all(&directory)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header.to_bytes())?;
        file.sync_all()?;
        aside.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()?;
        Ok(Built { entries, unplaced, left_out, size: header.file_len() as u64 })
    }
}

/// Entries on their way to the file: counted by bucket, and under checksums block by block.
struct Entries<W> {
    out: W,
    bits: u32,
    /// How many entries stand in the buckets up to this one.
    ends: Vec<u32>,
    count: u64,
    block: Vec<u8>,
    checksums: Vec<u8>,
}

impl<W: Write> Entries<W> {
    fn new(out: W, bits: u32) -> Self {
        let ends = Vec::with_capacity((1 << bits) + 1);
        Self { out, bits, ends, count: 0, block: Vec::with_capacity(BLOCK_BYTES), checksums: Vec::new() }
    }

    fn add(&mut self, entry: &[u8; ENTRY_BYTES]) -> io::Result<()> {
        let bucket = Entry::from_bytes(entry).key.bucket(self.bits);
        // Entries come sorted: every bucket up to this one begins at or before it.
        while self.ends.len() <= bucket {
            self.ends.push(self.count as u32);
        }
        self.count += 1;
        let room = BLOCK_BYTES - self.block.len();
        let (now, later) = entry.split_at(room.min(ENTRY_BYTES));
        self.block.extend_from_slice(now);
        if self.block.len() == BLOCK_BYTES {
            self.flush()?;
            self.block.extend_from_slice(later);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            self.checksums.extend_from_slice(&crc32c::crc32c(&self.block).to_le_bytes());
            self.out.write_all(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    /// The directory, the checksums and the number of entries.
    fn end(mut self) -> io::Result<(Vec<u8>, Vec<u8>, u64)> {
        self.flush()?;
        self.out.flush()?;
        self.ends.resize((1 << self.bits) + 1, self.count as u32);
        let directory = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        Ok((directory, self.checksums, self.count))
    }
}
