//! The folder of a crawl: what lies where, and that only one process writes into it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// There from the first change of an import to its end.
const IMPORTING: &str = "state/importing";

/// The folder, held while this value or a clone of it lives.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    /// Locked; the system lets go of it when the process ends, however it ends.
    _lock: Arc<File>,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{0} holds a crawl already; go on with it (--resume) or choose another folder")]
    Used(PathBuf),
    #[error("{0} holds no crawl to go on with: there is no job.json")]
    NoCrawl(PathBuf),
    #[error("another process is crawling into {0}; wait for it or stop it")]
    Busy(PathBuf),
    #[error("cannot use {0} as the folder of a crawl")]
    Io(PathBuf, #[source] io::Error),
}

impl Folder {
    /// Makes the folder of a new crawl.
    pub fn create(root: &Path) -> Result<Folder, FolderError> {
        if root.join("job.json").exists() {
            return Err(FolderError::Used(root.to_owned()));
        }
        Folder::lock(root)
    }

    /// Opens the folder of a crawl that was begun.
    pub fn open(root: &Path) -> Result<Folder, FolderError> {
        if !root.join("job.json").exists() {
            return Err(FolderError::NoCrawl(root.to_owned()));
        }
        Folder::lock(root)
    }

    fn lock(root: &Path) -> Result<Folder, FolderError> {
        let failed = |error| FolderError::Io(root.to_owned(), error);
        for name in ["warcs", "logs", "reports", "manifests", "state"] {
            fs::create_dir_all(root.join(name)).map_err(failed)?;
        }
        // The frontier holds URLs with passwords, cookies and log-ins; the job too. Also those of an earlier version.
        fs::set_permissions(root.join("state"), fs::Permissions::from_mode(0o700)).map_err(failed)?;
        match fs::set_permissions(root.join("job.json"), fs::Permissions::from_mode(0o600)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let lock = File::create(root.join("state/lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { root: root.to_owned(), _lock: Arc::new(lock) }),
            Err(fs::TryLockError::WouldBlock) => Err(FolderError::Busy(root.to_owned())),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Whether the frontier is made from stored files, and not whole yet.
    pub(super) fn is_importing(&self) -> io::Result<bool> {
        self.root.join(IMPORTING).try_exists()
    }

    /// Notes that an import begins or is over. It is on the disk when this returns.
    pub(super) fn set_importing(&self, importing: bool) -> io::Result<()> {
        let path = self.root.join(IMPORTING);
        if importing {
            File::create(path)?.sync_all()?;
        } else if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        File::open(self.root.join("state"))?.sync_all()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// WARC files.
    pub fn warcs(&self) -> PathBuf {
        self.root.join("warcs")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn reports(&self) -> PathBuf {
        self.root.join("reports")
    }

    /// What each chunk holds.
    pub fn manifests(&self) -> PathBuf {
        self.root.join("manifests")
    }

    /// The frontier.
    pub fn frontier(&self) -> PathBuf {
        self.root.join("state/frontier")
    }

    /// Bodies too large for memory, while they are being worked on.
    pub fn scratch(&self) -> PathBuf {
        self.root.join("state/scratch")
    }

    pub fn cookies(&self) -> PathBuf {
        self.root.join("state/cookies.txt")
    }

    /// What is to be restored before the crawl goes on; there after a failed sync.
    pub fn unsynced(&self) -> PathBuf {
        self.root.join("state/unsynced.json")
    }

    /// Where a running crawl takes orders.
    pub fn socket(&self) -> PathBuf {
        self.root.join("state/control.sock")
    }

    /// Keeps the job, so that the crawl can be resumed from the folder alone. If that fails nothing is left of it: it may be
    /// tried again on a full disk.
    pub fn save_job(&self, job: &impl Serialize) -> io::Result<()> {
        let aside = self.root.join("job.json.tmp");
        let written = || {
            // Nobody else may see it even for a moment.
            let mut file =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            serde_json::to_writer_pretty(&mut file, job)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&aside, self.root.join("job.json"))
        };
        if let Err(error) = written() {
            let _ = fs::remove_file(&aside);
            return Err(error);
        }
        File::open(&self.root)?.sync_all()
    }

    pub fn load_job<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&fs::read(self.root.join("job.json"))?).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_used_by_one_crawl_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("crawl");
        assert!(matches!(Folder::open(&root), Err(FolderError::NoCrawl(_))));
        let folder = Folder::create(&root).unwrap();
        folder.save_job(&vec!["http://e.org/"]).unwrap();
        let mode = |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("job.json"), mode("state")), (0o600, 0o700), "they hold passwords");
        assert!(matches!(Folder::create(&root), Err(FolderError::Used(_))));
        assert!(matches!(Folder::open(&root), Err(FolderError::Busy(_))));
        drop(folder);
        let folder = Folder::open(&root).unwrap();
        assert_eq!(folder.load_job::<Vec<String>>().unwrap(), ["http://e.org/"]);
    }
}
