//! A file being written aside. Gone when dropped, unless it was published.

use std::fs::{self, File, Permissions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use grange_model::{Algorithm, Checksums, FileName};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, ioctl_ficlone};
use rustix::io::Errno;

use super::{Base, Inner, Wanted, forget};
use crate::blob::Stored;
use crate::check;
use crate::digest::{By, sum_file};
use crate::error::Error;

/// Files from here on get their space at once: the disk says early that it is full, and keeps them in one piece.
const RESERVE_FROM_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Temp<'a> {
    inner: &'a Inner,
    name: &'a FileName,
    /// Bases still to be tried, best first.
    untried: Vec<usize>,
    size: Option<u64>,
    wanted: &'a Wanted,
    base: usize,
    path: PathBuf,
    file: File,
}

impl<'a> Temp<'a> {
    /// On the first base that has room; [`Error::Full`] when none has.
    pub(super) fn new(
        inner: &'a Inner,
        name: &'a FileName,
        size: Option<u64>,
        wanted: &'a Wanted,
    ) -> Result<Self, Error> {
        let free: Vec<_> = inner.rooms().iter().map(|room| room.map(|room| room.free)).collect();
        let mut untried = inner.bounds.candidates(inner.placement, &free, size);
        let (base, path, file) = next(inner, name, &mut untried, size)?;
        Ok(Self { inner, name, untried, size, wanted, base, path, file })
    }

    /// A second name for `from`, where that is possible: on the same disk, allowed, and not through a link.
    pub(super) fn link(
        inner: &'a Inner,
        name: &'a FileName,
        from: &Path,
        wanted: &'a Wanted,
    ) -> Option<Self> {
        if fs::symlink_metadata(from).ok()?.is_symlink() {
            return None;
        }
        inner.bases.iter().enumerate().find_map(|(base, at)| {
            let path = at.temp.join(uuid::Uuid::new_v4().simple().to_string());
            fs::hard_link(from, &path).ok()?;
            let Ok(file) = File::open(&path) else {
                let _ = fs::remove_file(&path);
                return None;
            };
            // Keeps a process that opens this base meanwhile from clearing the name away.
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
            Some(Self { inner, name, untried: Vec::new(), size: None, wanted, base, path, file })
        })
    }

    /// Shares the blocks of `from`, on disks that can.
    pub(super) fn clone_from(&self, from: &File) -> bool {
        ioctl_ficlone(&self.file, from).is_ok()
    }

