//! Recurring jobs: kept by people, turned into jobs at their time.

use grange_model::Actor;
use grange_model::harvest::Every;
use grange_model::oai::recurring::{Next, next};
use grange_model::oai::{HarvestSpec, OaiJob, RecurringId, RecurringJob, RecurringState, RepositoryId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::jobs;
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, fresh, handle, json, missing, told};
use crate::row::{Columns, micros, micros_or_none};

handle! {
    /// The recurring jobs.
    OaiRecurring, oai_recurring
}

/// A recurring job to be made or changed.
#[derive(Clone, Debug)]
pub struct NewRecurring {
    pub repository: RepositoryId,
    pub spec: HarvestSpec,
    pub starts_at: Timestamp,
    pub ends_at: Option<Timestamp>,
    /// Absent: once.
    pub every: Option<Every>,
}

impl OaiRecurring<'_> {
    pub async fn add(&self, new: NewRecurring, actor: &Actor) -> Result<RecurringJob, Error> {
        self.0
            .write("keep the recurring job", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(async move {
                    super::repositories::held(tx, new.repository.0).await?;
                    let query = bound(tx.sql(&ADD).bind(new.repository.0), new)
                        .bind(micros(tx.now))
                        .bind(actor.who.clone());
                    let row = tx.row(query).await?.ok_or_else(|| missing("repository", new.repository))?;
                    let made = recurring(&row)?;
                    let subject = format!("recurring-job:{}", made.id);
                    told(tx, actor, "recurring-job.add", subject, NO_STATE, Some(&made)).await?;
                    Ok(made)
                })
            })
            .await
    }

    /// Changes one, or takes up a parked one again. Its waiting job is replaced by one at the same time, or at the start
    /// where that was changed. A job that runs ends as it began, and the next one is planned by what was changed.
    pub async fn change(
        &self,
        id: RecurringId,
        new: NewRecurring,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<RecurringJob, Error> {
        self.0
            .write("change the recurring job", (id, new, edition, actor.clone()), |tx, input| {
                let (id, new, edition, actor) = input;
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.0);
                    let row = tx.row(query).await?.ok_or_else(|| missing("recurring job", id))?;
                    fresh(&row, format_args!("recurring job {id}"), *edition)?;
                    let before = recurring(&row)?;
                    let query = tx.sql(&UNPLAN).bind(id.0);
                    let waiting = tx.row(query).await?.map(|row| row.time("due_at")).transpose()?;
                    let query =
                        bound(tx.sql(&CHANGE).bind(id.0), new).bind(micros(tx.now)).bind(actor.who.clone());
                    let row = tx.row(query).await?.ok_or_else(|| missing("recurring job", id))?;
                    let mut after = recurring(&row)?;
                    // The start stays what slots are counted from, so no job can be planned at the start again.
                    if after.starts_at == before.starts_at {
                        if let Some(due_at) = waiting {
                            after.state = replan(tx, &after, due_at).await?;
                        } else if is_running(tx, *id).await? {
                            after.state = planned(&after);
                            set_state(tx, *id, after.state, 0).await?;
                        }
                    }
                    let subject = format!("recurring-job:{id}");
                    told(tx, actor, "recurring-job.change", subject, Some(&before), Some(&after)).await?;
                    Ok(after)
                })
            })
            .await
    }

    pub async fn list(&self, repository: Option<RepositoryId>) -> Result<Vec<RecurringJob>, Error> {
        self.0
            .read("list the recurring jobs", repository, |tx, repository| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(repository.map(|id| id.0));
                    tx.rows(query).await?.iter().map(recurring).collect()
                })
            })
            .await
    }

    /// Deletes one and its waiting job. A job of it that runs goes on to its end.
    pub async fn delete(&self, id: RecurringId, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the recurring job", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.0);
                    let row = tx.row(query).await?.ok_or_else(|| missing("recurring job", id))?;
                    let was = recurring(&row)?;
                    for sql in [&UNPLAN, &DELETE] {
                        let query = tx.sql(sql).bind(id.0);
                        tx.run(query).await?;
                    }
                    let subject = format!("recurring-job:{id}");
                    told(tx, actor, "recurring-job.delete", subject, Some(&was), NO_STATE).await
                })
            })
            .await
    }

    /// Turns new recurring jobs into their first job; gives how many.
    pub async fn plan(&self) -> Result<u64, Error> {
        self.0
            .write("plan the recurring jobs", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&TO_PLAN);
                    let rows = tx.rows(query).await?;
                    for row in &rows {
                        let one = recurring(row)?;
                        replan(tx, &one, one.starts_at).await?;
                    }
                    Ok(rows.len() as u64)
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, repository_id, spec, starts_at, ends_at, every, state, failures, added_at, changed_at, changed_by, edition"
    };
}

static ADD: Sql = Sql::new(concat!(
    "INSERT INTO oai_recurring_jobs
         (repository_id, spec, starts_at, ends_at, every, state, added_at, changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, 'new', $6, $6, $7) RETURNING ",
    columns!()
));
static CHANGE: Sql = Sql::new(concat!(
    "UPDATE oai_recurring_jobs SET spec = $2, starts_at = $3, ends_at = $4, every = $5, state = 'new', failures = 0,
         changed_at = $6, changed_by = $7, edition = edition + 1 WHERE id = $1 RETURNING ",
    columns!()
));
static GET: Sql =
    Sql::new(concat!("SELECT ", columns!(), " FROM oai_recurring_jobs WHERE id = $1 {for_update}"));
