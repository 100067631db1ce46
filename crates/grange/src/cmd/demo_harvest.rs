//! The demo's main part: sites are harvested because a schedule says so, documented, and stored on every replica.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use grange_api::Client;
use grange_api::wire::harvests::{EventSeeds, NewHarvest, TemplateEdit};
use grange_base::Size;
use grange_model::harvest::{HarvestKind, Limits};
use grange_testkit::web::{Expected, Options, Rules, Web, WebServer};
use serde_json::{Value, json};
use url::Url;

use crate::story::Story;

/// Longer than the demo takes on a slow machine; whoever waits so long wants to know.
const LONGEST: Duration = Duration::from_secs(150);

/// What was harvested.
pub(super) struct Harvested {
    /// A WARC file of the job, as the archive calls it.
    pub file: String,
    /// A page in it.
    pub url: String,
    pub summary: Value,
}

/// The synthetic web that the demo harvests, and what a right crawl finds in it.
pub(super) struct DemoWeb {
    web: Web,
    server: WebServer,
    expected: BTreeMap<String, Expected>,
}

impl DemoWeb {
    pub(super) async fn serve() -> anyhow::Result<DemoWeb> {
        let web = Web::new(Options { hosts: 3, pages: 20, suffix: "dk".to_owned(), ..Options::default() });
        let server = web.serve("127.0.0.1:0").await?;
        let expected = web.expected(&Rules::default());
        Ok(DemoWeb { web, server, expected })
    }

    /// Sends the hosts of this web, and no others, to its server: a value of `harvest.network.resolve`.
    pub(super) fn resolve(&self) -> Vec<String> {
        let hosts = self.expected.keys().filter_map(|url| Some(Url::parse(url).ok()?.host_str()?.to_owned()));
        let hosts: BTreeSet<_> = hosts.collect();
        hosts.into_iter().map(|host| format!("{host}:*:{}", self.server.addr())).collect()
    }
}

/// Harvests the synthetic web; `folder` is the data folder.
pub(super) async fn tell(
    story: &mut Story,
    client: &Client,
    folder: &Path,
    demo: DemoWeb,
) -> anyhow::Result<Harvested> {
    let DemoWeb { web, server, expected } = demo;
    story.told("a web to harvest", format!("3 sites on {}, {} URLs in scope", server.addr(), expected.len()));

    let edit = TemplateEdit { text: TEMPLATE.to_owned(), comments: String::new() };
    let _: Value = client.put("/templates/demo", &edit).await?;
    // A name of its own each time: the story can be told again on the same folder.
    let name = format!("demo {}", jiff::Timestamp::now().as_millisecond());
    let at = |below: &str| format!("/harvests/{}{below}", grange_api::client::segment(&name));
    let new = NewHarvest {
        name: name.parse().context("a name")?,
        kind: HarvestKind::Selective,
        comments: "What `grange demo` harvests".to_owned(),
        audience: String::new(),
        schedule: Some("daily".parse().context("a schedule")?),
        channel: None,
        limits: Limits::NONE,
        continues: None,
        traps: Vec::new(),
        fields: BTreeMap::new(),
    };
    let _: Value = client.post("/harvests", &new).await?;
    let seeds = EventSeeds {
        seeds: web.seeds().join("\n"),
        template: "demo".parse().context("a template")?,
        limits: Limits::NONE,
    };
    let added: Value = client.post(&at("/seeds"), &seeds).await?;
    story.told("harvest defined", format!("selective, daily, {} configurations", added["added"]["added"]));
    let _: Value = client.post(&at("/now"), &json!({})).await?;

    let job = wait_for_job(story, client, &name).await?;
    let id = job["id"].as_i64().context("a job has a number")?;
    let below: Value = client.get(&format!("/jobs/{id}/configurations")).await?;
    let statistics = below["statistics"].as_array().context("a job has statistics")?;
    let sum = |field: &str| statistics.iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
    let complete = statistics.iter().filter(|row| row["stop"] == "complete").count();
    ensure!(complete == 3, "every domain must be complete: {statistics:?}");
    ensure!(sum("objects") == expected.len() as u64, "{} objects, not {}", sum("objects"), expected.len());
    story.told(
        "statistics kept",
        format!("{} objects, {}, {complete} domains complete", sum("objects"), Size(sum("bytes"))),
    );

    let prefix = format!("{id}-");
    let files: Vec<Value> = client.get(&format!("/files?limit=1000&after={id}-")).await?;
    let ours: Vec<_> = files
        .iter()
        .filter(|file| file["name"].as_str().is_some_and(|name| name.starts_with(&prefix)))
        .collect();
    let names: Vec<_> = ours.iter().filter_map(|file| file["name"].as_str()).collect();
    let proven = |file: &&Value| {
        file["holdings"].as_array().is_some_and(|copies| {
            copies.len() == 3 && copies.iter().all(|copy| copy["state"] == "upload_completed")
        })
    };
    ensure!(ours.iter().all(proven), "every file must be on every replica: {ours:?}");
    ensure!(names.iter().any(|name| name.contains("-metadata-")), "the crawl must be documented: {names:?}");
    story.told("stored and proven", format!("{} files on 2 bitarchives and a checksum replica", names.len()));
    // The job is reported first, then its folder goes.
    let began = Instant::now();
    while std::fs::read_dir(folder.join("harvest"))?.count() > 0 {
        ensure!(began.elapsed() < LONGEST, "local copies must go once all replicas are proven");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let file = names.iter().find(|name| !name.contains("-metadata-")).context("a WARC file is stored")?;
    let summary = json!({
        "job": id, "harvest": name, "objects": sum("objects"), "bytes": sum("bytes"), "files": names,
    });
    server.stop().await;
    Ok(Harvested { file: (*file).to_owned(), url: web.seeds().swap_remove(0), summary })
}

/// Waits until the schedule has fired and the one job is done.
async fn wait_for_job(story: &mut Story, client: &Client, harvest: &str) -> anyhow::Result<Value> {
    let began = Instant::now();
    let mut planned = false;
    loop {
        let path = format!("/jobs?harvest={}", grange_api::client::segment(harvest));
        let jobs: Vec<Value> = client.get(&path).await?;
        if let Some(job) = jobs.first() {
            if !planned {
                story.told("schedule fired", format!("run {} planned as job {}", job["run"], job["id"]));
                planned = true;
            }
            match job["status"].as_str() {
                Some("done") => {
                    story.told(
                        "job done",
                        format!("crawled and documented by {}", super::harvest::text(&job["harvester"])),
                    );
                    return Ok(job.clone());
                }
                Some("failed") => bail!("the job failed: {} {}", job["harvest_errors"], job["upload_errors"]),
                _ => {}
            }
        }
        ensure!(began.elapsed() < LONGEST, "the job does not end: {jobs:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A template for a web on this machine, which needs no politeness. The operator's settings say where that web is.
const TEMPLATE: &str = r#"
name = "demo"
description = "A web of our own on this machine: no waiting."
[engine]
min_free = "0B"
workers = 20
[robots.cache]
retry = "10ms"
retry_max = "20ms"
give_up = "50ms"
[frontier]
retry_delay = "20ms"
[frontier.pace]
delay_factor = 0.0
min_delay = "0s"
max_delay = "0s"
[fetch]
accept_encodings = []
[scope]
max_hops = 1000
max_trans_hops = 1
max_speculative_hops = 1
[extract]
favicon = false
"#;

/// Where the first replica keeps a file.
pub(super) fn copy_of(folder: &Path, file: &str) -> PathBuf {
    folder.join("replicas/one/filedir").join(file)
}
