//! Room on disk for responses that are too long for memory. Space is reserved before bytes are read, so that what was
//! read can be written: a full disk cuts a response where it is, and loses nothing of it.
//!
//! A long response is on the disk twice at a time: as it came and as packed records, then as packed records and in its
//! WARC file. So the room for one more copy is kept free from the first byte until the records are in their file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

/// A folder for long responses. Clones share what they promise.
#[derive(Clone, Debug)]
pub(super) struct ScratchFolder {
    path: PathBuf,
    /// Bytes that stay free on its disk.
    min_free: u64,
    promised: Promised,
}

/// Free bytes of the disk that are promised to copies still to be written.
type Promised = Arc<Mutex<u64>>;

/// A response on disk. The file has no name: it is gone with the process, whatever happens.
#[derive(Debug)]
pub(super) struct ScratchFile {
    file: File,
    len: u64,
    copy: CopyRoom,
}

/// Room on the disk for the next copy of a long response. No other response takes it until this is dropped.
#[derive(Debug)]
pub struct CopyRoom {
    promised: Promised,
    bytes: u64,
}

impl ScratchFolder {
    pub(super) fn new(path: &Path, min_free: u64) -> ScratchFolder {
        ScratchFolder { path: path.to_owned(), min_free, promised: Promised::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A file with room for `bytes` and for their copy, or none if the disk has not so many to spare.
    pub(super) fn create(&self, bytes: u64) -> io::Result<Option<ScratchFile>> {
        if !self.has_room(bytes, lock(&self.promised).saturating_add(copy_bytes(bytes))) {
            return Ok(None);
        }
        let copy = CopyRoom { promised: Arc::clone(&self.promised), bytes: 0 };
        let mut file = ScratchFile { file: tempfile::tempfile_in(&self.path)?, len: 0, copy };
        Ok(self.reserve(&mut file, bytes)?.then_some(file))
    }

    /// Whether `file` has room for `bytes` more, and for a copy of all of it.
    pub(super) fn reserve(&self, file: &mut ScratchFile, bytes: u64) -> io::Result<bool> {
        // Held until the space is taken: two that ask at once must not be promised the same bytes.
        let mut promised = lock(&self.promised);
        let copy = copy_bytes(file.len.saturating_add(bytes));
        let all = (*promised - file.copy.bytes).saturating_add(copy);
        if !self.has_room(bytes, all) {
            return Ok(false);
        }
        match fallocate(&file.file, FallocateFlags::KEEP_SIZE, file.len, bytes) {
            // Not every file system can; the free space above must do there.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                (*promised, file.copy.bytes) = (all, copy);
                Ok(true)
            }
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Free bytes that are promised to no copy and need not stay free, with `min_free` in place of a lower reserve.
    pub(super) fn spare_bytes(&self, min_free: u64) -> u64 {
        let reserve = lock(&self.promised).saturating_add(self.min_free.max(min_free));
        // A disk that cannot be asked is tried.
        free_space(&self.path).map_or(u64::MAX, |free| free.saturating_sub(reserve))
    }

    fn has_room(&self, bytes: u64, promised: u64) -> bool {
        let wanted = self.min_free.saturating_add(bytes).saturating_add(promised);
        // A disk that cannot be asked is tried.
        free_space(&self.path).is_none_or(|free| free >= wanted)
    }
}

/// The most that the records of a response of `bytes` take. What cannot be compressed grows by some bytes in every
/// 16 KiB; the request and the metadata with all links of a page are beside it.
fn copy_bytes(bytes: u64) -> u64 {
    bytes.saturating_add(bytes >> 8).saturating_add(1 << 20)
}

fn lock(promised: &Promised) -> MutexGuard<'_, u64> {
    promised.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl CopyRoom {
    /// No room at all, on no disk.
    pub(super) fn none() -> CopyRoom {
        CopyRoom { promised: Promised::default(), bytes: 0 }
    }
}

impl Drop for CopyRoom {
    fn drop(&mut self) {
        *lock(&self.promised) -= self.bytes;
    }
}

impl ScratchFile {
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The file, complete, and the room for its copy.
    pub(super) fn into_parts(self) -> (File, CopyRoom) {
        (self.file, self.copy)
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
        let roomy = ScratchFolder::new(&path, 0);
        let mut file = roomy.create(1 << 20).unwrap().unwrap();
        file.append(b"hello").unwrap();
        assert!(roomy.reserve(&mut file, 1 << 20).unwrap());
        assert_eq!(file.len, 5);
        let full = full_of(&roomy);
        assert!(full.create(1).unwrap().is_none() && !full.reserve(&mut file, 1).unwrap());
        // More than any disk has, with nothing to be left free.
        assert!(roomy.create(1 << 60).unwrap().is_none());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        drop(folder);
        assert!(roomy.create(1).is_err(), "a folder that is gone is a fault of our own");
    }

    fn full_of(folder: &ScratchFolder) -> ScratchFolder {
        ScratchFolder { min_free: u64::MAX, ..folder.clone() }
    }

    #[test]
    fn the_room_for_a_copy_is_kept_until_the_copy_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path(), 0);
        let promised = || *lock(&scratch.promised);
        let mut one = scratch.create(1000).unwrap().unwrap();
        assert_eq!(promised(), copy_bytes(1000));
        one.append(&[0; 600]).unwrap();
        assert!(scratch.reserve(&mut one, 1000).unwrap());
        assert_eq!(promised(), copy_bytes(1600));
        let other = scratch.create(500).unwrap().unwrap();
        assert_eq!(promised(), copy_bytes(1600) + copy_bytes(500));
        // What is refused is not promised.
        let free = free_space(folder.path()).unwrap();
        assert!(!scratch.reserve(&mut one, free / 8 * 5).unwrap(), "it fits, but not twice");
        assert!(scratch.create(free / 8 * 5).unwrap().is_none());
        assert_eq!(promised(), copy_bytes(1600) + copy_bytes(500));
        let (file, room) = one.into_parts();
        drop((file, other));
        assert_eq!(promised(), copy_bytes(1600));
        // What is promised, or is to stay free, is not to spare; the disk has other users.
        let (all, promise) = (scratch.spare_bytes(0), promised());
        assert!(all.abs_diff(free - promise) < free / 2, "{all} of {free}");
        assert_eq!((scratch.spare_bytes(u64::MAX), full_of(&scratch).spare_bytes(0)), (0, 0));
        drop(room);
        assert_eq!(promised(), 0);
    }
}
