//! One base directory: `filedir` with the files, `tempdir` with what is being written, `atticdir` with what was
//! removed. All three lie on one disk, so that moving between them is a rename.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use grange_model::FileName;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use uuid::Uuid;

use super::listing::Listing;
use crate::error::Error;

#[derive(Debug)]
pub(super) struct Base {
    pub(super) path: PathBuf,
    pub(super) files: PathBuf,
    pub(super) temp: PathBuf,
    pub(super) attic: PathBuf,
    pub(super) listing: Listing,
}

impl Base {
    /// Makes the folders where they are missing and clears away what a crash left half-written; a read-only base
    /// is only looked at.
    pub(super) fn open(path: &Path, read_only: bool) -> Result<Self, Error> {
        let base = Self {
            path: path.to_owned(),
            files: path.join("filedir"),
            temp: path.join("tempdir"),
            attic: path.join("atticdir"),
            listing: Listing::default(),
        };
        if read_only {
            fs::read_dir(&base.files).map_err(Error::io("list the folder", &base.files))?;
            return Ok(base);
        }
        for folder in [&base.files, &base.temp, &base.attic] {
            fs::create_dir_all(folder).map_err(Error::io("make the folder", folder))?;
        }
        sync_folder(path)?;
        base.clear_temp()?;
        Ok(base)
    }

    /// Removes temporary files that nobody is writing: a writer holds a lock, a dead one does not.
    fn clear_temp(&self) -> Result<(), Error> {
        let failed = || Error::io("clear the folder", &self.temp);
        for entry in fs::read_dir(&self.temp).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let Ok(file) = File::open(&path) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                tracing::info!(path = %path.display(), "removed a file that was half-written when Grange stopped");
            }
        }
        Ok(())
    }

    pub(super) fn file(&self, name: &FileName) -> PathBuf {
        self.files.join(name.as_str())
    }

    /// Opens a stored file for reading; `None` when it is not here. Links and folders are not files.
    pub(super) fn open_file(&self, name: &FileName) -> Result<Option<File>, Error> {
        let path = self.file(name);
        let opened = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&path);
        match opened {
            Ok(file) if file.metadata().map_err(Error::io("look at", &path))?.is_file() => Ok(Some(file)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Ok(None),
            Err(error) => Err(Error::io("open", &path)(error)),
        }
    }

    /// A new temporary file, locked for as long as it is open. Ready-made read-only, as stored files are.
    pub(super) fn temp_file(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let path = self.temp.join(Uuid::new_v4().simple().to_string());
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o444).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Another process may have opened this base just now and cleared the file away before it was locked.
            if file.metadata()?.nlink() > 0 {
                return Ok((path, file));
            }
        }
    }

    /// Moves a finished temporary file into place, never over another. False when the name is taken.
    pub(super) fn publish(&self, temp: &Path, name: &FileName) -> Result<bool, Error> {
        let path = self.file(name);
        if !rename_new(temp, &path).map_err(Error::io("move into place", &path))? {
            return Ok(false);
        }
        sync_folder(&self.files)?;
        Ok(true)
    }

    /// Moves a file out of sight, into a folder of its own so that the same name can be removed many times.
    pub(super) fn retire(&self, name: &FileName, folder: &str) -> Result<(), Error> {
        let folder = self.attic.join(folder);
        fs::create_dir_all(&folder).map_err(Error::io("make the folder", &folder))?;
        let target = folder.join(name.as_str());
        fs::rename(self.file(name), &target).map_err(Error::io("move to the attic", &target))?;
        sync_folder(&folder)?;
        sync_folder(&self.attic)?;
        sync_folder(&self.files)
    }
}

/// Renames unless the target exists (then false).
fn rename_new(from: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Not every file system knows the flag (NFS does not); a hard link does not replace either.
        Err(Errno::INVAL | Errno::NOSYS) => match fs::hard_link(from, to) {
            Ok(()) => fs::remove_file(from).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        },
        Err(error) => Err(error.into()),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let sync = || File::open(path)?.sync_all();
    sync().map_err(Error::io("sync the folder", path))
}
