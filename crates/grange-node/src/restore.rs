//! Putting a backup in the place of the database of a data folder. The database that was there is kept; the archive is
//! brought up to date afterwards by a rebuild and an audit.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grange_base::{Chain, Clock, durable};
pub use grange_db::CameBack;
use grange_db::{Db, KeyRing, Target, came_back};
use grange_model::Actor;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use crate::data::{DataError, DataFolder};
use crate::settings::Settings;

/// What was put where.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredDatabase {
    pub database: PathBuf,
    /// Where the database lies that was there before.
    pub replaced: Option<PathBuf>,
    /// Why the database that was there before could not be compared with.
    pub not_compared: Option<String>,
    pub sessions_ended: u64,
    pub came_back: CameBack,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(
        "cannot restore {}: the settings name a PostgreSQL database; restore that with pg_restore and run `grange db restored`; then start the nodes and run `grange archive rebuild` and `grange audit run --wait`",
        backup.display()
    )]
    Postgres { backup: PathBuf },
    #[error("cannot restore {}: a database in use lies there; make a copy of it with `grange db backup`", backup.display())]
    InUse { backup: PathBuf },
    #[error("cannot restore {}: it is the database of that data folder itself", backup.display())]
    Itself { backup: PathBuf },
    #[error("cannot restore {}: there is no database in it", backup.display())]
    Empty { backup: PathBuf },
    #[error(
        "cannot restore {}: it is a backup of {theirs}, and {} is the database of the archive {ours}; choose a \
         backup of that archive. If this data folder must become the other archive, move its database and its replicas away \
         first. Nothing was changed",
        backup.display(),
        database.display()
    )]
    OtherArchive { backup: PathBuf, theirs: String, database: PathBuf, ours: String },
    #[error("cannot restore {}; the database of the data folder is as it was, choose another backup", backup.display())]
    Unusable {
        backup: PathBuf,
        #[source]
        source: grange_db::Error,
    },
    #[error("cannot {doing} {}; the database of the data folder is as it was", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot restore: the database of the data folder lost its log on the way, which could not be put back; before anything \
         opens {}, copy {} beside it as {}",
        database.display(),
        kept.display(),
        log.display()
    )]
    LogTakenAway {
        database: PathBuf,
        kept: PathBuf,
        log: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot rename {}, which is the replaced database: the backup has taken its place at {}; rename it by hand",
        kept.display(),
        database.display()
    )]
    KeptElsewhere {
        database: PathBuf,
        kept: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot sync {}: the backup has taken the database's place, and after a power cut the replaced database may be there \
         again; check the disk, then repeat the command",
        folder.display()
    )]
    Unsynced {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot restore into {}: there is no such folder; if it should be made, repeat the command with --new",
        folder.display()
    )]
    NoFolder { folder: PathBuf },
    #[error(
        "cannot restore into {}: it is not a data folder, and it is not empty; name the data folder with --to",
        folder.display()
    )]
    OtherFolder { folder: PathBuf },
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Puts the backup in the place of the database of `data`, which nobody may use meanwhile. The folder is made only with
/// `new`: a typing error shall not start a second archive.
pub async fn restore_database(
    settings: &Settings,
    data: &Path,
    backup: &Path,
    new: bool,
    actor: &Actor,
) -> Result<RestoredDatabase, RestoreError> {
    let Target::Sqlite { path } = Target::read(&settings.db, data)? else {
        return Err(RestoreError::Postgres { backup: backup.to_owned() });
    };
    let failed = |doing: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Io { doing, path, source }
    };
    let whole = fs::metadata(backup).map_err(failed("read", backup))?;
    if beside(backup, "-wal").exists() {
        return Err(RestoreError::InUse { backup: backup.to_owned() });
    }
    if whole.len() == 0 {
        return Err(RestoreError::Empty { backup: backup.to_owned() });
    }
    // By a hard link it has another path.
    let is_same = |own: fs::Metadata| (own.dev(), own.ino()) == (whole.dev(), whole.ino());
    if fs::metadata(&path).is_ok_and(is_same) {
        return Err(RestoreError::Itself { backup: backup.to_owned() });
    }
    check_folder(data, &path, new)?;
    let _folder = DataFolder::take(data).await?;
    let clock = Clock::system();

    // The copy is opened and brought up to date first: what cannot be used never takes the database's place.
    let aside = beside(&path, ".restoring");
    let restored = copied(backup, &aside).map_err(failed("copy", backup));
    let prepared = match restored {
        Ok(()) => prepare(settings, &path, &aside, backup, actor, &clock).await,
        Err(error) => Err(error),
    };
    remove_all(&aside);
    let (came_back, sessions_ended, not_compared, ready) = prepared?;

    let replaced = path.exists().then(|| {
        let stamp = clock.now().strftime("%Y%m%dT%H%M%S.%3fZ");
        beside(&path, &format!(".replaced-{stamp}"))
    });
    let swapped = replace(&ready, &path, replaced.as_deref(), settings.db.busy_timeout.0).await;
    match &swapped {
        // There it holds the only copy of the replaced database.
        Ok(()) | Err(RestoreError::KeptElsewhere { .. }) => {}
        Err(_) => remove_all(&ready),
    }
    swapped?;
    Ok(RestoredDatabase { database: path.to_path_buf(), replaced, not_compared, sessions_ended, came_back })
}

