//! Records: compared by the page, listed by people.

use grange_model::oai::{KnownRecord, OaiRecord, RecordStatus, RepositoryId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use crate::bulk::{Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{handle, json};
use crate::row::{Columns, micros};

handle! {
    /// The records that are held.
    OaiRecords, oai_records
}

impl OaiRecords<'_> {
    /// Those of a page's identifiers that are known, by one statement.
    pub async fn known(
        &self,
        repository: RepositoryId,
        prefix: &str,
        identifiers: &[&str],
    ) -> Result<Vec<KnownRecord>, Error> {
        let input = (repository, prefix.to_owned(), json(&identifiers));
        self.0
            .read("compare the records", input, |tx, (repository, prefix, identifiers)| {
                Box::pin(async move {
                    let query =
                        KNOWN.on(tx).bind(identifiers.as_str()).bind(repository.0).bind(prefix.as_str());
                    tx.rows(query).await?.iter().map(known).collect()
                })
            })
            .await
    }

    /// How many files were ever placed in these folders.
    pub async fn folders(
        &self,
        repository: RepositoryId,
        paths: &[&str],
    ) -> Result<Vec<(String, i64)>, Error> {
        self.0
            .read("count the files", (repository, json(&paths)), |tx, (repository, paths)| {
                Box::pin(async move {
                    let query = FOLDERS.on(tx).bind(paths.as_str()).bind(repository.0);
                    let rows = tx.rows(query).await?;
                    rows.iter().map(|row| Ok((row.text("path")?, row.int("files")?))).collect()
                })
            })
            .await
    }

    /// Records after an identifier, in order of identifiers, with their sets.
    pub async fn list(
        &self,
        repository: RepositoryId,
        prefix: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<OaiRecord>, Error> {
        let input = (repository, prefix.to_owned(), after.to_owned(), i64::from(limit));
        self.0
            .read("list the records", input, |tx, (repository, prefix, after, limit)| {
                Box::pin(async move {
                    let query = LIST
                        .on(tx)
                        .bind(repository.0)
                        .bind(prefix.as_str())
                        .bind(after.as_str())
                        .bind(*limit);
                    let records =
                        tx.rows(query).await?.iter().map(record).collect::<Result<Vec<_>, Fail>>()?;
                    with_sets(tx, records).await
                })
            })
            .await
    }

    /// How many records are active and deleted.
    pub async fn count(&self, repository: RepositoryId) -> Result<(u64, u64), Error> {
        self.0
            .read("count the records", repository, |tx, repository| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT).bind(repository.0);
                    let mut counts = (0, 0);
                    for row in &tx.rows(query).await? {
                        let count = row.int("count")? as u64;
                        if row.int("deleted")? == 1 { counts.1 = count } else { counts.0 = count }
                    }
                    Ok(counts)
                })
            })
            .await
    }

    /// How many active records of a format and set there are.
    pub async fn active(
        &self,
        repository: RepositoryId,
        prefix: &str,
        set: Option<&str>,
    ) -> Result<u64, Error> {
        let input = (repository, prefix.to_owned(), set.unwrap_or_default().to_owned());
        self.0
            .read("count the records", input, |tx, (repository, prefix, set)| {
                Box::pin(async move {
                    let query = tx.sql(&ACTIVE).bind(repository.0).bind(prefix.as_str()).bind(set.as_str());
                    Ok(tx.row(query).await?.map_or(Ok(0), |row| row.int("count"))? as u64)
                })
            })
            .await
    }

    /// Records that a whole harvest did not see: ids and identifiers of those not deleted, last seen before `list`.
    pub async fn unseen(
        &self,
        repository: RepositoryId,
        prefix: &str,
        set: Option<&str>,
        list: i64,
        limit: u32,
    ) -> Result<Vec<KnownRecord>, Error> {
        let input =
            (repository, prefix.to_owned(), set.unwrap_or_default().to_owned(), (list, i64::from(limit)));
        self.0
            .read("look for records that are gone", input, |tx, (repository, prefix, set, (list, limit))| {
                Box::pin(async move {
                    let query = tx
                        .sql(&UNSEEN)
                        .bind(repository.0)
                        .bind(prefix.as_str())
                        .bind(*list)
                        .bind(set.as_str())
                        .bind(*limit);
                    tx.rows(query).await?.iter().map(known).collect()
                })
            })
            .await
    }

    /// How many records [`Self::unseen`] would give without a limit.
    pub async fn unseen_count(
        &self,
        repository: RepositoryId,
        prefix: &str,
        set: Option<&str>,
        list: i64,
    ) -> Result<u64, Error> {
        let input = (repository, prefix.to_owned(), set.unwrap_or_default().to_owned(), list);
        self.0
            .read("count records that are gone", input, |tx, (repository, prefix, set, list)| {
                Box::pin(async move {
                    let query = tx
                        .sql(&UNSEEN_COUNT)
                        .bind(repository.0)
                        .bind(prefix.as_str())
                        .bind(*list)
                        .bind(set.as_str());
                    Ok(tx.row(query).await?.map_or(Ok(0), |row| row.int("count"))? as u64)
                })
            })
            .await
    }

    /// A consumer has seen these records as they are, by number and time of the change. One that changed again since
    /// keeps its mark; gives how many lost theirs.
    pub async fn clear_updated(&self, seen: &[(i64, Timestamp)]) -> Result<u64, Error> {
        let seen: Vec<_> = seen.iter().map(|(id, changed_at)| (id, micros(*changed_at))).collect();
        self.0
            .write_one("clear the marks", json(&seen), |tx, seen| {
                Box::pin(async move {
                    let query = CLEAR.on(tx).bind(seen.as_str());
                    tx.run(query).await
                })
            })
            .await
    }
}

