//! One base directory: `filedir` with the files, `tempdir` with what is being written, `atticdir` with what was
//! removed. All three lie on one disk, so that moving between them is a rename.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use grange_base::durable;
use grange_model::FileName;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use uuid::Uuid;

use super::listing::Listing;
use crate::blob::{MARKER, MarkedPart};
use crate::error::Error;

/// The folder of the files.
const FILES: &str = "filedir";

#[derive(Debug)]
pub(super) struct Base {
    pub(super) path: PathBuf,
    pub(super) files: PathBuf,
    pub(super) temp: PathBuf,
    pub(super) attic: PathBuf,
    pub(super) listing: Listing,
    /// What goes wrong next; for tests, where no disk breaks.
    #[cfg(test)]
    pub(super) faults: Faults,
}

/// What can go wrong with a disk.
#[cfg(test)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The next sync of the folder of files fails.
    FolderSync,
    /// The next sync of the folder of the marker fails.
    MarkerSync,
    /// A byte of the next file that is written changes before it is read back.
    WrittenByte,
    /// The next file that is opened meets a process without a free descriptor (`EMFILE`).
    NoDescriptor,
    /// The next file that is to be removed was replaced since it was read.
    Replaced(Vec<u8>),
    /// The file of this name cannot be looked at, opened or read (`EUCLEAN`), for ever.
    Unreadable(FileName),
}

#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(std::sync::Arc<std::sync::Mutex<Vec<Fault>>>);

#[cfg(test)]
impl Faults {
    pub(crate) fn add(&self, fault: Fault) {
        self.0.lock().unwrap().push(fault);
    }

    /// Whether this is to go wrong now; it does once.
    pub(super) fn take(&self, fault: Fault) -> bool {
        let mut faults = self.0.lock().unwrap();
        faults.iter().position(|one| *one == fault).map(|at| faults.remove(at)).is_some()
    }

    /// What another process may do between the reading of a file and its removal.
    pub(super) fn replace(&self, path: &Path) {
        let mut faults = self.0.lock().unwrap();
        let Some(at) = faults.iter().position(|one| matches!(one, Fault::Replaced(_))) else { return };
        if let Fault::Replaced(bytes) = faults.remove(at) {
            let aside = path.with_extension("aside");
            fs::write(&aside, bytes).unwrap();
            fs::rename(&aside, path).unwrap();
        }
    }

    /// The error of a file that cannot be read.
    pub(super) fn unreadable(&self, name: &FileName) -> io::Result<()> {
        let bad = self.0.lock().unwrap().contains(&Fault::Unreadable(name.clone()));
        if bad { Err(io::Error::from_raw_os_error(117)) } else { Ok(()) }
    }
}

impl Base {
    /// Clears away what a crash left half-written; a read-only base is only looked at. With `make_folders` the folders are
    /// made where they are missing; without, by [`Base::mark`] alone: the disk may not be mounted.
    pub(super) fn open(path: &Path, read_only: bool, make_folders: bool) -> Result<Self, Error> {
        let base = Self {
            path: path.to_owned(),
            files: path.join(FILES),
            temp: path.join("tempdir"),
            attic: path.join("atticdir"),
            listing: Listing::default(),
            #[cfg(test)]
            faults: Faults::default(),
        };
        if read_only {
            fs::read_dir(&base.files).map_err(Error::io("list the folder", &base.files))?;
            return Ok(base);
        }
        if make_folders || base.files.is_dir() {
            base.make_folders()?;
            base.clear_temp()?;
            // A process that was killed may have given and taken away names that it did not sync. From here on they count as
            // stored, and as removed.
            sync_folder(&base.files)?;
            sync_folder(&base.attic)?;
        }
        Ok(base)
    }

    fn make_folders(&self) -> Result<(), Error> {
        for folder in [&self.files, &self.temp, &self.attic] {
            fs::create_dir_all(folder).map_err(Error::io("make the folder", folder))?;
        }
        sync_folder(&self.path)
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
        #[cfg(test)]
        if path.exists() {
            self.faults.unreadable(name).map_err(Error::io("open", &path))?;
            if self.faults.take(Fault::NoDescriptor) {
                return Err(Error::io("open", &path)(Errno::MFILE.into()));
            }
        }
        let opened = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&path);
        match opened {
            Ok(file) if file.metadata().map_err(Error::io("look at", &path))?.is_file() => Ok(Some(file)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Ok(None),
            Err(error) => Err(Error::io("open", &path)(error)),
        }
    }

    /// The marker of this disk.
    pub(super) fn marker(&self) -> Result<MarkedPart, Error> {
        let path = self.path.join(MARKER);
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let marker = match fs::read(&path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if absent(&error) => None,
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let empty = marker.is_none()
            && match fs::read_dir(&self.files) {
                Ok(mut entries) => entries.next().is_none(),
                Err(error) if absent(&error) => true,
                Err(error) => return Err(Error::io("list the folder", &self.files)(error)),
            };
        let gone = marker.is_some() && fs::metadata(&self.files).is_err_and(|error| absent(&error));
        let lost = gone.then(|| FILES.to_owned());
        Ok(MarkedPart { part: self.path.display().to_string(), marker, empty, lost })
    }

    /// Leaves the marker. One that could not be synced is taken away again: it would be believed.
    pub(super) fn mark(&self, text: &str) -> Result<(), Error> {
        self.make_folders()?;
        let path = self.path.join(MARKER);
        let sync = |folder: &Path| {
            #[cfg(test)]
            if self.faults.take(Fault::MarkerSync) {
                return Err(Errno::IO.into());
            }
            durable::sync_folder(folder)
        };
        durable::replace_with(&path, text.as_bytes(), durable::PLAIN, sync).map_err(Error::io("write", &path))
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
        if let Err(error) = self.sync_names() {
            // Whether the name is on the disk is not known, and a second sync could succeed without writing it. So the
            // name goes again, and whoever wants the file kept writes it anew.
            if let Err(error) = fs::rename(&path, temp) {
                tracing::error!(path = %path.display(), %error, "a file whose name was not synced keeps its name; remove it and store it again");
            }
            return Err(error);
        }
        Ok(true)
    }

    /// Makes the names of the files durable.
    fn sync_names(&self) -> Result<(), Error> {
        #[cfg(test)]
        if self.faults.take(Fault::FolderSync) {
            return Err(Error::io("sync the folder", &self.files)(Errno::IO.into()));
        }
        sync_folder(&self.files)
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

/// The folders that were synced in this process, for tests.
#[cfg(test)]
pub(crate) static SYNCED: std::sync::Mutex<Vec<PathBuf>> = std::sync::Mutex::new(Vec::new());

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    #[cfg(test)]
    SYNCED.lock().unwrap().push(path.to_owned());
    let sync = || File::open(path)?.sync_all();
    sync().map_err(Error::io("sync the folder", path))
}