    /// Writes at `offset`, where everything before was written. A disk that runs full hands over to the next.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        loop {
            match self.file.write_all_at(bytes, offset) {
                Ok(()) => return Ok(()),
                Err(error) if is_full(&error) => self.move_on(offset)?,
                Err(error) => return Err(Error::io("write", &self.path)(error)),
            }
        }
    }

    /// Starts again on the next base with a copy of what was written so far.
    fn move_on(&mut self, written: u64) -> Result<(), Error> {
        tracing::warn!(base = %self.base().path.display(), "this disk is full, going on with the next");
        let size = Some(self.size.unwrap_or(written));
        let (base, path, file) = next(self.inner, self.name, &mut self.untried, size)?;
        let old = std::mem::replace(&mut self.path, path);
        let from = std::mem::replace(&mut self.file, file);
        self.base = base;
        let _ = fs::remove_file(&old);
        let copied = copy(&from, &self.file, written);
        match copied {
            Err(error) if is_full(&error) => self.move_on_from(&from, written),
            copied => copied.map_err(Error::io("write", &self.path)),
        }
    }

    /// The same when the next one was full as well; `from` still holds the bytes, without a name.
    fn move_on_from(&mut self, from: &File, written: u64) -> Result<(), Error> {
        let _ = fs::remove_file(&self.path);
        let (base, path, file) = next(self.inner, self.name, &mut self.untried, Some(written))?;
        (self.base, self.path, self.file) = (base, path, file);
        match copy(from, &self.file, written) {
            Err(error) if is_full(&error) => self.move_on_from(from, written),
            copied => copied.map_err(Error::io("write", &self.path)),
        }
    }

    fn base(&self) -> &Base {
        &self.inner.bases[self.base]
    }

    /// The sums of what lies here, by the implementation used on the way in.
    pub(super) fn sum(&mut self, algorithms: &[Algorithm]) -> Result<(u64, Checksums), Error> {
        let sum = |file: &mut File| {
            file.seek(SeekFrom::Start(0))?;
            sum_file(&mut self.wanted.reader(file), By::First, algorithms, &self.inner.buffers)
        };
        sum(&mut self.file).map_err(Error::io("read", &self.path))
    }

    pub(super) fn size(&self) -> Result<u64, Error> {
        self.file.metadata().map(|data| data.len()).map_err(Error::io("look at", &self.path))
    }

    /// Makes the bytes durable, reads them back from the disk, and gives them their name. Where the name came up
    /// meanwhile, what lies there decides. `assumed`: the deciding checksum is the sender's word so far.
    pub(super) fn publish(mut self, size: u64, checksums: Checksums, assumed: bool) -> Result<Stored, Error> {
        let failed = Error::io("sync", &self.path);
        let settle = || {
            // A file taken over by a link brings its own rights.
            self.file.set_permissions(Permissions::from_mode(0o444))?;
            self.file.sync_all()
        };
        settle().map_err(failed)?;
        #[cfg(test)]
        if self.base().faults.take(super::base::Fault::WrittenByte) {
            super::tests::flip(&self.path);
        }
        if let Err(error) = self.read_back(size, &checksums) {
            // The sender's fault, or the disk's? The other implementation tells.
            if let (true, Some((algorithm, _))) = (assumed, checksums.strongest()) {
                let (_, found) = self.sum(&[algorithm])?;
                check::received(self.name, None, size, Some(&checksums.only(&[algorithm])), &found)?;
            }
            return Err(error);
        }
        let _lock = self.inner.lock(self.name);
        if let Some(stored) = self.inner.known(self.name, &checksums, self.wanted)? {
            return Ok(stored);
        }
        self.wanted.still().map_err(|source| Error::Source { name: self.name.clone(), source })?;
        if self.base().publish(&self.path, self.name)? {
            return Ok(Stored { size, checksums, already: false });
        }
        // Another process was faster.
        let known = self.inner.known(self.name, &checksums, self.wanted)?;
        known.ok_or_else(|| {
            Error::io("move into place", &self.path)(io::Error::from(io::ErrorKind::AlreadyExists))
        })
    }

    fn read_back(&mut self, size: u64, written: &Checksums) -> Result<(), Error> {
        forget(&self.file);
        let strongest: Vec<_> = written.algorithms().take(1).collect();
        let mut file = File::open(&self.path).map_err(Error::io("open", &self.path))?;
        let read = sum_file(&mut self.wanted.reader(&mut file), By::Second, &strongest, &self.inner.buffers);
        let read = read.map_err(Error::io("read back", &self.path))?;
        check::read_back(self.name, &self.base().path.display().to_string(), (size, written), read)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        // After publishing, the path is gone already; what stays behind is cleared at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

/// A temporary file on the next base that takes it.
fn next(
    inner: &Inner,
    name: &FileName,
    untried: &mut Vec<usize>,
    size: Option<u64>,
) -> Result<(usize, PathBuf, File), Error> {
    while !untried.is_empty() {
        let base = untried.remove(0);
        let made = inner.bases[base].temp_file();
        let (path, file) = match made {
            Ok(made) => made,
            Err(error) if is_full(&error) => continue,
            Err(error) => return Err(Error::io("write in", &inner.bases[base].temp)(error)),
        };
        if reserve(&file, size) {
            return Ok((base, path, file));
        }
        let _ = fs::remove_file(&path);
    }
    Err(Error::Full { name: name.clone(), place: inner.place.clone(), needed: size })
}

/// Sets space aside; false when there is none.
fn reserve(file: &File, size: Option<u64>) -> bool {
    let Some(size) = size.filter(|size| *size >= RESERVE_FROM_BYTES) else { return true };
    // Without the flag the file would have its final length before its bytes are there.
    let reserved = fallocate(file, FallocateFlags::KEEP_SIZE, 0, size);
    !matches!(reserved, Err(Errno::NOSPC | Errno::DQUOT))
}

fn copy(from: &File, to: &File, bytes: u64) -> io::Result<()> {
    let mut from = from;
    from.seek(SeekFrom::Start(0))?;
    let mut to_writer = to;
    let copied = io::copy(&mut io::Read::take(from, bytes), &mut to_writer)?;
    if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}
