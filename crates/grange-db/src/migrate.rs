//! Bringing a database to the tables this program knows, step by step and forward only.
//!
//! The table `grange_migrations` holds a row per step taken, with the digest of its text. A step and its row are one
//! transaction, on both engines.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, Connection};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::row::{Columns, micros};
use crate::target::Target;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) number: i64,
    pub(crate) name: &'static str,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

macro_rules! step {
    ($number:literal, $name:literal) => {
        Step {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        }
    };
}

/// Every step, in order. Add at the end; never change one that was released.
pub(crate) const STEPS: &[Step] = &[
    step!(1, "0001_nodes"),
    step!(2, "0002_people"),
    step!(3, "0003_work"),
    step!(4, "0004_archive"),
    step!(6, "0006_harvest"),
    step!(8, "0008_access"),
    step!(9, "0009_oai"),
    step!(10, "0010_login_forms"),
    step!(11, "0011_repairs_by_kind"),
    step!(12, "0012_replica_places"),
    step!(13, "0013_recovery"),
    step!(14, "0014_node_clock"),
    step!(15, "0015_findings"),
    step!(16, "0016_oai_digests"),
    step!(17, "0017_withdrawals"),
    step!(18, "0018_repair_work"),
    step!(19, "0019_index_owners"),
    step!(20, "0020_job_orders"),
    step!(21, "0021_recovery_pending"),
    step!(22, "0022_long_texts"),
    step!(23, "0023_lacking_lists"),
];

impl Step {
    pub(crate) fn sql(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }

    fn checksum(&self, dialect: Dialect) -> String {
        use std::fmt::Write as _;
        Sha256::digest(self.sql(dialect)).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// What a look at the database found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No tables at all.
    Empty,
    /// Ours, with the steps up to this one.
    At(i64),
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS grange_migrations (
    number     BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   TEXT   NOT NULL,
    applied_at BIGINT NOT NULL
)";

/// Looks how far the database is, and refuses one that is newer, changed or somebody else's.
pub(crate) async fn look(conn: &mut AnyConnection, target: &Target, steps: &[Step]) -> Result<Found, Error> {
    let dialect = target.dialect();
    let sql = |error| Error::sql("look at the tables", target, error);
    let tables: Vec<String> = {
        let rows = sqlx::query(tables_of(dialect)).fetch_all(&mut *conn).await.map_err(sql)?;
        let names = rows.iter().map(|row| row.text("name"));
        names.collect::<Result<_, _>>().map_err(|fail| fail.tell("look at the tables", target))?
    };
    if tables.is_empty() {
        return Ok(Found::Empty);
    }
    if !tables.iter().any(|name| name == "grange_migrations") {
        return Err(Error::Foreign { target: target.clone() });
    }
    let applied = sqlx::query("SELECT number, name, checksum FROM grange_migrations ORDER BY number")
        .fetch_all(&mut *conn)
        .await
        .map_err(sql)?;
    let known = steps.last().map_or(0, |step| step.number);
    let mut found = 0;
    for row in applied {
        let read = || Ok((row.int("number")?, row.text("name")?, row.text("checksum")?));
        let (number, name, checksum) =
            read().map_err(|fail: crate::error::Fail| fail.tell("look at the tables", target))?;
        found = number;
        match steps.iter().find(|step| step.number == number) {
            Some(step) if step.checksum(dialect) == checksum => {}
            Some(_) => {
                return Err(Error::Changed { target: target.clone(), number, name });
            }
            None => {
                // Told by the newest step it has, which is what its maker's version is known by.
                let row = sqlx::query("SELECT max(number) AS number FROM grange_migrations");
                let newest = row.fetch_one(&mut *conn).await.map_err(sql)?.int("number").unwrap_or(number);
                return Err(Error::Newer { target: target.clone(), found: newest, known });
            }
        }
    }
    Ok(Found::At(found))
}

/// Takes the missing steps and gives their names. The caller holds whatever keeps others from doing the same.
pub(crate) async fn apply(
    conn: &mut AnyConnection,
    target: &Target,
    steps: &[Step],
    found: Found,
    now: Timestamp,
) -> Result<Vec<&'static str>, Error> {
    let dialect = target.dialect();
    let done = match found {
        Found::Empty => 0,
        Found::At(number) => number,
    };
    sqlx::query(TABLE)
        .execute(&mut *conn)
        .await
        .map_err(|error| Error::sql("create the table of migrations", target, error))?;
    let mut taken = Vec::new();
    for step in steps.iter().filter(|step| step.number > done) {
        let failed = |error: sqlx::Error| match Error::sql("migrate", target, error) {
            Error::Sql { source, .. } => Error::Migration {
                target: target.clone(),
                number: step.number,
                name: step.name.to_owned(),
                source,
            },
            // A full disk or a lost connection says more by its own name.
            other => other,
        };
        let mut transaction = conn.begin().await.map_err(failed)?;
        sqlx::raw_sql(step.sql(dialect)).execute(&mut *transaction).await.map_err(failed)?;
        sqlx::query(
            "INSERT INTO grange_migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(step.number)
        .bind(step.name)
        .bind(step.checksum(dialect))
        .bind(micros(now))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        tracing::info!(step = step.name, "migrated {target}");
        taken.push(step.name);
    }
    Ok(taken)
}

fn tables_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        Dialect::Postgres => {
            "SELECT tablename::text AS name FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"
        }
    }
}
