//! The replicas, and how many copies stand where on each.

use grange_model::{Presence, ReplicaKind, ReplicaName, UploadState, Verdict};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::frame_lock;
use crate::open::Db;
use crate::row::{Columns, micros};

/// The replicas.
#[derive(Debug)]
pub struct Replicas<'d>(&'d Db);

/// One replica as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaRow {
    pub id: i64,
    pub name: ReplicaName,
    pub kind: ReplicaKind,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When the last whole list check ended.
    #[schemars(with = "Option<String>")]
    pub listed_at: Option<Timestamp>,
    /// When the last whole checksum check ended.
    #[schemars(with = "Option<String>")]
    pub checked_at: Option<Timestamp>,
    /// Why the replica cannot be used now.
    pub away: Option<String>,
}

/// What came of declaring the replicas of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declared {
    /// All of them, by id.
    Replicas(Vec<ReplicaRow>),
    /// These are in the database but not in the settings, or are of another kind there. Nothing was changed.
    Undeclared(Vec<ReplicaRow>),
}

/// One replica at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaOverview {
    #[serde(flatten)]
    pub replica: ReplicaRow,
    pub files: u64,
    pub bytes: u64,
    /// Proven equal.
    pub completed: u64,
    /// On the way.
    pub started: u64,
    pub failed: u64,
    pub missing: u64,
    pub corrupt: u64,
    /// Held, but the vote was tied or never held.
    pub undecided: u64,
}

impl Db {
    pub fn replicas(&self) -> Replicas<'_> {
        Replicas(self)
    }
}

impl Replicas<'_> {
    /// Makes the replicas of the settings known. New ones get a row for every file there is.
    pub async fn declare(&self, replicas: Vec<(ReplicaName, ReplicaKind)>) -> Result<Declared, Error> {
        self.0.write("declare the replicas", replicas, |tx, replicas| Box::pin(declare(tx, replicas))).await
    }

    /// Adds the rows that files lack for some replica, and gives how many. Every file has a row for every replica from
    /// the act that enters it; a database written by an older version, or changed by hand, may not.
    pub async fn fill_gaps(&self) -> Result<u64, Error> {
        self.0
            .write_one("look for files without a row for some replica", (), |tx, ()| {
                Box::pin(async move {
                    // Counted first: the search reads both tables, and nearly always there is nothing to find.
                    let query = tx.sql(&EXPECTED);
                    let expected = tx.row(query).await?.map_or(Ok(0), |row| row.int("rows"))?;
                    let query = tx.sql(&COUNTED);
                    let counted = tx.row(query).await?.map_or(Ok(0), |row| row.int("rows"))?;
                    if expected == counted {
                        return Ok(0);
                    }
                    let query = tx.sql(&FILL_GAPS).bind(micros(tx.now));
                    tx.run(query).await
                })
            })
            .await
    }

    pub async fn list(&self) -> Result<Vec<ReplicaRow>, Error> {
        self.0.read("list the replicas", (), |tx, ()| Box::pin(all(tx))).await
    }

    /// How each replica stands; costs the same however many files there are.
    pub async fn overview(&self) -> Result<Vec<ReplicaOverview>, Error> {
        self.0.read("count the copies", (), |tx, ()| Box::pin(overview(tx))).await
    }
}

macro_rules! columns {
    () => {
        "id, name, kind, created_at, listed_at, checked_at, away"
    };
}

static ALL: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM replicas ORDER BY id"));
static ADD: Sql = Sql::new(concat!(
    "INSERT INTO replicas (name, kind, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING ",
    columns!()
));
static FILL: Sql = Sql::new(
    "INSERT INTO replica_files (file_id, replica_id, size, changed_at)
     SELECT id, $1, size, $2 FROM files",
);
static EXPECTED: Sql =
    Sql::new("SELECT (SELECT count(*) FROM files) * (SELECT count(*) FROM replicas) AS rows");
