//! A partition: a plain folder that holds at most one slice of any collection, and says who it is in
//! `partition.properties`.
//!
//! ```text
//! <partition>/partition.properties    its id and description
//! <partition>/<collection id>.txt     one per collection with a slice here
//! <partition>/<namespace>/<path>      the files, exactly as they were sent
//! <partition>/.swap-tmp/              bytes on their way in; emptied at start
//! <partition>/.swap-attic/<day>/…     what was removed, for people
//! <partition>/.swap-sums/…            checksums, where the disk keeps no attributes
//! <partition>/.swap-sync-failed       a sync failed: what is shown here may not be on the disk
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use uuid::Uuid;

use crate::error::Error;
use crate::naming::Naming;
use crate::pending::PendingNames;
use crate::properties;
use crate::simulation::{self, SyncFaults};
use crate::sums::SideSums;

const FILE: &str = "partition.properties";
pub(crate) const TEMP: &str = ".swap-tmp";
pub(crate) const ATTIC: &str = ".swap-attic";
/// Not synced itself: it is seen for as long as the system shows what it could not write.
pub(crate) const SYNC_FAILED: &str = ".swap-sync-failed";

/// One opened partition; while it lives, no other process opens it.
#[derive(Debug)]
pub struct Partition {
    pub root: PathBuf,
    pub uuid: Uuid,
    pub description: String,
    dir: OwnedFd,
    temp: OwnedFd,
    /// Holds the lock.
    _file: File,
    commits_together: bool,
    pub(crate) naming: Naming,
    pub(crate) sums: SideSums,
    pub(crate) pending: PendingNames,
    /// Why nothing is changed here any more.
    distrusted: OnceLock<String>,
    pub(crate) sync_faults: SyncFaults,
}

/// Room on the disk of a partition, and what kind of file system that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// `f_type` of statfs(2): slices of one collection lie on one kind, or a copy might not hold all names.
    pub file_system: u64,
}

impl Partition {
    /// Makes an empty or absent folder a partition.
    pub fn init(root: &Path, description: &str) -> Result<Uuid, Error> {
        make_durably(root)?;
        if root.join(FILE).exists() {
            return Err(Error::AlreadyPartition { path: root.to_owned() });
        }
        for entry in fs::read_dir(root).map_err(Error::io("list", root))? {
            let name = entry.map_err(Error::io("list", root))?.file_name();
            // Made by mkfs; a whole disk is the usual partition.
            if name != "lost+found" {
                return Err(Error::NotEmpty { path: root.to_owned() });
            }
        }
        let uuid = simulation::new_id();
        let text = properties::write(
            "A SWAP partition. The files below are plain; see each <collection id>.txt for what they are.",
            [("swap.uuid", uuid.to_string()), ("swap.description", description.to_owned())],
        );
        let dir = open_dir(root)?;
        let written = write_whole(&dir, root, FILE, text.as_bytes(), |dir| Ok(rustix::fs::fsync(dir)?));
        if let Err(error) = written {
            // The next try must not take it for one that was synced.
            let _ = rustix::fs::unlinkat(&dir, FILE, AtFlags::empty());
            return Err(error);
        }
        Ok(uuid)
    }

