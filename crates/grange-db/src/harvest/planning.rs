//! Planning: a due harvest is taken by one scheduler, its jobs are drafted, and all of them appear at once with the
//! run and the next date.
//!
//! Drafts are invisible to everybody else. A scheduler that dies leaves drafts behind; whoever takes the harvest next
//! begins by deleting them. So a run is planned once however many schedulers there are, and a long plan is made of
//! short acts that do not hold up harvesters.

use std::collections::BTreeMap;
use std::time::Duration;

use grange_model::Actor;
use grange_model::harvest::{
    ChannelName, HarvestDefinition, HarvestId, HarvestKind, JobId, Limits, Schedule,
};
use jiff::Timestamp;
use serde_json::json;

use super::definitions::{BY_ID, definition};
use super::{NO_STATE, channels, missing, told, traps};
use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, length, micros, micros_or_none};

super::handle! {
    /// The acts of planning.
    Planner, planner
}

/// A harvest that is due, and ours to plan until the lease ends.
#[derive(Clone, Debug)]
pub struct Due {
    pub harvest: HarvestDefinition,
    /// Of a selective harvest.
    pub schedule: Option<Schedule>,
    pub channel: ChannelName,
    pub due_at: Timestamp,
    token: i64,
}

/// A job to be drafted.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub template: i64,
    pub limits: Limits,
    pub expected_objects: u64,
    /// How many configurations it will have.
    pub configurations: u64,
}

/// A configuration of a drafted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub configuration: i64,
    pub job: JobId,
    pub expected_objects: u64,
}

/// What a finished plan amounts to.
#[derive(Clone, Debug, Default)]
pub struct RunPlan {
    pub configurations: u64,
    pub left_out: BTreeMap<String, u64>,
    pub skipped: u64,
    pub next_at: Option<Timestamp>,
    pub duplicate_reduction_jobs: Vec<JobId>,
}

impl Planner<'_> {
    /// Rows written in one act: some hundredths of a second, so that harvesters need not wait.
    pub const AT_ONCE: usize = 1000;

    /// Takes the harvest of this kind that has been due for longest. With `served`, only if its channel is among them.
    pub async fn claim(
        &self,
        kind: HarvestKind,
        owner: &str,
        lease: Duration,
        served: Option<&[ChannelName]>,
    ) -> Result<Option<Due>, Error> {
        let input = (kind, owner.to_owned(), length(lease), served.map(|names| super::json(&names)));
        self.0
            .write("take a due harvest", input, |tx, (kind, owner, lease, served)| {
                Box::pin(claim(tx, *kind, owner, *lease, served.as_deref()))
            })
            .await
    }

    pub async fn renew(&self, due: &Due, lease: Duration) -> Result<(), Error> {
        self.0
            .write_one("go on planning", (due.clone(), length(lease)), |tx, (due, lease)| {
                Box::pin(async move {
                    let query = tx.timed(&RENEW).bind(due.harvest.id.0).bind(due.token).bind(*lease);
                    if tx.run(query).await? == 1 { Ok(()) } else { Err(lost(due)) }
                })
            })
            .await
    }

    /// Drafts jobs of the run that is being planned, without their configurations.
    pub async fn draft(&self, due: &Due, jobs: Vec<NewJob>) -> Result<Vec<JobId>, Error> {
        let mut ids = Vec::with_capacity(jobs.len());
        for some in jobs.chunks(Self::AT_ONCE) {
            let input = (due.clone(), some.to_vec());
            let drafted =
                self.0.write("draft jobs", input, |tx, (due, jobs)| Box::pin(draft(tx, due, jobs))).await?;
            ids.extend(drafted);
        }
        Ok(ids)
    }

    /// Puts configurations into drafted jobs, at most [`Self::AT_ONCE`]. Whoever has many gives those together that lie
    /// together, by number and by job: each act then touches few pages.
    pub async fn fill(&self, due: &Due, members: Vec<Member>) -> Result<(), Error> {
        self.0
            .write("fill the jobs", (due.clone(), members), |tx, (due, members)| {
                Box::pin(async move {
                    fence(tx, due).await?;
                    let rows: Vec<_> = members
                        .iter()
                        .map(|one| (one.configuration, one.job, one.expected_objects))
                        .collect();
                    let query = FILL.on(tx).bind(super::json(&rows));
                    // A configuration that was deleted since it was read would be in no job: it is planned anew.
                    if tx.run(query).await? == rows.len() as u64 { Ok(()) } else { Err(lost(due)) }
                })
            })
            .await
    }

    /// Turns the drafts into jobs: with the run, its number and the next date, or not at all. Gives their number.
    pub async fn commit(&self, due: &Due, plan: RunPlan) -> Result<u64, Error> {
        self.0
            .write("plan the run", (due.clone(), plan), |tx, (due, plan)| Box::pin(commit(tx, due, plan)))
            .await
    }

    /// Takes a harvest that cannot be planned out of service, so that it does not fail every minute.
    pub async fn give_up(&self, due: &Due, reason: &str) -> Result<(), Error> {
        let reason = reason.replace('\0', "\u{fffd}");
        self.0
            .write("take the harvest out of service", (due.clone(), reason), |tx, (due, reason)| {
                Box::pin(async move {
                    fence(tx, due).await?;
                    clear(tx, due.harvest.id).await?;
                    let query = tx
                        .sql(&GIVE_UP)
                        .bind(due.harvest.id.0)
                        .bind(reason.as_str())
                        .bind(micros(tx.now))
                        .bind(Actor::system().who);
                    tx.run(query).await?;
                    let state = json!({ "active": false, "because": reason });
                    let subject = format!("harvest:{}", due.harvest.name);
                    told(tx, &Actor::system(), "harvest.deactivate", subject, NO_STATE, Some(&state)).await
                })
            })
            .await
    }
}

