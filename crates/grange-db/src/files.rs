//! Files and their holdings: what the archive has taken, and how it stands on each replica.

use std::collections::HashMap;

use grange_model::{Checksums, FileName, Presence, ReplicaKind, ReplicaName, UploadState, Verdict};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::bulk::{self, Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::Columns;

/// The files.
#[derive(Debug)]
pub struct Files<'d>(pub(crate) &'d Db);

/// A file that the archive has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredFile {
    pub id: i64,
    pub name: FileName,
    pub size: u64,
    pub checksums: Checksums,
    /// Where the bytes come from until every replica is proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When all replicas were proven for the first time.
    #[schemars(with = "Option<String>")]
    pub stored_at: Option<Timestamp>,
}

/// How a file stands on one replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holding {
    pub replica_id: i64,
    pub replica: ReplicaName,
    pub kind: ReplicaKind,
    pub state: UploadState,
    pub presence: Presence,
    pub verdict: Verdict,
    /// The replica's own answer, as `algorithm=hex`; `size=N` and `unreadable` are answers too.
    pub checksum: Option<String>,
    /// Uploads tried again since the file was last asked for.
    pub attempts: u32,
    pub last_error: Option<String>,
    #[schemars(with = "Option<String>")]
    pub listed_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub checked_at: Option<Timestamp>,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
}

/// A file with all its holdings, in the order of the replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStatus {
    #[serde(flatten)]
    pub file: StoredFile,
    pub holdings: Vec<Holding>,
}

impl FileStatus {
    /// Every replica is proven, and there is one.
    pub fn proven(&self) -> bool {
        !self.holdings.is_empty()
            && self.holdings.iter().all(|holding| holding.state == UploadState::UploadCompleted)
    }
}

/// What is wrong with a holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trouble {
    Missing,
    Corrupt,
    /// Not proven, for whatever reason.
    Unproven,
    /// The copy contradicts the record, and the vote could not say which of them is wrong.
    Undecided,
}

/// Which files to list; the default is the first thousand.
#[derive(Clone, Debug)]
pub struct FileFilter {
    /// Only names after this one: the next page.
    pub after: Option<FileName>,
    /// Only files with this trouble on some replica, or on the one named.
    pub trouble: Option<Trouble>,
    pub replica: Option<i64>,
    pub limit: u32,
}

impl Default for FileFilter {
    fn default() -> Self {
        Self { after: None, trouble: None, replica: None, limit: 1000 }
    }
}

impl Db {
    pub fn files(&self) -> Files<'_> {
        Files(self)
    }
}

impl Files<'_> {
    pub async fn get(&self, name: &FileName) -> Result<Option<FileStatus>, Error> {
        self.0
            .read("read the file's row", name.as_str().to_owned(), |tx, name| Box::pin(status(tx, name)))
            .await
    }

    /// Files by name, with their holdings.
    pub async fn list(&self, filter: &FileFilter) -> Result<Vec<FileStatus>, Error> {
        self.0.read("list the files", filter.clone(), |tx, filter| Box::pin(list(tx, filter))).await
    }

    /// Up to `limit` random files that are proven on this replica, for challenges.
    pub async fn sample(&self, replica: i64, seed: i64, limit: u32) -> Result<Vec<FileStatus>, Error> {
        self.0
            .read("choose files", (replica, seed, i64::from(limit)), |tx, (replica, seed, limit)| {
                Box::pin(async move {
                    let query = tx.sql(&SAMPLE).bind(*replica).bind(*seed).bind(*limit);
                    let mut rows = tx.rows(query).await?;
                    // From a random place to the last file, then from the first file on to that place.
                    let rest = *limit - rows.len() as i64;
                    if rest > 0 {
                        let query = tx.sql(&SAMPLE_BEFORE).bind(*replica).bind(*seed).bind(rest);
                        rows.extend(tx.rows(query).await?);
                    }
                    with_holdings(tx, &rows).await
                })
            })
            .await
    }

    pub async fn count(&self) -> Result<u64, Error> {
        self.0
            .read("count the files", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT);
                    tx.row(query).await?.map_or(Ok(0), |row| Ok(row.int("count")? as u64))
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "f.id, f.name, f.size, f.checksum, f.checksums, f.source, f.created_at, f.stored_at"
    };
}
pub(crate) use columns;

