//! Opening SQLite files: the checks before, the connections, the settings of each.

use std::path::Path;
use std::time::Duration;

use grange_base::Clock;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions, Connection};

use crate::backup;
use crate::error::Error;
use crate::migrate::{self, Found, Step};
use crate::row::Columns;
use crate::settings::Settings;
use crate::target::Target;

/// Up to this size the whole file is checked when it is opened, which takes about a tenth of a second.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// What is in the file's place.
pub(crate) enum Seen {
    Nothing,
    /// A file, and its size.
    File(u64),
}

/// Looks at the file without opening it, so that nothing is created or changed by mistake.
///
/// Only SQLite itself opens the database file in this process. It guards the file with POSIX record locks, and closing
/// any descriptor of a file drops all such locks of the process: a node that looked into the file once would go on
/// without locks, and the next program that opens and closes the file would delete the log that the node still writes
/// to (https://www.sqlite.org/howtocorrupt.html, 2.2). A file that is not a database is refused by SQLite.
pub(crate) fn look(path: &Path) -> Result<Seen, Error> {
    let unreadable = |source: std::io::Error| Error::Unreadable {
        path: path.to_owned(),
        source: std::sync::Arc::new(source),
    };
    match std::fs::metadata(path) {
        // SQLite itself creates an empty file before the first write.
        Ok(file) if file.is_file() && file.len() == 0 => Ok(Seen::Nothing),
        Ok(file) if file.is_file() => Ok(Seen::File(file.len())),
        Ok(_) => Err(unreadable(std::io::Error::other("it is not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // The folder must be there: a typing error in the path shall not start a second archive.
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match std::fs::metadata(folder) {
                Ok(_) => Ok(Seen::Nothing),
                Err(error) => Err(unreadable(error)),
            }
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Checks the file, brings it to the newest step after a backup copy, and gives the write connection.
pub(crate) async fn open(
    target: &Target,
    path: &Path,
    settings: &Settings,
    clock: &Clock,
    steps: &[Step],
) -> Result<(AnyConnection, Vec<&'static str>), Error> {
    let seen = look(path)?;
    if matches!(seen, Seen::Nothing) && !path.exists() {
        // The files SQLite puts beside it take over its rights.
        backup::create_private(path).map_err(|source| Error::Unreadable {
            path: path.to_owned(),
            source: std::sync::Arc::new(source),
        })?;
    }
    let mut conn = connect_writer(target, settings.busy_timeout.0)
        .await
        .map_err(|error| Error::sql("open it", target, error))?;
    if let Seen::File(size) = seen
        && size <= CHECKED_BYTES_MAX
    {
        check(&mut conn, target).await?;
    }
    let found = migrate::look(&mut conn, target, steps).await?;
    let newest = steps.last().map_or(0, |step| step.number);
    if let Found::At(number) = found
        && number < newest
    {
        let copy = backup::name_before_step(path, number + 1, clock.now());
        backup::copy(&mut conn, &copy).await?;
        tracing::info!(copy = %copy.display(), "backed up {target} before migrating it");
    }
    let taken = migrate::apply(&mut conn, target, steps, found, clock.now()).await?;
    Ok((conn, taken))
}

/// The connection that writes. Only one exists per process.
pub(crate) async fn connect_writer(
    target: &Target,
    busy_timeout: Duration,
) -> Result<AnyConnection, sqlx::Error> {
    let mut conn = AnyConnection::connect_with(&options(target, "rwc")?).await?;
    // FULL: after a commit a power cut loses nothing. WAL: readers do not wait for the writer.
    for pragma in [
        busy_pragma(busy_timeout),
        "PRAGMA journal_mode = WAL".to_owned(),
        "PRAGMA synchronous = FULL".to_owned(),
        "PRAGMA foreign_keys = ON".to_owned(),
        // Planning a million configurations touches pages all over the file: with SQLite's own 2 MB each was read,
        // and with its 4 MB of log each was written to its place, hundreds of times. Kilobytes, then pages of 4 KB.
        "PRAGMA cache_size = -65536".to_owned(),
        "PRAGMA wal_autocheckpoint = 16384".to_owned(),
    ] {
        sqlx::raw_sql(AssertSqlSafe(pragma)).execute(&mut conn).await?;
    }
    Ok(conn)
}

/// The connections that read, and cannot write.
pub(crate) fn readers(target: &Target, settings: &Settings) -> Result<AnyPool, Error> {
    let sql = |error| Error::sql("open it", target, error);
    let busy = busy_pragma(settings.busy_timeout.0);
    let pool = AnyPoolOptions::new()
        .max_connections(settings.connections_max.max(1))
        .acquire_timeout(settings.connect_timeout.0)
        .test_before_acquire(false)
        .after_connect(move |conn, _| {
            let busy = busy.clone();
            Box::pin(async move { sqlx::raw_sql(AssertSqlSafe(busy)).execute(conn).await.map(|_| ()) })
        })
        .connect_lazy_with(options(target, "ro").map_err(sql)?);
    Ok(pool)
}

/// One more connection that only reads.
pub(crate) async fn connect_reader(target: &Target, busy_timeout: Duration) -> Result<AnyConnection, Error> {
    let sql = |error| Error::sql("open it", target, error);
    let options = options(target, "ro").map_err(sql)?;
    let mut conn = AnyConnection::connect_with(&options).await.map_err(sql)?;
    sqlx::raw_sql(AssertSqlSafe(busy_pragma(busy_timeout))).execute(&mut conn).await.map_err(sql)?;
    Ok(conn)
}

async fn check(conn: &mut AnyConnection, target: &Target) -> Result<(), Error> {
    let sql = |error| Error::sql("check it", target, error);
    let row = sqlx::query("PRAGMA quick_check(1)").fetch_one(conn).await.map_err(sql)?;
    let verdict = row.text("quick_check").map_err(|fail| fail.tell("check it", target))?;
    if verdict == "ok" {
        return Ok(());
    }
    tracing::error!(%verdict, "the check of {target} failed");
    Err(Error::Damaged { target: target.clone(), source: None })
}

fn busy_pragma(timeout: Duration) -> String {
    format!("PRAGMA busy_timeout = {}", timeout.as_millis().min(i32::MAX as u128))
}

fn options(target: &Target, mode: &str) -> Result<AnyConnectOptions, sqlx::Error> {
    Ok(AnyConnectOptions::from_url(&target.driver_url(mode))?.disable_statement_logging())
}