    pub fn open(root: &Path) -> Result<Self, Error> {
        let none = |reason: &str| Error::NoPartition { path: root.to_owned(), reason: reason.to_owned() };
        let root = fs::canonicalize(root).map_err(|_| none("there is no such folder"))?;
        let dir = open_dir(&root)?;
        let path = root.join(FILE);
        let mut file = File::open(&path).map_err(|_| none("partition.properties is missing"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::InUse { path: root }),
            Err(error) => return Err(Error::io("lock", &path)(error)),
        }
        if root.join(SYNC_FAILED).exists() {
            return Err(Error::SyncFailed { path: root });
        }
        let mut text = String::new();
        (&mut file)
            .take(properties::MAX_FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(Error::io("read", &path))?;
        let mut found = properties::read(&text);
        let uuid = found.get("swap.uuid").and_then(|text| Uuid::try_parse(text).ok());
        let uuid = uuid.ok_or_else(|| none("partition.properties has no swap.uuid"))?;
        let description = found.remove("swap.description").unwrap_or_default();
        let temp = fresh_temp(&dir, &root)?;
        // What a killed process left in memory counts from now on. A simulated run loses such names by itself, and the disk below it
        // is shared with everything else.
        if !simulation::active()
            && let Err(error) = rustix::fs::syncfs(&dir)
        {
            leave_mark(&root, &error.into());
            return Err(Error::SyncFailed { path: root });
        }
        let commits_together = has_one_journal(&dir);
        let (naming, sums) = (Naming::default(), SideSums::new(&dir, false));
        let (pending, sync_faults) = (PendingNames::default(), SyncFaults::default());
        Ok(Self {
            root,
            uuid,
            description,
            dir,
            temp,
            _file: file,
            commits_together,
            naming,
            sums,
            pending,
            distrusted: OnceLock::new(),
            sync_faults,
        })
    }

    /// Keeps checksums in files, also where the disk would keep them in attributes.
    #[must_use]
    pub fn sums_in_files(self, wanted: bool) -> Self {
        Self { sums: SideSums::new(&self.dir, wanted), ..self }
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn temp(&self) -> BorrowedFd<'_> {
        self.temp.as_fd()
    }

    /// Whether one sync makes everything durable that was done before it on this disk.
    pub(crate) fn commits_together(&self) -> bool {
        self.commits_together
    }

    pub fn room(&self) -> Result<Room, Error> {
        let failed = Error::io("ask the room of", &self.root);
        let space = rustix::fs::fstatvfs(&self.dir).map_err(failed)?;
        let failed = Error::io("ask the kind of", &self.root);
        let kind = rustix::fs::fstatfs(&self.dir).map_err(failed)?;
        Ok(Room {
            free_bytes: simulation::free_bytes().unwrap_or(space.f_bavail.saturating_mul(space.f_frsize)),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
            file_system: kind.f_type.cast_unsigned(),
        })
    }

    /// Writes a small file into the root: aside, synced, renamed, folder synced.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.may_change().map_err(Error::io("write", self.root.join(name)))?;
        // Every try renames a new file, so a later sync has something to write.
        write_whole(&self.dir, &self.root, name, bytes, |dir| self.try_sync(dir))
    }

    pub(crate) fn remove_file(&self, name: &str) -> Result<(), Error> {
        let path = self.root.join(name);
        self.may_change().map_err(Error::io("remove", &path))?;
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(Error::io("remove", path)(error)),
        }
        self.sync(&self.dir).map_err(Error::io("sync", &self.root))
    }

    /// Before anything is changed here: not after a sync failed.
    pub(crate) fn may_change(&self) -> io::Result<()> {
        simulation::disk(self.uuid)?;
        self.distrusted.get().map_or(Ok(()), |reason| Err(io::Error::other(reason.clone())))
    }

    /// Syncs new bytes that have no name yet: they are dropped when this fails.
    pub(crate) fn sync_bytes(&self, file: &File) -> io::Result<()> {
        self.sync_faults.next()?;
        file.sync_data()
    }

    /// Makes the names in a folder durable. Nothing is changed on this partition any more when that fails: what became of
    /// the names is not known, and a second sync could succeed without writing them.
    pub(crate) fn sync(&self, folder: impl AsFd) -> io::Result<()> {
        self.try_sync(folder).inspect_err(|error| self.distrust(error))
    }

    /// The same for a name that was just given, a path in the partition. Who asks removes it again when this fails.
    pub(crate) fn sync_new(&self, folder: impl AsFd, path: &str) -> io::Result<()> {
        self.try_sync(folder).inspect_err(|_| self.sync_faults.lose(self.root.join(path)))
    }

    fn try_sync(&self, folder: impl AsFd) -> io::Result<()> {
        simulation::disk(self.uuid)?;
        self.sync_faults.next()?;
        Ok(rustix::fs::fsync(folder)?)
    }

    /// Removes a name that could not be synced, so that nobody relies on it. True when it is gone by this.
    pub(crate) fn withdraw(
        &self,
        folder: impl AsFd,
        path: &str,
        flags: AtFlags,
        failure: &io::Error,
    ) -> bool {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let removed = simulation::disk(self.uuid);
        match removed.and_then(|()| Ok(rustix::fs::unlinkat(folder, name, flags)?)) {
            Ok(()) => {
                self.sync_faults.found(&self.root.join(path));
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) => {
                self.distrust(failure);
                false
            }
        }
    }

    /// From now on nothing is changed here, also by servers that are started later: the system shows names that may not be
    /// on the disk until it is mounted again.
    fn distrust(&self, failure: &io::Error) {
        if self.distrusted.set(distrust_reason(&self.root, failure)).is_ok()
            && simulation::disk(self.uuid).is_ok()
        {
            leave_mark(&self.root, failure);
        }
    }
}

/// How to come back from a failed sync.
fn advice(root: &Path) -> String {
    format!(
        "stop the server, unmount and check the disk, mount it, remove {}, start the server",
        root.join(SYNC_FAILED).display()
    )
}

