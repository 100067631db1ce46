//! One slice on one disk: a tree of plain files below `<partition>/<namespace>`.
//!
//! Every call resolves beneath the slice's own directory handle, without links of any kind, so no name leads outside.
//! Only regular files and directories exist here; anything else is reported by the audit and never served. All calls
//! block; callers on async threads use the blocking pool, or [`Tree::open_cached`], which never waits for a disk.

mod staged;
mod walk;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::digest::Sum;
use crate::error::Error;
use crate::name::{LocalPath, Namespace};
use crate::partition::{ATTIC, Partition};
use crate::pending::PendingName;
use crate::sums;

pub use staged::{Published, Staged};
pub use walk::{Entry, Met};

pub(crate) const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A pipe planted by hand must not block us.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Found {
    Nothing,
    File {
        size: u64,
        sum: Option<Sum>,
    },
    Directory,
    /// Neither file nor directory; never made by us.
    Foreign,
}

/// An open file and what is known about it.
#[derive(Debug)]
pub struct Opened {
    pub file: File,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    pub sum: Option<Sum>,
}

/// The tree of one slice.
#[derive(Debug)]
pub struct Tree {
    pub partition: Arc<Partition>,
    pub namespace: Namespace,
    root: OwnedFd,
    /// Files and bytes here; exact once the first walk is through.
    files: AtomicI64,
    bytes: AtomicI64,
}

impl Tree {
    /// Opens the tree, making its directory when it is not there yet.
    pub fn open(partition: Arc<Partition>, namespace: Namespace) -> Result<Self, Error> {
        let path = partition.root.join(namespace.as_str());
        let root = make_below(&partition, partition.dir(), "", namespace.as_str())
            .map_err(Error::io("make the folder", &path))?;
        Ok(Self { partition, namespace, root, files: AtomicI64::new(0), bytes: AtomicI64::new(0) })
    }

