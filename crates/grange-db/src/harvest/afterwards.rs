//! What is learnt of a job after its end: a folder that came back with its harvester, files that were stored at last.
//!
//! A job that is over stays as it ended. What comes later is added to its texts, and its statistics are kept if it has
//! none: they tell the next plan more than nothing.

use grange_model::harvest::{DomainReport, Job, JobId, JobStatus};

use super::{Jobs, history, jobs};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::Columns;

/// What was found out.
#[derive(Clone, Debug, Default)]
pub struct Afterwards {
    /// Added to the details of the harvest.
    pub harvest: Option<String>,
    /// Added to the details of the upload, if it had errors.
    pub upload: Option<String>,
    /// Of every domain met; kept if the job failed and nothing else is known of it.
    pub domains: Vec<DomainReport>,
}

impl Jobs<'_> {
    /// Adds to a job that is over; gives how many domains' statistics were kept. Of one that waits or runs nothing is
    /// changed: whoever has it reports it. Saying the same again changes nothing.
    pub async fn tell_afterwards(&self, id: JobId, said: Afterwards) -> Result<u64, Error> {
        self.0.write("add to the job", (id, said), |tx, (id, said)| Box::pin(add(tx, *id, said))).await
    }
}

/// How long such a text may become: NetarchiveSuite's bound.
const DETAILS_CHARS_MAX: usize = 10_000;

static LOCK: Sql = Sql::new("SELECT id FROM jobs WHERE id = $1 AND status <> 'draft' {for_update}");
static KNOWN: Sql = Sql::new("SELECT count(*) AS count FROM domain_history WHERE job_id = $1");
static ADD: Sql = Sql::new("UPDATE jobs SET harvest_details = $2, upload_details = $3 WHERE id = $1");

async fn add(tx: &mut Tx<'_>, id: JobId, said: &Afterwards) -> Result<u64, Fail> {
    let query = tx.sql(&LOCK).bind(id.0);
    if tx.row(query).await?.is_none() {
        return Ok(0);
    }
    let job = jobs::found(tx, id).await?;
    if !job.status.ended() {
        return Ok(0);
    }
    // Where nothing was wrong with the upload there is nothing to add.
    let upload = said.upload.as_deref().filter(|_| job.upload_errors.is_some());
    let query = tx
        .sql(&ADD)
        .bind(id.0)
        .bind(longer(job.harvest_error_details.as_deref(), said.harvest.as_deref()))
        .bind(longer(job.upload_error_details.as_deref(), upload));
    tx.run(query).await?;
    keep(tx, &job, &said.domains).await
}

async fn keep(tx: &mut Tx<'_>, job: &Job, domains: &[DomainReport]) -> Result<u64, Fail> {
    // The statistics of a job that is done are those of whoever did it.
    if job.status == JobStatus::Done || domains.is_empty() {
        return Ok(0);
    }
    let query = tx.sql(&KNOWN).bind(job.id.0);
    let known = tx.row(query).await?.map_or(Ok(0), |row| row.int("count"))?;
    if known > 0 { Ok(0) } else { history::keep(tx, job, domains).await }
}

/// The text with a line more, unless it has that line.
fn longer(text: Option<&str>, line: Option<&str>) -> Option<String> {
    let Some(line) = line.map(|line| line.replace('\0', "\u{fffd}")) else { return text.map(str::to_owned) };
    let whole = match text {
        None | Some("") => line,
        Some(text) if text.lines().any(|known| known == line) => text.to_owned(),
        Some(text) => format!("{text}\n{line}"),
    };
    Some(whole.chars().take(DETAILS_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_once() {
        for (text, line, whole) in [
            (None, None, None),
            (Some("a"), None, Some("a")),
            (None, Some("b"), Some("b")),
            (Some("a"), Some("b"), Some("a\nb")),
            (Some("a\nb"), Some("b"), Some("a\nb")),
            (Some("ab"), Some("b"), Some("ab\nb")),
            (None, Some("a\0"), Some("a\u{fffd}")),
        ] {
            assert_eq!(longer(text, line).as_deref(), whole, "{text:?} {line:?}");
        }
    }
}
