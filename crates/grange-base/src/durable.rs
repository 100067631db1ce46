//! Small files that are whole or absent, and that stay: written aside, synced, given their name, and the folder synced.
//!
//! A name whose folder could not be synced may be gone after a power cut, and a second sync may succeed without writing it.
//! So such a name is taken away again, and the next call writes the file from the start.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The end of the names of files that are being written.
const PART: &str = ".part";

/// Readable only by its owner.
pub const SECRET: u32 = 0o600;

/// Readable by all that the process lets read.
pub const PLAIN: u32 = 0o666;

/// Writes a file that does not exist yet; [`io::ErrorKind::AlreadyExists`] if it does. Its folder must exist.
pub fn create_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    create_new_with(path, bytes, mode, sync_folder)
}

/// The same with another way of syncing the folder, for tests of what follows when that fails.
pub fn create_new_with(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let aside = write_aside(path, bytes, mode)?;
    // A link refuses to replace what another process put there meanwhile.
    let linked = match fs::hard_link(&aside, path) {
        // Some file systems have no hard links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !exists(path) => {
            fs::rename(&aside, path)
        }
        linked => linked,
    };
    let _ = fs::remove_file(&aside);
    linked?;
    sync(folder_of(path)).inspect_err(|_| take_away(path))
}

/// Writes a file in the place of an earlier one, if there is one. Its folder must exist.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_with(path, bytes, mode, sync_folder)
}

/// The same with another way of syncing the folder.
pub fn replace_with(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let aside = write_aside(path, bytes, mode)?;
    let earlier = exists(path);
    fs::rename(&aside, path).inspect_err(|_| take_away(&aside))?;
    sync(folder_of(path)).inspect_err(|_| {
        // The earlier file is gone; after a power cut it, or this one, is there.
        if !earlier {
            take_away(path);
        }
    })
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether a name is that of a file that is being written.
pub fn is_part(name: &str) -> bool {
    name.ends_with(PART)
}

fn write_aside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    // Other processes may write the same file.
    name.push(format!(".{:016x}{PART}", rand::random::<u64>()));
    let aside = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| take_away(&aside))?;
    Ok(aside)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn take_away(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        let path = path.display();
        tracing::error!(%path, %error, "a file that may not be on the disk cannot be removed; remove it by hand");
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn fails(_: &Path) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(5))
    }

    #[test]
    fn a_new_file_whose_folder_was_not_synced_is_gone_and_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for write in [create_new_with, replace_with] {
            assert!(write(&path, b"one", SECRET, fails as fn(&Path) -> io::Result<()>).is_err());
            assert_eq!(names(folder.path()), Vec::<String>::new());
            write(&path, b"one", SECRET, sync_folder as fn(&Path) -> io::Result<()>).unwrap();
            assert_eq!(names(folder.path()), ["a.json"]);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_there_is_never_replaced_by_a_new_one_nor_lost_by_a_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        create_new(&path, b"one", PLAIN).unwrap();
        let error = create_new(&path, b"two", PLAIN).unwrap_err();
        assert_eq!((error.kind(), fs::read(&path).unwrap()), (io::ErrorKind::AlreadyExists, b"one".to_vec()));
        assert!(replace_with(&path, b"two", PLAIN, fails).is_err());
        assert!(path.exists(), "one of both is kept");
        replace(&path, b"three", PLAIN).unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"three".to_vec(), vec!["a.json".to_owned()])
        );
    }

    #[test]
    fn a_file_that_cannot_take_its_name_leaves_nothing_aside() {
        let folder = tempfile::tempdir().unwrap();
        // A directory has the name: the file cannot take it.
        let path = folder.path().join("log.key");
        fs::create_dir(&path).unwrap();
        assert!(create_new(&path, b"key", SECRET).is_err() && replace(&path, b"key", SECRET).is_err());
        assert_eq!(names(folder.path()), ["log.key"]);
    }
}
