//! Room on disk for responses that are too long for memory. Space is reserved before bytes are read, so that what was
//! read can be written: a full disk cuts a response where it is, and loses nothing of it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

/// A folder for long responses.
#[derive(Clone, Debug)]
pub(super) struct ScratchFolder {
    pub(super) path: PathBuf,
    /// Bytes that stay free on its disk.
    pub(super) min_free: u64,
}

/// A response on disk. The file has no name: it is gone with the process, whatever happens.
#[derive(Debug)]
pub(super) struct ScratchFile {
    file: File,
    len: u64,
}

impl ScratchFolder {
    /// A file with room for `bytes`, or none if the disk has not so many to spare.
    pub(super) fn create(&self, bytes: u64) -> io::Result<Option<ScratchFile>> {
        if !self.has_room(bytes) {
            return Ok(None);
        }
        let file = ScratchFile { file: tempfile::tempfile_in(&self.path)?, len: 0 };
        Ok(self.reserve(&file, bytes)?.then_some(file))
    }

    /// Whether `file` has room for `bytes` more.
    pub(super) fn reserve(&self, file: &ScratchFile, bytes: u64) -> io::Result<bool> {
        if !self.has_room(bytes) {
            return Ok(false);
        }
        match fallocate(&file.file, FallocateFlags::KEEP_SIZE, file.len, bytes) {
            // Not every file system can; the free space above must do there.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(true),
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        // A disk that cannot be asked is tried.
        free_space(&self.path).is_none_or(|free| free >= self.min_free.saturating_add(bytes))
    }
}

impl ScratchFile {
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn into_file(self) -> File {
        self.file
    }
}

fn free_space(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_there_until_the_reserve_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let roomy = ScratchFolder { path: path.clone(), min_free: 0 };
        let mut file = roomy.create(1 << 20).unwrap().unwrap();
        file.append(b"hello").unwrap();
        assert!(roomy.reserve(&file, 1 << 20).unwrap());
        assert_eq!(file.len, 5);
        let full = ScratchFolder { path: path.clone(), min_free: u64::MAX };
        assert!(full.create(1).unwrap().is_none() && !full.reserve(&file, 1).unwrap());
        // More than any disk has, with nothing to be left free.
        assert!(roomy.create(1 << 60).unwrap().is_none());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        drop(folder);
        assert!(roomy.create(1).is_err(), "a folder that is gone is a fault of our own");
    }
}
