//! The files of collections: entered once, and how they stand.

use std::fmt;
use std::str::FromStr;

use grange_model::Actor;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::any::AnyRow;

use super::collections::{Collections, held, there};
use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, plain, refused, told};
use crate::row::{Columns, micros};

/// How a file stands in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectedState {
    /// To be indexed.
    Waiting,
    Indexed,
    Failed,
    /// To be taken out.
    Leaving,
    /// Taken out by a person; it comes back only when one asks for it.
    Out,
}

impl CollectedState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Indexed => "indexed",
            Self::Failed => "failed",
            Self::Leaving => "leaving",
            Self::Out => "out",
        }
    }
}

impl fmt::Display for CollectedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CollectedState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Waiting, Self::Indexed, Self::Failed, Self::Leaving, Self::Out];
        let found = all.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| format!("\"{text}\" is not waiting, indexed, failed, leaving or out"))
    }
}

/// A file of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectedFile {
    pub id: i64,
    pub collection: String,
    /// What the index calls it.
    pub name: String,
    /// Where a file registered in place lies; absent for files of the archive.
    pub path: Option<String>,
    pub size: u64,
    pub job: Option<String>,
    pub state: CollectedState,
    pub attempts: u32,
    pub captures: u64,
    pub problems: u64,
    /// The first few problems, or why it failed.
    pub told: Vec<String>,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
}

/// A file to be registered.
#[derive(Clone, Debug)]
pub struct NewCollected {
    /// Where it lies, or its name in the archive.
    pub path: String,
    pub size: u64,
    /// When it was last changed, where that is known.
    pub modified: Option<Timestamp>,
    /// It was stored, and is read from the archive.
    pub stored: bool,
}

/// What came of registering files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enrolled {
    pub new: u64,
    /// Known and in order: nothing was changed.
    pub known: u64,
    /// Known, but failed, taken out or changed since: to be read again.
    pub again: u64,
}

/// Which files of a collection an act is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    File(String),
    Job(String),
    All,
}

