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
//!
//! Only a node that starts, the demo and `grange init` create the folder. Everything else uses an archive that is
//! there: a mistyped path must not begin a second one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grange_model::ids::NodeId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::holders::{self, Holder};
use crate::secret;

/// How long a node that starts waits for commands on its folder, and a command for a node that starts or stops. Longer
/// than a node takes to stop; short enough that a person still watches.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// How long between two tries for the lock: nobody notices a fiftieth of a second.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// A data folder that is ours to use until this is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    announced: AtomicBool,
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
    #[error(
        "there is no archive in {}: {missing} is missing; check --data, or create an empty archive with `grange --data {} init`",
        path.display(), path.display()
    )]
    NoArchive { path: PathBuf, missing: String },
    #[error(
        "the archive in {} has lost its database: {} is missing; with a backup, run `grange restore BACKUP --to {}`; without one, \
         create an empty one with `grange --data {} init` and fill it with `grange --data {} archive rebuild`",
        path.display(), file.display(), path.display(), path.display(), path.display()
    )]
    NoDatabase { path: PathBuf, file: PathBuf },
    #[error("there is an archive in {} already; nothing was changed", path.display())]
    Exists { path: PathBuf },
    #[error(
        "another node already runs on {}{}; stop it first, or start this one with another --data",
        path.display(), holders::listed(by)
    )]
    Taken { path: PathBuf, by: Vec<Holder> },
    #[error(
        "cannot start on {}: a command has used it for {} s{}; wait for its end or stop it",
        path.display(), WAIT_MAX.as_secs(), holders::listed(by)
    )]
    InUse { path: PathBuf, by: Vec<Holder> },
    #[error(
        "the node on {} has been starting or stopping for {} s{}; try again, or see its log",
        path.display(), WAIT_MAX.as_secs(), holders::listed(by)
    )]
    Between { path: PathBuf, by: Vec<Holder> },
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
    /// Takes the folder for a node, creating it if need be. Nobody else can use it directly meanwhile. Commands on it
    /// are waited for.
    pub async fn take(path: &Path) -> Result<Self, DataError> {
        let file = create_lock_file(path)?;
        let start = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // A killed node leaves its file, and whoever answers at its address now does not know its key.
                    let _ = std::fs::remove_file(run_file(path));
                    return Ok(Self::held(path, file));
                }
                Err(TryLockError::WouldBlock) => {
                    let (by_command, by) = (shared_only(path), holders::of(&lock_path(path)));
                    let late = start.elapsed() >= WAIT_MAX;
                    let path = path.to_owned();
                    match by_command {
                        true if late => return Err(DataError::InUse { path, by }),
                        // A node says that it runs; without that it is about to be gone.
                        false if late || running(&path).is_ok() => return Err(DataError::Taken { path, by }),
                        _ => {}
                    }
                    if by_command && !told {
                        told = true;
                        let by = holders::listed(&by);
                        tracing::info!(
                            "waits up to {} s for a command on {}{by}",
                            WAIT_MAX.as_secs(),
                            path.display()
                        );
                    }
                    tokio::time::sleep(TRY_EVERY).await;
                }
                Err(TryLockError::Error(source)) => {
                    return Err(DataError::Unusable { path: path.to_owned(), source });
                }
            }
        }
    }

    /// Finds out how a command reaches the store of this folder, and creates nothing. `database`: the file that must be
    /// there for an archive to be there, where the database is a file.
    pub async fn access(path: &Path, database: Option<&Path>) -> Result<Access, DataError> {
        let Some(file) = open_lock_file(path, database)? else {
            return Err(no_archive(path, database));
        };
        let start = Instant::now();
        loop {
            match file.try_lock_shared() {
                Ok(()) if database.is_some_and(|file| !file.exists()) => {
                    return Err(no_archive(path, database));
                }
                Ok(()) => return Ok(Access::Direct(Self::held(path, file))),
                Err(TryLockError::WouldBlock) => match running(path) {
                    Ok(node) => return Ok(Access::Running(node)),
                    // The node is about to start or to end.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && start.elapsed() < WAIT_MAX => {
                        tokio::time::sleep(TRY_EVERY).await;
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        let by = holders::of(&lock_path(path));
                        return Err(DataError::Between { path: path.to_owned(), by });
                    }
                    Err(source) => return Err(DataError::Unreadable { path: path.to_owned(), source }),
                },
                Err(TryLockError::Error(source)) => {
                    return Err(DataError::Unusable { path: path.to_owned(), source });
                }
            }
        }
    }

    /// Whether commands find an archive here: its database where that is a file, else the folder's lock file.
    pub fn exists(path: &Path, database: Option<&Path>) -> bool {
        database.map_or_else(|| lock_path(path).exists(), Path::exists)
    }

    /// Refuses a folder without an archive, for commands that read files in it and need no lock.
    pub fn require(path: &Path, database: Option<&Path>) -> Result<(), DataError> {
        if Self::exists(path, database) { Ok(()) } else { Err(no_archive(path, database)) }
    }

    fn held(path: &Path, lock: File) -> Self {
        Self { path: path.to_owned(), announced: AtomicBool::new(false), _lock: lock }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// Refuses a folder whose archive has lost its database, for a node that would create an empty one. `database`: where it
    /// should be, where that is a file. Replicas with files are looked at by [`crate::open::full_replicas`].
    pub fn refuse_lost_database(&self, database: Option<&Path>) -> Result<(), DataError> {
        let lost = |file: &&Path| !file.exists() && traces(&self.path);
        database.filter(lost).map_or(Ok(()), |file| Err(self.lost_database(file)))
    }

    pub(crate) fn lost_database(&self, file: &Path) -> DataError {
        DataError::NoDatabase { path: self.path.clone(), file: file.to_owned() }
    }

    /// This node's id: made on the first start and kept. Made after the database, so that a folder with an id and without a
    /// database has lost it.
    pub fn node_id(&self) -> Result<NodeId, DataError> {
        if let Some(id) = self.known_node_id()? {
            return Ok(id);
        }
        let (path, id) = (self.path.join("node.id"), NodeId::new());
        secret::write(&path, &id.to_string()).map_err(|source| DataError::Unusable { path, source })?;
        Ok(id)
    }

    /// The id that an earlier start made.
    pub fn known_node_id(&self) -> Result<Option<NodeId>, DataError> {
        let path = self.path.join("node.id");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let text = text.trim();
                text.parse().map(Some).map_err(|_| DataError::NodeId { path, text: text.to_owned() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataError::Unusable { path, source }),
        }
    }

    /// Lets commands on this machine find the node.
    pub fn announce(&self, node: &RunningNode) -> Result<(), DataError> {
        let path = run_file(&self.path);
        // Plain data always has a JSON form.
        let text = serde_json::to_string(node).unwrap_or_default();
        secret::write(&path, &text).map_err(|source| DataError::Unusable { path, source })?;
        self.announced.store(true, Ordering::Release);
        Ok(())
    }

    pub fn withdraw(&self) {
        if self.announced.swap(false, Ordering::AcqRel) {
            // Left behind it does no harm: without the lock nobody reads it.
            let _ = std::fs::remove_file(run_file(&self.path));
        }
    }

    /// Bytes that can still be written here.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.path)
    }
}

