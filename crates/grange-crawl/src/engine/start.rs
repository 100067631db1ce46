//! Beginning a crawl, and going on with one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use grange_base::{Clock, Trigger};
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use url::Url;

use super::changes::{self, CrawlChanges};
use super::commit::{Committer, Ledger, Rhythm};
use super::contacts::Contacts;
use super::cut_responses::CutResponses;
use super::folder::{Folder, FolderError};
use super::holds;
use super::hosts::Hosts;
use super::kept_cookies::{self, CookieError};
use super::lasting_orders::LastingOrders;
use super::login::Logins;
use super::meter::{Meter, Snapshot};
use super::network::Network;
use super::shared::Shared;
use super::{Crawl, OUTBOX, channel, wishes};
use crate::candidate::{Candidate, without_user_info};
use crate::fetch::{FetchError, Fetcher};
use crate::frontier::{Frontier, FrontierError};
use crate::job::Job;
use crate::log::CrawlLine;
use crate::record::files::Files;
use crate::record::oracle::{DedupRules, DuplicateOracle};
use crate::record::parcel::Scratch;
use crate::record::recorder::{Desk, Places, Recorder};
use crate::record::state::State;
use crate::record::unsynced::Unsynced;
use crate::report::Statistics;
use crate::scope::{LiveScope, RepeatedContent, Scope, ScopeError, ScopeLog, SessionPaths};
use crate::virus::{Scanner, ScannerError};

/// Why a crawl cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("there is nothing to crawl: give at least one seed")]
    NoSeeds,
    #[error("the seed {0:?} is not a URL with a host; write http://example.org/")]
    Seed(String),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error(transparent)]
    Scanner(#[from] ScannerError),
    #[error("{0}")]
    Template(String),
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// Whether a crawl still holds the folder.
    pub fn is_in_use(&self) -> bool {
        match self {
            Self::Folder(FolderError::Busy(_)) => true,
            Self::Frontier(FrontierError::Store { source, .. }) => matches!(**source, fjall::Error::Locked),
            _ => false,
        }
    }

    /// Whether the cause is a full disk; the folder is as it was.
    pub fn is_disk_full(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(holds::is_disk_full) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl Crawl {
    /// Begins a crawl in a folder of its own.
    pub fn start(
        job: Job,
        root: &Path,
        oracle: Arc<dyn DuplicateOracle>,
        clock: Clock,
    ) -> Result<Crawl, StartError> {
        check(&job)?;
        let folder = Folder::create(root)?;
        folder.save_job(&job).map_err(failed("write", &root.join("job.json")))?;
        open(job, folder, oracle, clock)
    }

    /// Goes on with the crawl in a folder: after a crash, a stop, or a limit that was raised.
    pub fn resume(root: &Path, oracle: Arc<dyn DuplicateOracle>, clock: Clock) -> Result<Crawl, StartError> {
        let folder = Folder::open(root)?;
        let job = folder.load_job().map_err(failed("read", &root.join("job.json")))?;
        open(job, folder, oracle, clock)
    }

    /// As [`Crawl::resume`], with other limits, seeds or settings than before.
    pub fn resume_as(
        job: Job,
        root: &Path,
        oracle: Arc<dyn DuplicateOracle>,
        clock: Clock,
    ) -> Result<Crawl, StartError> {
        check(&job)?;
        let folder = Folder::open(root)?;
        folder.save_job(&job).map_err(failed("write", &root.join("job.json")))?;
        open(job, folder, oracle, clock)
    }

    /// The job in a folder.
    pub fn job_in(root: &Path) -> Result<Job, StartError> {
        let path = root.join("job.json");
        let text = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FolderError::NoCrawl(root.to_owned()).into(),
            _ => failed("read", &path)(error),
        })?;
        serde_json::from_slice(&text).map_err(io::Error::from).map_err(failed("read", &path))
    }
}

pub(super) fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StartError {
    let path = path.to_owned();
    move |source| StartError::Io { doing, path: path.clone(), source }
}

pub(super) fn check(job: &Job) -> Result<(), StartError> {
    if job.seeds.is_empty() {
        return Err(StartError::NoSeeds);
    }
    if let Some(problem) = job.template.write.problem() {
        return Err(StartError::Template(problem));
    }
    seeds(&job.seeds).map(drop)
}

pub(super) fn seeds(urls: &[String]) -> Result<Vec<Candidate>, StartError> {
    let parse = |text: &String| {
        let url = Url::parse(text).ok().filter(Url::has_host);
        url.map(Candidate::seed).ok_or_else(|| StartError::Seed(without_user_info(text).into_owned()))
    };
    urls.iter().map(parse).collect()
}

