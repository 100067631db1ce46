//! What a harvester says about jobs: take one, live, give it back, end. Whoever lost the lease is not heard any more.

use std::time::Duration;

use grange_model::oai::{OaiJob, OaiJobId, Outcome, Repository};
use jiff::Timestamp;

use super::OaiJobs;
use super::history::{Line, write as write_line};
use super::{jobs, recurring, repositories};
use crate::act::{Query, Tx};
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail, unique};
use crate::row::{Columns, length, micros_or_none};

/// A job that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OaiClaim {
    pub job: OaiJobId,
    /// Grows with every claim of this job.
    pub token: i64,
    pub lease_until: Timestamp,
}

/// The answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OaiHeartbeat {
    pub lease_until: Timestamp,
    /// A person deleted the job: stop after the current page, then finish.
    pub stop_wanted: bool,
}

/// How a harvest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The whole list was taken. The next incremental harvest begins here; absent where the harvest says nothing
    /// about what comes next, because it was of a closed span of time.
    ///
    /// `rules` identify those by which records were judged: for others the mark does not hold. `lacking`: the lists lacked
    /// records that exist, or may have.
    Whole { next_from: Option<Timestamp>, rules: String, lacking: bool },
    /// Records are known to be missing. What came is kept, and the next one begins where this one began.
    Incomplete { reason: String },
    /// What was taken is kept, and the next one goes on from there.
    Failed { reason: String },
    /// A person wanted it to end.
    Stopped,
}

/// A claimed job and what it begins with.
#[derive(Clone, Debug)]
pub struct ClaimedHarvest {
    pub job: OaiJob,
    pub repository: Repository,
    /// Where an attempt that failed left off.
    pub position: Option<String>,
    /// Where the last whole harvest says to begin.
    pub next_from: Option<Timestamp>,
    /// The rules of that harvest.
    pub rules: String,
    /// Whether the lists of the last whole harvest lacked records.
    pub lacking: bool,
}

impl OaiJobs<'_> {
    /// Takes the job that is due longest and whose repository nobody asks now.
    pub async fn claim(&self, owner: &str, lease: Duration) -> Result<Option<OaiClaim>, Error> {
        let claimed = self
            .0
            .write_one("claim a harvest", (owner.to_owned(), length(lease)), |tx, (owner, lease)| {
                Box::pin(async move {
                    let query = tx.timed(&CLAIM).bind(owner.as_str()).bind(*lease);
                    let row = match tx.row(query).await {
                        // Another node was faster with another job of the same repository.
                        Err(Fail::Sql(error)) if unique(&error) => return Ok(None),
                        other => other?,
                    };
                    let claim = |row: sqlx::any::AnyRow| -> Result<OaiClaim, Fail> {
                        Ok(OaiClaim {
                            job: OaiJobId(row.int("id")?),
                            token: row.int("lease_token")?,
                            lease_until: row.time("lease_until")?,
                        })
                    };
                    row.map(claim).transpose()
                })
            })
            .await?;
        Ok(claimed)
    }

    /// Everything about a claimed job.
    pub async fn order(&self, claim: &OaiClaim) -> Result<ClaimedHarvest, Error> {
        self.0
            .read("read the harvest", claim.clone(), |tx, claim| {
                Box::pin(async move {
                    let job = jobs::found(tx, claim.job).await?;
                    let repository = repositories::found(tx, job.repository.0).await?;
                    let query = tx
                        .sql(&STATE)
                        .bind(job.repository.0)
                        .bind(job.spec.prefix.clone())
                        .bind(job.spec.set.clone().unwrap_or_default());
                    let mut claimed = ClaimedHarvest {
                        job,
                        repository,
                        position: None,
                        next_from: None,
                        rules: String::new(),
                        lacking: false,
                    };
                    if let Some(row) = tx.row(query).await? {
                        claimed.position = row.text_or_none("position")?;
                        claimed.next_from = row.time_or_none("next_from")?;
                        claimed.rules = row.text("rules")?;
                        claimed.lacking = row.int("lacking")? == 1;
                    }
                    Ok(claimed)
                })
            })
            .await
    }

    /// The harvester lives.
    pub async fn renew(&self, claim: &OaiClaim, lease: Duration) -> Result<OaiHeartbeat, Error> {
        self.0
            .write_one("keep the harvest", (claim.clone(), length(lease)), |tx, (claim, lease)| {
                Box::pin(async move {
                    let query = held(tx, &RENEW, claim).bind(*lease);
                    let row = tx.row(query).await?.ok_or_else(|| lost(claim))?;
                    let stop_wanted = row.text("status")? == "stopping";
                    Ok(OaiHeartbeat { lease_until: row.time("lease_until")?, stop_wanted })
                })
            })
            .await
    }

    /// Gives the job back: this node stops, another may go on.
    pub async fn release(&self, claim: &OaiClaim) -> Result<(), Error> {
        self.0
            .write_one("give the harvest back", claim.clone(), |tx, claim| {
                Box::pin(async move {
                    let query = held(tx, &RELEASE, claim);
                    if tx.run(query).await? == 1 { Ok(()) } else { Err(lost(claim)) }
                })
            })
            .await
    }

    /// The job is over: a line of history, the mark the next one begins at, and the next job of a recurring one.
    pub async fn finish(&self, claim: &OaiClaim, ending: Ending, failures_max: u32) -> Result<(), Error> {
        self.0
            .write("end the harvest", (claim.clone(), ending, failures_max), |tx, (claim, ending, max)| {
                Box::pin(async move {
                    let query = held(tx, &HELD, claim);
                    let reason =
                        tx.row(query).await?.ok_or_else(|| lost(claim))?.text_or_none("stop_reason")?;
                    let job = jobs::found(tx, claim.job).await?;
                    end(tx, &job, ending, reason, *max).await
                })
            })
            .await
    }
}

