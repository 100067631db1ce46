//! The log of the head: changes that are durable and in no segment yet.
//!
//! ```text
//! "GRANGEHL"
//! per change: length of the segment (4 bytes), CRC-32C of what follows (4), number of the change (8), the segment
//! ```
//!
//! A crash while a change is appended leaves a torn end, which was never acknowledged and is cut off. Damage before the
//! end is something else: acknowledged changes would be lost, and the index does not open by itself.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"GRANGEHL";
const HEAD_BYTES: usize = 16;

#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    pub(crate) bytes: u64,
    /// A change behind `bytes` failed and could not be cut off yet.
    failed: bool,
}

impl Log {
    /// Begins an empty log.
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        let open = || {
            let mut file = File::create(&path)?;
            file.write_all(MAGIC)?;
            file.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(Error::io("create", &path))?;
        Ok(Self { file, path, bytes: MAGIC.len() as u64, failed: false })
    }

    /// Opens a log to go on with it, cutting off a torn end.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, Vec<(u64, Bytes)>)> {
        let (changes, end) = read(&path)?;
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(end)?;
            file.seek(SeekFrom::End(0))?;
            if end < MAGIC.len() as u64 {
                file.rewind()?;
                file.write_all(MAGIC)?;
            }
            file.sync_all()?;
            Ok(file)
        };
        let file = open().map_err(Error::io("open", &path))?;
        let bytes = end.max(MAGIC.len() as u64);
        Ok((Self { file, path, bytes, failed: false }, changes))
    }

    /// Appends a change. After this returns it is on disk; after an error nothing of it counts.
    pub(crate) fn append(&mut self, change: u64, segment: &[u8]) -> Result<()> {
        let mut record = Vec::with_capacity(HEAD_BYTES + segment.len());
        record.extend_from_slice(&(segment.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&change.to_le_bytes()), segment);
        record.extend_from_slice(&crc.to_le_bytes());
        record.extend_from_slice(&change.to_le_bytes());
        record.extend_from_slice(segment);
        self.cut_failed()?;
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.failed = true;
            // What cannot be cut off now is cut off before the next change, which waits for it.
            let _ = self.cut_failed();
            return Err(Error::io("append to", &self.path)(error));
        }
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Cuts off a change that failed: it must not stand before the next one. A change whose sync failed may be shown by
    /// the system though the disk does not have it.
    fn cut_failed(&mut self) -> Result<()> {
        if self.failed {
            let cut = self.file.set_len(self.bytes).and_then(|()| {
                self.file.seek(SeekFrom::End(0))?;
                self.file.sync_all()
            });
            cut.map_err(Error::io("cut", &self.path))?;
            self.failed = false;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whole changes of a log, and where they end.
pub(crate) fn read(path: &Path) -> Result<(Vec<(u64, Bytes)>, u64)> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(Error::io("read", path))?;
    if bytes.len() < MAGIC.len() {
        return Ok((Vec::new(), 0));
    }
    if &bytes[..MAGIC.len()] != MAGIC {
        return Err(Error::Unknown { path: path.to_owned(), expected: "the log of a capture index" });
    }
    let bytes = Bytes::from(bytes);
    let mut changes = Vec::new();
    let mut at = MAGIC.len();
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let number =
            |from: usize| head[from..from + 4].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let (len, crc) = (number(0) as usize, number(4));
        let end = at + HEAD_BYTES + len;
        if end > bytes.len() || len == 0 {
            break;
        }
        if crc32c::crc32c(&bytes[at + 8..end]) != crc {
            if end < bytes.len() {
                return Err(Error::damaged(path, at as u64, "a change in the log"));
            }
            break;
        }
        let change = u64::from(number(8)) | u64::from(number(12)) << 32;
        changes.push((change, bytes.slice(at + HEAD_BYTES..end)));
        at = end;
    }
    Ok((changes, at as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_failed_never_stands_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::create(path.clone()).unwrap();
        log.append(1, b"one").unwrap();
        // A whole change that was written and whose sync failed, on a disk that lets nothing be cut off.
        let before = log.bytes;
        log.append(2, b"lost").unwrap();
        (log.bytes, log.failed) = (before, true);
        let writable = std::mem::replace(&mut log.file, File::open(&path).unwrap());
        assert!(log.append(2, b"two").is_err());
        log.file = writable;
        log.append(2, b"two").unwrap();
        let (changes, end) = read(&path).unwrap();
        assert_eq!(changes, [(1, Bytes::from_static(b"one")), (2, Bytes::from_static(b"two"))]);
        assert_eq!(end, log.bytes);
    }
}
