//! What can go wrong with the facts. Each text says what was tried, on what, and what to do; none holds a secret.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use grange_base::Retry;
use jiff::Timestamp;

use crate::opened_file::LostFile;
use crate::target::Target;

/// A failed act. Nothing of it was kept, except after [`Error::Unsure`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    // Opening.
    #[error("the setting db.url \"{url}\" cannot be used: {reason}")]
    BadUrl { url: String, reason: String },
    #[error(
        "cannot read the database password from {}: make the file of db.password_file readable for Grange",
        path.display()
    )]
    Secret { path: PathBuf, source: Arc<io::Error> },
    #[error(
        "cannot open the database file {}: check the path, and that Grange may read and write the file and its folder",
        path.display()
    )]
    Unreadable { path: PathBuf, source: Arc<dyn std::error::Error + Send + Sync> },
    #[error(
        "{} is not a database: point db.url elsewhere, or put a backup in its place",
        path.display()
    )]
    NotADatabase { path: PathBuf },
    #[error("{target} belongs to another program: point db.url at a database of Grange's own")]
    Foreign { target: Target },
    #[error("{target} is damaged: stop Grange and put the newest backup in its place")]
    Damaged { target: Target, source: Option<Arc<sqlx::Error>> },
    #[error(
        "cannot reach {target}: check that the server runs there and that the network lets Grange through"
    )]
    Unreachable { target: Target, source: Arc<sqlx::Error> },
    #[error("{target} refused the login: check the user in db.url and the password in db.password_file")]
    Denied { target: Target, source: Arc<sqlx::Error> },
    #[error("there is no such database as {target}: create it, or correct db.url")]
    NoDatabase { target: Target, source: Arc<sqlx::Error> },
    #[error(
        "{target} has no free connection: lower db.connections_max on the nodes, or let the server take more"
    )]
    Crowded { target: Target, source: Arc<sqlx::Error> },

    // Migrations.
    #[error(
        "{target} was made by a newer Grange (step {found}, this program knows {known}): run that version, or restore \
         the backup made before the upgrade"
    )]
    Newer { target: Target, found: i64, known: i64 },
    #[error("{target} is at step {found} and this program needs {known}: run `grange db migrate`")]
    Unmigrated { target: Target, found: i64, known: i64 },
    #[error(
        "step {number} ({name}) of {target} is not the one this program knows: run the version that made it, or \
         restore a backup"
    )]
    Changed { target: Target, number: i64, name: String },
    #[error("cannot bring {target} to step {number} ({name}): it stays at the step before")]
    Migration { target: Target, number: i64, name: String, source: Arc<sqlx::Error> },

    // Acting.
    #[error(
        "cannot {doing}: {target} is locked by another program; end that program, or raise db.busy_timeout"
    )]
    Locked { doing: &'static str, target: Target, source: Arc<sqlx::Error> },
    #[error("cannot {doing}: the disk of {target} is full; free some space there and try again")]
    Full { doing: &'static str, target: Target, source: Arc<sqlx::Error> },
    #[error("cannot {doing}: {target} cannot be written; check the rights on the file and its folder")]
    ReadOnly { doing: &'static str, target: Target, source: Arc<sqlx::Error> },
    #[error("cannot {doing}: {target} answered with an error")]
    Sql { doing: &'static str, target: Target, source: Arc<sqlx::Error> },
    #[error(
        "cannot tell whether it was possible to {doing}: the connection to {target} broke while committing"
    )]
    Unsure { doing: &'static str, target: Target, source: Arc<sqlx::Error> },
    #[error(
        "cannot {doing}: the database file {} was removed or replaced while Grange had it open; stop the node, then put the \
         file back or run `grange restore BACKUP --to DIR`; without a backup run `grange init` and `grange archive rebuild`",
        path.display()
    )]
    FileLost { doing: &'static str, path: PathBuf },
    #[error("cannot {doing}: {target} was closed")]
    Closed { doing: &'static str, target: Target },
    #[error("a stored row cannot be read: column {column}: {reason}")]
    Row { column: &'static str, reason: String },

    // Rules.
    #[error("the {what} holds a NUL character, which cannot be stored: leave it out")]
    BadText { what: &'static str },
    #[error("there is no {what}")]
    NotFound { what: String },
    #[error("there already is a {what}")]
    Exists { what: String },
    #[error(
        "{what} was changed by {by} at {at} while you were editing it: load it again and repeat your change"
    )]
    Stale { what: String, by: String, at: Timestamp, edition: i64 },
    #[error("{name} is the last admin: make somebody else admin first")]
    LastAdmin { name: String },
    #[error("{what} is in use by {by}: change that first")]
    InUse { what: String, by: String },
    #[error("{reason}")]
    Refused { reason: String },
    #[error("the lease on {what} was lost to somebody else: stop working on it")]
    LeaseLost { what: String },

    // Backups.
    #[error("{} exists: a backup never overwrites a file; choose another name", path.display())]
    BackupExists { path: PathBuf },
    #[error("cannot write the backup {}: check the folder and its free space", path.display())]
    Backup { path: PathBuf, source: Arc<dyn std::error::Error + Send + Sync> },
    #[error("{target} is backed up with PostgreSQL's own tools: use pg_dump")]
    BackupElsewhere { target: Target },
}

impl Error {
    /// The stable name of this error: the key of its translation and the field in the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadUrl { .. } => "db-bad-url",
            Self::Secret { .. } => "db-secret-unreadable",
            Self::Unreadable { .. } => "db-unreadable",
            Self::NotADatabase { .. } => "db-not-a-database",
            Self::Foreign { .. } => "db-foreign",
            Self::Damaged { .. } => "db-damaged",
            Self::Unreachable { .. } => "db-unreachable",
            Self::Denied { .. } => "db-denied",
            Self::NoDatabase { .. } => "db-no-database",
            Self::Crowded { .. } => "db-crowded",
            Self::Newer { .. } => "db-newer",
            Self::Unmigrated { .. } => "db-unmigrated",
            Self::Changed { .. } => "db-migration-changed",
            Self::Migration { .. } => "db-migration-failed",
            Self::Locked { .. } => "db-locked",
            Self::Full { .. } => "db-disk-full",
            Self::ReadOnly { .. } => "db-read-only",
            Self::Sql { .. } => "db-sql",
            Self::Unsure { .. } => "db-unsure",
            Self::FileLost { .. } => "db-file-lost",
            Self::Closed { .. } => "db-closed",
            Self::Row { .. } => "db-row-unreadable",
            Self::BadText { .. } => "bad-text",
            Self::NotFound { .. } => "not-found",
            Self::Exists { .. } => "exists",
            Self::Stale { .. } => "stale",
            Self::LastAdmin { .. } => "last-admin",
            Self::InUse { .. } => "in-use",
            Self::Refused { .. } => "refused",
            Self::LeaseLost { .. } => "lease-lost",
            Self::BackupExists { .. } => "backup-exists",
            Self::Backup { .. } => "backup-failed",
            Self::BackupElsewhere { .. } => "backup-elsewhere",
        }
    }

    /// Whether the same act may succeed later without anybody changing anything.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. }
            | Self::Crowded { .. }
            | Self::Locked { .. }
            | Self::Full { .. }
            | Self::Unsure { .. } => Retry::Soon,
            Self::Sql { source, .. } if conflict(source) => Retry::Soon,
            _ => Retry::No,
        }
    }

    /// What a driver error means for `target` while `doing` something.
    pub(crate) fn sql(doing: &'static str, target: &Target, error: impl Into<Arc<sqlx::Error>>) -> Self {
        let (target, source): (_, Arc<sqlx::Error>) = (target.clone(), error.into());
        match &*source {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Self::Unreachable { target, source },
            // The pool also waits in vain for a server that refuses connections.
            sqlx::Error::PoolTimedOut if !crowded(&target) => Self::Unreachable { target, source },
            sqlx::Error::PoolTimedOut => Self::Crowded { target, source },
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => Self::Closed { doing, target },
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default().into_owned();
                match target {
                    Target::Sqlite { .. } => Self::sqlite(doing, target, &code, source),
                    Target::Postgres { .. } => Self::postgres(doing, target, &code, source),
                }
            }
            sqlx::Error::Configuration(cause) => match cause.downcast_ref::<LostFile>() {
                Some(lost) => lost.doing(doing),
                None => Self::Sql { doing, target, source },
            },
            _ => Self::Sql { doing, target, source },
        }
    }

    fn sqlite(doing: &'static str, target: Target, code: &str, source: Arc<sqlx::Error>) -> Self {
        // https://www.sqlite.org/rescode.html: the low byte of an extended code is the primary one.
        match code.parse::<i32>().unwrap_or_default() & 0xff {
            5 | 6 => Self::Locked { doing, target, source },
            8 => Self::ReadOnly { doing, target, source },
            11 => Self::Damaged { target, source: Some(source) },
            13 => Self::Full { doing, target, source },
            3 | 14 => match target {
                Target::Sqlite { path } => Self::Unreadable { path: path.to_path_buf(), source },
                Target::Postgres { .. } => Self::Sql { doing, target, source },
            },
            26 => match target {
                Target::Sqlite { path } => Self::NotADatabase { path: path.to_path_buf() },
                Target::Postgres { .. } => Self::Sql { doing, target, source },
            },
            _ => Self::Sql { doing, target, source },
        }
    }

    fn postgres(doing: &'static str, target: Target, code: &str, source: Arc<sqlx::Error>) -> Self {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        match code {
            "28000" | "28P01" => Self::Denied { target, source },
            "3D000" => Self::NoDatabase { target, source },
            "42501" | "25006" => Self::ReadOnly { doing, target, source },
            "53100" => Self::Full { doing, target, source },
            "53300" => Self::Crowded { target, source },
            // 08: connection; 57P: shutting down, crashed, starting up.
            _ if code.starts_with("08") || code.starts_with("57P") => Self::Unreachable { target, source },
            "XX001" | "XX002" => Self::Damaged { target, source: Some(source) },
            _ => Self::Sql { doing, target, source },
        }
    }
}

