//! What a harvester says about jobs: take one, begin, live, go on, end. Whoever lost the lease is not heard any more.

use std::time::Duration;

use grange_model::harvest::{ChannelName, DomainReport, JobId, Progress};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::{Jobs, history, json, missing};
use crate::act::{Query, Tx};
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length, micros};

/// A job that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobClaim {
    pub job: JobId,
    /// Grows with every claim of this job.
    pub token: i64,
    pub lease_until: Timestamp,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
}

/// The answer to a word from a harvester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    pub lease_until: Timestamp,
    /// A person wants the job to end: stop the crawl, keep what there is, and report it as failed.
    pub stop_wanted: bool,
}

/// How a job ended. A job with any error has failed.
#[derive(Clone, Debug, Default)]
pub struct JobReport {
    pub harvest_errors: Option<String>,
    pub harvest_error_details: Option<String>,
    pub upload_errors: Option<String>,
    pub upload_error_details: Option<String>,
    /// Statistics of every domain met; those that are not the job's own are left out.
    pub domains: Vec<DomainReport>,
}

/// What was kept of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    pub done: bool,
    pub domains_kept: u64,
    /// Domains of the report that are not the job's.
    pub domains_foreign: u64,
}

impl Jobs<'_> {
    /// Takes the oldest job that waits in one of the channels. Two harvesters never get the same.
    pub async fn claim(
        &self,
        channels: &[ChannelName],
        harvester: &str,
        lease: Duration,
    ) -> Result<Option<JobClaim>, Error> {
        self.0
            .write_one(
                "claim a job",
                (json(&channels), harvester.to_owned(), length(lease)),
                |tx, (channels, harvester, lease)| {
                    Box::pin(async move {
                        let query = CLAIM
                            .on(tx)
                            .bind(micros(tx.now))
                            .bind(channels.as_str())
                            .bind(harvester.as_str())
                            .bind(*lease);
                        tx.row(query).await?.as_ref().map(claimed).transpose()
                    })
                },
            )
            .await
    }

    /// Takes one job if it waits: for a harvester that has its folder from an earlier attempt.
    pub async fn take(
        &self,
        job: JobId,
        harvester: &str,
        lease: Duration,
    ) -> Result<Option<JobClaim>, Error> {
        self.0
            .write_one(
                "take the job",
                (job, harvester.to_owned(), length(lease)),
                |tx, (job, harvester, lease)| {
                    Box::pin(async move {
                        let query = tx.timed(&TAKE).bind(job.0).bind(harvester.as_str()).bind(*lease);
                        tx.row(query).await?.as_ref().map(claimed).transpose()
                    })
                },
            )
            .await
    }

    /// The crawl begins.
    pub async fn start(&self, claim: &JobClaim, lease: Duration) -> Result<Heartbeat, Error> {
        self.beat("start the job", &START, claim, lease).await
    }

    /// The harvester lives.
    pub async fn renew(&self, claim: &JobClaim, lease: Duration) -> Result<Heartbeat, Error> {
        self.beat("keep the job", &RENEW, claim, lease).await
    }

    async fn beat(
        &self,
        doing: &'static str,
        sql: &'static Sql,
        claim: &JobClaim,
        lease: Duration,
    ) -> Result<Heartbeat, Error> {
        self.0
            .write_one(doing, (claim.clone(), sql, length(lease)), |tx, (claim, sql, lease)| {
                Box::pin(async move {
                    let query = held(tx, sql, claim).bind(*lease);
                    heard(tx, query, claim).await
                })
            })
            .await
    }

    /// How far the job is; also a sign of life. Every so often a word is kept as a sample.
    pub async fn report_progress(
        &self,
        claim: &JobClaim,
        progress: Progress,
        lease: Duration,
        sample_every: Duration,
    ) -> Result<Heartbeat, Error> {
        let input =
            (claim.clone(), (json(&progress), micros(progress.at)), (length(lease), length(sample_every)));
        self.0
            .write("keep the progress", input, |tx, (claim, (body, at), (lease, every))| {
                Box::pin(async move {
                    let query = held(tx, &RENEW, claim).bind(*lease);
                    let beat = heard(tx, query, claim).await?;
                    let query =
                        tx.sql(&PROGRESS).bind(claim.job.0).bind(*at).bind(body.as_str()).bind(*every);
                    let sampled = tx.row(query).await?.map(|row| row.int("sampled_at")).transpose()?;
                    if sampled == Some(*at) {
                        let query = tx.sql(&SAMPLE).bind(claim.job.0).bind(*at).bind(body.as_str());
                        tx.run(query).await?;
                    }
                    Ok(beat)
                })
            })
            .await
    }

    /// Keeps the orders that were given to the crawl so far, for the harvester that takes the job over.
    pub async fn keep_orders(&self, claim: &JobClaim, orders: String) -> Result<(), Error> {
        self.0
            .write_one("keep the orders", (claim.clone(), orders), |tx, (claim, orders)| {
                Box::pin(async move {
                    let query = tx.sql(&KEEP_ORDERS).bind(claim.job.0).bind(claim.token);
                    // The text comes from people, and PostgreSQL keeps no NUL.
                    let query = query.bind(orders.replace('\0', "\u{fffd}"));
                    if tx.run(query).await? == 1 { Ok(()) } else { Err(lost(claim)) }
                })
            })
            .await
    }

    /// Gives the job back untouched: another harvester may have it.
    pub async fn release(&self, claim: &JobClaim) -> Result<(), Error> {
        self.0
            .write_one("give the job back", claim.clone(), |tx, claim| {
                Box::pin(async move {
                    let query = held(tx, &RELEASE, claim);
                    if tx.run(query).await? == 1 { Ok(()) } else { Err(lost(claim)) }
                })
            })
            .await
    }

    /// The job is over: done if nothing went wrong, else failed. Its statistics become history either way.
    pub async fn finish(&self, claim: &JobClaim, report: JobReport) -> Result<Reported, Error> {
        self.0
            .write("report the job", (claim.clone(), report), |tx, (claim, report)| {
                Box::pin(finish(tx, claim, report))
            })
            .await
    }
}

