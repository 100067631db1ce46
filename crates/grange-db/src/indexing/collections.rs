//! Collections: made by a first import, gone when their index is.

use std::collections::HashMap;

use grange_model::Actor;
use grange_model::ids::CollectionId;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::any::AnyRow;

use super::files::CollectedState;
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, handle, missing, plain, refused, told};
use crate::row::{Columns, micros};

handle! {
    /// The collections and their files.
    Collections, collections
}

/// A set of files with an index of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    pub name: String,
    pub description: String,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// It is being taken away.
    pub removed: bool,
    pub files: CollectionCounts,
}

/// How many files of a collection stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionCounts {
    pub waiting: u64,
    pub indexed: u64,
    pub failed: u64,
    pub leaving: u64,
    pub out: u64,
    /// Captures of files that are indexed.
    pub captures: u64,
    /// Problems found in files that are indexed.
    pub problems: u64,
    pub bytes: u64,
}

impl Collections<'_> {
    /// Makes the collection unless it is there.
    pub async fn ensure(&self, name: &str, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("make the collection", (name.to_owned(), actor.clone()), |tx, (name, actor)| {
                Box::pin(ensure(tx, name, actor))
            })
            .await
    }

    pub async fn list(&self) -> Result<Vec<Collection>, Error> {
        self.0
            .read("list the collections", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT);
                    let mut counts: HashMap<String, CollectionCounts> = HashMap::new();
                    for row in tx.rows(query).await? {
                        count(counts.entry(row.text("collection")?).or_default(), &row)?;
                    }
                    let query = tx.sql(&LIST);
                    tx.rows(query).await?.iter().map(|row| collection(row, &mut counts)).collect()
                })
            })
            .await
    }

    pub async fn get(&self, name: &str) -> Result<Collection, Error> {
        let found = self.list().await?.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| Error::NotFound { what: format!("collection {name}") })
    }

    /// Marks the collection for removal: its captures go with its index, its files stay where they are.
    pub async fn remove(&self, name: &str, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("remove the collection", (name.to_owned(), actor.clone()), |tx, (name, actor)| {
                Box::pin(async move {
                    if name == "archive" {
                        return Err(refused(
                            "the collection archive is the archive itself and cannot be removed",
                        ));
                    }
                    let query =
                        tx.sql(&REMOVE).bind(name.as_str()).bind(micros(tx.now)).bind(actor.who.as_str());
                    if tx.run(query).await? == 0 {
                        return Err(missing("collection", name));
                    }
                    let state = json!({ "name": name });
                    told(
                        tx,
                        actor,
                        "collections.remove",
                        format!("collection:{name}"),
                        Some(&state),
                        NO_STATE,
                    )
                    .await
                })
            })
            .await
    }

    /// Forgets a collection whose index is gone.
    pub async fn forget(&self, name: &str) -> Result<(), Error> {
        self.0
            .write("forget the collection", name.to_owned(), |tx, name| {
                Box::pin(async move {
                    let query = tx.sql(&REMOVED).bind(name.as_str());
                    if tx.row(query).await?.is_none() {
                        return Ok(());
                    }
                    for sql in [&FORGET_OWNER, &FORGET_FILES, &FORGET] {
                        let query = tx.sql(sql).bind(name.as_str());
                        tx.run(query).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

static MAKE: Sql = Sql::new(
    "INSERT INTO collections (name, created_at, changed_at, changed_by, identity) VALUES ($1, $2, $2, $3, $4)
     ON CONFLICT (name) DO NOTHING",
);
static LIST: Sql =
    Sql::new("SELECT name, description, created_at, removed_at FROM collections ORDER BY name");
static COUNT: Sql = Sql::new(
    "SELECT collection, state, count(*) AS files, CAST(sum(captures) AS BIGINT) AS captures,
         CAST(sum(problems) AS BIGINT) AS problems, CAST(sum(size) AS BIGINT) AS bytes
     FROM collection_files GROUP BY collection, state",
);
static REMOVE: Sql = Sql::new(
    "UPDATE collections SET removed_at = COALESCE(removed_at, $2), changed_at = $2, changed_by = $3,
         edition = edition + 1 WHERE name = $1",
);
static REMOVED: Sql = Sql::new("SELECT name FROM collections WHERE name = $1 AND removed_at IS NOT NULL");
static GOING_OR_NOT: Sql = Sql::new("SELECT removed_at FROM collections WHERE name = $1");
static FORGET_OWNER: Sql = Sql::new("DELETE FROM index_owners WHERE collection = $1");
static FORGET_FILES: Sql = Sql::new("DELETE FROM collection_files WHERE collection = $1");
static FORGET: Sql = Sql::new("DELETE FROM collections WHERE name = $1");

async fn ensure(tx: &mut Tx<'_>, name: &str, actor: &Actor) -> Result<(), Fail> {
    plain("name of the collection", name)?;
    loop {
        let query = tx.sql(&MAKE).bind(name.to_owned()).bind(micros(tx.now)).bind(actor.who.clone());
        let query = query.bind(CollectionId::new().to_string());
        if tx.run(query).await? == 1 {
            let (subject, state) = (format!("collection:{name}"), json!({ "name": name }));
            return told(tx, actor, "collections.make", subject, NO_STATE, Some(&state)).await;
        }
        let query = tx.sql(&GOING_OR_NOT).bind(name.to_owned());
        // Forgotten between the two statements: there is room for a new one.
        let Some(row) = tx.row(query).await? else { continue };
        if row.int_or_none("removed_at")?.is_some() {
            return Err(refused(format_args!(
                "the collection {name} is being removed: import again when `grange collections ls` no longer shows it"
            )));
        }
        return Ok(());
    }
}

fn count(counts: &mut CollectionCounts, row: &AnyRow) -> Result<(), Fail> {
    let number = |column| Ok::<_, Fail>(row.int(column)? as u64);
    let files = number("files")?;
    counts.bytes += number("bytes")?;
    match row.parsed("state")? {
        CollectedState::Waiting => counts.waiting = files,
        CollectedState::Indexed => {
            counts.indexed = files;
            counts.captures = number("captures")?;
            counts.problems = number("problems")?;
        }
        CollectedState::Failed => counts.failed = files,
        CollectedState::Leaving => counts.leaving = files,
        CollectedState::Out => counts.out = files,
    }
    Ok(())
}

fn collection(row: &AnyRow, counts: &mut HashMap<String, CollectionCounts>) -> Result<Collection, Fail> {
    let name = row.text("name")?;
    Ok(Collection {
        description: row.text("description")?,
        created_at: row.time("created_at")?,
        removed: row.int_or_none("removed_at")?.is_some(),
        files: counts.remove(&name).unwrap_or_default(),
        name,
    })
}

/// Refuses a collection that is not there or is going.
pub(super) async fn there(tx: &mut Tx<'_>, name: &str) -> Result<(), Fail> {
    let query = tx.sql(&THERE).bind(name.to_owned());
    tx.row(query).await?.map(|_| ()).ok_or_else(|| missing("collection", name))
}

/// As [`there`], and held until the commit: whoever registers files does so alone, so that their numbers are in the order
/// they become visible in. Those who follow a collection by number would miss a smaller one that came later.
pub(super) async fn held(tx: &mut Tx<'_>, name: &str) -> Result<(), Fail> {
    let query = tx.sql(&HELD).bind(name.to_owned());
    tx.row(query).await?.map(|_| ()).ok_or_else(|| missing("collection", name))
}

static HELD: Sql =
    Sql::new("SELECT name FROM collections WHERE name = $1 AND removed_at IS NULL {for_update}");
static THERE: Sql = Sql::new("SELECT name FROM collections WHERE name = $1 AND removed_at IS NULL");