/// SQLite's readers wait only for each other; PostgreSQL's pool times out when the server is away, too.
fn crowded(target: &Target) -> bool {
    matches!(target, Target::Sqlite { .. })
}

/// Two transactions met and one has to go again: PostgreSQL's serialization failure and deadlock.
pub(crate) fn conflict(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if matches!(e.code().as_deref(), Some("40001" | "40P01")))
}

/// As [`conflict`], or a row that this act read and refers to was deleted just now, or one that it deletes is referred to
/// just now. A second look at the rows ends in an answer that says so.
pub(crate) fn met(error: &sqlx::Error) -> bool {
    let reference = matches!(error, sqlx::Error::Database(e) if e.is_foreign_key_violation());
    reference || conflict(error)
}

/// Whether a unique column refused the row.
pub(crate) fn unique(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(e) if e.is_unique_violation())
}

/// How an act ends inside a transaction: the driver's error, still without context, or one that is ready to be told.
#[derive(Debug)]
pub(crate) enum Fail {
    Sql(sqlx::Error),
    Told(Error),
}

impl Fail {
    pub(crate) fn tell(self, doing: &'static str, target: &Target) -> Error {
        match self {
            Self::Sql(error) => Error::sql(doing, target, error),
            Self::Told(error) => error,
        }
    }
}

impl From<sqlx::Error> for Fail {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}