fn distrust_reason(root: &Path, failure: &io::Error) -> String {
    let (root, advice) = (root.display(), advice(root));
    format!("a sync failed earlier ({failure}), so nothing is written to {root} any more; {advice}")
}

/// Leaves the mark that no server opens the partition with.
fn leave_mark(root: &Path, failure: &io::Error) {
    let (mark, advice) = (root.join(SYNC_FAILED), advice(root));
    tracing::error!(partition = %root.display(), error = %failure, "manual intervention required: a sync failed; {advice}");
    if let Err(error) = fs::write(&mark, format!("{}\n", distrust_reason(root, failure))) {
        tracing::error!(path = %mark.display(), %error, "cannot leave the mark of a failed sync");
    }
}

/// Whether the folder lies on ext4 with a journal, whose commits are in order and whole. Where that cannot be seen the
/// answer is no: then everything is synced one by one.
fn has_one_journal(dir: &OwnedFd) -> bool {
    /// `EXT4_SUPER_MAGIC` of statfs(2), which ext2 and ext3 share.
    const EXT4: u64 = 0xEF53;
    let of_its_kind = rustix::fs::fstatfs(dir).is_ok_and(|kind| kind.f_type.cast_unsigned() == EXT4);
    let Ok(stat) = rustix::fs::fstat(dir) else { return false };
    let device = format!("{}:{}", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let block = fs::read_link(Path::new("/sys/dev/block").join(device));
    let name = block.ok().and_then(|link| link.file_name().map(ToOwned::to_owned));
    of_its_kind && name.is_some_and(|name| Path::new("/sys/fs/ext4").join(name).join("journal_task").exists())
}

fn open_dir(root: &Path) -> Result<OwnedFd, Error> {
    rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(Error::io("open the folder", root))
}

/// What an interrupted upload may have left behind is gone after this.
fn fresh_temp(dir: &OwnedFd, root: &Path) -> Result<OwnedFd, Error> {
    let path = root.join(TEMP);
    match rustix::fs::mkdirat(dir, TEMP, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(Error::io("make the folder", path)(error)),
    }
    for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
        let left = entry.map_err(Error::io("list", &path))?.path();
        fs::remove_file(&left).map_err(Error::io("remove", &left))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(dir, TEMP, flags, Mode::empty()).map_err(Error::io("open the folder", &path))
}

/// Makes a folder and those above it; each new one is synced into its parent.
fn make_durably(folder: &Path) -> Result<(), Error> {
    let absent: Vec<_> = folder.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(folder).map_err(Error::io("make the folder", folder))?;
    for made in absent {
        let above = made.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        rustix::fs::fsync(open_dir(above)?).map_err(Error::io("sync", above))?;
    }
    Ok(())
}

fn write_whole(
    dir: &OwnedFd,
    root: &Path,
    name: &str,
    bytes: &[u8],
    sync: impl FnOnce(&OwnedFd) -> io::Result<()>,
) -> Result<(), Error> {
    let path = root.join(name);
    let aside = format!(".swap-new-{name}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = rustix::fs::openat(dir, &aside, flags, Mode::from_raw_mode(0o644));
    let mut file = File::from(opened.map_err(Error::io("make", &path))?);
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io("write", &path))?;
    rustix::fs::renameat(dir, &aside, dir, name).map_err(Error::io("rename", &path))?;
    sync(dir).map_err(Error::io("sync", root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_keeps_its_id_and_is_served_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("disk1");
        let uuid = Partition::init(&root, "shelf 3, tray ä").unwrap();
        let text = fs::read_to_string(root.join(FILE)).unwrap();
        assert!(
            text.contains(&format!("swap.uuid={uuid}\nswap.description=shelf 3, tray \\u00e4\n")),
            "{text}"
        );
        let opened = Partition::open(&root).unwrap();
        assert_eq!((opened.uuid, opened.description.as_str()), (uuid, "shelf 3, tray ä"));
        assert!(opened.room().unwrap().total_bytes > 0);
        assert!(matches!(Partition::open(&root), Err(Error::InUse { .. })));
        drop(opened);
        fs::write(root.join(TEMP).join("left"), "over").unwrap();
        drop(Partition::open(&root).unwrap());
        assert!(!root.join(TEMP).join("left").exists());
        assert!(matches!(Partition::init(&root, ""), Err(Error::AlreadyPartition { .. })));
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Partition::open(folder.path()), Err(Error::NoPartition { .. })));
        fs::write(folder.path().join(FILE), "swap.description=x\n").unwrap();
        assert!(matches!(Partition::open(folder.path()), Err(Error::NoPartition { .. })));
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.doc"), "x").unwrap();
        assert!(matches!(Partition::init(other.path(), ""), Err(Error::NotEmpty { .. })));
    }
}