static CLAIM: Sql = Sql::new(
    "WITH picked AS MATERIALIZED (
         SELECT id AS picked_id FROM oai_jobs j WHERE status = 'scheduled' AND due_at <= {now}
             AND NOT EXISTS (SELECT 1 FROM oai_jobs r WHERE r.repository_id = j.repository_id AND r.status <> 'scheduled')
         ORDER BY due_at, id LIMIT 1 {skip_locked}
     )
     UPDATE oai_jobs SET status = 'in-progress', owner = $2, lease_token = lease_token + 1,
         lease_until = {now} + $3, attempts = attempts + 1, started_at = COALESCE(started_at, {now})
     FROM picked WHERE id = picked_id RETURNING id, lease_token, lease_until",
);
static STATE: Sql = Sql::new(
    "SELECT next_from, position, rules, lacking FROM oai_progress
     WHERE repository_id = $1 AND prefix = $2 AND set_spec = $3",
);
static RENEW: Sql = Sql::new(
    "UPDATE oai_jobs SET lease_until = {now} + $4
     WHERE id = $2 AND lease_token = $3 AND status <> 'scheduled' RETURNING lease_until, status",
);
static RELEASE: Sql = Sql::new(
    "UPDATE oai_jobs SET status = 'scheduled', owner = NULL, lease_until = NULL, attempts = attempts - 1
     WHERE id = $2 AND lease_token = $3 AND status = 'in-progress' AND {now} IS NOT NULL",
);
static HELD: Sql = Sql::new(
    "SELECT stop_reason FROM oai_jobs
     WHERE id = $2 AND lease_token = $3 AND status <> 'scheduled' AND {now} IS NOT NULL {for_update}",
);
static DELETE: Sql = Sql::new("DELETE FROM oai_jobs WHERE id = $1");
macro_rules! whole {
    ($conflict:literal) => {
        Sql::new(concat!(
            "INSERT INTO oai_progress (repository_id, prefix, set_spec, next_from, rules, lacking)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT ",
            $conflict,
            " DO UPDATE SET
                 rules = CASE WHEN excluded.next_from IS NULL THEN oai_progress.rules ELSE excluded.rules END,
                 next_from = COALESCE(excluded.next_from, oai_progress.next_from), position = NULL,
                 lacking = excluded.lacking"
        ))
    };
}
static WHOLE: Bulk = Bulk {
    sqlite: whole!("(repository_id, prefix, set_spec)"),
    postgres: whole!("(repository_id, text_digest(prefix), text_digest(set_spec))"),
};
// The mark stays; the position does not, for it is the end of the lists.
static INCOMPLETE: Sql = Sql::new(
    "UPDATE oai_progress SET position = NULL WHERE repository_id = $1 AND prefix = $2 AND set_spec = $3",
);

/// A statement about a job that is still the claimer's.
pub(super) fn held<'q>(tx: &Tx<'_>, sql: &'static Sql, claim: &OaiClaim) -> Query<'q> {
    tx.timed(sql).bind(claim.job.0).bind(claim.token)
}

pub(super) fn lost(claim: &OaiClaim) -> Fail {
    Error::LeaseLost { what: format!("harvest of metadata {}", claim.job) }.into()
}

/// Ends a job whose row is held.
pub(super) async fn end(
    tx: &mut Tx<'_>,
    job: &OaiJob,
    ending: &Ending,
    stop_reason: Option<String>,
    failures_max: u32,
) -> Result<(), Fail> {
    let query = tx.sql(&DELETE).bind(job.id.0);
    tx.run(query).await?;
    let (outcome, reason) = match ending {
        Ending::Whole { .. } => (Outcome::Success, None),
        Ending::Incomplete { reason } => (Outcome::Incomplete, Some(reason.clone())),
        Ending::Failed { reason } => (Outcome::Failed, Some(reason.clone())),
        Ending::Stopped => (Outcome::Failed, stop_reason.or_else(|| Some("stopped".to_owned()))),
    };
    write_line(tx, &Line::of(job, outcome, reason)).await?;
    let of_list = |query: Query<'static>| {
        let (prefix, set) = (job.spec.prefix.clone(), job.spec.set.clone().unwrap_or_default());
        query.bind(job.repository.0).bind(prefix).bind(set)
    };
    match ending {
        Ending::Whole { next_from, rules, lacking } => {
            let query = of_list(WHOLE.on(tx)).bind(micros_or_none(*next_from)).bind(rules.clone());
            tx.run(query.bind(i64::from(*lacking))).await?;
        }
        Ending::Incomplete { .. } => {
            let query = of_list(tx.sql(&INCOMPLETE));
            tx.run(query).await?;
        }
        Ending::Failed { .. } | Ending::Stopped => {}
    }
    match ending {
        // An incomplete one is not tried again before its time: what the repository lacks now it lacks in 15 minutes.
        Ending::Whole { .. } | Ending::Incomplete { .. } => {
            recurring::after(tx, job, false, failures_max).await
        }
        Ending::Failed { .. } => recurring::after(tx, job, true, failures_max).await,
        Ending::Stopped => recurring::skip(tx, job).await,
    }
}