static COUNTED: Sql = Sql::new("SELECT CAST(COALESCE(sum(files), 0) AS BIGINT) AS rows FROM replica_totals");
static FILL_GAPS: Sql = Sql::new(
    "INSERT INTO replica_files (file_id, replica_id, size, changed_at)
     SELECT f.id, r.id, f.size, $1 FROM files f CROSS JOIN replicas r
     WHERE NOT EXISTS (SELECT 1 FROM replica_files h WHERE h.file_id = f.id AND h.replica_id = r.id)
     ON CONFLICT (file_id, replica_id) DO NOTHING",
);
// PostgreSQL sums to numeric, which the driver would not read.
static TOTALS: Sql = Sql::new(
    "SELECT replica_id, state, presence, verdict, CAST(sum(files) AS BIGINT) AS files,
         CAST(sum(bytes) AS BIGINT) AS bytes
     FROM replica_totals GROUP BY replica_id, state, presence, verdict",
);

async fn all(tx: &mut Tx<'_>) -> Result<Vec<ReplicaRow>, Fail> {
    let query = tx.sql(&ALL);
    tx.rows(query).await?.iter().map(replica).collect()
}

async fn declare(tx: &mut Tx<'_>, wanted: &[(ReplicaName, ReplicaKind)]) -> Result<Declared, Fail> {
    let mut known = all(tx).await?;
    let new = |known: &[ReplicaRow]| wanted.iter().any(|(name, _)| known.iter().all(|row| row.name != *name));
    if new(&known) {
        // No file is entered until the new replica has a row for every one; and a node that starts at the same moment
        // may have declared it meanwhile.
        frame_lock::alone(tx).await?;
        known = all(tx).await?;
    }
    let declared =
        |row: &ReplicaRow| wanted.iter().any(|(name, kind)| *name == row.name && *kind == row.kind);
    let undeclared: Vec<_> = known.iter().filter(|row| !declared(row)).cloned().collect();
    if !undeclared.is_empty() {
        return Ok(Declared::Undeclared(undeclared));
    }
    for (name, kind) in wanted {
        if known.iter().any(|row| row.name == *name) {
            continue;
        }
        let now = micros(tx.now);
        let query = tx.sql(&ADD).bind(name.as_str().to_owned()).bind(kind.as_str()).bind(now);
        let Some(row) = tx.row(query).await? else {
            // A node that starts at the same moment was faster; what it declared counts.
            return Box::pin(declare(tx, wanted)).await;
        };
        let row = replica(&row)?;
        let query = tx.sql(&FILL).bind(row.id).bind(now);
        tx.run(query).await?;
        known.push(row);
    }
    Ok(Declared::Replicas(known))
}

async fn overview(tx: &mut Tx<'_>) -> Result<Vec<ReplicaOverview>, Fail> {
    let blank = |replica| ReplicaOverview {
        replica,
        files: 0,
        bytes: 0,
        completed: 0,
        started: 0,
        failed: 0,
        missing: 0,
        corrupt: 0,
        undecided: 0,
    };
    let mut overview: Vec<_> = all(tx).await?.into_iter().map(blank).collect();
    let query = tx.sql(&TOTALS);
    for row in tx.rows(query).await? {
        let id = row.int("replica_id")?;
        let Some(one) = overview.iter_mut().find(|one| one.replica.id == id) else { continue };
        let (files, bytes) = (row.int("files")?.max(0) as u64, row.int("bytes")?.max(0) as u64);
        let presence: Presence = row.parsed("presence")?;
        match row.parsed("state")? {
            UploadState::UploadCompleted => one.completed += files,
            UploadState::UploadFailed => one.failed += files,
            UploadState::Unknown | UploadState::UploadStarted | UploadState::DataUploaded => {
                one.started += files;
            }
        }
        match presence {
            Presence::Ok => {
                one.files += files;
                one.bytes += bytes;
            }
            Presence::Missing => one.missing += files,
            Presence::Unknown => {}
        }
        match row.parsed("verdict")? {
            Verdict::Corrupt => one.corrupt += files,
            Verdict::Unknown if presence == Presence::Ok => one.undecided += files,
            Verdict::Unknown | Verdict::Ok => {}
        }
    }
    Ok(overview)
}

fn replica(row: &AnyRow) -> Result<ReplicaRow, Fail> {
    Ok(ReplicaRow {
        id: row.int("id")?,
        name: row.parsed("name")?,
        kind: row.parsed("kind")?,
        created_at: row.time("created_at")?,
        listed_at: row.time_or_none("listed_at")?,
        checked_at: row.time_or_none("checked_at")?,
        away: row.text_or_none("away")?,
    })
}
