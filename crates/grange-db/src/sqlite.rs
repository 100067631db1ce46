//! Opening SQLite files: the checks before, the connections, the settings of each.

use std::io::Read;
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

/// The first bytes of every SQLite file: https://www.sqlite.org/fileformat.html
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Up to this size the whole file is checked when it is opened, which takes about a tenth of a second.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// What is in the file's place.
pub(crate) enum Seen {
    Nothing,
    /// A file with SQLite's mark, and its size.
    File(u64),
}

/// Looks at the file without opening it as a database, so that nothing is created or changed by mistake.
pub(crate) fn look(path: &Path) -> Result<Seen, Error> {
    let unreadable = |source: std::io::Error| Error::Unreadable {
        path: path.to_owned(),
        source: std::sync::Arc::new(source),
    };
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // The folder must be there: a typing error in the path shall not start a second archive.
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return match std::fs::metadata(folder) {
                Ok(_) => Ok(Seen::Nothing),
                Err(error) => Err(unreadable(error)),
            };
        }
        Err(error) => return Err(unreadable(error)),
    };
    let size = file.metadata().map_err(unreadable)?.len();
    if size == 0 {
        // SQLite itself creates an empty file before the first write.
        return Ok(Seen::Nothing);
    }
    let mut start = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start).map_err(unreadable)?;
    if start == MAGIC { Ok(Seen::File(size)) } else { Err(Error::NotADatabase { path: path.to_owned() }) }
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