macro_rules! claim_sql {
    ($served:literal) => {
        concat!(
            "WITH picked AS MATERIALIZED (
                 SELECT h.id AS picked_id FROM harvest_definitions h
                 WHERE h.active = 1 AND h.kind = $2 AND h.next_at <= $6 AND (h.plan_until IS NULL OR h.plan_until <= {now})",
            $served,
            " ORDER BY h.next_at, h.id LIMIT 1 {skip_locked}
             )
             UPDATE harvest_definitions SET plan_owner = $3, plan_token = plan_token + 1, plan_until = {now} + $4
             FROM picked WHERE id = picked_id RETURNING id"
        )
    };
}

// Only the row itself can be locked: what it is joined with is asked in a subquery.
static CLAIM: Bulk = Bulk {
    sqlite: Sql::new(claim_sql!(
        " AND ($5 IS NULL OR COALESCE((SELECT c.name FROM channels c WHERE c.id = h.channel_id),
              (SELECT c.name FROM channels c WHERE c.kind = 'focused' AND c.is_default = 1))
              IN (SELECT value FROM json_each($5)))"
    )),
    postgres: Sql::new(claim_sql!(
        " AND ($5::text IS NULL OR COALESCE((SELECT c.name FROM channels c WHERE c.id = h.channel_id),
              (SELECT c.name FROM channels c WHERE c.kind = 'focused' AND c.is_default = 1))
              IN (SELECT jsonb_array_elements_text($5::jsonb)))"
    )),
};
static RENEW: Sql = Sql::new(
    "UPDATE harvest_definitions SET plan_until = {now} + $4
     WHERE id = $2 AND plan_token = $3 AND plan_owner IS NOT NULL",
);
static FENCE: Sql = Sql::new(
    "SELECT edition, active FROM harvest_definitions
     WHERE id = $1 AND plan_token = $2 AND plan_owner IS NOT NULL {for_update}",
);
static CHANNEL: Sql = Sql::new(
    "SELECT COALESCE((SELECT c.name FROM channels c WHERE c.id = h.channel_id), d.name) AS channel, s.body
     FROM harvest_definitions h JOIN channels d ON d.is_default = 1
         AND d.kind = CASE h.kind WHEN 'snapshot' THEN 'snapshot' ELSE 'focused' END
     LEFT JOIN schedules s ON s.id = h.schedule_id WHERE h.id = $1",
);
static DRAFT: Sql = Sql::new(
    "INSERT INTO jobs (harvest_id, run, status, channel, snapshot, template_id, template_version, max_objects, max_bytes,
         max_running_s, configurations, expected_objects, created_at)
     SELECT $1, $2, 'draft', $3, $4, t.id, t.version, $6, $7, $8, $9, $10, $11 FROM templates t WHERE t.id = $5
     RETURNING id",
);
// Values of a row: configuration, job, expected objects.
static FILL: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO job_configurations (job_id, configuration_id, domain_id, name, max_objects, max_bytes,
             max_running_s, expected_objects, seeds, traps)
         SELECT p.value ->> 1, c.id, c.domain_id, c.name, c.max_objects, c.max_bytes, c.max_running_s, p.value ->> 2,
             COALESCE((SELECT group_concat(COALESCE(s.active, s.seeds), char(10)) FROM configuration_seed_lists l
                 JOIN seed_lists s ON s.id = l.seed_list_id WHERE l.configuration_id = c.id AND s.active_count > 0), ''),
             d.traps
         FROM json_each($1) p CROSS JOIN configurations c ON c.id = p.value ->> 0 JOIN domains d ON d.id = c.domain_id",
    ),
    postgres: Sql::new(
        "INSERT INTO job_configurations (job_id, configuration_id, domain_id, name, max_objects, max_bytes,
             max_running_s, expected_objects, seeds, traps)
         SELECT (p.value ->> 1)::bigint, c.id, c.domain_id, c.name, c.max_objects, c.max_bytes, c.max_running_s, (p.value ->> 2)::bigint,
             COALESCE((SELECT string_agg(COALESCE(s.active, s.seeds), chr(10) ORDER BY s.id)
                 FROM configuration_seed_lists l JOIN seed_lists s ON s.id = l.seed_list_id
                 WHERE l.configuration_id = c.id AND s.active_count > 0), ''),
             d.traps
         FROM jsonb_array_elements($1::jsonb) p JOIN configurations c ON c.id = (p.value ->> 0)::bigint
         JOIN domains d ON d.id = c.domain_id",
    ),
};
static DRAFTS: Sql = Sql::new("SELECT id FROM jobs WHERE harvest_id = $1 AND run > $2 AND status = 'draft'");
static CLEAR_CONFIGURATIONS: Sql = Sql::new("DELETE FROM job_configurations WHERE job_id = $1");
static CLEAR_JOB: Sql = Sql::new("DELETE FROM jobs WHERE id = $1");
static RELEASE: Sql =
    Sql::new("UPDATE jobs SET status = 'new' WHERE harvest_id = $1 AND run = $2 AND status = 'draft'");
