//! Syncs and renames: everything that the promise of durability rests on, in one place where tests can watch it and make
//! it fail.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Brings a new file to the disk, with its length.
pub(crate) fn sync_file(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(test)]
    faults::note("file", path)?;
    #[cfg(not(test))]
    let _ = path;
    file.sync_all()
}

/// Brings what was appended to a file to the disk.
pub(crate) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(test)]
    faults::note("data", path)?;
    #[cfg(not(test))]
    let _ = path;
    file.sync_data()
}

/// Puts a file in the place of another.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    faults::note("rename", to)?;
    fs::rename(from, to)
}

/// Makes names that were added to or taken from a folder last.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let sync = || {
        #[cfg(test)]
        faults::note("folder", folder)?;
        File::open(folder).and_then(|folder| folder.sync_all())
    };
    sync().map_err(Error::io("sync", folder))
}

/// The steps that this thread took to reach the disk, and those that fail.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::RefCell;
    use std::io;
    use std::path::Path;

    #[derive(Debug, Default)]
    struct Disk {
        seen: Vec<String>,
        /// Beginnings and ends of steps that fail.
        failing: Vec<&'static str>,
    }

    thread_local! {
        static DISK: RefCell<Disk> = RefCell::default();
    }

    /// From now on steps fail that begin or end with one of these: `file`, `data`, `folder`, `rename`, `.seg`.
    pub(crate) fn fail(steps: &[&'static str]) {
        DISK.with_borrow_mut(|disk| disk.failing = steps.to_vec());
    }

    /// The steps since the last call, such as `file 00000001.seg`.
    pub(crate) fn seen() -> Vec<String> {
        DISK.with_borrow_mut(|disk| std::mem::take(&mut disk.seen))
    }

    pub(super) fn note(kind: &'static str, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Folders of tests have names that say nothing.
        let step = if kind == "folder" { kind.to_owned() } else { format!("{kind} {name}") };
        DISK.with_borrow_mut(|disk| {
            if disk.failing.iter().any(|failing| step.starts_with(failing) || step.ends_with(failing)) {
                return Err(io::Error::other("a step that fails"));
            }
            disk.seen.push(step);
            Ok(())
        })
    }
}
