//! Copying records from one file into another, each into a member of its own.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use tempfile::SpooledTempFile;

use super::file::{FileOptions, WarcFile};
use super::record::NewRecord;
use crate::problem::Kind;
use crate::record::Record;

/// Blocks up to this size are held in memory on their way; larger ones go through a temporary file.
const IN_MEMORY_BYTES: usize = 4 << 20;

impl WarcFile {
    /// Creates a file without a warcinfo record of its own, for records that bring theirs.
    pub fn create_bare(path: impl AsRef<Path>, options: &FileOptions) -> io::Result<WarcFile> {
        WarcFile::start(path.as_ref(), options)
    }

    /// Copies a WARC record. Header and block keep their bytes; a header whose lines or length are wrong is
    /// written anew with the same fields and the length of the block as it was read.
    pub fn copy(&mut self, record: &mut Record<'_>) -> io::Result<()> {
        if record.is_arc() {
            let text = "ARC records cannot be copied into a WARC file; convert them";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let (mut block, len) = spool(&mut record.block())?;
        let mut header = record.header().raw().to_vec();
        let sound = record.content_length() == Some(len)
            && header.ends_with(b"\r\n\r\n")
            && !record.problems().iter().any(|problem| {
                matches!(problem.kind, Kind::BareLf | Kind::LineWithoutColon | Kind::HeaderTooLong)
            });
        if !sound {
            header = rebuilt(record, len);
        }
        let date = record.date().unwrap_or_else(|| jiff::Timestamp::UNIX_EPOCH.into());
        let mut copied = NewRecord::new(record.kind(), date).stream(&[], &mut block, len);
        self.append(&header, &mut copied).map(|_| ())
    }
}

/// A block or body, in memory or in a temporary file, ready to be read twice.
pub(crate) fn spool(from: &mut impl Read) -> io::Result<(SpooledTempFile, u64)> {
    let mut spool = SpooledTempFile::new(IN_MEMORY_BYTES);
    let len = io::copy(from, &mut spool)?;
    spool.seek(SeekFrom::Start(0))?;
    Ok((spool, len))
}

/// The header with proper line ends and the right length. Fields keep their order and their spelling.
fn rebuilt(record: &Record<'_>, len: u64) -> Vec<u8> {
    let version = record.header().raw().split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let mut out = if version.starts_with(b"WARC/") { version.to_vec() } else { b"WARC/1.0".to_vec() };
    out.extend_from_slice(b"\r\n");
    let mut stated = false;
    for (name, value) in record.header().iter() {
        let length = name.eq_ignore_ascii_case(b"Content-Length");
        if length && stated {
            continue;
        }
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        if length {
            stated = true;
            out.extend_from_slice(len.to_string().as_bytes());
        } else {
            // A lone CR inside a value would end the line for some readers.
            out.extend(value.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        }
        out.extend_from_slice(b"\r\n");
    }
    if !stated {
        out.extend_from_slice(format!("Content-Length: {len}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}