static RUN: Sql = Sql::new(
    "INSERT INTO runs (harvest_id, number, due_at, planned_at, configurations, left_out, skipped, jobs, schedule,
         comments, audience, traps, dedup_jobs)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
);
static ADVANCE: Sql = Sql::new(
    "UPDATE harvest_definitions SET runs = runs + 1, next_at = $2, plan_owner = NULL, plan_until = NULL WHERE id = $1",
);
static GIVE_UP: Sql = Sql::new(
    "UPDATE harvest_definitions SET active = 0, deactivated = $2, plan_owner = NULL, plan_until = NULL,
         changed_at = $3, changed_by = $4, edition = edition + 1
     WHERE id = $1",
);

async fn claim(
    tx: &mut Tx<'_>,
    kind: HarvestKind,
    owner: &str,
    lease: i64,
    served: Option<&str>,
) -> Result<Option<Due>, Fail> {
    let now = micros(tx.now);
    let query = CLAIM
        .on(tx)
        .bind(now)
        .bind(kind.as_str())
        .bind(owner.to_owned())
        .bind(lease)
        .bind(served.map(str::to_owned))
        .bind(now);
    let Some(row) = tx.row(query).await? else { return Ok(None) };
    let id = HarvestId(row.int("id")?);
    clear(tx, id).await?;
    let query = tx.sql(&BY_ID).bind(id.0);
    let row = tx.row(query).await?.ok_or_else(|| missing("harvest", id))?;
    let (harvest, token) = (definition(&row)?, row.int("plan_token")?);
    let query = tx.sql(&CHANNEL).bind(id.0);
    let lane =
        tx.row(query).await?.ok_or_else(|| missing("default channel for the harvest", &harvest.name))?;
    let schedule = lane.text_or_none("body")?.map(|_| lane.json("body")).transpose()?;
    let due_at = harvest.next_at.unwrap_or(tx.now);
    Ok(Some(Due { harvest, schedule, channel: lane.parsed("channel")?, due_at, token }))
}

