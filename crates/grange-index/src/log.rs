//! The log of the head: changes that are durable and in no segment yet.
//!
//! ```text
//! "GRANGEH2"
//! per change: length of the segment (4 bytes), number of the change (8), CRC-32C of these twelve (4),
//!             CRC-32C of the segment (4), the segment
//! ```
//!
//! A crash while a change is appended leaves a torn end, which was never acknowledged and is cut off: the file ends before
//! the change does, or holds only zeros from somewhere in it on. Anything else that is not as it was written is damage:
//! acknowledged changes would be lost, and the index does not open. [`log_v1`](crate::log_v1) reads the first version.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::durable::{sync_data, sync_file};
use crate::error::{Error, Result};
use crate::log_v1;

const MAGIC: &[u8; 8] = b"GRANGEH2";
const HEAD_BYTES: usize = 20;

#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    pub(crate) bytes: u64,
    /// A change behind `bytes` failed and could not be cut off yet.
    failed: bool,
}

/// The contents of a log.
#[derive(Debug, Default)]
pub(crate) struct LogContents {
    /// Numbers and segments of whole changes.
    pub(crate) changes: Vec<(u64, Bytes)>,
    /// Where they end.
    pub(crate) end: u64,
    /// Bytes of a change behind the end that was never acknowledged.
    pub(crate) torn: u64,
    /// It has the first version: it can be read and not be continued.
    pub(crate) first_version: bool,
}

impl Log {
    /// Begins an empty log.
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        let open = || {
            let mut file = File::create(&path)?;
            file.write_all(MAGIC)?;
            sync_file(&file, &path)?;
            Ok(file)
        };
        let file = open().map_err(Error::io("create", &path))?;
        Ok(Self { file, path, bytes: MAGIC.len() as u64, failed: false })
    }

    /// Opens a log that was [read](read) to continue it, and cuts off a torn end.
    pub(crate) fn open(path: PathBuf, contents: &LogContents) -> Result<Self> {
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            if contents.torn > 0 {
                tracing::warn!(
                    path = %path.display(), bytes = contents.torn, end = contents.end,
                    "cut off the torn end of an index log: a change whose commit never returned"
                );
                file.set_len(contents.end)?;
                sync_file(&file, &path)?;
            }
            file.seek(SeekFrom::Start(contents.end))?;
            Ok(file)
        };
        let file = open().map_err(Error::io("open", &path))?;
        Ok(Self { file, path, bytes: contents.end, failed: false })
    }

    /// Appends a change. After this returns it is on disk; after an error nothing of it counts.
    pub(crate) fn append(&mut self, change: u64, segment: &[u8]) -> Result<()> {
        // Four bytes hold the length: a change is a few files, and the head is written out at 16 MiB.
        let len = u32::try_from(segment.len()).map_err(std::io::Error::other);
        let len = len.map_err(Error::io("append a change of more than 4 GiB to", &self.path))?;
        let mut record = Vec::with_capacity(HEAD_BYTES + segment.len());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(&change.to_le_bytes());
        record.extend_from_slice(&crc32c::crc32c(&record).to_le_bytes());
        record.extend_from_slice(&crc32c::crc32c(segment).to_le_bytes());
        record.extend_from_slice(segment);
        self.cut_failed()?;
        let written = self.file.write_all(&record).and_then(|()| sync_data(&self.file, &self.path));
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
                sync_file(&self.file, &self.path)
            });
            cut.map_err(Error::io("cut", &self.path))?;
            tracing::warn!(path = %self.path.display(), end = self.bytes, "cut off a change of an index log that failed");
            self.failed = false;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a log holds nothing, not even the beginning of a change.
pub(crate) fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.len() <= MAGIC.len() as u64)
}

/// The whole changes of a log. Damage is an error.
pub(crate) fn read(path: &Path) -> Result<LogContents> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(Error::io("read", path))?;
    let bytes = Bytes::from(bytes);
    match bytes.get(..MAGIC.len()) {
        Some(magic) if magic == MAGIC => read_changes(path, &bytes),
        Some(magic) if magic == log_v1::MAGIC => log_v1::read_changes(path, &bytes),
        Some(_) => Err(Error::Unknown { path: path.to_owned(), expected: "the log of a capture index" }),
        // It is synced before a manifest names it.
        None => Err(Error::damaged(path, 0, "the beginning of the log")),
    }
}

fn read_changes(path: &Path, bytes: &Bytes) -> Result<LogContents> {
    let mut contents = LogContents::default();
    let mut at = MAGIC.len();
    while at < bytes.len() {
        let rest = &bytes[at..];
        let Some(head) = rest.first_chunk::<HEAD_BYTES>() else { break };
        let damaged = || Error::damaged(path, at as u64, "a change in the log");
        if crc32c::crc32c(&head[..12]) != number(&head[12..16]) {
            if is_unwritten(bytes, at) {
                break;
            }
            return Err(damaged());
        }
        let end = at + HEAD_BYTES + number(&head[..4]) as usize;
        if end > bytes.len() {
            break;
        }
        let segment = bytes.slice(at + HEAD_BYTES..end);
        if crc32c::crc32c(&segment) != number(&head[16..20]) {
            if end == bytes.len() && is_unwritten(bytes, at) {
                break;
            }
            return Err(damaged());
        }
        let change = u64::from(number(&head[4..8])) | u64::from(number(&head[8..12])) << 32;
        contents.changes.push((change, segment));
        at = end;
    }
    contents.end = at as u64;
    contents.torn = (bytes.len() - at) as u64;
    Ok(contents)
}

/// Whether the end of a change that begins at `at` was never written: a system that lost power shows zeros in the place of
/// sectors. A whole change ends with the footer of its segment, whose last byte is no zero.
pub(crate) fn is_unwritten(log: &[u8], at: usize) -> bool {
    /// The smallest piece that disks write.
    const SECTOR_BYTES: usize = 512;
    let sector = log.len().saturating_sub(1) / SECTOR_BYTES * SECTOR_BYTES;
    log[sector.max(at)..].iter().all(|byte| *byte == 0)
}

pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
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
        let contents = read(&path).unwrap();
        assert_eq!(contents.changes, [(1, Bytes::from_static(b"one")), (2, Bytes::from_static(b"two"))]);
        assert_eq!((contents.end, contents.torn), (log.bytes, 0));
    }

    #[test]
    fn what_a_power_cut_leaves_of_a_change_is_cut_off_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::create(path.clone()).unwrap();
        log.append(1, b"the first one").unwrap();
        let before = log.bytes as usize;
        let second = [b"the second ".repeat(100), b"GRANGEIX".to_vec()].concat();
        log.append(2, &second).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let kept = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path)
                .map(|contents| (contents.changes.len(), contents.end as usize, contents.torn as usize))
        };
        for end in before..whole.len() {
            assert_eq!(kept(&whole[..end]).unwrap(), (1, before, end - before), "cut at {end}");
            // As long as it should be, and zeros from here on.
            let mut zeros = whole.clone();
            zeros[end..].fill(0);
            let (found, sector) = (kept(&zeros), (whole.len() - 1) / 512 * 512);
            if end <= sector {
                assert_eq!(found.unwrap(), (1, before, whole.len() - before), "zeros from {end}");
            } else {
                // Less than a sector is damage like any other.
                assert!(found.is_err(), "zeros from {end}");
            }
        }
        for end in 0..MAGIC.len() {
            assert!(kept(&whole[..end]).is_err());
        }
    }
}
