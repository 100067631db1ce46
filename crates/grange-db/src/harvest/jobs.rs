//! Jobs: looked at, read whole by whoever claimed one, and what people do to them.

use std::time::Duration;

use grange_model::Actor;
use grange_model::harvest::job::{JobEvent, SealedCredential};
use grange_model::harvest::{HarvestId, Job, JobConfiguration, JobId, JobSpec, JobStatus, Name, Progress};
use serde_json::json;
use sqlx::any::AnyRow;

use super::{handle, limits, lines, missing, refused, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

handle! {
    /// The jobs.
    Jobs, jobs
}

impl Jobs<'_> {
    pub async fn get(&self, id: JobId) -> Result<Option<Job>, Error> {
        self.0
            .read("read the job", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.0);
                    tx.row(query).await?.as_ref().map(job).transpose()
                })
            })
            .await
    }

    /// The configurations of a job with their seeds and traps, by domain.
    pub async fn configurations(&self, id: JobId) -> Result<Vec<JobConfiguration>, Error> {
        let rows = self
            .0
            .read("read the job's configurations", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&CONFIGURATIONS).bind(id.0);
                    tx.rows(query).await?.iter().map(configuration).collect::<Result<Vec<_>, Fail>>()
                })
            })
            .await?;
        Ok(rows.into_iter().map(|(_, configuration)| configuration).collect())
    }

    /// Everything a harvester needs to crawl the job.
    pub async fn spec(&self, id: JobId, alias_lifetime: Duration) -> Result<JobSpec, Error> {
        let absent = || Error::NotFound { what: format!("job {id}") };
        let job = self.get(id).await?.ok_or_else(absent)?;
        let (rows, run, credentials) = self
            .0
            .read("read the job", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&CONFIGURATIONS).bind(id.0);
                    let rows =
                        tx.rows(query).await?.iter().map(configuration).collect::<Result<Vec<_>, Fail>>()?;
                    let query = tx.sql(&RUN).bind(id.0);
                    let run = tx.row(query).await?;
                    let query = tx.sql(&CREDENTIALS).bind(id.0);
                    let credentials =
                        tx.rows(query).await?.iter().map(credential).collect::<Result<Vec<_>, Fail>>()?;
                    Ok((rows, run, credentials))
                })
            })
            .await?;
        let run = run.ok_or_else(absent)?;
        let told = |fail: Fail| fail.tell("read the job", &self.0.0.target);
        let (domains, configurations) = rows.into_iter().unzip();
        let aliases = self.0.domains().aliases_of(domains, alias_lifetime).await?;
        let read = || -> Result<JobSpec, Fail> {
            Ok(JobSpec {
                template_text: run.text("text")?,
                harvest_comments: run.text("comments")?,
                audience: run.text("audience")?,
                schedule: run.text_or_none("schedule")?.map(|_| run.parsed("schedule")).transpose()?,
                traps: lines(&run.text("traps")?),
                duplicate_reduction_jobs: run.json("dedup_jobs")?,
                job,
                configurations,
                aliases,
                credentials,
            })
        };
        read().map_err(told)
    }

    /// The newest word on a running job.
    pub async fn progress_of(&self, id: JobId) -> Result<Option<Progress>, Error> {
        self.0
            .read("read the progress", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&PROGRESS).bind(id.0);
                    tx.row(query).await?.map(|row| row.json("body")).transpose()
                })
            })
            .await
    }

    /// The orders that were given to the crawl of a job by earlier claims.
    pub async fn orders_of(&self, id: JobId) -> Result<Option<String>, Error> {
        self.0
            .read("read the orders", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&ORDERS).bind(id.0);
                    tx.row(query).await?.map(|row| row.text("body")).transpose()
                })
            })
            .await
    }

    /// Samples of how a job went on, oldest first.
    pub async fn samples_of(&self, id: JobId) -> Result<Vec<Progress>, Error> {
        self.0
            .read("read the progress", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&SAMPLES).bind(id.0);
                    tx.rows(query).await?.iter().map(|row| row.json("body")).collect()
                })
            })
            .await
    }

    /// Plans failed jobs anew: each becomes a new one with everything that the old one had. All of them or none.
    pub async fn resubmit(&self, ids: Vec<JobId>, actor: &Actor) -> Result<Vec<JobId>, Error> {
        self.0
            .write("resubmit the jobs", (ids, actor.clone()), |tx, (ids, actor)| {
                Box::pin(async move {
                    let mut made = Vec::new();
                    for id in ids {
                        changed(tx, *id, JobEvent::Resubmit).await?;
                        let channel = found(tx, *id).await?.channel;
                        if !super::channels::held(tx, &channel).await? {
                            return Err(missing(
                                "channel",
                                format_args!("{channel}, where job {id} was; create it again"),
                            ));
                        }
                        let query = tx.sql(&COPY).bind(id.0).bind(micros(tx.now));
                        let new = JobId(tx.row(query).await?.ok_or_else(|| missing("job", id))?.int("id")?);
                        let query = tx.sql(&COPY_CONFIGURATIONS).bind(id.0).bind(new.0);
                        tx.run(query).await?;
                        let query = tx.sql(&SET_RESUBMITTED).bind(id.0).bind(new.0);
                        tx.run(query).await?;
                        let (was, is) = (json!({ "status": "failed" }), json!({ "resubmitted_as": new }));
                        told(tx, actor, "job.resubmit", format!("job:{id}"), Some(&was), Some(&is)).await?;
                        made.push(new);
                    }
                    Ok(made)
                })
            })
            .await
    }

    /// A person says that a failed job is the end of it, or takes that back.
    pub async fn reject(&self, id: JobId, reject: bool, actor: &Actor) -> Result<Job, Error> {
        self.0
            .write("reject the job", (id, reject, actor.clone()), |tx, (id, reject, actor)| {
                Box::pin(async move {
                    let event = if *reject { JobEvent::Reject } else { JobEvent::Unreject };
                    let (before, after) = changed(tx, *id, event).await?;
                    let query = tx.sql(&SET_STATUS).bind(id.0).bind(after.as_str());
                    tx.run(query).await?;
                    let act = if *reject { "job.reject" } else { "job.unreject" };
                    let (was, is) = (json!({ "status": before }), json!({ "status": after }));
                    told(tx, actor, act, format!("job:{id}"), Some(&was), Some(&is)).await?;
                    found(tx, *id).await
                })
            })
            .await
    }

    /// Ends a job. One that waits fails at once; one that runs is asked to stop, and its harvester reports it.
    pub async fn cancel(&self, id: JobId, actor: &Actor) -> Result<Job, Error> {
        self.0
            .write("cancel the job", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let (before, _) = changed(tx, *id, JobEvent::Fail).await?;
                    let sql = if before == JobStatus::New { &CANCEL_NEW } else { &ASK_TO_STOP };
                    let query = tx
                        .sql(sql)
                        .bind(id.0)
                        .bind(format!("cancelled by {}", actor.who))
                        .bind(micros(tx.now));
                    tx.run(query).await?;
                    let was = json!({ "status": before });
                    told(tx, actor, "job.cancel", format!("job:{id}"), Some(&was), super::NO_STATE).await?;
                    found(tx, *id).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "j.id, j.harvest_id, h.name AS harvest_name, j.run, j.status, j.channel, j.snapshot, t.name AS template, \
         j.template_version, j.max_objects, j.max_bytes, j.max_running_s, j.configurations, j.expected_objects, \
         j.created_at, j.submitted_at, j.started_at, j.ended_at, j.harvester, j.lease_until, j.attempts, j.stop_wanted, \
         j.harvest_errors, j.harvest_details, j.upload_errors, j.upload_details, j.resubmitted_as, j.continuation_of, \
         (SELECT CAST(COALESCE(sum(w.files), 0) AS BIGINT) FROM waiting_deposits w WHERE w.job_id = j.id) \
         AS waiting_files, \
         (SELECT CAST(COALESCE(sum(w.bytes), 0) AS BIGINT) FROM waiting_deposits w WHERE w.job_id = j.id) \
         AS waiting_bytes, \
         (SELECT max(w.reason) FROM waiting_deposits w WHERE w.job_id = j.id) AS waiting_reason \
         FROM jobs j JOIN harvest_definitions h ON h.id = j.harvest_id JOIN templates t ON t.id = j.template_id "
    };
}
pub(super) use columns;

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), "WHERE j.id = $1 AND j.status <> 'draft'"));
static LOCK: Sql = Sql::new("SELECT status FROM jobs WHERE id = $1 AND status <> 'draft' {for_update}");
static CONFIGURATIONS: Sql = Sql::new(
    "SELECT d.name AS domain, c.domain_id, c.name, c.max_objects, c.max_bytes, c.max_running_s, c.expected_objects,
         c.seeds, c.traps
     FROM job_configurations c JOIN domains d ON d.id = c.domain_id WHERE c.job_id = $1 ORDER BY d.name, c.name",
);
static RUN: Sql = Sql::new(
    "SELECT v.text, r.comments, r.audience, r.schedule, r.traps, r.dedup_jobs
     FROM jobs j JOIN runs r ON r.harvest_id = j.harvest_id AND r.number = j.run
     JOIN template_versions v ON v.template_id = j.template_id AND v.version = j.template_version WHERE j.id = $1",
);
static CREDENTIALS: Sql = Sql::new(
    "SELECT DISTINCT d.name AS domain, p.name, p.url, p.realm, p.username, p.form, p.sealed
     FROM job_configurations c JOIN configuration_credentials l ON l.configuration_id = c.configuration_id
     JOIN credentials p ON p.id = l.credential_id JOIN domains d ON d.id = p.domain_id
     WHERE c.job_id = $1 ORDER BY d.name, p.name",
);
static PROGRESS: Sql = Sql::new("SELECT body FROM job_progress WHERE job_id = $1");
static ORDERS: Sql = Sql::new("SELECT body FROM job_orders WHERE job_id = $1");
static SAMPLES: Sql = Sql::new("SELECT body FROM job_progress_samples WHERE job_id = $1 ORDER BY at");
static COPY: Sql = Sql::new(
    "INSERT INTO jobs (harvest_id, run, status, channel, snapshot, template_id, template_version, max_objects, max_bytes,
         max_running_s, configurations, expected_objects, created_at, continuation_of)
     SELECT harvest_id, run, 'new', channel, snapshot, template_id, template_version, max_objects, max_bytes,
         max_running_s, configurations, expected_objects, $2, id FROM jobs WHERE id = $1
     RETURNING id",
);
static COPY_CONFIGURATIONS: Sql = Sql::new(
    "INSERT INTO job_configurations (job_id, configuration_id, domain_id, name, max_objects, max_bytes, max_running_s,
         expected_objects, seeds, traps)
     SELECT $2, configuration_id, domain_id, name, max_objects, max_bytes, max_running_s, expected_objects, seeds, traps
     FROM job_configurations WHERE job_id = $1",
);
static SET_RESUBMITTED: Sql =
    Sql::new("UPDATE jobs SET status = 'resubmitted', resubmitted_as = $2 WHERE id = $1");
