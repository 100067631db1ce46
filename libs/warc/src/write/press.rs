//! Packing away from the file: many threads pack records, one appends them.
//!
//! Packing is most of the work of writing. A [`Press`] does it anywhere, into memory or a scratch file, and
//! [`WarcFile::append_packed`] copies the result.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::file::{FileOptions, WarcFile, Written, open_path};
use super::pack::{Compression, Packer, RECORD_END};
use super::record::NewRecord;
use super::recover::recover;
use super::{RecordId, file};

/// How much is copied at a time: few calls for large records, little memory.
const COPY_BYTES: u64 = 256 << 10;

/// Packs records for files of one compression. One per thread.
#[derive(Debug)]
pub struct Press {
    packer: Packer,
    header: Vec<u8>,
}

impl Press {
    pub fn new(compression: Compression) -> io::Result<Press> {
        Ok(Press { packer: Packer::new(compression)?, header: Vec::new() })
    }

    /// Packs a record into `out`. `warcinfo` is that of the file it is meant for. The offset in the answer
    /// counts from where `out` stood.
    pub fn pack(
        &mut self,
        record: &mut NewRecord<'_>,
        warcinfo: Option<RecordId>,
        out: &mut dyn Write,
    ) -> io::Result<Written> {
        record.digest()?;
        self.header.clear();
        record.header(warcinfo, &mut self.header)?;
        let mut counted = Counted { out, count: 0 };
        self.packer.write(&self.header, record, &mut counted)?;
        Ok(Written {
            id: record.record_id(),
            offset: 0,
            length: counted.count,
            plain: self.header.len() as u64 + record.block_len() + RECORD_END.len() as u64,
            payload_digest: record.payload(),
        })
    }
}

impl WarcFile {
    /// Appends `len` bytes of whole records that a [`Press`] packed with this file's compression and
    /// warcinfo. Answers where they start. If that fails the file is as it was before.
    pub fn append_packed(&mut self, packed: &mut dyn Read, len: u64, records: u64) -> io::Result<u64> {
        let offset = self.size;
        let mut buf = vec![0; len.min(COPY_BYTES) as usize];
        let mut left = len;
        while left > 0 {
            let want = left.min(COPY_BYTES) as usize;
            let copied = packed.read_exact(&mut buf[..want]).and_then(|()| self.file.write_all(&buf[..want]));
            if let Err(error) = copied {
                self.file.set_len(offset)?;
                self.file.seek(SeekFrom::Start(offset))?;
                return Err(error);
            }
            left -= want as u64;
        }
        self.grown(len, records)?;
        Ok(offset)
    }

    /// Goes on with a file that was left open, after cutting it at `end`, which its owner knows to be the end
    /// of its record number `records`. A file that is shorter is cut at its last whole record.
    pub fn reopen_at(
        path: impl AsRef<Path>,
        end: u64,
        records: u64,
        options: &FileOptions,
    ) -> io::Result<WarcFile> {
        let path = path.as_ref();
        let open = open_path(path);
        let mut handle = OpenOptions::new().write(true).open(&open)?;
        let (end, records) = if handle.metadata()?.len() >= end {
            handle.set_len(end)?;
            (end, records)
        } else {
            let recovered = recover(&open)?;
            (recovered.kept, recovered.records)
        };
        handle.seek(SeekFrom::Start(end))?;
        WarcFile::resumed(handle, path, end, records, file::warcinfo_of(&open)?, options)
    }
}

struct Counted<'a> {
    out: &'a mut dyn Write,
    count: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.count += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
