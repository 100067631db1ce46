//! Where the checksum of a file is kept: in an extended attribute of it, or, on disks without such and where the settings
//! ask for it, in a file beside.
//!
//! The checksum of `<partition>/X` is then in `<partition>/.swap-sums/X`, as `sha512sum` writes it, so that without any of
//! our software `cd <partition> && find .swap-sums -type f -exec cat {} + | sha512sum --check` compares everything. A name
//! and its checksum are given and taken under one lock: otherwise an upload that follows a removal might be left with the
//! checksum of what was removed.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use uuid::Uuid;

use crate::digest::Sum;
use crate::partition::Partition;
use crate::tree::{BENEATH, DIRECTORY, make_below};

/// The attribute, with 64 raw bytes. The short name is on purpose: with it the attribute fits into the inode of ext4 as
/// made by default, `user.swap.sha512` would cost each file a block of its own.
const ATTRIBUTE: &str = "user.sha512";
const FOLDER: &str = ".swap-sums";
/// Hexadecimal digits of a SHA-512.
const DIGITS: usize = 128;

/// The checksums of a partition that are kept in files.
#[derive(Debug, Default)]
pub(crate) struct SideSums {
    /// Kept there even where attributes would do.
    wanted: bool,
    /// The folder, once there is one.
    root: OnceLock<OwnedFd>,
    together: Mutex<()>,
}

/// The checksum in the attribute of a file, if it has one.
pub(crate) fn in_attribute(file: &OwnedFd) -> Option<Sum> {
    let mut sum = [0; 64];
    let known = rustix::fs::fgetxattr(file, ATTRIBUTE, &mut sum).is_ok_and(|bytes| bytes == 64);
    known.then_some(Sum(sum))
}

impl SideSums {
    pub(crate) fn new(partition: &OwnedFd, wanted: bool) -> Self {
        let sums = Self { wanted, ..Self::default() };
        if let Ok(root) = rustix::fs::openat2(partition, FOLDER, DIRECTORY, Mode::empty(), BENEATH) {
            let _ = sums.root.set(root);
        }
        sums
    }

    /// Notes the checksum in the attribute of a file; false when it has to be kept beside.
    pub(crate) fn in_attribute(&self, file: &File, sum: &Sum) -> io::Result<bool> {
        if self.wanted {
            return Ok(false);
        }
        match rustix::fs::fsetxattr(file, ATTRIBUTE, &sum.0, XattrFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSPC) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether checksums are in files here.
    pub(crate) fn any(&self) -> bool {
        self.root.get().is_some()
    }

    /// Held while a name and its checksum are given or taken.
    pub(crate) fn together(&self) -> MutexGuard<'_, ()> {
        self.together.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The checksum kept beside the file at `path` in the partition.
    pub(crate) fn read(&self, path: &str) -> io::Result<Option<Sum>> {
        let Some(root) = self.root.get() else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        // A mark for escaped names comes before the digits.
        match file.take(1 + DIGITS as u64).read_to_string(&mut text) {
            Err(error) if error.kind() != ErrorKind::InvalidData => return Err(error),
            _ => {}
        }
        let digits = text.trim_start_matches('\\').get(..DIGITS);
        Ok(digits.and_then(|digits| digits.parse().ok()))
    }

    /// Keeps a checksum beside the file at `path`: durable, and in the place of an earlier one.
    pub(crate) fn write(&self, partition: &Partition, path: &str, sum: &Sum) -> io::Result<()> {
        if self.root.get().is_none() {
            let made = make_below(partition, partition.dir(), "", FOLDER)?;
            if self.root.set(made).is_ok() && !self.wanted {
                let root = partition.root.display();
                tracing::warn!(partition = %root, "the disk keeps no attributes: checksums are kept in {FOLDER}");
            }
        }
        let Some(root) = self.root.get() else { return Err(ErrorKind::NotFound.into()) };
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = make_below(partition, root, FOLDER, folder)?;
        let aside = Uuid::new_v4().to_string();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file =
            File::from(rustix::fs::openat(partition.temp(), &aside, flags, Mode::from_raw_mode(0o644))?);
        let written = file.write_all(line(path, sum).as_bytes()).and_then(|()| partition.sync_bytes(&file));
        let named = written.and_then(|()| Ok(rustix::fs::renameat(partition.temp(), &aside, &folder, name)?));
        if named.is_err() {
            let _ = rustix::fs::unlinkat(partition.temp(), &aside, AtFlags::empty());
        }
        named?;
        let kept = format!("{FOLDER}/{path}");
        partition.sync_new(&folder, &kept).inspect_err(|error| {
            partition.withdraw(&folder, &kept, AtFlags::empty(), error);
        })
    }

    /// Removes the checksum of a file that never came to be.
    pub(crate) fn forget(&self, path: &str) {
        if let Some(root) = self.root.get() {
            let _ = rustix::fs::unlinkat(root, path, AtFlags::empty());
        }
    }

    /// Forgets the checksum of a file that is about to go.
    pub(crate) fn remove(&self, partition: &Partition, path: &str) -> io::Result<()> {
        let Some(root) = self.root.get() else { return Ok(()) };
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = match rustix::fs::openat2(root, folder, DIRECTORY, Mode::empty(), BENEATH) {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) => partition.sync(folder),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the checksums of a whole tree to the attic, beside the tree.
    pub(crate) fn to_attic(&self, namespace: &str, attic: &OwnedFd, name: &str) -> io::Result<()> {
        let Some(root) = self.root.get() else { return Ok(()) };
        match rustix::fs::renameat(root, namespace, attic, format!("{name}.sums")) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the folder of checksums at `path`, which is left where it holds any.
    pub(crate) fn prune(&self, path: &str) {
        if let Some(root) = self.root.get() {
            let _ = rustix::fs::unlinkat(root, path, AtFlags::REMOVEDIR);
        }
    }
}

/// A line of `sha512sum`, which marks and escapes names with a backslash in them.
fn line(path: &str, sum: &Sum) -> String {
    if path.contains('\\') {
        return format!("\\{sum}  {}\n", path.replace('\\', "\\\\"));
    }
    format!("{sum}  {path}\n")
}
