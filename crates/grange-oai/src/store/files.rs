//! A page of files at once. They are not synced here: the journal has what is in them until [`sync`] was called.
//!
//! A new file is created under its name: no row names it before it is whole, and one that a crash left half-written
//! is written again from the journal. A file that exists is replaced by one written aside, so that nobody reads half.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use grange_model::oai::DeletedPolicy;
use rustix::fs::{Mode, OFlags};

/// What is to happen to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Has these bytes from now on.
    Write { name: String, content: Vec<u8> },
    /// Its record was deleted.
    Delete { name: String },
}

/// A file that could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    pub(super) fn new(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self { doing, path: path.to_owned(), source }
    }
}

/// The folder of one repository.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// The same, open: names below it are looked up from here.
    handle: File,
    deleted: DeletedPolicy,
    /// Folders known to be there.
    made: HashSet<PathBuf>,
    next: AtomicU64,
}

/// Where files are written before they get their name. No identifier becomes this name.
const ASIDE: &str = "+aside";
/// Where files of deleted records go if they are kept apart.
const DELETED: &str = "+deleted";
/// Folders remembered as made; forgetting them costs one look each.
const MADE_MAX: usize = 50_000;
/// Creating files waits for the kernel more than for the disk; two writers keep two cores busy.
const WRITERS: usize = 2;
/// Below this a second thread costs more than it saves.
const ALONE_MAX: usize = 16;

impl Folder {
    /// Opens the folder, making it if needed, and forgets what a crash left half-written.
    pub fn open(root: &Path, deleted: DeletedPolicy) -> Result<Self, FileError> {
        let aside = root.join(ASIDE);
        match fs::remove_dir_all(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new("empty", &aside, error));
            }
            _ => {}
        }
        fs::create_dir_all(&aside).map_err(|error| FileError::new("make", &aside, error))?;
        let handle = File::open(root).map_err(|error| FileError::new("open", root, error))?;
        Ok(Self { root: root.to_owned(), handle, deleted, made: HashSet::new(), next: AtomicU64::new(0) })
    }

    /// Makes the changes. After an error some may be made: the page is not kept then, so it comes again.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), FileError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.make_folders(changes)?;
        if changes.len() <= ALONE_MAX {
            changes.iter().try_for_each(|change| self.change(change))?;
        } else {
            let share = changes.len().div_ceil(WRITERS);
            std::thread::scope(|scope| {
                let this = &*self;
                let writers: Vec<_> = changes
                    .chunks(share)
                    .map(|part| scope.spawn(move || part.iter().try_for_each(|change| this.change(change))))
                    .collect();
                writers.into_iter().try_for_each(|writer| match writer.join() {
                    Ok(outcome) => outcome,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
            })?;
        }
        Ok(())
    }

    fn make_folders(&mut self, changes: &[Change]) -> Result<(), FileError> {
        if self.made.len() > MADE_MAX {
            self.made.clear();
        }
        for change in changes {
            let path = match change {
                Change::Write { name, .. } => self.root.join(name),
                Change::Delete { name } if self.deleted == DeletedPolicy::Mark => {
                    self.root.join(DELETED).join(name)
                }
                Change::Delete { .. } => continue,
            };
            let Some(folder) = path.parent() else { continue };
            if !self.made.contains(folder) {
                fs::create_dir_all(folder).map_err(|source| FileError {
                    doing: "make",
                    path: folder.to_owned(),
                    source,
                })?;
                self.made.insert(folder.to_owned());
            }
        }
        Ok(())
    }

    fn change(&self, change: &Change) -> Result<(), FileError> {
        match change {
            Change::Write { name, content } => self.write(name, content),
            Change::Delete { name } => self.delete(name),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FileError> {
        let path = || self.root.join(name);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let rights = Mode::from_raw_mode(0o666);
        match rustix::fs::openat(&self.handle, name, flags, rights) {
            Ok(file) => {
                let written = File::from(file).write_all(content);
                written.map_err(|source| FileError::new("write", &path(), source))
            }
            Err(rustix::io::Errno::EXIST) => self.replace(&path(), content),
            Err(error) => Err(FileError::new("create", &path(), error.into())),
        }
    }

    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let aside = self.root.join(ASIDE).join(number.to_string());
        let written = File::create(&aside).and_then(|mut file| file.write_all(content));
        written.map_err(|source| FileError::new("write", &aside, source))?;
        fs::rename(&aside, path).map_err(|source| FileError::new("put into place", path, source))
    }

    fn delete(&self, name: &str) -> Result<(), FileError> {
        let path = self.root.join(name);
        let outcome = match self.deleted {
            DeletedPolicy::Keep => return Ok(()),
            DeletedPolicy::Remove => fs::remove_file(&path),
            DeletedPolicy::Mark => fs::rename(&path, self.root.join(DELETED).join(name)),
        };
        match outcome {
            // Done before a crash, or by a person.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.map_err(|source| FileError { doing: "delete", path, source }),
        }
    }
}

/// Returns when all that was written below a folder is on disk: one call for the whole file system is cheaper than one
/// per file, names and folders included.
pub(crate) fn sync(root: &Path) -> Result<(), FileError> {
    let failed = |source: io::Error| FileError::new("sync", root, source);
    let folder = File::open(root).map_err(failed)?;
    rustix::fs::syncfs(&folder).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(name: &str, text: &str) -> Change {
        Change::Write { name: name.to_owned(), content: text.as_bytes().to_vec() }
    }

    #[test]
    fn pages_are_written_changed_and_deleted_by_policy() {
        for (policy, there, kept) in [
            (DeletedPolicy::Remove, false, None),
            (DeletedPolicy::Keep, true, None),
            (DeletedPolicy::Mark, false, Some("+deleted/a/1.xml")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut folder = Folder::open(dir.path(), policy).unwrap();
            let page: Vec<_> = (0..50).map(|n| write(&format!("a/{n}.xml"), &n.to_string())).collect();
            folder.apply(&page).unwrap();
            folder.apply(&[write("a/7.xml", "seven")]).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("a/7.xml")).unwrap(), "seven");
            let gone = Change::Delete { name: "a/1.xml".to_owned() };
            folder.apply(std::slice::from_ref(&gone)).unwrap();
            folder.apply(&[gone]).unwrap();
            assert_eq!(dir.path().join("a/1.xml").exists(), there, "{policy}");
            assert!(kept.is_none_or(|kept| dir.path().join(kept).exists()));
            assert_eq!(fs::read_dir(dir.path().join("+aside")).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_a_crash_left_aside_goes() {
        let dir = tempfile::tempdir().unwrap();
        Folder::open(dir.path(), DeletedPolicy::Remove).unwrap();
        fs::write(dir.path().join("+aside/3"), "half").unwrap();
        Folder::open(dir.path(), DeletedPolicy::Remove).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("+aside")).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(dir.path(), DeletedPolicy::Remove).unwrap();
        folder.apply(&[write("a.xml", "x")]).unwrap();
        let error = folder.apply(&[write("a.xml/b.xml", "x")]).unwrap_err();
        assert!(error.to_string().contains("a.xml"), "{error}");
    }
}