static LIST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM oai_recurring_jobs WHERE $1 IS NULL OR repository_id = $1 ORDER BY id"
));
// One whose start was changed while its job runs is planned when that is over.
static TO_PLAN: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM oai_recurring_jobs r WHERE state = 'new'
         AND NOT EXISTS (SELECT 1 FROM oai_jobs j WHERE j.recurring_id = r.id)
     ORDER BY id {skip_locked}"
));
static UNPLAN: Sql =
    Sql::new("DELETE FROM oai_jobs WHERE recurring_id = $1 AND status = 'scheduled' RETURNING due_at");
static RUNNING: Sql =
    Sql::new("SELECT id FROM oai_jobs WHERE recurring_id = $1 AND status <> 'scheduled' LIMIT 1");
static DELETE: Sql = Sql::new("DELETE FROM oai_recurring_jobs WHERE id = $1");
static STATE: Sql = Sql::new("UPDATE oai_recurring_jobs SET state = $2, failures = $3 WHERE id = $1");

fn bound<'q>(query: crate::act::Query<'q>, new: &NewRecurring) -> crate::act::Query<'q> {
    query
        .bind(json(&new.spec))
        .bind(micros(new.starts_at))
        .bind(micros_or_none(new.ends_at))
        .bind(new.every.map(|every| json(&every)))
}

/// Plans the next job of one that is new or changed, unless its last date is before that.
async fn replan(tx: &mut Tx<'_>, one: &RecurringJob, due_at: Timestamp) -> Result<RecurringState, Fail> {
    let state = if one.ends_at.is_some_and(|end| due_at > end) {
        RecurringState::Over
    } else {
        jobs::insert(tx, one.repository.0, Some(one.id), &one.spec, due_at).await?;
        planned(one)
    };
    set_state(tx, one.id, state, 0).await?;
    Ok(state)
}

/// The state of one whose job waits or runs.
fn planned(one: &RecurringJob) -> RecurringState {
    if one.every.is_some() { RecurringState::Recurring } else { RecurringState::Once }
}

/// Whether a job of it was claimed and has not ended.
async fn is_running(tx: &mut Tx<'_>, id: RecurringId) -> Result<bool, Fail> {
    let query = tx.sql(&RUNNING).bind(id.0);
    Ok(tx.row(query).await?.is_some())
}

async fn set_state(
    tx: &mut Tx<'_>,
    id: RecurringId,
    state: RecurringState,
    failures: u32,
) -> Result<(), Fail> {
    let query = tx.sql(&STATE).bind(id.0).bind(state.as_str()).bind(i64::from(failures));
    tx.run(query).await.map(|_| ())
}

/// The recurring job of a job, if it is still there and is not planned at another start.
async fn of(tx: &mut Tx<'_>, job: &OaiJob) -> Result<Option<RecurringJob>, Fail> {
    let Some(id) = job.recurring else { return Ok(None) };
    let query = tx.sql(&GET).bind(id.0);
    let found = tx.row(query).await?.as_ref().map(recurring).transpose()?;
    Ok(found.filter(|found| found.state != RecurringState::New))
}

/// What follows on a job that failed, or did not.
pub(super) async fn after(
    tx: &mut Tx<'_>,
    job: &OaiJob,
    failed: bool,
    failures_max: u32,
) -> Result<(), Fail> {
    let Some(one) = of(tx, job).await? else { return Ok(()) };
    let failures = if failed { one.failures + 1 } else { 0 };
    // A job that was planned for later than now, by another clock, is over for its slot.
    let now = tx.now.max(job.due_at);
    go_on(tx, job, &one, next(one.rhythm(), now, failures, failures_max), failures).await
}

/// A job that a person did not want: the next slot, as if it had been made.
pub(super) async fn skip(tx: &mut Tx<'_>, job: &OaiJob) -> Result<(), Fail> {
    let Some(one) = of(tx, job).await? else { return Ok(()) };
    let (now, failures) = (tx.now.max(job.due_at), one.failures);
    go_on(tx, job, &one, next(one.rhythm(), now, 0, u32::MAX), failures).await
}

async fn go_on(
    tx: &mut Tx<'_>,
    job: &OaiJob,
    one: &RecurringJob,
    next: Next,
    failures: u32,
) -> Result<(), Fail> {
    let state = match next {
        Next::At(at) => {
            jobs::insert(tx, job.repository.0, Some(one.id), &one.spec, at).await?;
            one.state
        }
        Next::Park => RecurringState::Parked,
        Next::Over if one.every.is_none() => RecurringState::Once,
        Next::Over => RecurringState::Over,
    };
    set_state(tx, one.id, state, failures).await
}

fn recurring(row: &AnyRow) -> Result<RecurringJob, Fail> {
    let every = row.text_or_none("every")?.map(|_| row.json::<Every>("every")).transpose()?;
    Ok(RecurringJob {
        id: RecurringId(row.int("id")?),
        repository: RepositoryId(row.int("repository_id")?),
        spec: row.json("spec")?,
        starts_at: row.time("starts_at")?,
        ends_at: row.time_or_none("ends_at")?,
        every,
        state: row.parsed("state")?,
        failures: row.int("failures")? as u32,
        added_at: row.time("added_at")?,
        edition: row.int("edition")?,
    })
}
