//! The log of the head as earlier versions wrote it. It is read once, and continued as a log of this version.
//!
//! ```text
//! "GRANGEHL"
//! per change: length of the segment (4 bytes), CRC-32C of what follows (4), number of the change (8), the segment
//! ```
//!
//! The CRC does not cover the length, so a damaged length looks like a torn end. What tells them apart: a torn change is
//! not there as a whole, and a change with a damaged length is, so some length makes its CRC right.

use std::path::Path;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::log::{LogContents, is_unwritten, number};

pub(crate) const MAGIC: &[u8; 8] = b"GRANGEHL";
const HEAD_BYTES: usize = 16;

pub(crate) fn read_changes(path: &Path, bytes: &Bytes) -> Result<LogContents> {
    let mut contents = LogContents { first_version: true, ..LogContents::default() };
    let mut at = MAGIC.len();
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let damaged = || Error::damaged(path, at as u64, "a change in the log");
        let (len, crc) = (number(&head[..4]) as usize, number(&head[4..8]));
        let end = at + HEAD_BYTES + len;
        if end > bytes.len() || len == 0 {
            if holds_a_whole_change(&bytes[at + 8..], crc) {
                return Err(damaged());
            }
            break;
        }
        if crc32c::crc32c(&bytes[at + 8..end]) != crc {
            if end == bytes.len() && is_unwritten(bytes, at) {
                break;
            }
            return Err(damaged());
        }
        let change = u64::from(number(&head[8..12])) | u64::from(number(&head[12..16])) << 32;
        contents.changes.push((change, bytes.slice(at + HEAD_BYTES..end)));
        at = end;
    }
    contents.end = at as u64;
    contents.torn = (bytes.len() - at) as u64;
    Ok(contents)
}

/// Whether `rest` begins with a number and a segment of any length that have this CRC.
fn holds_a_whole_change(rest: &[u8], crc: u32) -> bool {
    let Some((number, segment)) = rest.split_at_checked(HEAD_BYTES - 8) else { return false };
    let mut sum = crc32c::crc32c(number);
    segment.chunks(1).any(|byte| {
        sum = crc32c::crc32c_append(sum, byte);
        sum == crc
    })
}

/// A log as earlier versions wrote it.
#[cfg(test)]
pub(crate) fn write(path: &Path, changes: &[(u64, Bytes)]) {
    let mut log = MAGIC.to_vec();
    for (change, segment) in changes {
        log.extend_from_slice(&(segment.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&change.to_le_bytes()), segment);
        log.extend_from_slice(&crc.to_le_bytes());
        log.extend_from_slice(&change.to_le_bytes());
        log.extend_from_slice(segment);
    }
    std::fs::write(path, log).unwrap();
}