/// For a database that was restored with other tools, such as `pg_restore`: ends every session, and gives how many, with all
/// tokens and passwords that work. Which of them were revoked or changed since the backup nobody can tell any more.
pub async fn settle_restored(
    settings: &Settings,
    data: &Path,
    actor: &Actor,
) -> Result<(u64, CameBack), RestoreError> {
    let clock = Clock::system();
    let db = Db::open(&settings.db, data, clock.clone()).await?;
    let came_back = came_back(None, &db.key_ring().await?, clock.now());
    let ended = db.settle_restored("restored with other tools", Vec::new(), actor).await;
    db.close().await;
    Ok((ended?, came_back))
}

/// Whether a backup may be restored into the folder: into a data folder, into one whose database was lost, and into an empty
/// one.
fn check_folder(data: &Path, database: &Path, new: bool) -> Result<(), RestoreError> {
    let folder = data.to_owned();
    let mut entries = match fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound && new => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RestoreError::NoFolder { folder });
        }
        Err(source) => return Err(RestoreError::Io { doing: "list", path: folder, source }),
    };
    // Signs of a data folder; people may bring some of them from the lost machine before the database.
    let known = ["grange.lock", "grange.toml", "node.id", "secrets", "replicas"];
    let is_data_folder = database.exists() || known.iter().any(|name| data.join(name).exists());
    if is_data_folder || entries.next().is_none() {
        Ok(())
    } else {
        Err(RestoreError::OtherFolder { folder })
    }
}

/// Puts `ready` in the place of the database `path`, which is kept as `replaced`. Whenever the process is killed, the one or
/// the other is whole in its place.
async fn replace(
    ready: &Path,
    path: &Path,
    replaced: Option<&Path>,
    busy_timeout: Duration,
) -> Result<(), RestoreError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let failed = |doing: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Io { doing, path, source }
    };
    let sync = || durable::sync_folder(parent).map_err(failed("sync", parent));
    let sync_placed = || {
        let unsynced = |source| RestoreError::Unsynced { folder: parent.to_owned(), source };
        durable::sync_folder(parent).map_err(unsynced)
    };
    if let Some(replaced) = replaced {
        match grange_db::fold_log(path, busy_timeout).await {
            // One file is all there is of it, and changes places with the backup.
            Ok(()) => {
                remove_logs(path).map_err(failed("remove the empty log of", path))?;
                sync()?;
                if exchange(ready, path).is_ok() {
                    if let Err(source) = rename(ready, replaced) {
                        exchange(ready, path).map_err(|source| RestoreError::KeptElsewhere {
                            database: path.to_owned(),
                            kept: ready.to_owned(),
                            source,
                        })?;
                        return Err(failed("keep", path)(source));
                    }
                    return sync_placed();
                }
                // Not every file system can exchange two files.
                copied(path, replaced).map_err(failed("copy", path))?;
            }
            // It cannot be opened, or is in use. SQLite would apply its log to the restored file.
            Err(error) => {
                tracing::warn!(database = %path.display(), error = %Chain(&error), "the replaced database is kept as it is, with its log beside it");
                for end in ["", "-wal", "-shm"] {
                    absent_or(copied(&beside(path, end), &beside(replaced, end)))
                        .map_err(failed("copy", path))?;
                }
            }
        }
        sync()?;
    }
    let renamed = remove_logs(path)
        .and_then(|()| durable::sync_folder(parent))
        .and_then(|()| rename(ready, path))
        .map_err(failed("rename", ready));
    match (renamed, replaced) {
        (Ok(()), _) => sync_placed(),
        (Err(error), None) => Err(error),
        (Err(error), Some(replaced)) => {
            let (kept, log) = (beside(replaced, "-wal"), beside(path, "-wal"));
            if kept.exists() && !log.exists() {
                let put_back = copied(&kept, &log);
                put_back.map_err(|source| RestoreError::LogTakenAway {
                    database: path.to_owned(),
                    kept,
                    log,
                    source,
                })?;
            }
            Err(error)
        }
    }
}