impl Drop for DataFolder {
    /// Before the lock goes: a node that did not start is not to be found either.
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Bytes that can still be written below a path, where the system tells.
pub fn free_bytes(path: &Path) -> Option<u64> {
    rustix::fs::statvfs(path).ok().map(|stat| stat.f_bavail * stat.f_frsize)
}

/// What only an archive leaves: a node's id, the key of its log, that of its logins, or backups. The token of the nodes is no such
/// trace, since it is copied into the folder of a new node.
const TRACES: [&str; 4] = ["node.id", "secrets/log.key", "secrets/vault.key", "backups"];

/// Whether there was an archive in the folder.
fn traces(path: &Path) -> bool {
    TRACES.iter().any(|name| path.join(name).exists())
}

fn no_archive(path: &Path, database: Option<&Path>) -> DataError {
    if let Some(file) = database
        && traces(path)
    {
        return DataError::NoDatabase { path: path.to_owned(), file: file.to_owned() };
    }
    let missing = match database {
        _ if !path.exists() => "the folder".to_owned(),
        Some(file) => format!("the database file {}", file.display()),
        None => lock_path(path).display().to_string(),
    };
    DataError::NoArchive { path: path.to_owned(), missing }
}

fn lock_path(path: &Path) -> PathBuf {
    path.join("grange.lock")
}

fn create_lock_file(path: &Path) -> Result<File, DataError> {
    let unusable = |source| DataError::Unusable { path: path.to_owned(), source };
    std::fs::create_dir_all(path).map_err(unusable)?;
    open_options().create(true).open(lock_path(path)).map_err(unusable)
}

fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).truncate(false);
    options
}

