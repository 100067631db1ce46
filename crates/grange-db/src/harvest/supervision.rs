//! Jobs whose harvesters fell silent, and jobs that never end.

use std::time::Duration;

use grange_model::harvest::{ChannelName, JobId};
use sqlx::any::AnyRow;

use super::Jobs;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

/// What is done about dead harvesters.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Others take their jobs, so often in all; 0 marks them failed at once.
    pub takeovers_max: u32,
    /// A crawl that lasts longer is marked failed.
    pub job_timeout: Duration,
}

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadJobs {
    /// Waiting again, in these channels.
    pub taken_back: Vec<(JobId, ChannelName)>,
    pub failed: Vec<JobId>,
}

impl Jobs<'_> {
    /// Takes jobs from dead harvesters and ends those that never do.
    pub async fn supervise(&self, policy: Policy) -> Result<DeadJobs, Error> {
        let input = (i64::from(policy.takeovers_max), length(policy.job_timeout));
        self.0
            .write("look after the jobs", input, |tx, (takeovers, timeout)| {
                Box::pin(async move {
                    let mut dead = DeadJobs::default();
                    let query = tx.timed(&EXPIRE).bind(*takeovers);
                    for row in &tx.rows(query).await? {
                        let id = JobId(row.int("id")?);
                        if row.text("status")? == "new" {
                            dead.taken_back.push((id, row.parsed("channel")?));
                        } else {
                            dead.failed.push(id);
                        }
                    }
                    let query = tx.timed(&TIME_OUT).bind(*timeout);
                    let late = |row: &AnyRow| -> Result<JobId, Fail> { Ok(JobId(row.int("id")?)) };
                    dead.failed
                        .extend(tx.rows(query).await?.iter().map(late).collect::<Result<Vec<_>, _>>()?);
                    Ok(dead)
                })
            })
            .await
    }
}

// A job whose crawl has ended is not crawled again: its files are in a folder on the harvester that is silent, which
// deposits them when it is back. A person who does not want to wait cancels the job. What an earlier harvester of the job
// still has to deposit holds up nobody: it was another claim.
// A job is taken over as often as `takeovers_max`, so it may be claimed once more than that.
static EXPIRE: Sql = Sql::new(
    "UPDATE jobs SET
         status = CASE WHEN stop_wanted = 0 AND attempts <= $2 THEN 'new' ELSE 'failed' END,
         ended_at = CASE WHEN stop_wanted = 0 AND attempts <= $2 THEN NULL ELSE {now} END,
         harvest_errors = COALESCE(CASE WHEN stop_wanted = 1 THEN harvest_errors END,
             'the harvester ' || COALESCE(harvester, '?') || ' fell silent'),
         lease_until = NULL, lease_token = lease_token + 1
     WHERE status IN ('submitted', 'started') AND lease_until <= {now}
         AND (stop_wanted = 1 OR NOT EXISTS (SELECT 1 FROM waiting_deposits w
             WHERE w.job_id = jobs.id AND w.claim_token = jobs.lease_token))
     RETURNING id, status, channel",
);
// A job whose crawl has ended and whose files wait for a replica is not crawled any more.
static TIME_OUT: Sql = Sql::new(
    "UPDATE jobs SET status = 'failed', ended_at = {now}, harvest_errors = 'it was crawled for longer than allowed',
         lease_until = NULL, lease_token = lease_token + 1
     WHERE status = 'started' AND started_at <= {now} - $2
         AND NOT EXISTS (SELECT 1 FROM waiting_deposits w
             WHERE w.job_id = jobs.id AND w.claim_token = jobs.lease_token)
     RETURNING id",
);
