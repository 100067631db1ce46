//! A crawl in a folder of its own, and what is in its files afterwards.

mod addresses;
mod control;
mod crash;
mod dead_port;
mod dedup;
mod dropped;
mod durable;
mod exact;
mod full_disk;
mod gate;
mod judges;
mod limits;
mod login;
mod mirror;
mod names;
mod partly_reachable;
mod politeness;
mod redirects;
mod retries;
mod robots_times;
mod rotation;
mod session_paths;
mod site;
mod stragglers;
mod takeover;
mod unreachable;
mod user_info;
mod waiting;
mod wild;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grange_base::{Clock, Period};
use grange_crawl::engine::{Crawl, Outcome};
use grange_crawl::job::{Budgets, Job};
use grange_crawl::log::CrawlLine;
use grange_crawl::politeness::Pace;
use grange_crawl::record::NoOracle;
use grange_crawl::scope::Traps;
use grange_crawl::template::{Template, parse, shipped};
use grange_testkit::web::{Web, WebServer};
use warc::{Check, Reader, RecordType};

/// The default template without waiting, for a server of our own.
pub(crate) fn template(server: &WebServer) -> Template {
    template_to(server.addr())
}

pub(crate) fn template_to(server: SocketAddr) -> Template {
    let text = shipped().iter().find(|(name, _)| *name == "default").expect("it is shipped").1;
    let mut template = parse(text).expect("a shipped template is sound");
    "grange-test (+http://grange.invalid/)".clone_into(&mut template.fetch.user_agent);
    template.fetch.all_hosts_to = server.to_string();
    template.fetch.accept_encodings = Vec::new();
    template.frontier.pace = Pace::none();
    template.frontier.retry_delay = Period::from_millis(20);
    template.robots.cache.retry = Period::from_millis(10);
    template.robots.cache.retry_max = Period::from_millis(20);
    template.robots.cache.give_up = Period::from_millis(50);
    template.extract.favicon = false;
    template.scope.max_trans_hops = 1;
    template.engine.min_free = grange_base::Size(0);
    template
}

pub(crate) fn job(template: Template, seeds: Vec<String>) -> Job {
    Job {
        name: "test".to_owned(),
        seeds,
        template,
        budgets: Budgets::default(),
        traps: Traps::default(),
        credentials: Vec::new(),
        info: Vec::new(),
    }
}

pub(crate) async fn run(job: Job, folder: &Path) -> Outcome {
    let crawl = Crawl::start(job, folder, Arc::new(NoOracle), Clock::system()).expect("it starts");
    crawl.run().await.expect("it comes to its end")
}

/// One capture as it lies in a WARC file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    pub(crate) kind: RecordType,
    pub(crate) status: u16,
    pub(crate) mime: String,
    pub(crate) length: u64,
    pub(crate) digest: String,
}

pub(crate) fn warcs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("warcs")).expect("there is a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

/// All answers in the WARC files, by URL. Every record must be sound, and be there once.
pub(crate) fn captured(folder: &Path) -> BTreeMap<String, Vec<Captured>> {
    let mut found: BTreeMap<String, Vec<Captured>> = BTreeMap::new();
    for path in warcs(folder) {
        check(&path);
        let mut reader = Reader::open(&path).expect("it opens");
        while let Some(mut record) = reader.next().expect("it reads") {
            let kind = record.kind();
            let url = record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
            if !matches!(kind, RecordType::Response | RecordType::Revisit) {
                continue;
            }
            let digest = record.header().get("WARC-Payload-Digest").unwrap_or_default();
            let digest = String::from_utf8_lossy(digest).into_owned();
            let Some(http) = record.http().expect("it reads") else { continue };
            let status = http.status().unwrap_or_default();
            let mime = http.get("Content-Type").unwrap_or_default();
            let mime = String::from_utf8_lossy(mime).into_owned();
            let mut payload = record.payload().expect("it reads");
            let length = std::io::copy(&mut payload, &mut std::io::sink()).expect("it reads");
            let capture = Captured { kind, status, mime, length, digest };
            found.entry(url.unwrap_or_default()).or_default().push(capture);
        }
    }
    found
}

/// The annotations in crawl.log, by URL.
pub(crate) fn annotations(folder: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder.join("logs/crawl.log")).expect("it can be read");
    let lines = text.lines().map(|line| CrawlLine::parse(line).expect("it is a line"));
    lines.map(|line| (line.url.into_owned(), line.annotations.into_owned())).collect()
}

/// Every record is whole and has the digests it says.
fn check(path: &Path) {
    let mut reader = Reader::open(path).expect("it opens");
    while let Some(mut record) = reader.next().expect("it reads") {
        let check = record.digest_check().expect("it reads");
        let sound = |check| !matches!(check, Check::Bad(_));
        assert!(
            sound(check.block) && sound(check.payload),
            "{:?} at {}",
            record.kind(),
            record.place().offset
        );
    }
    assert_eq!(reader.problems(), [], "{}", path.display());
}

/// A web that is served until it is dropped.
pub(crate) async fn serve(web: &Web) -> WebServer {
    web.serve("127.0.0.1:0").await.expect("a port is free")
}
