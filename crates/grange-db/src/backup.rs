//! Copies of a SQLite database, made while it is in use.
//!
//! `VACUUM INTO` reads one state of the database, whatever is written meanwhile. The copy is made aside, synced and
//! then renamed, so that a file with a backup's name is a whole backup.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{AnyConnection, Connection};

use crate::error::Error;
use crate::open::{Db, Engine};
use crate::row::Columns;
use crate::settings::Settings;
use crate::sqlite;
use crate::target::Target;

impl Db {
    /// Copies the database to `path`, which must not exist. Writers are not held up.
    pub async fn backup_to(&self, path: &Path) -> Result<(), Error> {
        let Engine::Sqlite { busy_timeout, .. } = &self.0.engine else {
            return Err(Error::BackupElsewhere { target: self.0.target.clone() });
        };
        // What is at the path then is another database.
        self.is_there("copy it")?;
        let mut conn = sqlite::connect_reader(&self.0.target, *busy_timeout).await?;
        let copied = copy(&mut conn, path).await;
        let _ = conn.close().await;
        copied
    }

    /// Copies the database into `folder` under a name that tells the time, and gives the path.
    pub async fn backup_into(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(name_at(self.0.clocks.acts.now()));
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        self.backup_to(&path).await?;
        Ok(path)
    }

    /// The SQLite file; `None` on PostgreSQL.
    pub fn file(&self) -> Option<&Path> {
        match &self.0.engine {
            Engine::Sqlite { path, .. } => Some(path),
            Engine::Postgres => None,
        }
    }
}

/// Writes everything that stands only in the log of a SQLite database into the database itself, which nobody may use
/// meanwhile. Afterwards the one file is the whole database.
pub async fn fold_log(database: &Path, busy_timeout: Duration) -> Result<(), Error> {
    sqlx::any::install_default_drivers();
    let settings = Settings { url: format!("sqlite:{}", database.display()), ..Settings::default() };
    let target = Target::read(&settings, Path::new("/"))?;
    let sql = |error| Error::sql("write its log into it", &target, error);
    let mut conn = sqlite::connect_writer(&target, busy_timeout).await.map_err(sql)?;
    let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut conn).await.map_err(sql)?;
    let busy = row.int("busy").map_err(|fail| fail.tell("write its log into it", &target))?;
    conn.close().await.map_err(sql)?;
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let left = fs::metadata(PathBuf::from(log)).map_or(0, |log| log.len());
    if busy == 0 && left == 0 {
        return Ok(());
    }
    let reason = "another program uses it: end that program, then try again";
    Err(failed(database, std::io::Error::new(std::io::ErrorKind::ResourceBusy, reason)))
}

/// Deletes all but the `keep` newest of the backups that [`Db::backup_into`] made in `folder`; nothing else is
/// touched. Gives what was deleted.
pub fn prune_backups(folder: &Path, keep: usize) -> Result<Vec<PathBuf>, Error> {
    let mut backups = list_backups(folder)?;
    let surplus = backups.len().saturating_sub(keep);
    backups.truncate(surplus);
    for path in &backups {
        fs::remove_file(path).map_err(|error| failed(path, error))?;
    }
    Ok(backups)
}

/// The backups that [`Db::backup_into`] made in `folder`, oldest first; none if there is no such folder.
pub fn list_backups(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, error)),
    };
    let mut backups = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_backup) {
            backups.push(path);
        }
    }
    // The names tell the time, so they sort by it.
    backups.sort();
    Ok(backups)
}

/// Whether it is time for the next backup in `folder`. Judged by the newest file there, so that restarts neither skip
/// nor add one. A period of zero means never. A backup of the future, made while the clock was ahead, says nothing.
pub fn backup_due(folder: &Path, every: Duration, now: Timestamp) -> Result<bool, Error> {
    if every.is_zero() {
        return Ok(false);
    }
    let (mut backups, name_now) = (list_backups(folder)?, name_at(now));
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    backups.retain(|path| name(path) <= name_now);
    // The next name that would be due sorts before or at that of now.
    let latest = now.checked_sub(every).map(name_at);
    let is_due = backups.pop().is_none_or(|newest| latest.is_ok_and(|latest| name(&newest) <= latest));
    if is_due {
        warn_of_future(folder, &name_now)?;
    }
    Ok(is_due)
}

fn warn_of_future(folder: &Path, name_now: &str) -> Result<(), Error> {
    if let Some(newest) = list_backups(folder)?.pop()
        && newest.file_name().is_some_and(|name| name.to_str().is_some_and(|name| name > name_now))
    {
        let newest = newest.display();
        tracing::warn!(%newest, "the newest backup is of a time that has not come: the clock was ahead then, or is behind now");
    }
    Ok(())
}

/// `grange-20261011T120000.123Z.db`.
fn name_at(now: Timestamp) -> String {
    format!("grange-{}.db", stamp(now))
}

fn is_backup(name: &str) -> bool {
    let stamp = name.strip_prefix("grange-").and_then(|rest| rest.strip_suffix(".db"));
    stamp.is_some_and(|stamp| {
        stamp.len() == "20261011T120000.123Z".len()
            && stamp.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'T' | b'.' | b'Z'))
    })
}

/// Beside the database, told apart by the step it preceded: `grange.db.before-0003-20261011T120000.123Z`.
pub(crate) fn name_before_step(database: &Path, step: i64, now: Timestamp) -> PathBuf {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(format!(".before-{step:04}-{}", stamp(now)));
    database.with_file_name(name)
}

fn stamp(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()
}

/// Copies what `conn` is connected to.
pub(crate) async fn copy(conn: &mut AnyConnection, path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::BackupExists { path: path.to_owned() });
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let copied = write(conn, &aside, path).await;
    if copied.is_err() {
        let _ = fs::remove_file(&aside);
    }
    copied
}

async fn write(conn: &mut AnyConnection, aside: &Path, path: &Path) -> Result<(), Error> {
    let io = |error: std::io::Error| failed(path, error);
    // Left over from a crash: SQLite refuses to write into a file that is not empty.
    match fs::remove_file(aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    // SQLite writes into an empty file, and leaves its rights alone.
    create_private(aside).map_err(io)?;
    let name = aside
        .to_str()
        .ok_or_else(|| io(std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is not UTF-8")))?;
    sqlx::query("VACUUM INTO $1")
        .bind(name)
        .execute(conn)
        .await
        .map_err(|error| Error::Backup { path: path.to_owned(), source: Arc::new(error) })?;
    fs::File::open(aside).and_then(|file| file.sync_all()).map_err(io)?;
    // A hard link refuses to replace what somebody else put there meanwhile; a rename would not.
    match fs::hard_link(aside, path) {
        Ok(()) => fs::remove_file(aside).map_err(io)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Error::BackupExists { path: path.to_owned() });
        }
        // Some file systems have no hard links.
        Err(_) => fs::rename(aside, path).map_err(io)?,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
}

/// An empty file that only its owner can read: it will hold the hashes of passwords.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::Backup { path: path.to_owned(), source: Arc::new(error) }
}
