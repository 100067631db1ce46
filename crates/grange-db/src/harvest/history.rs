//! History of domains, and what it says about the next harvest.

use grange_model::harvest::{DomainName, DomainReport, HistoryEntry, Job, Name, StopReason};
use sqlx::any::AnyRow;

use super::{Domains, limits};
use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

/// Which history to show, newest first.
#[derive(Clone, Debug)]
pub struct HistoryFilter {
    pub domain: Option<DomainName>,
    pub configuration: Option<Name>,
    pub job: Option<grange_model::harvest::JobId>,
    pub limit: u32,
}

impl Domains<'_> {
    pub async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, Error> {
        self.0
            .read("read the history", filter.clone(), |tx, filter| {
                Box::pin(async move {
                    let query = tx
                        .sql(&LIST)
                        .bind(filter.domain.as_ref().map(ToString::to_string))
                        .bind(filter.configuration.as_ref().map(ToString::to_string))
                        .bind(filter.job.map(|job| job.0))
                        .bind(i64::from(filter.limit));
                    tx.rows(query).await?.iter().map(entry).collect()
                })
            })
            .await
    }
}

static LIST: Sql = Sql::new(
    "SELECT d.name AS domain, o.configuration, o.harvest_id, h.name AS harvest_name, o.run, o.job_id, j.started_at,
         o.ended_at, o.objects, o.bytes, o.stop_reason
     FROM domain_history o JOIN domains d ON d.id = o.domain_id JOIN harvest_definitions h ON h.id = o.harvest_id
     LEFT JOIN jobs j ON j.id = o.job_id
     WHERE ($1 IS NULL OR o.domain_id = (SELECT id FROM domains WHERE name = $1))
         AND ($2 IS NULL OR o.configuration = $2) AND ($3 IS NULL OR o.job_id = $3)
     ORDER BY o.id DESC LIMIT $4",
);
static OF_JOB: Sql = Sql::new(
    "SELECT c.configuration_id, c.domain_id, c.name, d.name AS domain, c.max_objects, c.max_bytes, c.max_running_s
     FROM job_configurations c JOIN domains d ON d.id = c.domain_id WHERE c.job_id = $1",
);
// Values of a row: domain, configuration, its name, stop reason, objects, bytes, whether complete.
static KEEP: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO domain_history (domain_id, configuration_id, configuration, stop_reason, objects, bytes, harvest_id,
             run, job_id, ended_at)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, $2, $3, $4, $5
         FROM json_each($1) WHERE true ON CONFLICT (job_id, configuration_id) DO NOTHING",
    ),
    postgres: Sql::new(
        "INSERT INTO domain_history (domain_id, configuration_id, configuration, stop_reason, objects, bytes, harvest_id,
             run, job_id, ended_at)
         SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, value ->> 3, (value ->> 4)::bigint,
             (value ->> 5)::bigint, $2, $3, $4, $5
         FROM jsonb_array_elements($1::jsonb) ON CONFLICT (job_id, configuration_id) DO NOTHING",
    ),
};
// As `Best::then`: a complete harvest is the best, else one with more objects.
static BEST: Bulk = Bulk {
    sqlite: Sql::new(
        "UPDATE configurations SET best_objects = p.value ->> 4, best_bytes = p.value ->> 5, best_complete = p.value ->> 6
         FROM json_each($1) AS p WHERE configurations.id = p.value ->> 1
             AND (p.value ->> 6 = 1 OR best_objects IS NULL OR best_objects < p.value ->> 4)",
    ),
    postgres: Sql::new(
        "UPDATE configurations SET best_objects = (p.value ->> 4)::bigint, best_bytes = (p.value ->> 5)::bigint,
             best_complete = (p.value ->> 6)::bigint
         FROM jsonb_array_elements($1::jsonb) AS p WHERE configurations.id = (p.value ->> 1)::bigint
             AND ((p.value ->> 6)::bigint = 1 OR best_objects IS NULL OR best_objects < (p.value ->> 4)::bigint)",
    ),
};

/// Keeps the report of a job's own domains; gives how many were kept.
pub(super) async fn keep(tx: &mut Tx<'_>, job: &Job, reports: &[DomainReport]) -> Result<u64, Fail> {
    if reports.is_empty() {
        return Ok(0);
    }
    let query = tx.sql(&OF_JOB).bind(job.id.0);
    let mut own = std::collections::HashMap::new();
    for row in tx.rows(query).await? {
        let domain: DomainName = row.parsed("domain")?;
        own.insert(
            domain,
            (row.int("domain_id")?, row.int("configuration_id")?, row.text("name")?, limits(&row)?),
        );
    }
    let mut values = Vec::with_capacity(reports.len());
    for report in reports {
        // Each domain counts once, whatever a report repeats.
        if let Some((domain, configuration, name, limits)) = own.remove(&report.domain) {
            let stop = report.attributed(limits, job.limits);
            let complete = i64::from(stop == StopReason::Complete);
            let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            values.push((
                domain,
                configuration,
                name,
                stop,
                number(report.objects),
                number(report.bytes),
                complete,
            ));
        }
    }
    let list = super::json(&values);
    let query = KEEP
        .on(tx)
        .bind(list.clone())
        .bind(job.harvest.0)
        .bind(job.run as i64)
        .bind(job.id.0)
        .bind(micros(tx.now));
    tx.run(query).await?;
    let query = BEST.on(tx).bind(list);
    tx.run(query).await?;
    Ok(values.len() as u64)
}

fn entry(row: &AnyRow) -> Result<HistoryEntry, Fail> {
    Ok(HistoryEntry {
        domain: row.parsed("domain")?,
        configuration: row.parsed("configuration")?,
        harvest: grange_model::harvest::HarvestId(row.int("harvest_id")?),
        harvest_name: row.parsed("harvest_name")?,
        run: row.int("run")? as u64,
        job: grange_model::harvest::JobId(row.int("job_id")?),
        started_at: row.time_or_none("started_at")?,
        ended_at: row.time("ended_at")?,
        objects: row.int("objects")? as u64,
        bytes: row.int("bytes")? as u64,
        stop: row.parsed("stop_reason")?,
    })
}
