//! Runs of a harvest, with what became of their jobs.

use grange_model::harvest::{HarvestId, Name, Run};
use sqlx::any::AnyRow;

use super::Definitions;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::Columns;

impl Definitions<'_> {
    /// The runs of a harvest, newest first.
    pub async fn runs(&self, name: &Name, limit: u32) -> Result<Vec<Run>, Error> {
        self.0
            .read("list the runs", (name.clone(), i64::from(limit)), |tx, (name, limit)| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(name.as_str()).bind(*limit);
                    tx.rows(query).await?.iter().map(run).collect()
                })
            })
            .await
    }
}

static LIST: Sql = Sql::new(
    "SELECT r.harvest_id, r.number, r.due_at, r.planned_at, r.configurations, r.left_out, r.skipped,
         count(j.id) AS jobs, count(CASE j.status WHEN 'done' THEN 1 END) AS done,
         count(CASE WHEN j.status IN ('failed', 'failed-rejected') THEN 1 END) AS failed,
         count(CASE j.status WHEN 'resubmitted' THEN 1 END) AS resubmitted,
         min(j.started_at) AS started_at,
         CASE WHEN count(CASE WHEN j.status IN ('new', 'submitted', 'started') THEN 1 END) = 0
             THEN max(j.ended_at) END AS ended_at,
         (SELECT CAST(COALESCE(sum(o.objects), 0) AS BIGINT) FROM domain_history o
             WHERE o.harvest_id = r.harvest_id AND o.run = r.number) AS objects,
         (SELECT CAST(COALESCE(sum(o.bytes), 0) AS BIGINT) FROM domain_history o
             WHERE o.harvest_id = r.harvest_id AND o.run = r.number) AS bytes
     FROM runs r JOIN harvest_definitions h ON h.id = r.harvest_id
     LEFT JOIN jobs j ON j.harvest_id = r.harvest_id AND j.run = r.number
     WHERE h.name = $1
     GROUP BY r.harvest_id, r.number ORDER BY r.number DESC LIMIT $2",
);

fn run(row: &AnyRow) -> Result<Run, Fail> {
    let count = |column| -> Result<u64, Fail> { Ok(row.int(column)? as u64) };
    Ok(Run {
        harvest: HarvestId(row.int("harvest_id")?),
        number: count("number")?,
        due_at: row.time("due_at")?,
        planned_at: row.time("planned_at")?,
        configurations: count("configurations")?,
        left_out: row.json("left_out")?,
        skipped: count("skipped")?,
        jobs: count("jobs")?,
        jobs_done: count("done")?,
        jobs_failed: count("failed")?,
        jobs_resubmitted: count("resubmitted")?,
        objects: count("objects")?,
        bytes: count("bytes")?,
        started_at: row.time_or_none("started_at")?,
        ended_at: row.time_or_none("ended_at")?,
    })
}