/// Deletes what a scheduler that died left of a plan.
async fn clear(tx: &mut Tx<'_>, harvest: HarvestId) -> Result<(), Fail> {
    let query = tx.sql(&DRAFTS).bind(harvest.0).bind(0);
    for row in tx.rows(query).await? {
        let id = row.int("id")?;
        for sql in [&CLEAR_CONFIGURATIONS, &CLEAR_JOB] {
            let query = tx.sql(sql).bind(id);
            tx.run(query).await?;
        }
    }
    Ok(())
}

fn lost(due: &Due) -> Fail {
    Error::LeaseLost { what: format!("planning the harvest {}", due.harvest.name) }.into()
}

/// Refuses whoever lost the lease, and a plan of a harvest that was changed meanwhile.
async fn fence(tx: &mut Tx<'_>, due: &Due) -> Result<(), Fail> {
    let query = tx.sql(&FENCE).bind(due.harvest.id.0).bind(due.token);
    let row = tx.row(query).await?.ok_or_else(|| lost(due))?;
    if row.int("edition")? == due.harvest.edition { Ok(()) } else { Err(lost(due)) }
}

async fn draft(tx: &mut Tx<'_>, due: &Due, jobs: &[NewJob]) -> Result<Vec<JobId>, Fail> {
    fence(tx, due).await?;
    let mut ids = Vec::with_capacity(jobs.len());
    for NewJob { template, limits, expected_objects, configurations } in jobs {
        let query = tx
            .sql(&DRAFT)
            .bind(due.harvest.id.0)
            .bind(due.harvest.runs as i64 + 1)
            .bind(due.channel.to_string())
            .bind(i64::from(due.harvest.kind == HarvestKind::Snapshot))
            .bind(*template)
            .bind(limits.objects.number())
            .bind(limits.bytes.number())
            .bind(limits.running_s.number())
            .bind(*configurations as i64)
            .bind(i64::try_from(*expected_objects).unwrap_or(i64::MAX))
            .bind(micros(tx.now));
        let row = tx.row(query).await?.ok_or_else(|| missing("template", template))?;
        ids.push(JobId(row.int("id")?));
    }
    Ok(ids)
}

async fn commit(tx: &mut Tx<'_>, due: &Due, plan: &RunPlan) -> Result<u64, Fail> {
    fence(tx, due).await?;
    // The default may have moved since the plan was begun, and the channel it was may be gone: nobody would take its jobs.
    if !channels::held(tx, &due.channel).await? {
        return Err(lost(due));
    }
    let (id, number) = (due.harvest.id.0, due.harvest.runs as i64 + 1);
    let query = tx.sql(&RELEASE).bind(id).bind(number);
    let jobs = tx.run(query).await?;
    let mut all = traps::active(tx).await?;
    all.extend(due.harvest.traps.iter().cloned());
    let query = tx
        .sql(&RUN)
        .bind(id)
        .bind(number)
        .bind(micros(due.due_at))
        .bind(micros(tx.now))
        .bind(plan.configurations as i64)
        .bind(super::json(&plan.left_out))
        .bind(plan.skipped as i64)
        .bind(jobs as i64)
        .bind(due.harvest.schedule.as_ref().map(ToString::to_string))
        .bind(due.harvest.comments.clone())
        .bind(due.harvest.audience.clone())
        .bind(all.join("\n"))
        .bind(super::json(&plan.duplicate_reduction_jobs));
    tx.run(query).await?;
    let query = tx.sql(&ADVANCE).bind(id).bind(micros_or_none(plan.next_at));
    tx.run(query).await?;
    Ok(jobs)
}

impl Db {
    /// How many harvests are in service and due: what a scheduler looks at every minute.
    pub async fn due_harvests(&self) -> Result<u64, Error> {
        self.read("count the due harvests", (), |tx, ()| {
            Box::pin(async move {
                let query = tx.sql(&DUE).bind(micros(tx.now));
                Ok(tx.row(query).await?.map(|row| row.int("count")).transpose()?.unwrap_or_default() as u64)
            })
        })
        .await
    }
}

static DUE: Sql = Sql::new(
    "SELECT count(*) AS count FROM harvest_definitions WHERE active = 1 AND kind IN ('selective', 'snapshot')
         AND next_at <= $1",
);
