//! `grange traps …`

use std::path::PathBuf;

use clap::Subcommand;
use grange_api::client::segment;
use grange_api::wire::harvests::{Active, TrapTest, TrapsEdit};
use grange_model::harvest::trap::{self, TrapTester};
use grange_model::harvest::{JobId, JobTrapHits};
use serde_json::{Value, json};

use super::{list, read_file, told};
use crate::cli::Common;
use crate::exit::{Exit, UsageError};
use crate::{context, output};

#[derive(Debug, Subcommand)]
pub(crate) enum TrapsCommand {
    /// The global trap lists
    Ls,
    /// The expressions of a list
    Show { name: String },
    /// Make or replace a list from a file, one regular expression per line; - reads standard input
    Put {
        name: String,
        file: PathBuf,
        #[arg(long, default_value = "")]
        description: String,
        /// Keep it without letting it hold for new jobs
        #[arg(long)]
        inactive: bool,
    },
    /// Let a list hold for new jobs
    Activate { name: String },
    /// Let it hold no longer
    Deactivate { name: String },
    /// Delete a list
    Rm { name: String },
    /// Count what an expression would have blocked, in the crawl logs of earlier jobs
    Test {
        expression: String,
        /// Crawl logs on this machine, instead of those of stored jobs
        logs: Vec<PathBuf>,
        /// A stored job; may be repeated. Without it the newest ten that are done
        #[arg(long = "job", value_name = "ID", conflicts_with = "logs")]
        jobs: Vec<JobId>,
    },
}

pub(crate) async fn run(common: &Common, command: TrapsCommand) -> anyhow::Result<Exit> {
    if let TrapsCommand::Test { expression, logs, .. } = &command
        && !logs.is_empty()
    {
        return test(common, expression, logs);
    }
    let client = context::client(common).await?;
    let at = |name: &str| format!("/traps/{}", segment(name));
    match command {
        TrapsCommand::Ls => {
            let rows: Vec<Value> = client.get("/traps").await?;
            list(common, &rows, [("NAME", "name"), ("ACTIVE", "active"), ("DESCRIPTION", "description")])?;
        }
        TrapsCommand::Show { name } => {
            let found: Value = client.get(&at(&name)).await?;
            if common.json {
                output::json(&found)?;
            } else {
                for expression in found["expressions"].as_array().into_iter().flatten() {
                    outln!("{}", expression.as_str().unwrap_or_default());
                }
            }
        }
        TrapsCommand::Put { name, file, description, inactive } => {
            let (expressions, active) = (read_file(&file)?, !inactive);
            let edit = TrapsEdit { expressions, description, active, edition: None };
            let answer: Value = client.put(&at(&name), &edit).await?;
            let count = answer["expressions"].as_array().map_or(0, Vec::len);
            told(common, &answer, &format!("Kept {count} traps in {name}."))?;
        }
        TrapsCommand::Activate { name } => {
            let answer: Value = client.patch(&at(&name), &Active { active: true, edition: None }).await?;
            told(common, &answer, &format!("{name} holds for new jobs."))?;
        }
        TrapsCommand::Deactivate { name } => {
            let answer: Value = client.patch(&at(&name), &Active { active: false, edition: None }).await?;
            told(common, &answer, &format!("{name} holds no longer for new jobs."))?;
        }
        TrapsCommand::Rm { name } => {
            client.delete(&at(&name)).await?;
            told(common, &json!({ "deleted": name }), &format!("Deleted the trap list {name}."))?;
        }
        TrapsCommand::Test { expression, jobs, .. } => {
            let test = TrapTest { expressions: expression, crawl_log: None, jobs };
            let answer: JobTrapHits = client.post("/trap-test", &test).await?;
            let JobTrapHits { hits, jobs, missing } = &answer;
            let has_none = jobs.is_empty() && !missing.is_empty();
            let missing = match missing.len() {
                0 => String::new(),
                1 => format!("\nJob {} has no crawl log in the archive.", missing[0]),
                more => format!("\n{more} jobs have no crawl log in the archive."),
            };
            let sentence = format!(
                "{} of {} lines of {} jobs would have been blocked.{missing}",
                hits.blocked,
                hits.lines,
                jobs.len()
            );
            told(common, &json!(answer), &sentence)?;
            if !common.json {
                hits.examples.iter().for_each(|url| outln!("  {url}"));
            }
            if has_none {
                return Ok(Exit::NotFound);
            }
        }
    }
    Ok(Exit::Ok)
}

/// Reads the logs here: they can be larger than any request.
fn test(common: &Common, expression: &str, logs: &[PathBuf]) -> anyhow::Result<Exit> {
    use anyhow::Context as _;
    use std::io::BufRead as _;
    let wrong = |bad: Vec<grange_model::harvest::BadLine>| UsageError(bad[0].reason.clone());
    let expressions = trap::parse(expression).map_err(wrong)?;
    let mut tester = TrapTester::new(&expressions).map_err(UsageError)?;
    for path in logs {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        for line in std::io::BufReader::new(file).split(b'\n') {
            let line = line.with_context(|| format!("cannot read {}", path.display()))?;
            tester.line(&String::from_utf8_lossy(&line));
        }
    }
    let hits = tester.hits();
    let sentence = format!("{} of {} lines would have been blocked.", hits.blocked, hits.lines);
    told(common, &json!(hits), &sentence)?;
    if !common.json {
        hits.examples.iter().for_each(|url| outln!("  {url}"));
    }
    Ok(Exit::Ok)
}
