//! Harvests: begun, waited for, stopped, looked back at.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use grange_api::Client;
use grange_api::wire::oai::{HistoryLines, JobShown};
use grange_model::oai::{
    HarvestSpec, HistoryId, HistoryLine, Method, OaiJob, OaiJobId, Outcome, RepositoryId, Validation,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::query;
use crate::cli::Common;
use crate::cmd::harvest::{list as table, read_file, told};
use crate::context;
use crate::exit::{Exit, UsageError};

#[derive(Debug, clap::Args)]
pub(crate) struct HarvestArgs {
    /// The repository
    pub id: RepositoryId,
    #[command(flatten)]
    pub what: SpecArgs,
    /// Delete all records that a complete list lacks, also if they are more than a fifth of those held or the list is doubtful
    #[arg(long)]
    pub accept_deletions: bool,
    /// Wait for the end and tell how it went
    #[arg(long)]
    pub wait: bool,
}

/// What is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct SpecArgs {
    /// The metadata format
    #[arg(long, default_value = "oai_dc")]
    pub prefix: String,
    /// Only this set and those below it
    #[arg(long, value_name = "SET")]
    pub set_spec: Option<String>,
    /// Only records dated since then: a day or a time in UTC
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// Only records dated until then: a day or a time in UTC
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// Only what changed since the last whole harvest
    #[arg(long)]
    pub incremental: bool,
    /// list-records, or list-identifiers and one request per record
    #[arg(long, default_value = "list-records")]
    pub method: Method,
    /// strict, very-strict or loose
    #[arg(long, default_value = "loose")]
    pub validation: Validation,
    /// A filter file
    #[arg(long, value_name = "FILE")]
    pub filter: Option<PathBuf>,
    /// A normalize file
    #[arg(long, value_name = "FILE")]
    pub normalize: Option<PathBuf>,
}

impl SpecArgs {
    pub(super) fn spec(&self) -> anyhow::Result<HarvestSpec> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_file).transpose();
        Ok(HarvestSpec {
            prefix: self.prefix.clone(),
            set: self.set_spec.clone(),
            from: self.from.as_deref().map(|text| date(text, "T00:00:00Z")).transpose()?,
            until: self.until.as_deref().map(|text| date(text, "T23:59:59Z")).transpose()?,
            incremental: self.incremental,
            method: self.method,
            validation: self.validation,
            filter: read(&self.filter)?,
            normalize: read(&self.normalize)?,
            accept_deletions: false,
        })
    }
}

/// A time, or a day with the time of its first or last second.
fn date(text: &str, of_day: &str) -> anyhow::Result<jiff::Timestamp> {
    let whole = if text.len() == 10 { format!("{text}{of_day}") } else { text.to_owned() };
    whole.parse().map_err(|_| {
        UsageError(format!("\"{text}\" is not a date: write 2026-01-31 or 2026-01-31T12:00:00Z")).into()
    })
}

pub(super) async fn harvest(common: &Common, args: HarvestArgs) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let spec = HarvestSpec { accept_deletions: args.accept_deletions, ..args.what.spec()? };
    let job: OaiJob = client.post(&format!("/oai/repositories/{}/harvest", args.id), &spec).await?;
    if !args.wait {
        let sentence = format!("Harvest {} is planned; a node with the role oai runs it.", job.id);
        told(common, &json!(job), &sentence)?;
        return Ok(Exit::Ok);
    }
    let ended = ended(&client, job.id).await?;
    let counts = ended.counts;
    let outcome = json!({
        "job": ended.job,
        "outcome": ended.outcome,
        "reason": ended.reason,
        "new": counts.new,
        "changed": counts.changed,
        "unchanged": counts.unchanged,
        "deleted": counts.deleted,
        "bad": counts.bad,
        "filtered": counts.filtered,
        "stale": counts.stale,
        "records": counts.delivered(),
        "pages": ended.pages,
        "started_at": ended.started_at,
        "ended_at": ended.ended_at,
    });
    let mut sentence = format!(
        "Harvest {}: {} new, {} changed, {} unchanged, {} deleted, {} bad",
        ended.job, counts.new, counts.changed, counts.unchanged, counts.deleted, counts.bad
    );
    if counts.filtered > 0 {
        let _ = write!(sentence, ", {} filtered out", counts.filtered);
    }
    if let Some(reason) = &ended.reason {
        let _ = write!(sentence, "; {}: {reason}", ended.outcome);
    }
    told(common, &outcome, &sentence)?;
    Ok(match ended.outcome {
        Outcome::Failed => Exit::Failed,
        Outcome::Incomplete => Exit::Partial,
        _ if counts.bad > 0 => Exit::Partial,
        _ => Exit::Ok,
    })
}