macro_rules! holding_columns {
    () => {
        "h.file_id, h.replica_id, r.name AS replica, r.kind, h.state, h.presence, h.verdict, h.checksum, \
         h.attempts, h.last_error, h.listed_at, h.checked_at, h.changed_at"
    };
}

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM files f WHERE f.name = $1"));
static COUNT: Sql = Sql::new("SELECT count(*) AS count FROM files");
static HOLDINGS: Bulk = of_ids!(
    concat!(
        "SELECT ",
        holding_columns!(),
        " FROM replica_files h JOIN replicas r ON r.id = h.replica_id WHERE h.file_id IN ("
    ),
    "$1",
    ") ORDER BY h.file_id, h.replica_id"
);
// Ids start at a random place and wrap around: fair enough for spot checks, and it never counts.
static SAMPLE: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM files f JOIN replica_files h ON h.file_id = f.id AND h.replica_id = $1
     WHERE h.state = 'upload_completed'
         AND f.id >= (SELECT COALESCE(max(id), 0) FROM files) * $2 / 1000000
     ORDER BY f.id LIMIT $3"
));
static SAMPLE_BEFORE: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM files f JOIN replica_files h ON h.file_id = f.id AND h.replica_id = $1
     WHERE h.state = 'upload_completed'
         AND f.id < (SELECT COALESCE(max(id), 0) FROM files) * $2 / 1000000
     ORDER BY f.id LIMIT $3"
));

/// The file and how it stands everywhere.
pub(crate) async fn status(tx: &mut Tx<'_>, name: &str) -> Result<Option<FileStatus>, Fail> {
    let query = tx.sql(&GET).bind(name.to_owned());
    let rows = tx.rows(query).await?;
    Ok(with_holdings(tx, &rows).await?.pop())
}

async fn list(tx: &mut Tx<'_>, filter: &FileFilter) -> Result<Vec<FileStatus>, Fail> {
    let mut sql = concat!("SELECT ", columns!(), " FROM files f WHERE f.name > $1").to_owned();
    if let Some(trouble) = filter.trouble {
        // Literal conditions, so that the small partial indexes are used.
        let wrong = match trouble {
            Trouble::Missing => "h.presence = 'missing'",
            Trouble::Corrupt => "h.verdict = 'corrupt'",
            Trouble::Unproven => "h.state <> 'upload_completed'",
            Trouble::Undecided => {
                "h.state <> 'upload_completed' AND h.presence = 'ok' AND h.verdict = 'unknown'
                 AND h.checksum <> (SELECT g.checksum FROM files g WHERE g.id = h.file_id)"
            }
        };
        let on = if filter.replica.is_some() { " AND h.replica_id = $2" } else { "" };
        sql.push_str(" AND f.id IN (SELECT h.file_id FROM replica_files h WHERE ");
        sql.push_str(wrong);
        sql.push_str(on);
        sql.push(')');
    }
    sql.push_str(" ORDER BY f.name LIMIT $3");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(filter.after.as_ref().map_or_else(String::new, ToString::to_string))
        .bind(filter.replica)
        .bind(i64::from(filter.limit));
    let rows = tx.rows(query).await?;
    with_holdings(tx, &rows).await
}

pub(crate) async fn with_holdings(tx: &mut Tx<'_>, rows: &[AnyRow]) -> Result<Vec<FileStatus>, Fail> {
    let files = rows.iter().map(file).collect::<Result<Vec<_>, Fail>>()?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = files.iter().map(|file| file.id).collect();
    let query = HOLDINGS.on(tx).bind(bulk::ids(&ids));
    let mut found: HashMap<i64, Vec<Holding>> = HashMap::with_capacity(ids.len());
    for row in tx.rows(query).await? {
        found.entry(row.int("file_id")?).or_default().push(holding(&row)?);
    }
    let joined = files.into_iter().map(|file| {
        let holdings = found.remove(&file.id).unwrap_or_default();
        FileStatus { file, holdings }
    });
    Ok(joined.collect())
}

pub(crate) fn file(row: &AnyRow) -> Result<StoredFile, Fail> {
    Ok(StoredFile {
        id: row.int("id")?,
        name: row.parsed("name")?,
        size: row.int("size")? as u64,
        checksums: row.json("checksums")?,
        source: row.text_or_none("source")?,
        created_at: row.time("created_at")?,
        stored_at: row.time_or_none("stored_at")?,
    })
}

fn holding(row: &AnyRow) -> Result<Holding, Fail> {
    Ok(Holding {
        replica_id: row.int("replica_id")?,
        replica: row.parsed("replica")?,
        kind: row.parsed("kind")?,
        state: row.parsed("state")?,
        presence: row.parsed("presence")?,
        verdict: row.parsed("verdict")?,
        checksum: row.text_or_none("checksum")?,
        attempts: row.int("attempts")? as u32,
        last_error: row.text_or_none("last_error")?,
        listed_at: row.time_or_none("listed_at")?,
        checked_at: row.time_or_none("checked_at")?,
        changed_at: row.time("changed_at")?,
    })
}

/// The checksum that decides, as text: the strongest. Empty when none is known, which nothing equals.
pub fn deciding(checksums: &Checksums) -> String {
    checksums.to_string().split(' ').next().unwrap_or_default().to_owned()
}