fn open(
    job: Job,
    folder: Folder,
    oracle: Arc<dyn DuplicateOracle>,
    clock: Clock,
) -> Result<Crawl, StartError> {
    let template = job.template.clone();
    let now = clock.now();
    let scratch = Scratch::open(&folder.scratch()).map_err(failed("empty", &folder.scratch()))?;
    let fetcher = Fetcher::new(&template.fetch, scratch.path(), clock.clone())?;
    let scanner = Scanner::new(&template.virus)?;
    let dedup = DedupRules::new(&template.dedup)
        .map_err(|error| StartError::Template(format!("dedup.skip_types: {error}")))?;
    let (frontier, resumed) =
        Frontier::open(&folder.frontier(), template.frontier.clone(), job.budgets.clone(), now)?;
    let orders = LastingOrders::among(&resumed.marks);
    let mut kept = CrawlChanges::from_marks(&resumed.marks).map_err(StartError::Template)?;
    fetcher.allow(&kept.endpoints);
    let shapes = std::mem::take(&mut kept.shapes);
    let started = kept.started.unwrap_or(now);
    let scope = scope_of(&job, &kept, started)?;
    let budgets = kept.budgets(&job.budgets);
    frontier.set_budgets(budgets.clone(), now);
    if let Some(factor) = kept.pace_factor {
        frontier.set_pace_factor(factor);
    }
    let kept_cookies = kept_cookies::load(&fetcher, &frontier, &kept, &folder.cookies(), now).map_err(
        |error| match error {
            CookieError::Fetch(error) => error.into(),
            CookieError::Frontier(error) => error.into(),
            CookieError::Io(error) => failed("remove", &folder.cookies())(error),
        },
    )?;
    let marks: Vec<_> = resumed.marks.into_iter().collect();
    let state = State::from_marks(&marks)
        .map_err(|error| StartError::Template(format!("the recorder's mark cannot be read: {error}")))?;
    let serial = state.as_ref().map_or(1, |state| state.serial);
    let names = names(&job);
    let names: Vec<_> = names.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let files = Files::new(&folder.warcs(), &template.write, info(&job), &names, serial)
        .map_err(|error| StartError::Template(format!("write.name: {error}")))?;
    let desk = Desk::new(files, template.write.writers);
    let places = Places { logs: folder.logs(), manifests: folder.manifests(), job: job.name.clone() };
    restore_unsynced(&folder).map_err(failed("restore the files of", folder.root()))?;
    let (recorder, recovered) =
        Recorder::open(places, desk.clone(), state, now).map_err(failed("recover", &folder.warcs()))?;
    let mut repeated = RepeatedContent::new(template.scope.repeated_content);
    let (mut statistics, lost) = read_logs(&folder.logs(), &job, &recovered.short, &mut repeated)
        .map_err(failed("read", &folder.logs()))?;
    let mut candidates = seeds(&job.seeds)?;
    for seed in kept.ordered_seeds() {
        statistics.add_seed(seed);
        candidates.append(&mut seeds(&[seed.to_owned()])?);
    }
    if folder.is_importing().map_err(failed("look into", folder.root()))? {
        // Whoever crawls on a part of an import wants to keep what comes of it.
        folder.set_importing(false).map_err(failed("write to", folder.root()))?;
    }
    frontier.add_with_marks(&candidates, &[changes::started(started)], now)?;
    // The fault may have been ours, and somebody wants the crawl to go on.
    let revived = frontier.revive(None, now)?;
    if revived > 0 {
        tracing::info!(queues = revived, "hosts that could not be reached are tried again");
    }
    if !lost.is_empty() {
        tracing::warn!(urls = lost.len(), "captures were lost to the disk; fetching them again");
        frontier.add(&lost, now)?;
    }
    let (outbox, inbox) = channel();
    let give_up = Trigger::new();
    let ledger = Ledger {
        statistics: Arc::new(Mutex::new(statistics)),
        holds: Arc::default(),
        give_up: give_up.listener(),
    };
    let frontier = Arc::new(frontier);
    let committer = Committer {
        recorder,
        frontier: Arc::clone(&frontier),
        ledger: ledger.clone(),
        clock: clock.clone(),
        rhythm: Rhythm {
            chunk_size: template.write.chunk_size.0,
            chunk_age: template.write.chunk_age.0,
            sync_every: template.write.sync_every.0,
        },
        inbox,
        note: folder.unsynced(),
        disk: folder.warcs(),
        held: Vec::new(),
        waiting_for_chunk: Vec::new(),
        left_out: 0,
    };
    let hosts = Hosts::default();
    hosts.revive(now);
    let snapshot = Snapshot { job: job.name.clone(), ..Snapshot::default() };
    let shared = Shared {
        product_token: template.robots.product_token.clone(),
        scope_log: Mutex::new(ScopeLog::new()),
        repeated: Mutex::new(repeated),
        session_paths: Mutex::new(SessionPaths::new(template.scope.max_session_repetitions, shapes)),
        logins: Logins::new(&job.credentials, &job.seeds, &kept),
        scope: LiveScope::new(scope),
        hosts,
        contacts: Contacts::default(),
        meter: Meter::default(),
        wish: wishes(),
        budgets: Mutex::new(budgets),
        gained_seeds: Mutex::new(kept.seeds.into_iter().map(|seed| seed.url).collect()),
        kept_cookies,
        cut_responses: CutResponses::default(),
        network: Network::default(),
        packing: Arc::new(Semaphore::new(OUTBOX)),
        orders: watch::Sender::new(Arc::new(orders)),
        _folder: folder.clone(),
        job,
        template,
        clock,
        frontier,
        fetcher,
        scanner,
        oracle,
        dedup,
        desk,
        scratch,
        ledger,
        outbox,
    };
    Ok(Crawl {
        shared: Arc::new(shared),
        folder,
        committer,
        give_up,
        snapshots: watch::Sender::new(snapshot),
    })
}