static SET_STATUS: Sql = Sql::new("UPDATE jobs SET status = $2 WHERE id = $1");
static CANCEL_NEW: Sql = Sql::new(
    "UPDATE jobs SET status = 'failed', stop_wanted = 1, harvest_errors = $2, ended_at = $3 WHERE id = $1",
);
static ASK_TO_STOP: Sql =
    Sql::new("UPDATE jobs SET stop_wanted = 1, harvest_errors = $2 WHERE id = $1 AND $3 IS NOT NULL");

/// What a job becomes by an event, if that is legal; the row is held.
async fn changed(tx: &mut Tx<'_>, id: JobId, event: JobEvent) -> Result<(JobStatus, JobStatus), Fail> {
    let query = tx.sql(&LOCK).bind(id.0);
    let before: JobStatus = tx.row(query).await?.ok_or_else(|| missing("job", id))?.parsed("status")?;
    let what = match event {
        JobEvent::Resubmit => "resubmitted",
        JobEvent::Reject => "rejected",
        JobEvent::Unreject => "taken back",
        _ => "cancelled",
    };
    let after = before
        .after(event)
        .ok_or_else(|| refused(format_args!("job {id} is {before} and cannot be {what}")))?;
    Ok((before, after))
}

pub(super) async fn found(tx: &mut Tx<'_>, id: JobId) -> Result<Job, Fail> {
    let query = tx.sql(&GET).bind(id.0);
    job(&tx.row(query).await?.ok_or_else(|| missing("job", id))?)
}

