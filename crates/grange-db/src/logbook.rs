//! The append-only log and its signed checkpoints. Records are added in the transaction of what they tell of.

use grange_model::LogRecord;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, micros};

/// The log.
#[derive(Debug)]
pub struct Logbook<'d>(pub(crate) &'d Db);

/// One leaf: `body` is byte for byte what was proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leaf {
    /// Counted from 0, without gaps.
    pub number: u64,
    pub body: String,
}

/// The signed root of the tree over the first `size` leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    pub size: u64,
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// In hexadecimal, as are the two below.
    pub root: String,
    pub public_key: String,
    pub signature: String,
}

impl Db {
    pub fn logbook(&self) -> Logbook<'_> {
        Logbook(self)
    }
}

impl Logbook<'_> {
    /// Adds records for what changes no row, all or none.
    pub async fn append(&self, records: Vec<LogRecord>) -> Result<(), Error> {
        self.0.write("write to the log", records, |tx, records| Box::pin(append(tx, records))).await
    }

    /// How many leaves there are.
    pub async fn size(&self) -> Result<u64, Error> {
        self.0
            .read("read the log", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&SIZE);
                    tx.row(query).await?.map_or(Ok(0), |row| Ok(row.int("size")? as u64))
                })
            })
            .await
    }

    /// Up to `limit` leaves from number `from` on.
    pub async fn leaves(&self, from: u64, limit: u32) -> Result<Vec<Leaf>, Error> {
        self.0
            .read("read the log", (from as i64, i64::from(limit)), |tx, (from, limit)| {
                Box::pin(async move {
                    let query = tx.sql(&LEAVES).bind(*from).bind(*limit);
                    tx.rows(query).await?.iter().map(leaf).collect()
                })
            })
            .await
    }

    /// The leaves about one file, oldest first.
    pub async fn of_file(&self, name: &str) -> Result<Vec<Leaf>, Error> {
        self.0
            .read("read the log", name.to_owned(), |tx, name| {
                Box::pin(async move {
                    let query = tx.sql(&OF_FILE).bind(name.as_str());
                    tx.rows(query).await?.iter().map(leaf).collect()
                })
            })
            .await
    }

    /// Keeps a checkpoint; one of the same size that is already there stays.
    pub async fn save_checkpoint(&self, checkpoint: Checkpoint) -> Result<(), Error> {
        self.0
            .write_one("keep the checkpoint", checkpoint, |tx, new| {
                Box::pin(async move {
                    let query = tx
                        .sql(&SAVE)
                        .bind(new.size as i64)
                        .bind(micros(new.at))
                        .bind(new.root.as_str())
                        .bind(new.public_key.as_str())
                        .bind(new.signature.as_str());
                    tx.run(query).await.map(|_| ())
                })
            })
            .await
    }

    /// All checkpoints by size.
    pub async fn checkpoints(&self) -> Result<Vec<Checkpoint>, Error> {
        self.0
            .read("read the checkpoints", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&CHECKPOINTS);
                    tx.rows(query).await?.iter().map(checkpoint).collect()
                })
            })
            .await
    }
}

// Holding the one row of the head until the commit gives the leaves their order.
static GROW: Sql = Sql::new("UPDATE log_head SET size = size + $1 RETURNING size");
static SIZE: Sql = Sql::new("SELECT size FROM log_head");
static APPEND: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO log_leaves (number, name, body)
         SELECT $1 + key, value ->> 'n', value ->> 'b' FROM json_each($2)",
    ),
    postgres: Sql::new(
        "INSERT INTO log_leaves (number, name, body)
         SELECT $1 + place - 1, value ->> 'n', value ->> 'b'
         FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS list (value, place)",
    ),
};
static LEAVES: Sql =
    Sql::new("SELECT number, body FROM log_leaves WHERE number >= $1 ORDER BY number LIMIT $2");
static OF_FILE: Sql = Sql::new("SELECT number, body FROM log_leaves WHERE name = $1 ORDER BY number");
static SAVE: Sql = Sql::new(
    "INSERT INTO log_checkpoints (size, at, root, public_key, signature) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (size) DO NOTHING",
);
static CHECKPOINTS: Sql =
    Sql::new("SELECT size, at, root, public_key, signature FROM log_checkpoints ORDER BY size");

/// Adds records inside another act's transaction: the fact and its leaf are one. Call it last: whoever appends next
/// waits for this transaction.
pub(crate) async fn append(tx: &mut Tx<'_>, records: &[LogRecord]) -> Result<(), Fail> {
    if records.is_empty() {
        return Ok(());
    }
    let count = records.len() as i64;
    let query = tx.sql(&GROW).bind(count);
    let lost = || Error::NotFound { what: "head of the log; restore a backup".to_owned() };
    let size = tx.row(query).await?.ok_or_else(lost)?.int("size")?;
    let list: Vec<_> =
        records.iter().map(|record| json!({ "n": record.name, "b": record.canonical() })).collect();
    let query = APPEND.on(tx).bind(size - count).bind(serde_json::Value::from(list).to_string());
    tx.run(query).await.map(|_| ())
}

fn leaf(row: &AnyRow) -> Result<Leaf, Fail> {
    Ok(Leaf { number: row.int("number")? as u64, body: row.text("body")? })
}

fn checkpoint(row: &AnyRow) -> Result<Checkpoint, Fail> {
    Ok(Checkpoint {
        size: row.int("size")? as u64,
        at: row.time("at")?,
        root: row.text("root")?,
        public_key: row.text("public_key")?,
        signature: row.text("signature")?,
    })
}
