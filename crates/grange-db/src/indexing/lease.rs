//! Taking a file to be indexed or taken out, and what came of it.

use std::time::Duration;

use serde_json::json;

use super::collections::Collections;
use super::files::{CollectedFile, columns, file};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

/// A file that is ours until the lease ends, or another node takes over the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileClaim {
    /// Its state says what is to be done: leaving files are taken out, others are indexed.
    pub file: CollectedFile,
    pub token: i64,
    /// Claims in a row before this one that ended without an outcome.
    pub abandoned: u32,
}

/// The state of a file after an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRetry {
    /// It waits and is tried again; after some attempts it is listed as failed, and the attempts continue.
    After(Duration),
    /// It counts as failed at once, and is tried again.
    FailedAfter(Duration),
    /// It failed, and only a person makes it wait again.
    Never,
}

/// What indexing a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    pub job: Option<String>,
    pub captures: u64,
    pub problems: u64,
    /// The first few of them.
    pub told: Vec<String>,
}

/// Attempts before a file that waits for a place to come back is listed as failed: a restart and a bad day.
const ATTEMPTS_MAX: i64 = 5;

impl Collections<'_> {
    /// Takes the oldest file that is due, of one collection or of all whose indexes `owner` keeps.
    pub async fn claim(
        &self,
        collection: Option<&str>,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<FileClaim>, Error> {
        let input = (collection.unwrap_or_default().to_owned(), owner.to_owned(), length(lease));
        self.0
            .write_one("take a file to index", input, |tx, (collection, owner, lease)| {
                Box::pin(async move {
                    let query = tx.timed(&CLAIM).bind(owner.as_str()).bind(*lease).bind(collection.as_str());
                    let Some(row) = tx.row(query).await? else { return Ok(None) };
                    let (token, abandoned) = (row.int("lease_token")?, row.int("abandoned")? as u32);
                    Ok(Some(FileClaim { file: file(&row)?, token, abandoned }))
                })
            })
            .await
    }

    /// Ends what an earlier life of `owner` held, and counts it: a process that starts knows that it was not working.
    pub async fn reclaim(&self, owner: &str) -> Result<u64, Error> {
        self.0
            .write_one("end the leases of an earlier life", owner.to_owned(), |tx, owner| {
                Box::pin(async move {
                    let query = tx.sql(&RECLAIM).bind(owner.as_str());
                    tx.run(query).await
                })
            })
            .await
    }

    /// Prolongs the lease.
    pub async fn renew(&self, claim: &FileClaim, lease: Duration) -> Result<(), Error> {
        self.0
            .write_one("renew the lease", (claim.clone(), length(lease)), |tx, (claim, lease)| {
                Box::pin(async move {
                    let query = tx.timed(&RENEW).bind(claim.file.id).bind(claim.token).bind(*lease);
                    kept(tx.run(query).await?, claim)
                })
            })
            .await
    }

    /// The file is in the index.
    pub async fn indexed(&self, claim: &FileClaim, came: Indexed) -> Result<(), Error> {
        self.0
            .write_one("mark the file indexed", (claim.clone(), came), |tx, (claim, came)| {
                Box::pin(async move {
                    let query = tx
                        .timed(&INDEXED)
                        .bind(claim.file.id)
                        .bind(claim.token)
                        .bind(came.job.clone())
                        .bind(came.captures as i64)
                        .bind(came.problems as i64)
                        .bind(texts(&came.told));
                    kept(tx.run(query).await?, claim)
                })
            })
            .await
    }

    /// The file is out of the index. The row of a withdrawn deposit goes; where another deposit has taken the name, that one
    /// waits to be indexed.
    pub async fn taken_out(&self, claim: &FileClaim) -> Result<(), Error> {
        self.0
            .write("mark the file taken out", claim.clone(), |tx, claim| {
                Box::pin(async move {
                    let query = tx.sql(&REMOVED).bind(claim.file.id).bind(claim.token);
                    if tx.run(query).await? == 1 {
                        return Ok(());
                    }
                    let query = tx.timed(&TAKEN_OUT).bind(claim.file.id).bind(claim.token);
                    kept(tx.run(query).await?, claim)
                })
            })
            .await
    }

    /// It did not work.
    pub async fn index_failed(
        &self,
        claim: &FileClaim,
        reason: &str,
        retry: IndexRetry,
    ) -> Result<(), Error> {
        let input = (claim.clone(), texts(&[reason.to_owned()]), retry);
        self.0
            .write_one("record the failure", input, |tx, (claim, told, retry)| {
                Box::pin(failed(tx, claim, told, *retry))
            })
            .await
    }
}

