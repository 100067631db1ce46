//! Taking a file to be indexed or taken out, and what came of it.

use std::time::Duration;

use serde_json::json;

use super::collections::Collections;
use super::files::{CollectedFile, columns, file};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

/// A file that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileClaim {
    /// Its state says what is to be done: waiting or leaving.
    pub file: CollectedFile,
    pub token: i64,
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

/// Claims before a file is given up: a restart and a bad day.
const ATTEMPTS_MAX: i64 = 5;

impl Collections<'_> {
    /// Takes the oldest file that waits, of one collection or of all.
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
                    Ok(Some(FileClaim { file: file(&row)?, token: row.int("lease_token")? }))
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

    /// It did not work. The file is tried again after `retry_after`; `None`, and the last attempt, give it up.
    pub async fn index_failed(
        &self,
        claim: &FileClaim,
        reason: &str,
        retry_after: Option<Duration>,
    ) -> Result<(), Error> {
        let input = (claim.clone(), texts(&[reason.to_owned()]), retry_after.map(length));
        self.0
            .write_one("record the failure", input, |tx, (claim, told, retry_after)| {
                Box::pin(failed(tx, claim, told, *retry_after))
            })
            .await
    }
}

// Picked in a step of its own, as all claims are.
static CLAIM: Sql = Sql::new(concat!(
    "WITH picked AS MATERIALIZED (
         SELECT id AS picked_id FROM collection_files
         WHERE state IN ('waiting', 'leaving') AND due_at <= {now} AND ($4 = '' OR collection = $4)
             AND collection NOT IN (SELECT name FROM collections WHERE removed_at IS NOT NULL)
         ORDER BY id LIMIT 1 {skip_locked}
     )
     UPDATE collection_files SET lease_owner = $2, lease_token = lease_token + 1, due_at = {now} + $3,
         attempts = attempts + 1, changed_at = {now}, edition = edition + 1
     FROM picked WHERE id = picked_id
     RETURNING lease_token, ",
    columns!()
));
static RECLAIM: Sql = Sql::new(
    "UPDATE collection_files SET due_at = 0, lease_owner = NULL, lease_token = lease_token + 1, edition = edition + 1
     WHERE lease_owner = $1",
);
static RENEW: Sql = Sql::new(
    "UPDATE collection_files SET due_at = {now} + $4, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL",
);
static INDEXED: Sql = Sql::new(
    "UPDATE collection_files SET state = 'indexed', lease_owner = NULL, job = $4, captures = $5, problems = $6,
         told = $7, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL",
);
static REMOVED: Sql = Sql::new(
    "DELETE FROM collection_files
     WHERE id = $1 AND lease_token = $2 AND lease_owner IS NOT NULL AND after_leaving = 'removed'",
);
static TAKEN_OUT: Sql = Sql::new(
    "UPDATE collection_files SET state = after_leaving, after_leaving = 'out', lease_owner = NULL, captures = 0,
         problems = 0, told = '[]', due_at = 0, attempts = 0, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL",
);
static FAILED: Sql = Sql::new(
    "UPDATE collection_files SET
         state = CASE WHEN $5 < 0 OR (attempts >= $6 AND state = 'waiting') THEN 'failed' ELSE state END,
         lease_owner = NULL, told = $4, due_at = {now} + $5, changed_at = {now}, edition = edition + 1
     WHERE id = $2 AND lease_token = $3 AND lease_owner IS NOT NULL",
);

async fn failed(
    tx: &mut Tx<'_>,
    claim: &FileClaim,
    told: &str,
    retry_after: Option<i64>,
) -> Result<(), Fail> {
    let query = tx
        .timed(&FAILED)
        .bind(claim.file.id)
        .bind(claim.token)
        .bind(told.to_owned())
        .bind(retry_after.unwrap_or(-1))
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
