//! Opening files that a person named.
//!
//! SQLite guards its database with POSIX record locks, and closing any descriptor of a file drops all such locks of the
//! process: after that another program that opens and closes the database deletes the log that this process still writes
//! to, and what is committed later is lost (https://www.sqlite.org/howtocorrupt.html, 2.2). So nothing in a process may
//! open a database that is in use here, by whatever path: a link to it has another name and the same inode.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files that SQLite keeps: the database, its log, the index of the log, and the journal of the other mode.
const ENDS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Databases in use in this process, and how many handles each has.
static IN_USE: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

fn in_use() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database in use in this process; until this is dropped, its files are refused here.
#[derive(Debug)]
pub struct DatabaseInUse(PathBuf);

impl DatabaseInUse {
    /// Before the database is opened.
    pub fn register(database: &Path) -> Self {
        let path = std::path::absolute(database).unwrap_or_else(|_| database.to_owned());
        *in_use().entry(path.clone()).or_default() += 1;
        Self(path)
    }
}

impl Drop for DatabaseInUse {
    fn drop(&mut self) {
        let mut databases = in_use();
        if let Some(handles) = databases.get_mut(&self.0) {
            *handles -= 1;
            if *handles == 0 {
                databases.remove(&self.0);
            }
        }
    }
}

/// The named file is the database of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it belongs to the database that this process uses, and reading it here would lose rows; make a copy with \
     `grange db backup` and name the copy"
)]
pub struct NamedDatabase;

/// Refuses a path that leads to the database of this process. The error's source is [`NamedDatabase`].
pub fn check(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(data) if is_database(&data) => Err(io::Error::other(NamedDatabase)),
        // A file that cannot be looked at fails with its reason when it is opened.
        _ => Ok(()),
    }
}

/// Whether an error of this module, or one made of it, refused the database.
pub fn refused(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<NamedDatabase>()).is_some()
}

/// Opens a file that a person named, unless it is the database of this process.
pub fn open(path: &Path) -> io::Result<File> {
    check(path)?;
    let file = File::open(path)?;
    if file.metadata().is_ok_and(|data| is_database(&data)) {
        // The path was changed meanwhile. Closing the file is what does harm.
        std::mem::forget(file);
        return Err(io::Error::other(NamedDatabase));
    }
    Ok(file)
}

/// The same off the async threads.
pub async fn open_async(path: &Path) -> io::Result<tokio::fs::File> {
    let path = path.to_owned();
    Ok(tokio::fs::File::from_std(tokio::task::spawn_blocking(move || open(&path)).await??))
}

fn is_database(data: &Metadata) -> bool {
    let databases: Vec<PathBuf> = in_use().keys().cloned().collect();
    let files = databases.iter().flat_map(|database| {
        ENDS.iter().map(|end| {
            let mut name = database.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        })
    });
    let same = |own: Metadata| (own.dev(), own.ino()) == (data.dev(), data.ino());
    files.into_iter().any(|file| std::fs::metadata(file).is_ok_and(same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_database_in_use_is_refused_under_every_name_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = ["grange.db", "grange.db-wal", "grange.db-shm", "hard", "soft", "hard-wal"];
        for name in &names[..3] {
            std::fs::write(path(name), "x").unwrap();
        }
        std::fs::write(path("other.warc"), "x").unwrap();
        std::fs::hard_link(path("grange.db"), path("hard")).unwrap();
        std::fs::hard_link(path("grange.db-wal"), path("hard-wal")).unwrap();
        std::os::unix::fs::symlink(path("grange.db"), path("soft")).unwrap();
        let (first, second) =
            (DatabaseInUse::register(&path("grange.db")), DatabaseInUse::register(&path("grange.db")));
        for handle in [first, second] {
            for name in names {
                let error = open(&path(name)).unwrap_err();
                assert!(refused(&error) && error.to_string().contains("grange db backup"), "{name}: {error}");
                assert!(refused(&open_async(&path(name)).await.unwrap_err()), "{name}");
            }
            assert!(open(&path("other.warc")).is_ok());
            assert_eq!(open(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
            drop(handle);
        }
        for name in names {
            assert!(open(&path(name)).is_ok(), "{name}");
        }
    }
}