    pub fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicI64| count.load(Ordering::Relaxed).max(0).cast_unsigned();
        (read(&self.files), read(&self.bytes))
    }

    pub(crate) fn count(&self, files: i64, bytes: i64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Opens a file if that needs no disk: [`ErrorKind::WouldBlock`] when it might.
    pub fn open_cached(&self, path: &str) -> io::Result<Opened> {
        let opened = opened(self.open_to_read(path, BENEATH | ResolveFlags::CACHED)?)?;
        if opened.sum.is_none() && self.partition.sums.any() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(opened)
    }

    /// Opens a file. A directory is [`ErrorKind::IsADirectory`], anything else that is no file is not found.
    pub fn open_file(&self, path: &str) -> io::Result<Opened> {
        let mut opened = opened(self.open_to_read(path, BENEATH)?)?;
        if opened.sum.is_none() && self.partition.sums.any() {
            opened.sum = self.partition.sums.read(&self.in_partition(path))?;
        }
        Ok(opened)
    }

    /// A path here as a path in the partition.
    fn in_partition(&self, path: &str) -> String {
        format!("{}/{path}", self.namespace)
    }

    /// Waits until a name that is being given is durable or gone again; nobody else gives it while this is held. Blocks.
    pub(crate) fn hold(&self, path: &LocalPath) -> PendingName<'_> {
        self.partition.pending.hold(self.in_partition(path.as_str()))
    }

    /// Without leaving a mark of the reading where that is allowed: a kept file is not written to for being read.
    fn open_to_read(&self, path: &str, resolve: ResolveFlags) -> io::Result<OwnedFd> {
        let open = |flags| rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve);
        match open(READ | OFlags::NOATIME) {
            // Somebody else's file, put there by hand.
            Err(Errno::PERM) => open(READ).map_err(absent),
            other => other.map_err(absent),
        }
    }

    pub fn find(&self, path: &LocalPath) -> io::Result<Found> {
        match self.open_file(path.as_str()) {
            Ok(opened) => Ok(Found::File { size: opened.size, sum: opened.sum }),
            Err(error) if error.kind() == ErrorKind::IsADirectory => Ok(Found::Directory),
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(Found::Foreign),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Whether a directory of that name is here; a file of that name is an error of kind `NotADirectory`.
    pub fn has_directory(&self, path: &str) -> io::Result<bool> {
        match rustix::fs::openat2(&self.root, path, DIRECTORY, Mode::empty(), BENEATH) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(no_directory(error)),
        }
    }

    /// Whether a directory is here, and then durably: the process that made it may have died before syncing it.
    pub(crate) fn has_durable_directory(&self, path: &LocalPath) -> io::Result<bool> {
        let _pending = self.partition.pending.hold_directory(&self.in_partition(path.as_str()));
        if !self.has_directory(path.as_str())? {
            return Ok(false);
        }
        let mut below = Some(path.clone());
        while let Some(name) = below {
            self.sync_parent(&name)?;
            below = name.parent().filter(|_| !self.partition.commits_together());
        }
        Ok(true)
    }

    /// Makes a directory and those above it, durably. `NotADirectory` when a file is in the way.
    pub fn make_directory(&self, path: &LocalPath) -> io::Result<()> {
        self.partition.may_change()?;
        make_below(&self.partition, self.root.as_fd(), self.namespace.as_str(), path.as_str()).map(drop)
    }

    /// Makes a name durable that was found.
    pub fn sync_parent(&self, path: &LocalPath) -> io::Result<()> {
        self.partition.may_change()?;
        self.partition.sync(self.open_parent(path)?)
    }

    /// Makes a name durable that was just given; [`Tree::withdraw`] removes it when this fails.
    pub(crate) fn sync_new(&self, path: &LocalPath) -> io::Result<()> {
        let parent = self.open_parent(path)?;
        self.partition.sync_new(parent, &self.in_partition(path.as_str()))
    }

    /// Removes a name again that was just given and could not be synced.
    pub(crate) fn withdraw(&self, path: &LocalPath, size: u64, failure: &io::Error) {
        let _together = self.partition.sums.together();
        self.withdraw_held(path, size, failure);
    }

    /// The caller has the names and checksums together.
    fn withdraw_held(&self, path: &LocalPath, size: u64, failure: &io::Error) {
        let name = self.in_partition(path.as_str());
        match self.open_parent(path) {
            Ok(parent) => {
                if self.partition.withdraw(parent, &name, AtFlags::empty(), failure) {
                    self.count(-1, -size.cast_signed());
                    self.partition.sums.forget(&name);
                }
            }
            Err(error) => tracing::debug!(%path, %error, "the folder of an unsynced name is gone"),
        }
    }

    fn open_parent(&self, path: &LocalPath) -> io::Result<OwnedFd> {
        let parent = path.as_str().rsplit_once('/').map_or(".", |(parent, _)| parent);
        Ok(rustix::fs::openat2(&self.root, parent, DIRECTORY, Mode::empty(), BENEATH)?)
    }

    /// Notes the checksum of a file that has none yet.
    pub(crate) fn keep_sum(&self, path: &LocalPath, file: &File, sum: &Sum) -> io::Result<()> {
        let sums = &self.partition.sums;
        if sums.in_attribute(file, sum)? {
            return Ok(());
        }
        let _together = sums.together();
        sums.write(&self.partition, &self.in_partition(path.as_str()), sum)
    }

    /// Removes the name of a file whose bytes are proven elsewhere.
    pub(crate) fn unlink(&self, path: &LocalPath, size: u64) -> io::Result<()> {
        self.partition.may_change()?;
        let parent = self.open_parent(path)?;
        let _together = self.partition.sums.together();
        self.partition.sums.remove(&self.partition, &self.in_partition(path.as_str()))?;
        rustix::fs::unlinkat(&parent, path.file_name(), AtFlags::empty())?;
        self.count(-1, -size.cast_signed());
        self.partition.sync(parent)
    }

    /// Moves a file out of sight, to `.swap-attic/<day>/<namespace>/<path>`. Earlier removals of that day stay.
    pub fn to_attic(&self, path: &LocalPath, day: &str, size: u64) -> io::Result<()> {
        self.partition.may_change()?;
        let parent = self.open_parent(path)?;
        let (attic, folder) = self.attic_for(path, day)?;
        let (sums, here) = (&self.partition.sums, self.in_partition(path.as_str()));
        let _together = sums.together();
        let sum = sums.read(&here)?;
        sums.remove(&self.partition, &here)?;
        let name = path.file_name();
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let mut kept = name.to_owned();
        match rustix::fs::renameat_with(&parent, name, &attic, name, flags) {
            Err(Errno::EXIST) => {
                kept = another_name(name);
                rustix::fs::renameat_with(&parent, name, &attic, &kept, flags)?;
            }
            other => other?,
        }
        self.count(-1, -size.cast_signed());
        // Whatever comes later: who asks again finds no file, and must be able to rely on that.
        self.partition.sync(&attic)?;
        self.partition.sync(parent)?;
        match sum {
            Some(sum) => sums.write(&self.partition, &format!("{folder}/{kept}"), &sum),
            None => Ok(()),
        }
    }

    /// The folder for removed files of that name's directory, and its path in the partition.
    fn attic_for(&self, path: &LocalPath, day: &str) -> io::Result<(OwnedFd, String)> {
        let folder = match path.parent() {
            Some(parent) => format!("{ATTIC}/{day}/{}/{parent}", self.namespace),
            None => format!("{ATTIC}/{day}/{}", self.namespace),
        };
        Ok((make_below(&self.partition, self.partition.dir(), "", &folder)?, folder))
    }

    /// Moves the whole tree out of sight.
    pub(crate) fn all_to_attic(&self, day: &str) -> io::Result<()> {
        self.partition.may_change()?;
        let partition = self.partition.dir();
        let (above, name) =
            self.namespace.as_str().rsplit_once('/').unwrap_or((".", self.namespace.as_str()));
        let above = rustix::fs::openat2(partition, above, DIRECTORY, Mode::empty(), BENEATH)?;
        let attic = make_below(&self.partition, partition, "", &format!("{ATTIC}/{day}"))?;
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let kept = format!("{name}.{}", Uuid::new_v4());
        let renamed = rustix::fs::renameat_with(&above, name, &attic, &kept, flags);
        if renamed.is_ok() {
            self.partition.sums.to_attic(self.namespace.as_str(), &attic, &kept)?;
        }
        // Also when it was there already: the process that renamed it may have died before syncing.
        self.partition.sync(&attic)?;
        self.partition.sync(above)?;
        Ok(renamed?)
    }
}

