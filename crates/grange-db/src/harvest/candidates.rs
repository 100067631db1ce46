//! What a plan is made of: the configurations of a harvest, and the snapshots and jobs before it.

use std::time::Duration;

use grange_model::harvest::{Best, HarvestDefinition, HarvestId, HarvestKind, JobId, Limits, StopReason};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::{Planner, best, limits};
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length, micros};

/// A configuration that may become part of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where the next page begins: after this.
    pub place: i64,
    pub configuration: i64,
    pub domain: i64,
    pub template: i64,
    pub limits: Limits,
    pub best: Option<Best>,
    /// It has a seed at all.
    pub seeded: bool,
    /// The newest history in the snapshots that are taken up: why it ended, objects, bytes.
    pub last: Option<(StopReason, u64, u64)>,
}

/// A snapshot among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    pub id: HarvestId,
    pub created_at: Timestamp,
    pub continues: Option<HarvestId>,
}

impl Planner<'_> {
    /// A page of the configurations of a harvest: those after the place `after`. `taken_up` are the snapshots that a
    /// snapshot continues; unexpired aliases are not in a snapshot. The pages of a snapshot go by domains, so that each is
    /// in it once, whichever of its configurations becomes the default meanwhile.
    pub async fn candidates(
        &self,
        harvest: &HarvestDefinition,
        taken_up: &[HarvestId],
        alias_lifetime: Duration,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Candidate>, Error> {
        let taken_up = crate::bulk::ids(&taken_up.iter().map(|id| id.0).collect::<Vec<_>>());
        let input = (harvest.kind, harvest.id, taken_up, (length(alias_lifetime), after, i64::from(limit)));
        self.0
            .read(
                "read the configurations",
                input,
                |tx, (kind, harvest, taken_up, (lifetime, after, limit))| {
                    Box::pin(async move {
                        let alive = micros(tx.now) - *lifetime;
                        let query = match kind {
                            HarvestKind::Selective => {
                                tx.sql(&SELECTIVE).bind(harvest.0).bind(*after).bind(*limit)
                            }
                            HarvestKind::Snapshot if taken_up == "[]" => {
                                tx.sql(&SNAPSHOT).bind(alive).bind(*after).bind(*limit)
                            }
                            HarvestKind::Snapshot => {
                                CONTINUED.on(tx).bind(alive).bind(*after).bind(*limit).bind(taken_up.as_str())
                            }
                        };
                        tx.rows(query).await?.iter().map(candidate).collect()
                    })
                },
            )
            .await
    }

    /// All snapshots, for chains of them.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotRow>, Error> {
        self.0
            .read("list the snapshots", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&SNAPSHOTS);
                    let read = |row: &AnyRow| {
                        Ok(SnapshotRow {
                            id: HarvestId(row.int("id")?),
                            created_at: row.time("created_at")?,
                            continues: row.int_or_none("continues")?.map(HarvestId),
                        })
                    };
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }

    /// The jobs of one run of a harvest, or of all.
    pub async fn jobs_of(&self, harvest: HarvestId, run: Option<u64>) -> Result<Vec<JobId>, Error> {
        self.0
            .read("list the jobs", (harvest, run), |tx, (harvest, run)| {
                Box::pin(async move {
                    let query = tx.sql(&JOBS_OF).bind(harvest.0).bind(run.map(|run| run as i64));
                    tx.rows(query).await?.iter().map(|row| Ok(JobId(row.int("id")?))).collect()
                })
            })
            .await
    }
}

macro_rules! candidate_columns {
    () => {
        "c.id, c.domain_id, c.template_id, c.max_objects, c.max_bytes, c.max_running_s, c.best_objects, c.best_bytes, \
         c.best_complete, (SELECT count(*) FROM configuration_seed_lists l JOIN seed_lists s ON s.id = l.seed_list_id \
         WHERE l.configuration_id = c.id AND s.active_count > 0) AS seeded"
    };
}

static SELECTIVE: Sql = Sql::new(concat!(
    "SELECT ",
    candidate_columns!(),
    ", c.id AS place, CAST(NULL AS TEXT) AS stop_reason FROM harvest_configurations m JOIN configurations c ON c.id = m.configuration_id
     WHERE m.harvest_id = $1 AND m.configuration_id > $2 ORDER BY m.configuration_id LIMIT $3"
));
static SNAPSHOT: Sql = Sql::new(concat!(
    "SELECT ",
    candidate_columns!(),
    ", c.domain_id AS place, CAST(NULL AS TEXT) AS stop_reason FROM configurations c
     JOIN domains d ON d.id = c.domain_id
     WHERE c.is_default = 1 AND (d.alias_of IS NULL OR d.alias_at <= $1) AND c.domain_id > $2
     ORDER BY c.domain_id LIMIT $3"
));
macro_rules! continued {
    ($list:literal) => {
        concat!(
            "SELECT ",
            candidate_columns!(),
            ", c.domain_id AS place, o.stop_reason, o.objects, o.bytes FROM configurations c JOIN domains d ON d.id = c.domain_id
             LEFT JOIN domain_history o ON o.id = (SELECT max(n.id) FROM domain_history n WHERE n.domain_id = c.domain_id
                 AND n.harvest_id IN (",
            $list,
            ")) WHERE c.is_default = 1 AND (d.alias_of IS NULL OR d.alias_at <= $1) AND c.domain_id > $2
             ORDER BY c.domain_id LIMIT $3"
        )
    };
}
static CONTINUED: Bulk = Bulk {
    sqlite: Sql::new(continued!("SELECT value FROM json_each($4)")),
    postgres: Sql::new(continued!("SELECT value::bigint FROM jsonb_array_elements_text($4::jsonb)")),
};
static SNAPSHOTS: Sql =
    Sql::new("SELECT id, created_at, continues FROM harvest_definitions WHERE kind = 'snapshot' ORDER BY id");
static JOBS_OF: Sql = Sql::new(
    "SELECT id FROM jobs WHERE harvest_id = $1 AND ($2 IS NULL OR run = $2) AND status <> 'draft' ORDER BY id",
);
fn candidate(row: &AnyRow) -> Result<Candidate, Fail> {
    let last = match row.text_or_none("stop_reason")? {
        Some(_) => Some((row.parsed("stop_reason")?, row.int("objects")? as u64, row.int("bytes")? as u64)),
        None => None,
    };
    Ok(Candidate {
        place: row.int("place")?,
        configuration: row.int("id")?,
        domain: row.int("domain_id")?,
        template: row.int("template_id")?,
        limits: limits(row)?,
        best: best(row)?,
        seeded: row.int("seeded")? > 0,
        last,
    })
}