/// The lock file of an archive; `None` where there is no archive. One that was put back by hand may lack its lock file.
fn open_lock_file(path: &Path, database: Option<&Path>) -> Result<Option<File>, DataError> {
    match open_options().open(lock_path(path)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let put_back = path.is_dir() && database.is_some_and(Path::exists);
            if put_back { create_lock_file(path).map(Some) } else { Ok(None) }
        }
        Err(source) => Err(DataError::Unusable { path: path.to_owned(), source }),
    }
}

/// Whether all that hold the lock share it: commands do, a node does not.
fn shared_only(path: &Path) -> bool {
    File::open(lock_path(path)).is_ok_and(|file| file.try_lock_shared().is_ok())
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

    #[tokio::test]
    async fn one_node_at_a_time_and_commands_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).await.unwrap();
        let node = RunningNode { pid: 1, url: "http://127.0.0.1:1".to_owned(), token: "t".to_owned() };
        data.announce(&node).unwrap();
        let error = DataFolder::take(folder.path()).await.unwrap_err();
        assert!(matches!(error, DataError::Taken { .. }), "{error}");
        let access = async || DataFolder::access(folder.path(), None).await.unwrap();
        let Access::Running(found) = access().await else { panic!("a node runs") };
        assert_eq!(found.url, node.url);
        let id = data.node_id().unwrap();
        drop(data);
        let Access::Direct(first) = access().await else { panic!("no node runs") };
        assert!(matches!(access().await, Access::Direct(_)));
        assert_eq!(first.node_id().unwrap(), id);
    }

    #[tokio::test]
    async fn what_a_killed_node_left_is_gone_when_the_next_one_has_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let left = RunningNode { pid: 1, url: "http://127.0.0.1:1".to_owned(), token: "old".to_owned() };
        secret::write(&run_file(folder.path()), &serde_json::to_string(&left).unwrap()).unwrap();
        let _data = DataFolder::take(folder.path()).await.unwrap();
        assert!(running(folder.path()).is_err());
    }

    #[tokio::test]
    async fn a_node_waits_for_a_command_and_starts_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        drop(DataFolder::take(folder.path()).await.unwrap());
        let Access::Direct(command) = DataFolder::access(folder.path(), None).await.unwrap() else {
            panic!("no node runs")
        };
        assert!(shared_only(folder.path()));
        let path = folder.path().to_owned();
        let node = tokio::spawn(async move { DataFolder::take(&path).await });
        tokio::task::yield_now().await;
        assert!(!node.is_finished());
        drop(command);
        node.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_goes_on_is_named_and_not_called_a_node() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..2).map(|_| create_lock_file(folder.path()).unwrap()).collect();
        for file in &files {
            file.try_lock_shared().unwrap();
        }
        let error = DataFolder::take(folder.path()).await.unwrap_err().to_string();
        assert!(error.contains("a command has used it") && !error.contains("another node"), "{error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    }

    #[tokio::test]
    async fn a_command_creates_nothing_where_there_is_no_archive() {
        let folder = tempfile::tempdir().unwrap();
        let typo = folder.path().join("grnage-data");
        let database = typo.join("grange.db");
        let error = DataFolder::access(&typo, Some(&database)).await.unwrap_err().to_string();
        assert!(error.contains("the folder is missing") && error.contains("init`"), "{error}");
        assert!(!typo.exists());
        // A folder that only lacks its database is not filled with an empty one.
        let folder = DataFolder::take(&typo).await.unwrap();
        folder.node_id().unwrap();
        drop(folder);
        let error = DataFolder::access(&typo, Some(&database)).await.unwrap_err().to_string();
        assert!(error.contains("grange.db is missing") && error.contains("archive rebuild`"), "{error}");
        assert!(!database.exists());
        let empty = tempfile::tempdir().unwrap();
        let error = DataFolder::access(empty.path(), None).await.unwrap_err().to_string();
        assert!(error.contains("grange.lock is missing"), "{error}");
        assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_database_put_back_by_hand_is_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("grange.db");
        std::fs::write(&database, "x").unwrap();
        let access = DataFolder::access(folder.path(), Some(&database)).await.unwrap();
        assert!(matches!(access, Access::Direct(_)));
    }

    #[tokio::test]
    async fn a_damaged_node_id_is_not_replaced_silently() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).await.unwrap();
        std::fs::write(folder.path().join("node.id"), "???\n").unwrap();
        assert!(data.node_id().unwrap_err().to_string().contains("not a node id"));
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let error = DataFolder::take(&path.join("below")).await.unwrap_err().to_string();
        assert!(error.contains("choose another with --data"), "{error}");
    }
}