impl Collections<'_> {
    /// Registers files. A file known by its path is registered once; one that has changed since is read again.
    pub async fn enrol(
        &self,
        collection: &str,
        files: Vec<NewCollected>,
        actor: &Actor,
    ) -> Result<Enrolled, Error> {
        let input = (collection.to_owned(), files, actor.clone());
        self.0
            .write("register the files", input, |tx, (collection, files, actor)| {
                Box::pin(async move {
                    held(tx, collection).await?;
                    if collection == "archive" {
                        return Err(refused(
                            "the collection archive takes what is stored: use `grange store`, or another collection",
                        ));
                    }
                    let mut done = Enrolled::default();
                    for file in files {
                        enrol(tx, collection, file, &mut done).await?;
                    }
                    if done.new + done.again > 0 {
                        let subject = format!("collection:{collection}");
                        told(tx, actor, "collections.register", subject, NO_STATE, Some(&done)).await?;
                    }
                    Ok(done)
                })
            })
            .await
    }

    /// Files of a collection after an id, in the order they came.
    pub async fn files(
        &self,
        collection: &str,
        state: Option<CollectedState>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<CollectedFile>, Error> {
        let state = state.map_or_else(String::new, |state| state.name().to_owned());
        let input = (collection.to_owned(), state, after, i64::from(limit));
        self.0
            .read("list the files of the collection", input, |tx, (collection, state, after, limit)| {
                Box::pin(async move {
                    let query = tx.sql(&FILES).bind(collection.as_str()).bind(*after).bind(state.as_str());
                    tx.rows(query.bind(*limit)).await?.iter().map(file).collect()
                })
            })
            .await
    }

    /// The file of a collection that the index calls by this name.
    pub async fn file_named(&self, collection: &str, name: &str) -> Result<Option<CollectedFile>, Error> {
        // No row can hold it.
        if name.contains('\0') {
            return Ok(None);
        }
        self.0
            .read("look for the file", (collection.to_owned(), name.to_owned()), |tx, (collection, name)| {
                Box::pin(async move {
                    let query = BY_NAME.on(tx).bind(collection.as_str()).bind(name.as_str());
                    tx.row(query).await?.as_ref().map(file).transpose()
                })
            })
            .await
    }

    /// Marks files to be taken out of the index again, and counts them. Those not indexed yet stay out.
    pub async fn roll_back(&self, collection: &str, which: &Which, actor: &Actor) -> Result<u64, Error> {
        self.mark(collection, which, actor, true).await
    }

    /// Marks files that failed or were taken out to be indexed (again), and counts them.
    pub async fn index_again(&self, collection: &str, which: &Which, actor: &Actor) -> Result<u64, Error> {
        self.mark(collection, which, actor, false).await
    }

    async fn mark(&self, collection: &str, which: &Which, actor: &Actor, out: bool) -> Result<u64, Error> {
        let input = (collection.to_owned(), which.clone(), actor.clone(), out);
        self.0
            .write("mark the files", input, |tx, (collection, which, actor, out)| {
                Box::pin(async move {
                    there(tx, collection).await?;
                    let (kind, value) = match which {
                        Which::File(name) => ("file", name.as_str()),
                        Which::Job(job) => ("job", job.as_str()),
                        Which::All => ("all", ""),
                    };
                    plain("name of the file", value)?;
                    let query = tx
                        .sql(if *out { &OUT } else { &AGAIN })
                        .bind(collection.as_str())
                        .bind(kind)
                        .bind(value.to_owned())
                        .bind(micros(tx.now));
                    let marked = tx.run(query).await?;
                    if marked > 0 {
                        let act = if *out { "index.rollback" } else { "index.again" };
                        let state = json!({ "which": which, "files": marked });
                        told(tx, actor, act, format!("collection:{collection}"), NO_STATE, Some(&state))
                            .await?;
                    }
                    Ok(marked)
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, collection, name, path, size, job, state, attempts, captures, problems, told, changed_at"
    };
}
pub(super) use columns;

static FILES: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM collection_files WHERE collection = $1 AND id > $2 AND ($3 = '' OR state = $3) ORDER BY id LIMIT $4"
));
// On PostgreSQL digests of names and paths are in the indexes.
macro_rules! by_name {
    ($digest:literal) => {
        Sql::new(concat!(
            "SELECT ",
            columns!(),
            " FROM collection_files WHERE collection = $1 AND name = $2",
            $digest
        ))
    };
}
static BY_NAME: Bulk =
    Bulk { sqlite: by_name!(""), postgres: by_name!(" AND text_digest(name) = text_digest($2)") };
macro_rules! by_path {
    ($digest:literal) => {
        Sql::new(concat!(
            "SELECT id, name, state, size, captures, changed_at, lease_owner FROM collection_files
             WHERE collection = $1 AND path = $2",
            $digest,
            " {for_update}"
        ))
    };
}
static BY_PATH: Bulk =
    Bulk { sqlite: by_path!(""), postgres: by_path!(" AND text_digest(path) = text_digest($2)") };
// Readers follow new ids: a file of another length gets another row, and whoever reads it looks at it again.
static DROP: Sql = Sql::new("DELETE FROM collection_files WHERE id = $1");
static READ_AGAIN: Sql = Sql::new(
    "INSERT INTO collection_files (collection, name, path, size, captures, told, changed_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
static TRY_AGAIN: Sql = Sql::new(
    "UPDATE collection_files SET state = 'waiting', due_at = 0, attempts = 0, abandoned = 0, size = $2,
         lease_token = lease_token + 1, lease_owner = NULL, changed_at = $3, edition = edition + 1 WHERE id = $1",
);
static ADD: Sql = Sql::new(
    "INSERT INTO collection_files (collection, name, path, size, changed_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING",
);
// A lease on a file that changes its mind is void: its token no longer fits. A file that waits or failed may have captures
// in the index: those of an earlier reading, of a reading that a kill cut off before its mark, or of lines that name it.
static OUT: Sql = Sql::new(
    "UPDATE collection_files SET state = 'leaving', due_at = 0, attempts = 0, lease_token = lease_token + 1,
         lease_owner = NULL, changed_at = $4, edition = edition + 1
     WHERE collection = $1 AND state IN ('indexed', 'waiting', 'failed')
         AND ($2 = 'all' OR ($2 = 'file' AND name = $3) OR ($2 = 'job' AND job = $3))",
);
static AGAIN: Sql = Sql::new(
    "UPDATE collection_files SET state = 'waiting', due_at = 0, attempts = 0, abandoned = 0,
         lease_token = lease_token + 1, lease_owner = NULL, changed_at = $4, edition = edition + 1
     WHERE collection = $1 AND state IN ('failed', 'out')
         AND ($2 = 'all' OR ($2 = 'file' AND name = $3) OR ($2 = 'job' AND job = $3))",
);

async fn enrol(
    tx: &mut Tx<'_>,
    collection: &str,
    new: &NewCollected,
    done: &mut Enrolled,
) -> Result<(), Fail> {
    plain("path", &new.path)?;
    if new.stored {
        let query = tx.sql(&ADD).bind(collection.to_owned()).bind(new.path.clone()).bind(None::<String>);
        let added = tx.run(query.bind(new.size as i64).bind(micros(tx.now))).await?;
        done.new += added;
        done.known += 1 - added;
        return Ok(());
    }
    if known(tx, collection, new, done).await? {
        return Ok(());
    }
    // The last part of the path is its name; where another file has that, as many parts as it takes.
    for (at, _) in new.path.rmatch_indices('/').chain([(0, "")]) {
        let name = new.path[at..].trim_start_matches('/');
        if name.is_empty() {
            continue;
        }
        let query = tx
            .sql(&ADD)
            .bind(collection.to_owned())
            .bind(name.to_owned())
            .bind(new.path.clone())
            .bind(new.size as i64)
            .bind(micros(tx.now));
        if tx.run(query).await? == 1 {
            done.new += 1;
            return Ok(());
        }
        // The name is another file's, or somebody registered this one just now.
        if known(tx, collection, new, done).await? {
            return Ok(());
        }
    }
    Err(refused(format_args!("{} cannot be told apart from a file of the same name", new.path)))
}

/// What registering a file that is known by its path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownFile {
    Unchanged,
    /// It failed or was taken out; it is as it was.
    TryAgain,
    /// Its bytes are not those that were read.
    ReadAgain,
}

impl KnownFile {
    /// `grown`: its size is not the one registered. `newer`: it was changed after it was last dealt with.
    fn of(state: CollectedState, leased: bool, grown: bool, newer: bool) -> KnownFile {
        match state {
            CollectedState::Failed | CollectedState::Out if !grown => KnownFile::TryAgain,
            CollectedState::Failed | CollectedState::Out => KnownFile::ReadAgain,
            CollectedState::Indexed if grown || newer => KnownFile::ReadAgain,
            // While it is being read, the size of the row stays, so that the next import finds the difference.
            CollectedState::Waiting if grown && !leased => KnownFile::ReadAgain,
            CollectedState::Indexed | CollectedState::Waiting | CollectedState::Leaving => {
                KnownFile::Unchanged
            }
        }
    }
}

/// Whether the file is known by its path; one that failed, was taken out or has changed is read again.
async fn known(
    tx: &mut Tx<'_>,
    collection: &str,
    new: &NewCollected,
    done: &mut Enrolled,
) -> Result<bool, Fail> {
    let query = BY_PATH.on(tx).bind(collection.to_owned()).bind(new.path.clone());
    let Some(row) = tx.row(query).await? else { return Ok(false) };
    let (id, size, changed_at) = (row.int("id")?, row.int("size")?, row.time("changed_at")?);
    let leased = row.text_or_none("lease_owner")?.is_some();
    let newer = new.modified.is_some_and(|modified| modified > changed_at);
    match KnownFile::of(row.parsed("state")?, leased, size != new.size as i64, newer) {
        KnownFile::Unchanged => done.known += 1,
        KnownFile::TryAgain => {
            let query = tx.sql(&TRY_AGAIN).bind(id).bind(new.size as i64).bind(micros(tx.now));
            tx.run(query).await?;
            done.again += 1;
        }
        KnownFile::ReadAgain => {
            let (name, captures) = (row.text("name")?, row.int("captures")?);
            let told = format!("it has changed since it was registered with {size} bytes; it is read again");
            let query = tx.sql(&DROP).bind(id);
            tx.run(query).await?;
            let query = tx
                .sql(&READ_AGAIN)
                .bind(collection.to_owned())
                .bind(name)
                .bind(new.path.clone())
                .bind(new.size as i64)
                .bind(captures)
                .bind(json!([told]).to_string())
                .bind(micros(tx.now));
            tx.run(query).await?;
            done.again += 1;
        }
    }
    Ok(true)
}

pub(super) fn file(row: &AnyRow) -> Result<CollectedFile, Fail> {
    Ok(CollectedFile {
        id: row.int("id")?,
        collection: row.text("collection")?,
        name: row.text("name")?,
        path: row.text_or_none("path")?,
        size: row.int("size")? as u64,
        job: row.text_or_none("job")?,
        state: row.parsed("state")?,
        attempts: row.int("attempts")? as u32,
        captures: row.int("captures")? as u64,
        problems: row.int("problems")? as u64,
        told: row.json("told")?,
        changed_at: row.time("changed_at")?,
    })
}
