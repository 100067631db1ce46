//! The data folder: who may use it, and how a command finds the node that runs on it.
//!
//! ```text
//! DIR/grange.lock        held exclusively by a running node, shared by commands that open the store directly
//! DIR/grange.db          the facts (SQLite default)
//! DIR/backups/           copies of it
//! DIR/node.id            this node's id, for ever
//! DIR/secrets/           node.token: what all nodes share
//! DIR/run/node.json      while a node runs: its address and the key for commands on this machine
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grange_model::ids::NodeId;
use serde::{Deserialize, Serialize};

use crate::secret;

/// Commands hold the folder for moments; a node that starts meanwhile waits this long for them.
const LOCK_WITHIN: Duration = Duration::from_secs(5);

/// A data folder that is ours to use until this is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

/// How a data folder can be used.
#[derive(Debug)]
pub enum Access {
    /// No node runs there: the store is opened directly.
    Direct(DataFolder),
    /// A node runs there and is asked instead.
    Running(RunningNode),
}

/// What a running node leaves for commands on its machine. Readable only by its user.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunningNode {
    pub pid: u32,
    /// `http://…`
    pub url: String,
    pub token: String,
}

impl std::fmt::Debug for RunningNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningNode").field("pid", &self.pid).field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("cannot use the data folder {}; choose another with --data", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another node already runs on {}; stop it first, or start this one with another --data", path.display())]
    Taken { path: PathBuf },
    #[error("a node runs on {} but its file run/node.json cannot be read; are you the user it runs as?", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is damaged: \"{text}\" is not a node id; restore it from a backup, or remove it to let this folder become a new node", path.display())]
    NodeId { path: PathBuf, text: String },
}

impl DataFolder {
    /// Takes the folder for a node, making it if need be. Nobody else can use it directly meanwhile.
    pub fn take(path: &Path) -> Result<Self, DataError> {
        let file = lock_file(path)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock: file }),
                // A node says that it runs; a command will be gone in a moment.
                Err(TryLockError::WouldBlock) if running(path).is_err() && start.elapsed() < LOCK_WITHIN => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Err(DataError::Taken { path: path.to_owned() }),
                Err(TryLockError::Error(source)) => {
                    return Err(DataError::Unusable { path: path.to_owned(), source });
                }
            }
        }
    }

    /// Finds out how a command reaches the store of this folder.
    pub fn access(path: &Path) -> Result<Access, DataError> {
        let file = lock_file(path)?;
        let start = Instant::now();
        loop {
            match file.try_lock_shared() {
                Ok(()) => return Ok(Access::Direct(Self { path: path.to_owned(), _lock: file })),
                Err(TryLockError::WouldBlock) => match running(path) {
                    Ok(node) => return Ok(Access::Running(node)),
                    // The node is still starting or already stopping.
                    Err(error)
                        if error.kind() == io::ErrorKind::NotFound && start.elapsed() < LOCK_WITHIN =>
                    {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(source) => return Err(DataError::Unreadable { path: path.to_owned(), source }),
                },
                Err(TryLockError::Error(source)) => {
                    return Err(DataError::Unusable { path: path.to_owned(), source });
                }
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// This node's id: made on the first start and kept.
    pub fn node_id(&self) -> Result<NodeId, DataError> {
        let path = self.path.join("node.id");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let text = text.trim();
                text.parse().map_err(|_| DataError::NodeId { path, text: text.to_owned() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = NodeId::new();
                secret::write(&path, &id.to_string())
                    .map_err(|source| DataError::Unusable { path, source })?;
                Ok(id)
            }
            Err(source) => Err(DataError::Unusable { path, source }),
        }
    }

    /// Lets commands on this machine find the node.
    pub fn announce(&self, node: &RunningNode) -> Result<(), DataError> {
        let path = run_file(&self.path);
        // Plain data always has a JSON form.
        let text = serde_json::to_string(node).unwrap_or_default();
        secret::write(&path, &text).map_err(|source| DataError::Unusable { path, source })
    }

    pub fn withdraw(&self) {
        // Left behind it does no harm: without the lock nobody reads it.
        let _ = std::fs::remove_file(run_file(&self.path));
    }

    /// Bytes that can still be written here.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.path)
    }
}

/// Bytes that can still be written below a path, where the system tells.
pub fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|stat| stat.f_bavail * stat.f_frsize)
}

fn lock_file(path: &Path) -> Result<File, DataError> {
    let unusable = |source| DataError::Unusable { path: path.to_owned(), source };
    std::fs::create_dir_all(path).map_err(unusable)?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join("grange.lock"))
        .map_err(unusable)
}

fn run_file(path: &Path) -> PathBuf {
    path.join("run/node.json")
}

fn running(path: &Path) -> io::Result<RunningNode> {
    let text = std::fs::read_to_string(run_file(path))?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_at_a_time_and_commands_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        let node = RunningNode { pid: 1, url: "http://127.0.0.1:1".to_owned(), token: "t".to_owned() };
        data.announce(&node).unwrap();
        assert!(matches!(DataFolder::take(folder.path()), Err(DataError::Taken { .. })));
        let Access::Running(found) = DataFolder::access(folder.path()).unwrap() else {
            panic!("a node runs")
        };
        assert_eq!(found.url, node.url);
        let id = data.node_id().unwrap();
        // A killed node leaves its file, but not its lock.
        drop(data);
        let Access::Direct(first) = DataFolder::access(folder.path()).unwrap() else {
            panic!("no node runs")
        };
        assert!(matches!(DataFolder::access(folder.path()).unwrap(), Access::Direct(_)));
        assert_eq!(first.node_id().unwrap(), id);
    }

    #[test]
    fn a_damaged_node_id_is_not_replaced_silently() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        std::fs::write(folder.path().join("node.id"), "???\n").unwrap();
        assert!(data.node_id().unwrap_err().to_string().contains("not a node id"));
    }

    #[test]
    fn a_file_in_the_way_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let error = DataFolder::take(&path.join("below")).unwrap_err().to_string();
        assert!(error.contains("choose another with --data"), "{error}");
    }
}
