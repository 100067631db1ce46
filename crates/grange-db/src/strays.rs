//! Strays: files that a replica holds and no row knows. Nobody copies, checks or serves them, so they are named until
//! a rebuild gives them rows.

use grange_model::{FileName, ReplicaName};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::numbers;
use crate::open::Db;
use crate::row::{Columns, micros};

/// The strays.
#[derive(Debug)]
pub struct StrayFiles<'d>(&'d Db);

/// A file on a replica that no row knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StrayFile {
    pub replica: ReplicaName,
    /// The name, or the whole path of one that lies in a subfolder or has a name that no file may have.
    pub name: String,
    pub size: u64,
    /// When it was last listed.
    #[schemars(with = "String")]
    pub seen_at: Timestamp,
}

/// Names of a replica in order, after one name and up to another or to the end: what is a stray within is `found`.
#[derive(Clone, Debug)]
pub struct StrayRange {
    pub replica_id: i64,
    pub after: Option<String>,
    pub upto: Option<String>,
    pub found: Vec<(FileName, u64)>,
}

impl Db {
    pub fn strays(&self) -> StrayFiles<'_> {
        StrayFiles(self)
    }
}

impl StrayFiles<'_> {
    /// Strays by name, after one name.
    pub async fn list(&self, after: Option<&str>, limit: u32) -> Result<Vec<StrayFile>, Error> {
        let after = after.unwrap_or_default().to_owned();
        self.0
            .read("list the stray files", (after, i64::from(limit)), |tx, (after, limit)| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(after.as_str()).bind(*limit);
                    tx.rows(query).await?.iter().map(stray).collect()
                })
            })
            .await
    }

    /// How many copies on all replicas are strays.
    pub async fn count(&self) -> Result<u64, Error> {
        self.0
            .read("count the stray files", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT);
                    tx.row(query).await?.map_or(Ok(0), |row| Ok(row.int("count")? as u64))
                })
            })
            .await
    }

    /// Keeps the files that lie on the replica and that no listing shows, by their paths: all there are, or the first of them.
    pub async fn keep_unlisted(&self, replica: i64, paths: Vec<(String, u64)>) -> Result<(), Error> {
        self.0
            .write("keep the stray files", (replica, paths), |tx, (replica, paths)| {
                Box::pin(async move {
                    let query = tx.sql(&FORGET_UNLISTED).bind(*replica);
                    tx.run(query).await?;
                    // The text may come from afar, and PostgreSQL keeps no NUL.
                    let row = |(path, size): &(String, u64)| {
                        json!({ "n": path.replace('\0', "\u{fffd}"), "s": size })
                    };
                    insert(tx, *replica, paths.iter().map(row).collect()).await
                })
            })
            .await
    }

    /// Keeps what a look at a replica found. Numbers in the names of strays are never given again.
    pub async fn keep(&self, range: StrayRange) -> Result<(), Error> {
        self.0.write("keep the stray files", range, |tx, range| Box::pin(keep(tx, range))).await
    }
}

macro_rules! known_by_none {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM stray_files s JOIN replicas r ON r.id = s.replica_id
             WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.name = s.name)"
        )
    };
}
static LIST: Sql = Sql::new(concat!(
    known_by_none!("r.name AS replica, s.name, s.size, s.seen_at"),
    " AND s.name > $1 ORDER BY s.name, s.replica_id LIMIT $2"
));
static COUNT: Sql = Sql::new(known_by_none!("count(*) AS count"));
// No name has a slash; every path of a file that no listing shows has one.
static FORGET_UPTO: Sql = Sql::new(
    "DELETE FROM stray_files WHERE replica_id = $1 AND name > $2 AND name <= $3 AND name NOT LIKE '%/%'",
);
static FORGET_REST: Sql = Sql::new(
    "DELETE FROM stray_files WHERE replica_id = $1 AND name > $2 AND $3 = $3 AND name NOT LIKE '%/%'",
);
static FORGET_UNLISTED: Sql = Sql::new("DELETE FROM stray_files WHERE replica_id = $1 AND name LIKE '%/%'");
static KEEP: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO stray_files (replica_id, name, size, seen_at)
         SELECT $1, value ->> 'n', value ->> 's', $2 FROM json_each($3) WHERE true
         ON CONFLICT DO NOTHING",
    ),
    postgres: Sql::new(
        "INSERT INTO stray_files (replica_id, name, size, seen_at)
         SELECT $1, value ->> 'n', (value ->> 's')::bigint, $2 FROM jsonb_array_elements($3::jsonb)
         ON CONFLICT DO NOTHING",
    ),
};

pub(crate) async fn keep(tx: &mut Tx<'_>, range: &StrayRange) -> Result<(), Fail> {
    let sql = if range.upto.is_some() { &FORGET_UPTO } else { &FORGET_REST };
    let query = tx
        .sql(sql)
        .bind(range.replica_id)
        .bind(range.after.clone().unwrap_or_default())
        .bind(range.upto.clone().unwrap_or_default());
    tx.run(query).await?;
    if range.found.is_empty() {
        return Ok(());
    }
    let row = |(name, size): &(FileName, u64)| json!({ "n": name, "s": size });
    insert(tx, range.replica_id, range.found.iter().map(row).collect()).await?;
    numbers::raise_above(tx, range.found.iter().map(|(name, _)| name)).await
}

async fn insert(tx: &mut Tx<'_>, replica: i64, rows: Vec<Value>) -> Result<(), Fail> {
    let query = KEEP.on(tx).bind(replica).bind(micros(tx.now)).bind(Value::from(rows).to_string());
    tx.run(query).await.map(|_| ())
}

fn stray(row: &AnyRow) -> Result<StrayFile, Fail> {
    Ok(StrayFile {
        replica: row.parsed("replica")?,
        name: row.text("name")?,
        size: row.int("size")? as u64,
        seen_at: row.time("seen_at")?,
    })
}
