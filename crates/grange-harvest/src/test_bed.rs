//! What tests of this crate share: a job's papers, its folder, and a crawl of the synthetic web.

use std::net::SocketAddr;
use std::path::Path;

use grange_base::Period;
use grange_crawl::job::{Budgets, Credential, CredentialKind, Job};
use grange_crawl::politeness::Pace;
use grange_crawl::scope::Traps;
use grange_crawl::template::{parse, shipped};
use grange_model::harvest::{self as model, HarvestId, JobId, JobStatus, Limits};
use grange_testkit::web::WebServer;
use jiff::Timestamp;

use crate::folder::{HarvestInfo, JobFolder};
use crate::papers::JobPapers;

/// What a crawl tells of itself while nothing has come of it.
pub(crate) fn progress(at: Timestamp) -> model::Progress {
    model::Progress {
        at,
        state: model::CrawlState::Active,
        elapsed_s: 0,
        discovered: 0,
        downloaded: 0,
        queued: 0,
        bytes: 0,
        queues: 0,
        queues_active: 0,
        queues_retired: 0,
        queues_exhausted: 0,
        objects_per_s: 0.0,
        objects_per_s_mean: 0.0,
        bytes_per_s: 0.0,
        bytes_per_s_mean: 0.0,
        active: 0,
        alerts: 0,
        waits_for: None,
    }
}

/// The papers of job number `job`, which continues from `before`.
pub(crate) fn papers(job: i64, before: &[i64]) -> JobPapers {
    let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let job = model::Job {
        id: JobId(job),
        harvest: HarvestId(3),
        harvest_name: "daily <&> news".parse().unwrap(),
        run: 2,
        status: JobStatus::Started,
        channel: "focused".parse().unwrap(),
        snapshot: false,
        template: "default".parse().unwrap(),
        template_version: 1,
        limits: Limits::NONE,
        configurations: 1,
        expected_objects: 1,
        created_at: at,
        submitted_at: Some(at),
        started_at: Some(at),
        ended_at: None,
        harvester: Some("h1".to_owned()),
        lease_until: None,
        attempts: 1,
        stop_wanted: false,
        harvest_errors: None,
        harvest_error_details: None,
        upload_errors: None,
        upload_error_details: None,
        resubmitted_as: None,
        continuation_of: None,
        waiting_files: 0,
        waiting_bytes: 0,
        waiting_reason: None,
    };
    let info = HarvestInfo {
        version: HarvestInfo::VERSION,
        harvest_comments: String::new(),
        audience: String::new(),
        schedule: None,
        operator: "The library".to_owned(),
        file_prefix: format!("{}-{}", job.id, job.harvest),
        job,
        metadata_number: 1,
        earlier_attempts: false,
        aliases: vec![("b.dk".parse().unwrap(), "a.dk".parse().unwrap())],
        duplicate_reduction_jobs: before.iter().map(|id| JobId(*id)).collect(),
        harvester: "h1".to_owned(),
        claim_token: 1,
        attempt: 1,
    };
    JobPapers {
        info,
        organization: "example.org".to_owned(),
        software: "grange-0.1.0".to_owned(),
        host: "crawler1".to_owned(),
        ip: "192.0.2.1".parse().ok(),
        at,
    }
}

/// The folder of that job, with seeds and template as a harvester leaves them.
pub(crate) fn folder(base: &Path, papers: &JobPapers) -> JobFolder {
    let fill = |folder: &JobFolder| {
        folder.write("seeds.txt", b"http://a.dk/\n")?;
        folder.write("template.toml", default_template().as_bytes())
    };
    JobFolder::create(base, &papers.info, papers.at, |_, error| error, fill).unwrap()
}

fn default_template() -> &'static str {
    shipped().iter().find(|(name, _)| *name == "default").unwrap().1
}

/// A crawl of the default template without waiting. Its password is `sesame`.
pub(crate) fn crawl_job(server: &WebServer, seeds: Vec<String>) -> Job {
    crawl_job_to(server.addr(), seeds)
}

/// The same, of a server at this address.
pub(crate) fn crawl_job_to(server: SocketAddr, seeds: Vec<String>) -> Job {
    let mut template = parse(default_template()).unwrap();
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
    let kind = CredentialKind::Http {
        origin: None,
        realm: None,
        user: "u".to_owned(),
        password: "sesame".to_owned(),
    };
    Job {
        name: "test".to_owned(),
        seeds,
        template,
        budgets: Budgets::default(),
        traps: Traps::default(),
        credentials: vec![Credential { domain: "a.dk".to_owned(), kind }],
        info: Vec::new(),
    }
}
