//! The packed records of one URL, ready to be appended to a file: in memory, or in a scratch file when large.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use warc::write::{NewRecord, Press, RecordId, Written};

use crate::fetch::CopyRoom;

/// Parcels grow in memory up to this many bytes, then go to a scratch file. Hundreds of workers may each hold
/// one; most are a few kilobytes.
const IN_MEMORY_BYTES: usize = 1 << 20;

/// The folder for what does not fit into memory. Whatever lies there when a crawl starts is of no use.
#[derive(Clone, Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Uses `folder`, empty.
    pub fn open(folder: &Path) -> io::Result<Scratch> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(folder)?,
        }
        Ok(Scratch(folder.to_owned()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file without a name: it is gone when it is closed, also by a crash.
    pub fn file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.0)
    }

    /// Tries whether the disk takes so many bytes.
    pub fn takes(&self, bytes: usize) -> io::Result<()> {
        let mut file = self.file()?;
        file.write_all(&vec![1; bytes])?;
        file.sync_data()
    }
}

/// Packed records that belong together.
#[derive(Debug)]
pub struct Parcel {
    small: Vec<u8>,
    large: Option<File>,
    scratch: Scratch,
    length: u64,
    plain: u64,
    records: u64,
    warcinfo: Option<RecordId>,
    /// Room on the disk for the WARC file to grow by it, if it is large.
    copy: Option<CopyRoom>,
}

impl Parcel {
    /// An empty parcel for the file that begins with `warcinfo`.
    pub fn new(scratch: &Scratch, warcinfo: Option<RecordId>) -> Parcel {
        Parcel {
            small: Vec::new(),
            large: None,
            scratch: scratch.clone(),
            length: 0,
            plain: 0,
            records: 0,
            warcinfo,
            copy: None,
        }
    }

    /// A parcel that cannot be read back, as from a disk that fails.
    #[cfg(test)]
    pub(crate) fn broken(scratch: &Scratch) -> Parcel {
        let path = scratch.path().join("broken");
        let large = File::create(path).ok();
        Parcel { large, length: 10, records: 1, ..Parcel::new(scratch, None) }
    }

    /// Packs a record behind the others. The offset in the answer counts from the start of the parcel.
    pub fn add(&mut self, press: &mut Press, record: &mut NewRecord<'_>) -> io::Result<Written> {
        let offset = self.length;
        let written = press.pack(record, self.warcinfo, self)?;
        self.records += 1;
        self.plain += written.plain;
        Ok(Written { offset, ..written })
    }

    /// The warcinfo record its records name. They can only go into that file.
    pub fn warcinfo(&self) -> Option<RecordId> {
        self.warcinfo
    }

    /// Keeps room on the disk until it is dropped, which is when it has been appended.
    pub fn keep_room(&mut self, copy: Option<CopyRoom>) {
        self.copy = copy;
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes before packing.
    pub fn plain(&self) -> u64 {
        self.plain
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The packed bytes, from the start.
    pub fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        match &mut self.large {
            None => Ok(Box::new(self.small.as_slice())),
            Some(file) => {
                file.seek(SeekFrom::Start(0))?;
                Ok(Box::new(file))
            }
        }
    }
}

impl Write for Parcel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.large.is_none() && self.small.len() + bytes.len() > IN_MEMORY_BYTES {
            let mut file = self.scratch.file()?;
            file.write_all(&self.small)?;
            self.small = Vec::new();
            self.large = Some(file);
        }
        let n = if let Some(file) = &mut self.large {
            file.write(bytes)?
        } else {
            self.small.extend_from_slice(bytes);
            bytes.len()
        };
        self.length += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use warc::write::Compression;
    use warc::{Date, Reader};

    use super::*;

    #[test]
    fn small_and_large_parcels_hold_the_same_records() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(&folder.path().join("scratch")).unwrap();
        let mut press = Press::new(Compression::Gzip(1)).unwrap();
        let date = Date::from(jiff::Timestamp::UNIX_EPOCH);
        let noise: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for size in [10, noise.len()] {
            let mut parcel = Parcel::new(&scratch, None);
            for uri in ["http://e.org/1", "http://e.org/2"] {
                let mut record = NewRecord::resource(uri, date, "text/plain", &noise[..size]);
                parcel.add(&mut press, &mut record).unwrap();
            }
            let mut bytes = Vec::new();
            parcel.reader().unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, parcel.length());
            let mut reader = Reader::from_bytes(&bytes[..]).unwrap();
            let mut lengths = Vec::new();
            while let Some(record) = reader.next().unwrap() {
                lengths.push(record.content_length().unwrap());
            }
            assert_eq!(lengths, [size as u64; 2]);
        }
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "scratch files have no names");
    }
}
