//! The bytes of an answer: in memory while they are few, in a file without a name when they are many.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use super::scratch::CopyRoom;

/// The bytes of an answer.
#[derive(Debug)]
pub struct Spool {
    store: Store,
    /// Of one in a file.
    copy: Option<CopyRoom>,
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    /// The file has no name: it is gone with the process, whatever happens.
    File(File, u64),
}

impl Spool {
    pub(super) fn memory(bytes: Vec<u8>) -> Spool {
        Spool { store: Store::Memory(bytes), copy: None }
    }

    pub(super) fn file(file: File, len: u64, copy: CopyRoom) -> Spool {
        Spool { store: Store::File(file, len), copy: Some(copy) }
    }

    /// The same bytes in a file.
    #[cfg(test)]
    pub(crate) fn moved_to_disk(self) -> Spool {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, self.bytes().unwrap_or_default()).unwrap();
        Spool::file(file, self.len(), CopyRoom::none())
    }

    /// Room on the disk for its records, if it is there itself. To be kept until they are in their WARC file.
    pub fn take_copy_room(&mut self) -> Option<CopyRoom> {
        self.copy.take()
    }

    pub fn len(&self) -> u64 {
        match &self.store {
            Store::Memory(bytes) => bytes.len() as u64,
            Store::File(_, len) => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.store {
            Store::Memory(bytes) => Some(bytes),
            Store::File(..) => None,
        }
    }

    /// Reads the bytes from the first one on, as often as wanted; one reader at a time.
    pub fn reader(&mut self) -> io::Result<SpoolReader<'_>> {
        match &mut self.store {
            Store::Memory(bytes) => Ok(SpoolReader(Source::Memory(Cursor::new(bytes)))),
            Store::File(file, _) => {
                file.seek(SeekFrom::Start(0))?;
                Ok(SpoolReader(Source::File(file)))
            }
        }
    }
}

/// Reads a [`Spool`].
#[derive(Debug)]
pub struct SpoolReader<'a>(Source<'a>);

#[derive(Debug)]
enum Source<'a> {
    Memory(Cursor<&'a [u8]>),
    File(&'a mut File),
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Source::Memory(bytes) => bytes.read(buf),
            Source::File(file) => file.read(buf),
        }
    }
}

impl Seek for SpoolReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Source::Memory(bytes) => bytes.seek(to),
            Source::File(file) => file.seek(to),
        }
    }
}