fn configuration(row: &AnyRow) -> Result<(i64, JobConfiguration), Fail> {
    let mut seen = std::collections::HashSet::new();
    let seeds = row.text("seeds")?;
    let configuration = JobConfiguration {
        domain: row.parsed("domain")?,
        configuration: row.parsed("name")?,
        limits: limits(row)?,
        expected_objects: row.int("expected_objects")? as u64,
        seeds: seeds.lines().filter(|seed| seen.insert(*seed)).map(str::to_owned).collect(),
        traps: lines(&row.text("traps")?),
    };
    Ok((row.int("domain_id")?, configuration))
}

fn credential(row: &AnyRow) -> Result<SealedCredential, Fail> {
    Ok(SealedCredential {
        domain: row.parsed("domain")?,
        name: row.parsed::<Name>("name")?,
        url: row.text("url")?,
        realm: row.text("realm")?,
        username: row.text("username")?,
        form: row.json_or_none("form")?,
        sealed: row.text("sealed")?,
    })
}

pub(super) fn job(row: &AnyRow) -> Result<Job, Fail> {
    Ok(Job {
        id: JobId(row.int("id")?),
        harvest: HarvestId(row.int("harvest_id")?),
        harvest_name: row.parsed("harvest_name")?,
        run: row.int("run")? as u64,
        status: row.parsed("status")?,
        channel: row.parsed("channel")?,
        snapshot: row.int("snapshot")? == 1,
        template: row.parsed("template")?,
        template_version: row.int("template_version")? as u32,
        limits: limits(row)?,
        configurations: row.int("configurations")? as u64,
        expected_objects: row.int("expected_objects")? as u64,
        created_at: row.time("created_at")?,
        submitted_at: row.time_or_none("submitted_at")?,
        started_at: row.time_or_none("started_at")?,
        ended_at: row.time_or_none("ended_at")?,
        harvester: row.text_or_none("harvester")?,
        lease_until: row.time_or_none("lease_until")?,
        attempts: row.int("attempts")? as u32,
        stop_wanted: row.int("stop_wanted")? == 1,
        harvest_errors: row.text_or_none("harvest_errors")?,
        harvest_error_details: row.text_or_none("harvest_details")?,
        upload_errors: row.text_or_none("upload_errors")?,
        upload_error_details: row.text_or_none("upload_details")?,
        resubmitted_as: row.int_or_none("resubmitted_as")?.map(JobId),
        continuation_of: row.int_or_none("continuation_of")?.map(JobId),
        waiting_files: row.int("waiting_files")? as u64,
        waiting_bytes: row.int("waiting_bytes")? as u64,
        waiting_reason: row.text_or_none("waiting_reason")?,
    })
}