macro_rules! known_columns {
    () => {
        "SELECT id, identifier, filename, datestamp, deleted, digest, list FROM oai_records "
    };
}
macro_rules! record_columns {
    () => {
        "id, repository_id, prefix, identifier, filename, datestamp, deleted, changed_at, updated"
    };
}
pub(super) use record_columns;

static KNOWN: Bulk = Bulk {
    sqlite: Sql::new(concat!(
        known_columns!(),
        "WHERE repository_id = $2 AND prefix = $3 AND identifier IN (SELECT value FROM json_each($1))"
    )),
    postgres: Sql::new(concat!(
        known_columns!(),
        "WHERE repository_id = $2 AND prefix = $3 AND (substr(identifier, 1, 200), oai_text_digest(identifier)) IN (
             SELECT substr(value, 1, 200), oai_text_digest(value) FROM jsonb_array_elements_text($1::jsonb) AS v (value))"
    )),
};
static FOLDERS: Bulk = Bulk {
    sqlite: Sql::new(
        "SELECT path, files FROM oai_folders WHERE repository_id = $2 AND path IN (SELECT value FROM json_each($1))",
    ),
    postgres: Sql::new(
        "SELECT path, files FROM oai_folders
         WHERE repository_id = $2 AND path IN (SELECT jsonb_array_elements_text($1::jsonb))",
    ),
};
// On PostgreSQL the first letters are in the index, and decide the order as the whole does.
static LIST: Bulk = Bulk {
    sqlite: Sql::new(concat!(
        "SELECT ",
        record_columns!(),
        " FROM oai_records WHERE repository_id = $1 AND prefix = $2 AND identifier > $3 ORDER BY identifier LIMIT $4"
    )),
    postgres: Sql::new(concat!(
        "SELECT ",
        record_columns!(),
        " FROM oai_records WHERE repository_id = $1 AND prefix = $2
             AND substr(identifier, 1, 200) >= substr($3::text, 1, 200) AND identifier > $3::text
         ORDER BY substr(identifier, 1, 200), identifier LIMIT $4"
    )),
};
static COUNT: Sql =
    Sql::new("SELECT deleted, count(*) AS count FROM oai_records WHERE repository_id = $1 GROUP BY deleted");
static ACTIVE: Sql = Sql::new(
    "SELECT count(*) AS count FROM oai_records
     WHERE repository_id = $1 AND prefix = $2 AND deleted = 0
       AND ($3 = '' OR id IN (SELECT record_id FROM oai_record_sets
                              WHERE spec = $3 OR substr(spec, 1, length($3) + 1) = $3 || ':'))",
);
macro_rules! unseen {
    () => {
        "WHERE repository_id = $1 AND prefix = $2 AND list < $3 AND deleted = 0
           AND ($4 = '' OR id IN (SELECT record_id FROM oai_record_sets
                                  WHERE spec = $4 OR substr(spec, 1, length($4) + 1) = $4 || ':'))"
    };
}
static UNSEEN: Sql = Sql::new(concat!(known_columns!(), unseen!(), " ORDER BY id LIMIT $5"));
static UNSEEN_COUNT: Sql = Sql::new(concat!("SELECT count(*) AS count FROM oai_records ", unseen!()));
static CLEAR: Bulk = Bulk {
    sqlite: Sql::new(
        "UPDATE oai_records SET updated = 0 FROM json_each($1) AS p
         WHERE oai_records.id = p.value ->> 0 AND changed_at = p.value ->> 1",
    ),
    postgres: Sql::new(
        "UPDATE oai_records SET updated = 0 FROM jsonb_array_elements($1::jsonb) AS p
         WHERE oai_records.id = (p.value ->> 0)::bigint AND changed_at = (p.value ->> 1)::bigint",
    ),
};
static SETS: Bulk = of_ids!(
    "SELECT record_id, spec FROM oai_record_sets WHERE record_id IN (",
    "$1",
    ") ORDER BY record_id, spec"
);

fn known(row: &AnyRow) -> Result<KnownRecord, Fail> {
    Ok(KnownRecord {
        id: row.int("id")?,
        identifier: row.text("identifier")?,
        filename: row.text("filename")?,
        datestamp: row.time("datestamp")?,
        deleted: row.int("deleted")? == 1,
        digest: row.text("digest")?,
        list: row.int("list")?,
    })
}

pub(super) fn record(row: &AnyRow) -> Result<OaiRecord, Fail> {
    let deleted = row.int("deleted")? == 1;
    Ok(OaiRecord {
        id: row.int("id")?,
        repository: RepositoryId(row.int("repository_id")?),
        identifier: row.text("identifier")?,
        prefix: row.text("prefix")?,
        filename: row.text("filename")?,
        changed_at: row.time("changed_at")?,
        datestamp: row.time("datestamp")?,
        status: if deleted { RecordStatus::Deleted } else { RecordStatus::Active },
        updated: row.int("updated")? == 1,
        sets: Vec::new(),
    })
}

/// Adds the sets, which lie in a table of their own.
pub(super) async fn with_sets(
    tx: &mut crate::act::Tx<'_>,
    mut records: Vec<OaiRecord>,
) -> Result<Vec<OaiRecord>, Fail> {
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    let at: std::collections::HashMap<_, _> =
        ids.iter().enumerate().map(|(index, id)| (*id, index)).collect();
    let query = SETS.on(tx).bind(crate::bulk::ids(&ids));
    for row in &tx.rows(query).await? {
        if let Some(index) = at.get(&row.int("record_id")?) {
            records[*index].sets.push(row.text("spec")?);
        }
    }
    Ok(records)
}
