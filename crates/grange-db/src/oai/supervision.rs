//! Jobs whose harvesters fell silent.

use grange_model::oai::{OaiJobId, Outcome};

use super::OaiJobs;
use super::dispatch::{Ending, end};
use super::history::{Line, write as write_line};
use super::jobs;
use crate::dialect::Sql;
use crate::error::Error;
use crate::row::Columns;

/// What is done about dead harvesters and failing jobs.
#[derive(Clone, Copy, Debug)]
pub struct OaiPolicy {
    /// Others take a dead harvester's job, so often in all; 0 ends it at once.
    pub takeovers_max: u32,
    /// A recurring job that failed so often in a row waits for a person.
    pub failures_max: u32,
}

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OaiDeadJobs {
    /// Waiting again; they go on where they were.
    pub taken_back: Vec<OaiJobId>,
    pub ended: Vec<OaiJobId>,
}

impl OaiJobs<'_> {
    /// Writes the failure of dead harvesters into the history, and plans their jobs again where the policy says so.
    pub async fn supervise(&self, policy: OaiPolicy) -> Result<OaiDeadJobs, Error> {
        self.0
            .write("look after the harvests", policy, |tx, policy| {
                Box::pin(async move {
                    let mut dead = OaiDeadJobs::default();
                    let query = tx.timed(&SILENT);
                    for row in &tx.rows(query).await? {
                        let job = jobs::job(row)?;
                        let stop_reason = row.text_or_none("stop_reason")?;
                        let owner = job.owner.clone().unwrap_or_default();
                        let reason = format!("the harvester {owner} fell silent");
                        if stop_reason.is_some() {
                            end(tx, &job, &Ending::Stopped, stop_reason, policy.failures_max).await?;
                            dead.ended.push(job.id);
                        } else if job.attempts <= policy.takeovers_max {
                            write_line(tx, &Line::of(&job, Outcome::Failed, Some(reason))).await?;
                            let query = tx.sql(&AGAIN).bind(job.id.0);
                            tx.run(query).await?;
                            dead.taken_back.push(job.id);
                        } else {
                            end(tx, &job, &Ending::Failed { reason }, None, policy.failures_max).await?;
                            dead.ended.push(job.id);
                        }
                    }
                    Ok(dead)
                })
            })
            .await
    }
}

static SILENT: Sql = Sql::new(
    "SELECT id, repository_id, recurring_id, spec, status, due_at, started_at, owner, lease_until, attempts, pages,
         expected, counts, stop_reason
     FROM oai_jobs WHERE status <> 'scheduled' AND lease_until <= {now} ORDER BY id {skip_locked}",
);
static AGAIN: Sql = Sql::new(
    "UPDATE oai_jobs SET status = 'scheduled', owner = NULL, lease_until = NULL, lease_token = lease_token + 1
     WHERE id = $1",
);