/// Restores what a failed sync left in doubt.
fn restore_unsynced(folder: &Folder) -> io::Result<()> {
    let note = folder.unsynced();
    let Some(unsynced) = Unsynced::load(&note)? else { return Ok(()) };
    let cut = unsynced.restore(&folder.warcs(), &folder.logs())?;
    fs::remove_file(&note)?;
    tracing::warn!(
        files = unsynced.files.len(),
        cut,
        "files restored after a failed sync; captures of those that were cut are fetched again"
    );
    Ok(())
}

/// The scope as it was when an earlier run ended, however it ended.
pub(super) fn scope_of(job: &Job, kept: &CrawlChanges, started: Timestamp) -> Result<Scope, ScopeError> {
    let mut scope = Scope::new(&job.template.scope, &job.seeds, &job.traps, started)?;
    if !kept.seeds.is_empty() {
        let seeds: Vec<_> = kept.seeds.iter().map(|seed| seed.url.as_str()).collect();
        scope = scope.with_seeds(&seeds)?;
    }
    for pattern in &kept.rejects {
        scope = scope.with_reject_regex(pattern)?;
    }
    Ok(scope)
}

/// The lines of the warcinfo records.
pub(super) fn info(job: &Job) -> Vec<(String, String)> {
    let fetch = &job.template.fetch;
    let mut lines = vec![
        ("software".to_owned(), concat!("grange/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("isPartOf".to_owned(), job.name.clone()),
        ("robots".to_owned(), job.template.robots.policy.name().to_owned()),
        ("http-header-user-agent".to_owned(), fetch.full_user_agent()),
    ];
    if !fetch.from.is_empty() {
        lines.push(("http-header-from".to_owned(), fetch.from.clone()));
    }
    lines.extend(job.info.iter().cloned());
    lines
}

/// What file names may hold.
pub(super) fn names(job: &Job) -> Vec<(&'static str, String)> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let safe = |text: &str| -> String {
        let keep = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        text.chars().map(|c| if keep(c) { c } else { '_' }).collect()
    };
    vec![("job", safe(&job.name)), ("host", safe(&host))]
}

/// Counts what earlier runs did, from their logs, also which pages repeat themselves, and finds the captures that the files in `short` have lost.
fn read_logs(
    folder: &Path,
    job: &Job,
    short: &BTreeMap<String, u64>,
    repeated: &mut RepeatedContent,
) -> io::Result<(Statistics, Vec<Candidate>)> {
    let mut statistics = Statistics::new(job.seeds.iter().map(String::as_str));
    let mut lost = Vec::new();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("crawl.log")) {
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths {
        for line in io::BufReader::new(fs::File::open(path)?).lines() {
            // What cannot be read is not counted; it is still in the log.
            let text = line?;
            let Ok(line) = CrawlLine::parse(&text) else { continue };
            statistics.add(&line);
            recall(repeated, &line);
            if let Some(extra) = &line.extra
                && let (Some(file), Some(offset)) = (&extra.warc_filename, extra.warc_file_offset)
                && short.get(&**file).is_some_and(|end| offset >= *end)
                && let Ok(url) = Url::parse(&line.url)
            {
                lost.push(Candidate {
                    url,
                    via: line.via.as_deref().map(Arc::from),
                    hops: line.hops.into_owned(),
                    source: line.source.as_deref().map(Arc::from),
                    force: true,
                });
            }
        }
    }
    Ok((statistics, lost))
}

/// Counts a page as it was counted when it was fetched.
fn recall(repeated: &mut RepeatedContent, line: &CrawlLine<'_>) {
    let is_page = line.status.0 == 200 && matches!(&*line.mime, "text/html" | "application/xhtml+xml");
    if is_page
        && let Some(digest) = line.digest.as_ref().and_then(|text| warc::Digest::parse(text.as_bytes()).ok())
        && let Ok(url) = Url::parse(&line.url)
    {
        repeated.suppresses(&url, digest.as_bytes());
    }
}
