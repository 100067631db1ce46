//! Jobs as people see them: made, listed, deleted.

use grange_model::Actor;
use grange_model::oai::{HarvestSpec, OaiJob, OaiJobId, OaiJobStatus, RecurringId, RepositoryId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::history::{Line, write as write_line};
use super::recurring;
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, handle, json, missing, told};
use crate::row::{Columns, micros};

handle! {
    /// The jobs that wait or run.
    OaiJobs, oai_jobs
}

/// A job to be made.
#[derive(Clone, Debug)]
pub struct NewOaiJob {
    pub repository: RepositoryId,
    pub spec: HarvestSpec,
    /// Not before this time.
    pub due_at: Timestamp,
}

impl OaiJobs<'_> {
    /// Plans one harvest. One that is planned or runs as asked, and is not a recurring one's, is given instead.
    pub async fn add(&self, new: NewOaiJob, actor: &Actor) -> Result<OaiJob, Error> {
        self.0
            .write("plan the harvest", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(async move {
                    super::repositories::held(tx, new.repository.0).await?;
                    let query = tx.sql(&SAME).bind(new.repository.0).bind(json(&new.spec));
                    if let Some(row) = tx.row(query).await? {
                        return job(&row);
                    }
                    let id = insert(tx, new.repository.0, None, &new.spec, new.due_at).await?;
                    let subject = format!("repository:{}", new.repository);
                    told(tx, actor, "oai-job.add", subject, NO_STATE, Some(&new.spec)).await?;
                    found(tx, OaiJobId(id)).await
                })
            })
            .await
    }

    pub async fn get(&self, id: OaiJobId) -> Result<Option<OaiJob>, Error> {
        self.0
            .read("read the harvest", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.0);
                    tx.row(query).await?.as_ref().map(job).transpose()
                })
            })
            .await
    }

    /// All that wait or run, in the order they are due.
    pub async fn list(&self, repository: Option<RepositoryId>) -> Result<Vec<OaiJob>, Error> {
        self.0
            .read("list the harvests", repository, |tx, repository| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(repository.map(|id| id.0));
                    tx.rows(query).await?.iter().map(job).collect()
                })
            })
            .await
    }

    /// Deletes a job. One that waits is gone at once; one that runs is asked to stop and goes when it has. A
    /// recurring one goes on at its next slot.
    pub async fn delete(&self, id: OaiJobId, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the harvest", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let was = found(tx, *id).await?;
                    let reason = format!("deleted by {}", actor.who);
                    if was.status == OaiJobStatus::Scheduled {
                        let query = tx.sql(&DELETE).bind(id.0);
                        tx.run(query).await?;
                        write_line(tx, &Line::of(&was, grange_model::oai::Outcome::Failed, Some(reason)))
                            .await?;
                        recurring::skip(tx, &was).await?;
                    } else {
                        let query = tx.sql(&STOP).bind(id.0).bind(reason);
                        tx.run(query).await?;
                    }
                    told(tx, actor, "oai-job.delete", format!("oai-job:{id}"), Some(&was), NO_STATE).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, repository_id, recurring_id, spec, status, due_at, started_at, owner, lease_until, attempts, pages, \
         expected, counts FROM oai_jobs "
    };
}

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), "WHERE id = $1 {for_update}"));
static SAME: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    "WHERE repository_id = $1 AND spec = $2 AND recurring_id IS NULL AND status <> 'stopping' ORDER BY id LIMIT 1"
));
static LIST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    "WHERE ($1 IS NULL OR repository_id = $1) ORDER BY status <> 'scheduled' DESC, due_at, id"
));
static INSERT: Sql = Sql::new(
    "INSERT INTO oai_jobs (repository_id, recurring_id, prefix, set_spec, spec, status, due_at)
     VALUES ($1, $2, $3, $4, $5, 'scheduled', $6) RETURNING id",
);
static DELETE: Sql = Sql::new("DELETE FROM oai_jobs WHERE id = $1");
static STOP: Sql = Sql::new(
    "UPDATE oai_jobs SET status = 'stopping', stop_reason = $2 WHERE id = $1 AND status <> 'scheduled'",
);

pub(super) async fn insert(
    tx: &mut Tx<'_>,
    repository: i64,
    recurring: Option<RecurringId>,
    spec: &HarvestSpec,
    due_at: Timestamp,
) -> Result<i64, Fail> {
    let query = tx
        .sql(&INSERT)
        .bind(repository)
        .bind(recurring.map(|id| id.0))
        .bind(spec.prefix.clone())
        .bind(spec.set.clone().unwrap_or_default())
        .bind(json(spec))
        .bind(micros(due_at));
    tx.row(query).await?.ok_or_else(|| missing("repository", repository))?.int("id")
}

pub(super) async fn found(tx: &mut Tx<'_>, id: OaiJobId) -> Result<OaiJob, Fail> {
    let query = tx.sql(&GET).bind(id.0);
    job(&tx.row(query).await?.ok_or_else(|| missing("harvest of metadata", id))?)
}

pub(super) fn job(row: &AnyRow) -> Result<OaiJob, Fail> {
    Ok(OaiJob {
        id: OaiJobId(row.int("id")?),
        repository: RepositoryId(row.int("repository_id")?),
        recurring: row.int_or_none("recurring_id")?.map(RecurringId),
        spec: row.json("spec")?,
        status: row.parsed("status")?,
        due_at: row.time("due_at")?,
        started_at: row.time_or_none("started_at")?,
        owner: row.text_or_none("owner")?,
        lease_until: row.time_or_none("lease_until")?,
        attempts: row.int("attempts")? as u32,
        pages: row.int("pages")? as u64,
        expected: row.int_or_none("expected")?.map(|expected| expected as u64),
        counts: row.json("counts")?,
    })
}
