//! How harvests ended, and warnings about single records.

use grange_model::Actor;
use grange_model::oai::{
    Counts, HistoryId, HistoryLine, OaiJob, OaiJobId, Outcome, RecurringId, RepositoryId,
};
use serde_json::json;
use sqlx::any::AnyRow;

use super::set_or_none;
use crate::act::Tx;
use crate::bulk::{Bulk, ids, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, handle, json, told};
use crate::row::{Columns, micros};

handle! {
    /// The history of harvests.
    OaiHistory, oai_history
}

/// Which lines to show, newest first.
#[derive(Clone, Debug)]
pub struct OaiHistoryFilter {
    pub repository: Option<RepositoryId>,
    pub job: Option<OaiJobId>,
    pub outcome: Option<Outcome>,
    /// Only lines older than this one: the next page.
    pub before: Option<HistoryId>,
    pub limit: u32,
}

impl Default for OaiHistoryFilter {
    fn default() -> Self {
        Self { repository: None, job: None, outcome: None, before: None, limit: 100 }
    }
}

impl OaiHistory<'_> {
    pub async fn list(&self, filter: &OaiHistoryFilter) -> Result<Vec<HistoryLine>, Error> {
        self.0
            .read("read the history", filter.clone(), |tx, filter| {
                Box::pin(async move {
                    let query = tx
                        .sql(&LIST)
                        .bind(filter.repository.map(|id| id.0))
                        .bind(filter.job.map(|id| id.0))
                        .bind(filter.outcome.map(|outcome| outcome.as_str().to_owned()))
                        .bind(filter.before.map(|id| id.0))
                        .bind(i64::from(filter.limit));
                    tx.rows(query).await?.iter().map(line).collect()
                })
            })
            .await
    }

    /// Deletes lines that nobody needs any more; gives how many.
    pub async fn delete(&self, lines: &[HistoryId], actor: &Actor) -> Result<u64, Error> {
        let lines: Vec<_> = lines.iter().map(|line| line.0).collect();
        self.0
            .write("delete from the history", (lines, actor.clone()), |tx, (lines, actor)| {
                Box::pin(async move {
                    let query = DELETE.on(tx).bind(ids(lines));
                    let gone = tx.run(query).await?;
                    let state = json!({ "lines": lines });
                    told(tx, actor, "oai-history.delete", "oai-history".to_owned(), Some(&state), NO_STATE)
                        .await?;
                    Ok(gone)
                })
            })
            .await
    }
}

static LIST: Sql = Sql::new(
    "SELECT id, repository_id, job_id, recurring_id, prefix, set_spec, outcome, reason, started_at, ended_at, counts,
         pages
     FROM oai_history WHERE ($1 IS NULL OR repository_id = $1) AND ($2 IS NULL OR job_id = $2)
         AND ($3 IS NULL OR outcome = $3) AND ($4 IS NULL OR id < $4)
     ORDER BY id DESC LIMIT $5",
);
static DELETE: Bulk = of_ids!("DELETE FROM oai_history WHERE id IN (", "$1", ")");
static WRITE: Sql = Sql::new(
    "INSERT INTO oai_history
         (repository_id, job_id, recurring_id, prefix, set_spec, outcome, reason, started_at, ended_at, counts, pages)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
);

/// A line about a job.
pub(super) struct Line<'j> {
    job: &'j OaiJob,
    outcome: Outcome,
    reason: Option<String>,
}

impl<'j> Line<'j> {
    pub(super) fn of(job: &'j OaiJob, outcome: Outcome, reason: Option<String>) -> Self {
        Self { job, outcome, reason }
    }
}

pub(super) async fn write(tx: &mut Tx<'_>, line: &Line<'_>) -> Result<(), Fail> {
    let job = line.job;
    let reason = line.reason.as_ref().map(|text| text.replace('\0', "\u{fffd}"));
    let query = tx
        .sql(&WRITE)
        .bind(job.repository.0)
        .bind(job.id.0)
        .bind(job.recurring.map(|id| id.0))
        .bind(job.spec.prefix.clone())
        .bind(job.spec.set.clone().unwrap_or_default())
        .bind(line.outcome.as_str())
        .bind(reason)
        .bind(micros(job.started_at.unwrap_or(tx.now)))
        .bind(micros(tx.now))
        .bind(json(&job.counts))
        .bind(job.pages as i64);
    tx.run(query).await.map(|_| ())
}

fn line(row: &AnyRow) -> Result<HistoryLine, Fail> {
    Ok(HistoryLine {
        id: HistoryId(row.int("id")?),
        repository: RepositoryId(row.int("repository_id")?),
        job: OaiJobId(row.int("job_id")?),
        recurring: row.int_or_none("recurring_id")?.map(RecurringId),
        prefix: row.text("prefix")?,
        set: set_or_none(row.text("set_spec")?),
        outcome: row.parsed("outcome")?,
        reason: row.text_or_none("reason")?,
        started_at: row.time("started_at")?,
        ended_at: row.time("ended_at")?,
        counts: row.json::<Counts>("counts")?,
        pages: row.int("pages")? as u64,
    })
}
