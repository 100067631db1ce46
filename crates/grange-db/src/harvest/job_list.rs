//! Listing jobs by status, harvest, domain and time.

use grange_model::harvest::{DomainName, Job, JobId, JobStatus};
use jiff::Timestamp;
use sqlx::AssertSqlSafe;

use super::jobs::{columns, job};
use super::{Jobs, like};
use crate::act::Tx;
use crate::error::{Error, Fail};
use crate::row::micros_or_none;

/// Which jobs to list, newest first by default.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Any of these; all when empty.
    pub status: Vec<JobStatus>,
    /// The name of the harvest; `*` and `?` stand for any characters and one.
    pub harvest: Option<String>,
    pub run: Option<u64>,
    /// Only jobs with this domain.
    pub domain: Option<DomainName>,
    pub started_since: Option<Timestamp>,
    pub ended_until: Option<Timestamp>,
    pub oldest_first: bool,
    /// Only jobs beyond this one in the order of the list: the next page.
    pub beyond: Option<JobId>,
    pub limit: u32,
}

impl Jobs<'_> {
    pub async fn list(&self, filter: &JobFilter) -> Result<Vec<Job>, Error> {
        self.0.read("list the jobs", filter.clone(), |tx, filter| Box::pin(list(tx, filter))).await
    }
}

async fn list(tx: &mut Tx<'_>, filter: &JobFilter) -> Result<Vec<Job>, Fail> {
    let mut sql = concat!("SELECT ", columns!(), "WHERE j.status <> 'draft'").to_owned();
    if !filter.status.is_empty() {
        // Names of a fixed list, so nothing foreign enters the statement.
        let names: Vec<_> = filter.status.iter().map(|status| format!("'{status}'")).collect();
        sql = format!("{sql} AND j.status IN ({})", names.join(", "));
    }
    let (beyond, order) = if filter.oldest_first { ("j.id > $6", "ASC") } else { ("j.id < $6", "DESC") };
    let conditions = [
        (filter.harvest.is_some(), "h.name LIKE $1 ESCAPE '\\'"),
        (filter.run.is_some(), "j.run = $2"),
        (
            filter.domain.is_some(),
            "j.id IN (SELECT c.job_id FROM job_configurations c JOIN domains d ON d.id = c.domain_id WHERE d.name = $3)",
        ),
        (filter.started_since.is_some(), "j.started_at >= $4"),
        (filter.ended_until.is_some(), "j.ended_at <= $5"),
        (filter.beyond.is_some(), beyond),
    ];
    for (_, condition) in conditions.iter().filter(|(asked, _)| *asked) {
        sql.push_str(" AND ");
        sql.push_str(condition);
    }
    sql = format!("{sql} ORDER BY j.id {order} LIMIT $7");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(filter.harvest.as_deref().map(like))
        .bind(filter.run.map(|run| run as i64))
        .bind(filter.domain.as_ref().map(ToString::to_string))
        .bind(micros_or_none(filter.started_since))
        .bind(micros_or_none(filter.ended_until))
        .bind(filter.beyond.map(|id| id.0))
        .bind(i64::from(filter.limit));
    tx.rows(query).await?.iter().map(job).collect()
}