// Picked in a step of its own, as all claims are.
static CLAIM: Sql = Sql::new(concat!(
    "WITH picked AS MATERIALIZED (
         SELECT id AS picked_id FROM collection_files
         WHERE (state IN ('waiting', 'leaving') OR (state = 'failed' AND due_at > 0)) AND due_at <= {now}
             AND ($4 = '' OR collection = $4)
             AND collection IN (SELECT collection FROM index_owners WHERE owner = $2 AND until_at > {now})
             AND collection NOT IN (SELECT name FROM collections WHERE removed_at IS NOT NULL)
         ORDER BY id LIMIT 1 {skip_locked}
     )
     UPDATE collection_files SET abandoned = abandoned + CASE WHEN lease_owner IS NULL THEN 0 ELSE 1 END,
         lease_owner = $2, lease_token = lease_token + 1, due_at = {now} + $3,
         attempts = attempts + 1, changed_at = {now}, edition = edition + 1
     FROM picked WHERE id = picked_id
     RETURNING lease_token, abandoned, ",
    columns!()
));
static RECLAIM: Sql = Sql::new(
    "UPDATE collection_files SET due_at = CASE WHEN state = 'failed' THEN 1 ELSE 0 END, abandoned = abandoned + 1,
         lease_owner = NULL, lease_token = lease_token + 1, edition = edition + 1
     WHERE lease_owner = $1",
);
static RENEW: Sql = Sql::new(
    "UPDATE collection_files SET due_at = {now} + $4, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL AND EXISTS
         (SELECT 1 FROM index_owners o WHERE o.collection = collection_files.collection AND o.owner = lease_owner)",
);
static INDEXED: Sql = Sql::new(
    "UPDATE collection_files SET state = 'indexed', lease_owner = NULL, abandoned = 0, job = $4, captures = $5, problems = $6,
         told = $7, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL AND EXISTS
         (SELECT 1 FROM index_owners o WHERE o.collection = collection_files.collection AND o.owner = lease_owner)",
);
static REMOVED: Sql = Sql::new(
    "DELETE FROM collection_files
     WHERE id = $1 AND lease_token = $2 AND lease_owner IS NOT NULL AND after_leaving = 'removed' AND EXISTS
         (SELECT 1 FROM index_owners o WHERE o.collection = collection_files.collection AND o.owner = lease_owner)",
);
static TAKEN_OUT: Sql = Sql::new(
    "UPDATE collection_files SET state = after_leaving, after_leaving = 'out', lease_owner = NULL, abandoned = 0, captures = 0,
         problems = 0, told = '[]', due_at = 0, attempts = 0, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL AND EXISTS
         (SELECT 1 FROM index_owners o WHERE o.collection = collection_files.collection AND o.owner = lease_owner)",
);
// A file that leaves goes on leaving, and due_at is never 0 where it is tried again.
static FAILED: Sql = Sql::new(
    "UPDATE collection_files SET
         state = CASE WHEN state = 'leaving' THEN state WHEN $6 = 1 OR attempts >= $7 THEN 'failed' ELSE state END,
         due_at = CASE WHEN $5 < 0 THEN 0 ELSE {now} + $5 END,
         lease_owner = NULL, abandoned = 0, told = $4, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL AND EXISTS
         (SELECT 1 FROM index_owners o WHERE o.collection = collection_files.collection AND o.owner = lease_owner)",
);

async fn failed(tx: &mut Tx<'_>, claim: &FileClaim, told: &str, retry: IndexRetry) -> Result<(), Fail> {
    let (after, at_once) = match retry {
        IndexRetry::After(after) => (length(after), false),
        IndexRetry::FailedAfter(after) => (length(after), true),
        IndexRetry::Never => (-1, true),
    };
    let query = tx
        .timed(&FAILED)
        .bind(claim.file.id)
        .bind(claim.token)
        .bind(told.to_owned())
        .bind(after)
        .bind(i64::from(at_once))
        .bind(ATTEMPTS_MAX);
    kept(tx.run(query).await?, claim)
}

fn kept(rows: u64, claim: &FileClaim) -> Result<(), Fail> {
    if rows == 1 {
        Ok(())
    } else {
        Err(Error::LeaseLost { what: format!("file {}", claim.file.name) }.into())
    }
}

/// Problems come from foreign files, and PostgreSQL keeps no NUL.
fn texts(texts: &[String]) -> String {
    json!(texts.iter().map(|text| text.replace('\0', "\u{fffd}")).collect::<Vec<_>>()).to_string()
}
