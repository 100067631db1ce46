//! New bytes: written aside, sealed with their checksum, given their name in one step.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use uuid::Uuid;

use super::{Found, Tree, another_name};
use crate::digest::Sum;
use crate::name::LocalPath;
use crate::partition::Partition;

/// How publishing ended; in the first case only the new bytes are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    New,
    /// The name is taken.
    Taken(Found),
}

/// Bytes on their way in: no name leads to them yet.
#[derive(Debug)]
pub struct Staged {
    pub file: File,
    /// The name in the folder for such, where the file system cannot do without.
    name: Option<String>,
    /// The checksum, where it could not be noted in an attribute.
    beside: Option<Sum>,
    partition: Arc<Partition>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.partition.temp(), name, AtFlags::empty());
        }
    }
}

impl Staged {
    /// Keeps the checksum and the time with the bytes and syncs all of it.
    pub fn seal(&mut self, sum: &Sum, modified: Option<i64>) -> io::Result<()> {
        self.beside = if self.partition.sums.in_attribute(&self.file, sum)? { None } else { Some(*sum) };
        if let Some(seconds) = modified.and_then(|seconds| u64::try_from(seconds).ok()) {
            self.file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))?;
        }
        self.partition.sync_bytes(&self.file)
    }
}

impl Tree {
    /// Room for new bytes that nobody sees. A file without a name where the file system can do that: then a crash
    /// leaves nothing to clean up.
    pub fn stage(&self) -> io::Result<Staged> {
        let partition = Arc::clone(&self.partition);
        let mode = Mode::from_raw_mode(0o644);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(partition.temp(), ".", flags, mode) {
            Ok(fd) => Ok(Staged { file: File::from(fd), name: None, beside: None, partition }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let name = Uuid::new_v4().to_string();
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
                let fd = rustix::fs::openat(partition.temp(), &name, flags, mode)?;
                Ok(Staged { file: File::from(fd), name: Some(name), beside: None, partition })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives synced bytes their name: the one atomic step, which exactly one of any number of writers makes.
    /// Not durable before [`Tree::sync_new`].
    pub fn publish(&self, staged: &Staged, path: &LocalPath, size: u64) -> io::Result<Published> {
        self.partition.may_change()?;
        let parent = self.open_parent(path)?;
        let sums = &self.partition.sums;
        let _together = staged.beside.as_ref().map(|_| sums.together());
        let linked = match &staged.name {
            None => {
                let from = format!("/proc/self/fd/{}", staged.file.as_raw_fd());
                rustix::fs::linkat(rustix::fs::CWD, from, &parent, path.file_name(), AtFlags::SYMLINK_FOLLOW)
            }
            Some(name) => {
                let temp = self.partition.temp();
                rustix::fs::linkat(temp, name, &parent, path.file_name(), AtFlags::empty())
            }
        };
        match linked {
            Ok(()) => {
                self.count(1, size.cast_signed());
                if let Some(sum) = &staged.beside
                    && let Err(error) = sums.write(&self.partition, &self.in_partition(path.as_str()), sum)
                {
                    self.withdraw_held(path, size, &error);
                    return Err(error);
                }
                Ok(Published::New)
            }
            Err(Errno::EXIST) => self.find(path).map(Published::Taken),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts synced bytes in the place of a file, which goes to the attic, in one step: at every moment the name leads to
    /// the one or the other. Durable when this returns. The checksum kept beside it stays: it is that of the new bytes.
    pub(crate) fn replace(&self, staged: &Staged, path: &LocalPath, day: &str, size: u64) -> io::Result<()> {
        self.partition.may_change()?;
        let parent = self.open_parent(path)?;
        let before = rustix::fs::statat(&parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW)?.st_size;
        let (attic, _) = self.attic_for(path, day)?;
        let link = |name: &str| rustix::fs::linkat(&parent, path.file_name(), &attic, name, AtFlags::empty());
        match link(path.file_name()) {
            Err(Errno::EXIST) => link(&another_name(path.file_name()))?,
            other => other?,
        }
        self.partition.sync(&attic)?;
        let temp = self.partition.temp();
        let aside = if let Some(name) = &staged.name {
            name.clone()
        } else {
            let (from, name) =
                (format!("/proc/self/fd/{}", staged.file.as_raw_fd()), Uuid::new_v4().to_string());
            rustix::fs::linkat(rustix::fs::CWD, from, temp, &name, AtFlags::SYMLINK_FOLLOW)?;
            name
        };
        if let Err(error) = rustix::fs::renameat(temp, &aside, &parent, path.file_name()) {
            let _ = rustix::fs::unlinkat(temp, &aside, AtFlags::empty());
            return Err(error.into());
        }
        self.count(0, size.cast_signed() - before);
        self.partition.sync(parent)
    }
}