/// Waits for the end of a harvest, with a bar on a terminal.
async fn ended(client: &Client, id: OaiJobId) -> anyhow::Result<HistoryLine> {
    let bar = ProgressBar::no_length();
    let style = "{spinner} {human_pos} records  {per_sec}  {msg}";
    // The template is a constant that a test of indicatif's own would have refused.
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    loop {
        let shown: JobShown = client.get(&format!("/oai/jobs/{id}?attend=true")).await?;
        if let Some(ended) = shown.ended {
            bar.finish_and_clear();
            return Ok(ended);
        }
        if let Some(job) = shown.job {
            let of = job.expected.map(|expected| format!(" of about {expected}")).unwrap_or_default();
            bar.set_position(job.counts.delivered());
            bar.set_message(format!("{}{of}, {} pages, {} bad", job.status, job.pages, job.counts.bad));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn jobs(common: &Common, repository: Option<RepositoryId>) -> anyhow::Result<Exit> {
    let query = query(&[("repository", repository.map(|id| id.to_string()))]);
    let rows: Vec<Value> = context::client(common).await?.get(&format!("/oai/jobs{query}")).await?;
    let columns = [
        ("JOB", "id"),
        ("REPOSITORY", "repository"),
        ("PREFIX", "spec.prefix"),
        ("SET", "spec.set"),
        ("STATUS", "status"),
        ("DUE", "due_at"),
        ("PAGES", "pages"),
        ("OWNER", "owner"),
    ];
    table(common, &rows, columns)?;
    Ok(Exit::Ok)
}

pub(super) async fn stop(common: &Common, job: OaiJobId) -> anyhow::Result<Exit> {
    context::client(common).await?.delete(&format!("/oai/jobs/{job}")).await?;
    told(
        common,
        &json!({ "deleted": job }),
        &format!("Harvest {job} is deleted, after its page if it runs."),
    )?;
    Ok(Exit::Ok)
}

pub(super) async fn history(
    common: &Common,
    repository: Option<RepositoryId>,
    job: Option<OaiJobId>,
    outcome: Option<Outcome>,
    limit: u32,
    delete: Vec<HistoryId>,
) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    if !delete.is_empty() {
        let answer: Value = client.post("/oai/history/delete", &HistoryLines { lines: delete }).await?;
        told(common, &answer, &format!("{} lines are deleted.", answer["deleted"]))?;
        return Ok(Exit::Ok);
    }
    let query = query(&[
        ("repository", repository.map(|id| id.to_string())),
        ("job", job.map(|id| id.to_string())),
        ("outcome", outcome.map(|outcome| outcome.to_string())),
        ("limit", Some(limit.to_string())),
    ]);
    let rows: Vec<Value> = client.get(&format!("/oai/history{query}")).await?;
    let columns = [
        ("LINE", "id"),
        ("REPOSITORY", "repository"),
        ("JOB", "job"),
        ("OUTCOME", "outcome"),
        ("ENDED", "ended_at"),
        ("NEW", "counts.new"),
        ("CHANGED", "counts.changed"),
        ("DELETED", "counts.deleted"),
        ("BAD", "counts.bad"),
        ("REASON", "reason"),
    ];
    table(common, &rows, columns)?;
    Ok(Exit::Ok)
}
