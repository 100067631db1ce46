//! Harvests one repository into a fresh folder, as a node does, and tells how fast that was.
//!
//! ```text
//! oai_speed URL FOLDER [FILTER NORMALIZE] [very-strict]
//! ```
//!
//! The same engine, rows and files as `grange oai harvest`, in a program that is built in a fraction of the time.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use grange_base::{Clock, Shutdown};
use grange_db::{Db, NewOaiJob, OaiHistoryFilter};
use grange_harvest::oai::{OaiWorker, Settings, probe};
use grange_model::Actor;
use grange_model::oai::{HarvestSpec, RepositoryRules, Validation};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let strict = arguments.last().is_some_and(|last| last == "very-strict");
    if strict {
        arguments.pop();
    }
    let [url, folder, rules @ ..] = &arguments[..] else { anyhow::bail!("usage: oai_speed URL FOLDER …") };
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    let clock = Clock::system();
    let db = Db::open(&grange_db::Settings::default(), &folder, clock.clone()).await?;
    let settings = Settings { allow_networks: vec!["127.0.0.0/8".parse()?], ..Settings::default() };
    let said = probe(url, &settings, &clock, &Shutdown::never()).await?;
    let repository =
        db.oai_repositories().add(url, said, RepositoryRules::default(), &Actor::system()).await?;
    let read = |path: Option<&String>| path.map(std::fs::read_to_string).transpose();
    let spec = HarvestSpec {
        filter: read(rules.first()).context("the filter")?,
        normalize: read(rules.get(1)).context("the normalizer")?,
        validation: if strict { Validation::VeryStrict } else { Validation::Loose },
        ..HarvestSpec::all("oai_dc")
    };
    let job = NewOaiJob { repository: repository.id, spec, due_at: clock.now() };
    db.oai_jobs().add(job, &Actor::system()).await?;
    let worker = OaiWorker::new(db.clone(), clock, settings, folder.join("oai"), "bench");
    let start = Instant::now();
    worker.work_step(&Shutdown::never()).await?;
    let wall = start.elapsed().as_secs_f64();
    let history = db.oai_history().list(&OaiHistoryFilter::default()).await?;
    let line = history.first().context("the harvest left no line of history")?;
    println!("{}", serde_json::json!({ "seconds": wall, "counts": line.counts, "reason": line.reason }));
    Ok(())
}
