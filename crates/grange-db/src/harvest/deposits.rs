//! Job folders whose crawl has ended and whose files are not on every replica yet: counted, so that people see what
//! waits, and how much of a harvester's disk it takes.

use grange_model::harvest::JobId;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use super::handle;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

handle! {
    /// The folders that wait.
    Deposits, deposits
}

/// One folder that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingDeposit {
    pub harvester: String,
    /// The name of the folder on that harvester.
    pub folder: String,
    pub job: JobId,
    /// Files and bytes that still lie in the folder.
    pub files: u64,
    pub bytes: u64,
    /// Why the last attempt failed; absent before the first one ended.
    pub reason: Option<String>,
    #[schemars(with = "String")]
    pub since: Timestamp,
}

/// All folders that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepositCounts {
    pub folders: u64,
    pub files: u64,
    pub bytes: u64,
    /// Files of the archive that are not on every replica yet.
    pub unproven_files: u64,
    pub unproven_bytes: u64,
}

impl Deposits<'_> {
    /// Keeps how a folder stands that was crawled under this claim. `since` is kept from the first word on it.
    pub async fn keep(&self, deposit: WaitingDeposit, claim_token: i64) -> Result<(), Error> {
        self.0
            .write_one("keep the deposit", (deposit, claim_token), |tx, (deposit, claim_token)| {
                Box::pin(async move {
                    let query = tx
                        .sql(&KEEP)
                        .bind(deposit.harvester.as_str())
                        .bind(deposit.folder.as_str())
                        .bind(deposit.job.0)
                        .bind(deposit.files as i64)
                        .bind(deposit.bytes as i64)
                        // The text may come from afar, and PostgreSQL keeps no NUL.
                        .bind(deposit.reason.as_ref().map(|reason| reason.replace('\0', "\u{fffd}")))
                        .bind(micros(deposit.since))
                        .bind(micros(tx.now))
                        .bind(*claim_token);
                    tx.run(query).await.map(|_| ())
                })
            })
            .await
    }

    /// Forgets a folder that is gone.
    pub async fn forget(&self, harvester: &str, folder: &str) -> Result<(), Error> {
        self.0
            .write_one(
                "forget the deposit",
                (harvester.to_owned(), folder.to_owned()),
                |tx, (harvester, folder)| {
                    Box::pin(async move {
                        let query = tx.sql(&FORGET).bind(harvester.as_str()).bind(folder.as_str());
                        tx.run(query).await.map(|_| ())
                    })
                },
            )
            .await
    }

    /// Forgets what is known of a harvester's folders but these.
    pub async fn retain(&self, harvester: &str, folders: &[String]) -> Result<(), Error> {
        self.0
            .write_one(
                "forget deposits",
                (harvester.to_owned(), super::json(&folders)),
                |tx, (harvester, folders)| {
                    Box::pin(async move {
                        let query = RETAIN.on(tx).bind(harvester.as_str()).bind(folders.as_str());
                        tx.run(query).await.map(|_| ())
                    })
                },
            )
            .await
    }

    /// Those that wait, the oldest first.
    pub async fn list(&self, limit: u32) -> Result<Vec<WaitingDeposit>, Error> {
        self.0
            .read("list the deposits", i64::from(limit), |tx, limit| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(*limit);
                    tx.rows(query).await?.iter().map(deposit).collect()
                })
            })
            .await
    }

    pub async fn counts(&self) -> Result<DepositCounts, Error> {
        self.0
            .read("count the deposits", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT);
                    let Some(row) = tx.row(query).await? else { return Ok(DepositCounts::default()) };
                    let count = |column| Ok::<_, Fail>(row.int(column)? as u64);
                    let query = tx.sql(&UNPROVEN);
                    let unproven = tx.row(query).await?;
                    let unproven = |column| {
                        unproven.as_ref().map_or(Ok(0), |row| Ok::<_, Fail>(row.int(column)? as u64))
                    };
                    Ok(DepositCounts {
                        folders: count("folders")?,
                        files: count("files")?,
                        bytes: count("bytes")?,
                        unproven_files: unproven("files")?,
                        unproven_bytes: unproven("bytes")?,
                    })
                })
            })
            .await
    }
}

static KEEP: Sql = Sql::new(
    "INSERT INTO waiting_deposits (harvester, folder, job_id, files, bytes, reason, since, updated_at,
         claim_token)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (harvester, folder) DO UPDATE SET files = excluded.files, bytes = excluded.bytes,
         reason = COALESCE(excluded.reason, waiting_deposits.reason), updated_at = excluded.updated_at,
         claim_token = excluded.claim_token",
);
static FORGET: Sql = Sql::new("DELETE FROM waiting_deposits WHERE harvester = $1 AND folder = $2");
static RETAIN: Bulk = Bulk {
    sqlite: Sql::new(
        "DELETE FROM waiting_deposits WHERE harvester = $1 AND folder NOT IN (SELECT value FROM json_each($2))",
    ),
    postgres: Sql::new(
        "DELETE FROM waiting_deposits WHERE harvester = $1
             AND folder NOT IN (SELECT jsonb_array_elements_text($2::jsonb))",
    ),
};
static LIST: Sql = Sql::new(
    "SELECT harvester, folder, job_id, files, bytes, reason, since FROM waiting_deposits
     ORDER BY since, harvester, folder LIMIT $1",
);
static COUNT: Sql = Sql::new(
    "SELECT count(*) AS folders, CAST(COALESCE(sum(files), 0) AS BIGINT) AS files,
         CAST(COALESCE(sum(bytes), 0) AS BIGINT) AS bytes FROM waiting_deposits",
);
static UNPROVEN: Sql = Sql::new(
    "SELECT count(*) AS files, CAST(COALESCE(sum(size), 0) AS BIGINT) AS bytes FROM files WHERE stored_at IS NULL",
);

fn deposit(row: &AnyRow) -> Result<WaitingDeposit, Fail> {
    Ok(WaitingDeposit {
        harvester: row.text("harvester")?,
        folder: row.text("folder")?,
        job: JobId(row.int("job_id")?),
        files: row.int("files")? as u64,
        bytes: row.int("bytes")? as u64,
        reason: row.text_or_none("reason")?,
        since: row.time("since")?,
    })
}
