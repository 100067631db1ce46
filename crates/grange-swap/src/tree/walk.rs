//! What is in a tree: one directory, or everything.

use std::io;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Dir, FileType, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{BENEATH, DIRECTORY, Tree};
use crate::name::LocalPath;

/// What a walk meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    File(LocalPath),
    Directory(LocalPath),
    /// A link, device or pipe, or a name that is none; with its path as far as it can be shown.
    Foreign(String),
}

/// One line of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub directory: bool,
    pub size: u64,
    pub modified: i64,
}

impl Tree {
    /// The lines of one directory, unsorted; `None` when it is not here.
    pub fn list(&self, path: Option<&LocalPath>) -> io::Result<Option<Vec<Entry>>> {
        let path = path.map_or(".", LocalPath::as_str);
        let dir = match rustix::fs::openat2(&self.root, path, DIRECTORY, Mode::empty(), BENEATH) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut entries = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let stat = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind.is_file() || kind.is_dir() {
                let size = if kind.is_file() { stat.st_size.cast_unsigned() } else { 0 };
                let modified = stat.st_mtime;
                entries.push(Entry { name: name.to_owned(), directory: kind.is_dir(), size, modified });
            }
        }
        Ok(Some(entries))
    }

    /// Meets everything below the root, directories before what they hold. Memory grows with the number of
    /// directories waiting, not with the number of files. The visitor says whether to go on.
    pub fn walk(&self, mut visit: impl FnMut(Met) -> bool) -> io::Result<()> {
        let mut waiting = vec![None::<LocalPath>];
        while let Some(path) = waiting.pop() {
            let shown = path.as_ref().map_or(".", LocalPath::as_str);
            let dir = match rustix::fs::openat2(&self.root, shown, DIRECTORY, Mode::empty(), BENEATH) {
                Ok(dir) => dir,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in Dir::read_from(&dir)? {
                let entry = entry?;
                let raw = entry.file_name();
                if raw.to_bytes() == b"." || raw.to_bytes() == b".." {
                    continue;
                }
                let name = raw.to_string_lossy();
                let whole =
                    path.as_ref().map_or_else(|| name.clone().into_owned(), |path| format!("{path}/{name}"));
                let valid = raw.to_str().is_ok().then(|| LocalPath::new(whole.as_str()).ok()).flatten();
                let mut kind = entry.file_type();
                if kind == FileType::Unknown {
                    kind = match rustix::fs::statat(&dir, raw, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(error.into()),
                    };
                }
                let met = match (valid, kind) {
                    (Some(path), FileType::RegularFile) => Met::File(path),
                    (Some(path), FileType::Directory) => {
                        waiting.push(Some(path.clone()));
                        Met::Directory(path)
                    }
                    _ => Met::Foreign(whole),
                };
                if !visit(met) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Counts files and bytes anew.
    pub fn recount(&self) -> io::Result<()> {
        let (mut files, mut bytes) = (0, 0);
        self.walk(|met| {
            if let Met::File(path) = met
                && let Ok(stat) = rustix::fs::statat(&self.root, path.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            {
                files += 1;
                bytes += stat.st_size;
            }
            true
        })?;
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the directories of a tree that holds no file any more. A directory that is not empty stays.
    pub(crate) fn prune(&self) -> io::Result<()> {
        let mut directories = Vec::new();
        self.walk(|met| {
            if let Met::Directory(path) = met {
                directories.push(path);
            }
            true
        })?;
        for path in directories.iter().rev() {
            self.partition.may_change()?;
            self.partition.sums.prune(&self.in_partition(path.as_str()));
            match rustix::fs::unlinkat(&self.root, path.as_str(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // The namespace's own directories, as far as no other collection hangs there.
        let mut path = Some(self.namespace.as_str());
        while let Some(name) = path {
            self.partition.sums.prune(name);
            if rustix::fs::unlinkat(self.partition.dir(), name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
            path = name.rsplit_once('/').map(|(above, _)| above);
        }
        Ok(())
    }
}