/// The log of the database, and its index.
fn remove_logs(database: &Path) -> io::Result<()> {
    for end in ["-wal", "-shm"] {
        absent_or(fs::remove_file(beside(database, end)))?;
    }
    Ok(())
}

fn absent_or(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Gives each of two files the name of the other, in one step.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(test)]
    tests::fail(one)?;
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    tests::fail(from)?;
    fs::rename(from, to)
}

type Prepared = (CameBack, u64, Option<String>, PathBuf);

/// Compares the copy with the database that is there, ends sessions in it, and writes it whole to a file of its own.
async fn prepare(
    settings: &Settings,
    path: &Path,
    aside: &Path,
    backup: &Path,
    actor: &Actor,
    clock: &Clock,
) -> Result<Prepared, RestoreError> {
    let (before, ours, not_compared) = if path.exists() {
        match look(settings, path, clock).await {
            Ok((ring, archive)) => (Some(ring), archive, None),
            Err(error) => (None, None, Some(Chain(&error).to_string())),
        }
    } else {
        (None, None, Some("there was no database to compare with".to_owned()))
    };
    let db = open(settings, aside, clock)
        .await
        .map_err(|source| RestoreError::Unusable { backup: backup.to_owned(), source })?;
    let theirs = db.places().archive_id().await?;
    // An archive gets its id with its first replica. A database without one is not that of an archive with files.
    if let Some(ours) = ours
        && theirs.as_ref() != Some(&ours)
    {
        let theirs =
            theirs.map_or("an archive that was never started".to_owned(), |id| format!("the archive {id}"));
        db.close().await;
        let (backup, database) = (backup.to_owned(), path.to_owned());
        return Err(RestoreError::OtherArchive { backup, theirs, database, ours });
    }
    let settled = async {
        let came = came_back(before.as_ref(), &db.key_ring().await?, clock.now());
        let again = came.tokens.iter().filter(|token| token.revoked_at.is_some()).map(|token| token.id);
        let sessions = db.settle_restored(&backup.display().to_string(), again.collect(), actor).await?;
        let ready = beside(path, ".restored");
        remove_all(&ready);
        db.backup_to(&ready).await?;
        Ok::<_, grange_db::Error>((came, sessions, not_compared, ready))
    };
    let settled = settled.await;
    db.close().await;
    Ok(settled?)
}

async fn open(settings: &Settings, path: &Path, clock: &Clock) -> Result<Db, grange_db::Error> {
    let settings = grange_db::Settings { url: format!("sqlite:{}", path.display()), ..settings.db.clone() };
    Db::open(&settings, Path::new("/"), clock.clone()).await
}

/// What opens doors in the database that is there, and the id of its archive.
async fn look(
    settings: &Settings,
    path: &Path,
    clock: &Clock,
) -> Result<(KeyRing, Option<String>), grange_db::Error> {
    let db = open(settings, path, clock).await?;
    let seen = async { Ok((db.key_ring().await?, db.places().archive_id().await?)) };
    let seen = seen.await;
    db.close().await;
    seen
}

/// A file beside another, its name longer by `end`.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn copied(from: &Path, to: &Path) -> io::Result<()> {
    // Looked at first: what lies at `to` is not removed for nothing.
    let mut source = File::open(from)?;
    remove_all(to);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    // It holds the hashes of passwords.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(to)?;
    io::copy(&mut source, &mut file)?;
    file.sync_all()
}

/// Takes away a database that was only made on the way, with what SQLite and an upgrade put beside it.
fn remove_all(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let of_it = |found: &str| {
        found == name || found.strip_prefix(name).is_some_and(|end| end.starts_with(['-', '.']))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(of_it) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