/// For a file that is removed, stored again and removed again on one day. Long names leave room for the number alone.
fn another_name(name: &str) -> String {
    format!("{}.{}", name.chars().take(40).collect::<String>(), Uuid::new_v4())
}

fn opened(fd: OwnedFd) -> io::Result<Opened> {
    let stat = rustix::fs::fstat(&fd)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(ErrorKind::IsADirectory.into()),
        _ => return Err(ErrorKind::InvalidInput.into()),
    }
    let sum = sums::in_attribute(&fd);
    Ok(Opened { file: File::from(fd), size: stat.st_size.cast_unsigned(), modified: stat.st_mtime, sum })
}

/// A link in the way, a file where a directory should be: nothing of ours is there.
fn absent(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO => ErrorKind::NotFound.into(),
        other => other.into(),
    }
}

/// A link is no directory, wherever it leads.
fn no_directory(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::XDEV => ErrorKind::NotADirectory.into(),
        other => other.into(),
    }
}

/// Opens a directory below `base`, which is `at` in the partition, making it and those above it; each new one is synced into
/// its parent, and removed again when that fails. One that another thread is making is waited for.
pub(crate) fn make_below(
    partition: &Partition,
    base: impl AsFd,
    at: &str,
    path: &str,
) -> io::Result<OwnedFd> {
    let mut whole = if at.is_empty() { path.to_owned() } else { format!("{at}/{path}") };
    {
        let _pending = partition.pending.hold_directory(&whole);
        match rustix::fs::openat2(&base, path, DIRECTORY, Mode::empty(), BENEATH) {
            Err(Errno::NOENT) => {}
            other => return other.map_err(no_directory),
        }
    }
    let mut parent = rustix::fs::openat2(&base, ".", DIRECTORY, Mode::empty(), BENEATH)?;
    at.clone_into(&mut whole);
    for name in path.split('/') {
        if !whole.is_empty() {
            whole.push('/');
        }
        whole.push_str(name);
        let _pending = partition.pending.hold_directory(&whole);
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                if let Err(error) = partition.sync_new(&parent, &whole) {
                    partition.withdraw(&parent, &whole, AtFlags::REMOVEDIR, &error);
                    return Err(error);
                }
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        parent =
            rustix::fs::openat2(&parent, name, DIRECTORY, Mode::empty(), BENEATH).map_err(no_directory)?;
    }
    Ok(parent)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
