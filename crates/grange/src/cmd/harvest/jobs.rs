//! `grange jobs …`

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::JobIds;
use grange_base::Size;
use grange_model::harvest::{JobId, JobStatus};
use serde_json::{Value, json};

use super::{list, shown, told};
use crate::cli::Common;
use crate::context;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Jobs, newest first
    Ls {
        /// new, submitted, started, done, failed, resubmitted or failed-rejected; several with commas
        #[arg(long, value_delimiter = ',')]
        status: Vec<JobStatus>,
        /// The harvest; * and ? stand for any characters and one
        #[arg(long)]
        harvest: Option<String>,
        #[arg(long)]
        run: Option<u64>,
        /// Only jobs with this domain
        #[arg(long)]
        domain: Option<String>,
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// A job with its configurations, seeds and statistics
    Show { id: JobId },
    /// Plan failed jobs anew
    Resubmit {
        #[arg(required = true)]
        ids: Vec<JobId>,
    },
    /// Say that a failed job is the end of it
    Reject { id: JobId },
    /// Take that back
    Unreject { id: JobId },
    /// End a job
    Cancel { id: JobId },
}

pub(crate) async fn run(common: &Common, command: JobsCommand) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    match command {
        JobsCommand::Ls { status, harvest, run, domain, limit } => {
            let mut path = format!("/jobs?limit={limit}");
            let status: Vec<_> = status.iter().map(ToString::to_string).collect();
            let status = Some(status.join(",")).filter(|status| !status.is_empty());
            let run = run.map(|run| run.to_string());
            for (key, value) in [("status", status), ("harvest", harvest), ("run", run), ("domain", domain)] {
                if let Some(value) = value {
                    path = format!("{path}&{key}={}", segment(&value));
                }
            }
            let rows: Vec<Value> = client.get(&path).await?;
            let columns = [
                ("JOB", "id"),
                ("HARVEST", "harvest_name"),
                ("RUN", "run"),
                ("STATUS", "status"),
                ("CHANNEL", "channel"),
                ("DOMAINS", "configurations"),
                ("STARTED", "started_at"),
                ("ENDED", "ended_at"),
                ("WAITING FILES", "waiting_files"),
                ("ERRORS", "harvest_errors"),
            ];
            list(common, &rows, columns)?;
            for job in rows.iter().filter(|job| !common.json && job["waiting_files"].as_u64() > Some(0)) {
                let size = Size(job["waiting_bytes"].as_u64().unwrap_or_default());
                let reason =
                    job["waiting_reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
                outln!(
                    "Job {}: {} files ({size}) wait for a replica{reason}",
                    job["id"],
                    job["waiting_files"]
                );
            }
        }
        JobsCommand::Show { id } => {
            let mut job: Value = client.get(&format!("/jobs/{id}")).await?;
            let below: Value = client.get(&format!("/jobs/{id}/configurations")).await?;
            job["domains"] = below["configurations"].clone();
            job["statistics"] = below["statistics"].clone();
            shown(common, &job)?;
        }
        JobsCommand::Resubmit { ids } => {
            let made: JobIds = client.post("/jobs/resubmit", &JobIds { jobs: ids }).await?;
            let names: Vec<_> = made.jobs.iter().map(ToString::to_string).collect();
            told(common, &json!(made), &format!("Planned anew as {}.", names.join(", ")))?;
        }
        JobsCommand::Reject { id } => {
            let job: Value = client.post(&format!("/jobs/{id}/reject"), &json!({})).await?;
            told(common, &job, &format!("Job {id} is rejected."))?;
        }
        JobsCommand::Unreject { id } => {
            client.delete(&format!("/jobs/{id}/reject")).await?;
            let job: Value = client.get(&format!("/jobs/{id}")).await?;
            told(common, &job, &format!("Job {id} is {}.", super::text(&job["status"])))?;
        }
        JobsCommand::Cancel { id } => {
            let job: Value = client.post(&format!("/jobs/{id}/cancel"), &json!({})).await?;
            let stands = super::text(&job["status"]);
            told(common, &job, &format!("Job {id} was asked to end; it is {stands} now."))?;
        }
    }
    Ok(Exit::Ok)
}