macro_rules! claim_sql {
    ($channels:literal) => {
        concat!(
            "WITH picked AS MATERIALIZED (
                 SELECT id AS picked_id FROM jobs WHERE status = 'new' AND channel IN (",
            $channels,
            ") ORDER BY id LIMIT 1 {skip_locked}
             )
             UPDATE jobs SET status = 'submitted', harvester = $3, lease_token = lease_token + 1,
                 lease_until = {now} + $4, attempts = attempts + 1, submitted_at = {now}
             FROM picked WHERE id = picked_id RETURNING id, lease_token, lease_until, attempts"
        )
    };
}

static CLAIM: Bulk = Bulk {
    sqlite: Sql::new(claim_sql!("SELECT value FROM json_each($2)")),
    postgres: Sql::new(claim_sql!("SELECT jsonb_array_elements_text($2::jsonb)")),
};
static TAKE: Sql = Sql::new(
    "UPDATE jobs SET status = 'submitted', harvester = $3, lease_token = lease_token + 1,
         lease_until = {now} + $4, attempts = attempts + 1, submitted_at = {now}
     WHERE id = $2 AND status = 'new' RETURNING id, lease_token, lease_until, attempts",
);
static START: Sql = Sql::new(
    "UPDATE jobs SET status = 'started', started_at = {now}, lease_until = {now} + $4
     WHERE id = $2 AND lease_token = $3 AND status = 'submitted' RETURNING lease_until, stop_wanted",
);
static RENEW: Sql = Sql::new(
    "UPDATE jobs SET lease_until = {now} + $4
     WHERE id = $2 AND lease_token = $3 AND status IN ('submitted', 'started') RETURNING lease_until, stop_wanted",
);
static RELEASE: Sql = Sql::new(
    "UPDATE jobs SET status = 'new', harvester = NULL, lease_until = NULL, attempts = attempts - 1
     WHERE id = $2 AND lease_token = $3 AND status = 'submitted' AND stop_wanted = 0 AND {now} IS NOT NULL",
);
static FINISH: Sql = Sql::new(
    "UPDATE jobs SET status = $4, lease_until = NULL, ended_at = {now},
         harvest_errors = COALESCE($5, harvest_errors), harvest_details = $6, upload_errors = $7, upload_details = $8
     WHERE id = $2 AND lease_token = $3 AND (status = 'started' OR ($4 = 'failed' AND status = 'submitted'))
     RETURNING id",
);
static PROGRESS: Sql = Sql::new(
    "INSERT INTO job_progress (job_id, at, sampled_at, body) VALUES ($1, $2, $2, $3)
     ON CONFLICT (job_id) DO UPDATE SET at = excluded.at, body = excluded.body,
         sampled_at = CASE WHEN job_progress.sampled_at + $4 <= excluded.at THEN excluded.at
                           ELSE job_progress.sampled_at END
     RETURNING sampled_at",
);
static SAMPLE: Sql = Sql::new(
    "INSERT INTO job_progress_samples (job_id, at, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);
static KEEP_ORDERS: Sql = Sql::new(
    "INSERT INTO job_orders (job_id, body) SELECT id, $3 FROM jobs
         WHERE id = $1 AND lease_token = $2 AND status IN ('submitted', 'started')
     ON CONFLICT (job_id) DO UPDATE SET body = excluded.body",
);
static FORGET_PROGRESS: Sql = Sql::new("DELETE FROM job_progress WHERE job_id = $1");

/// A statement about a job that is still the claimer's.
fn held<'q>(tx: &Tx<'_>, sql: &'static Sql, claim: &JobClaim) -> Query<'q> {
    tx.timed(sql).bind(claim.job.0).bind(claim.token)
}

fn claimed(row: &AnyRow) -> Result<JobClaim, Fail> {
    Ok(JobClaim {
        job: JobId(row.int("id")?),
        token: row.int("lease_token")?,
        lease_until: row.time("lease_until")?,
        attempt: row.int("attempts")? as u32,
    })
}

fn lost(claim: &JobClaim) -> Fail {
    Error::LeaseLost { what: format!("job {}", claim.job) }.into()
}

async fn heard(tx: &mut Tx<'_>, query: Query<'_>, claim: &JobClaim) -> Result<Heartbeat, Fail> {
    let row = tx.row(query).await?.ok_or_else(|| lost(claim))?;
    Ok(Heartbeat { lease_until: row.time("lease_until")?, stop_wanted: row.int("stop_wanted")? == 1 })
}

async fn finish(tx: &mut Tx<'_>, claim: &JobClaim, report: &JobReport) -> Result<Reported, Fail> {
    let done = report.harvest_errors.is_none() && report.upload_errors.is_none();
    // The texts may come from the web, and PostgreSQL keeps no NUL.
    let clean = |text: &Option<String>| text.as_ref().map(|text| text.replace('\0', "\u{fffd}"));
    let query = held(tx, &FINISH, claim)
        .bind(if done { "done" } else { "failed" })
        .bind(clean(&report.harvest_errors))
        .bind(clean(&report.harvest_error_details))
        .bind(clean(&report.upload_errors))
        .bind(clean(&report.upload_error_details));
    tx.row(query).await?.ok_or_else(|| lost(claim))?;
    let query = tx.sql(&FORGET_PROGRESS).bind(claim.job.0);
    tx.run(query).await?;
    let job = super::jobs::found(tx, claim.job).await.map_err(|_| missing("job", claim.job))?;
    let kept = history::keep(tx, &job, &report.domains).await?;
    Ok(Reported { done, domains_kept: kept, domains_foreign: report.domains.len() as u64 - kept })
}
