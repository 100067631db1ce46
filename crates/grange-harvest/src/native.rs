//! The engine `native`: the crawler of this program.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grange_base::{Chain, Clock, Period};
use grange_crawl::engine::{
    self as crawler, Crawl, LastingOrders, LoginTrouble, Phase, Snapshot, StartError, TakeOver,
    TakeOverError, TakenOver,
};
use grange_crawl::record::chunk::Manifest;
use grange_crawl::record::settings::DedupBy;
use grange_crawl::template::{self, NetworkSettings};
use grange_model::harvest::{CrawlState, DomainReport, Progress, StopReason};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::crawl_job::{Defaults, crawl_job};
use crate::dedup::By;
use crate::engine::{
    Chunk, ClosedFile, End, Engine, EngineError, Order, Outcome, Run, Sign, StoredFiles, Wish,
};
use crate::folder::JobFolder;
use crate::statistics;

/// How often new chunks are looked for. A rotation takes longer than that.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The crawler of this program.
#[derive(Clone, Debug)]
pub struct Native {
    pub clock: Clock,
    pub defaults: Defaults,
    /// How crawls reach the web, whatever their templates say.
    pub network: NetworkSettings,
}

#[async_trait]
impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    /// Templates of Heritrix are XML; everything else is ours to read, or to say what is wrong with it.
    fn understands(&self, template: &str) -> bool {
        !template.trim_start().starts_with('<')
    }

    fn asks(&self, template: &str) -> By {
        match template::parse(template).map(|template| template.dedup.by) {
            Ok(DedupBy::Digest) => By::Payload,
            _ => By::Url,
        }
    }

    fn prepare(&self, folder: &JobFolder, order: &Order) -> Result<(), EngineError> {
        let mut made = crawl_job(order, self.defaults).map_err(EngineError::Job)?;
        for problem in &made.problems {
            tracing::warn!(job = %order.spec.job.id, "{problem}");
        }
        let ignored = self.network.apply(&mut made.job.template);
        if !ignored.is_empty() {
            let (job, template, keys) = (order.spec.job.id, &order.spec.job.template, ignored.join(", "));
            tracing::warn!(%job, %template, keys, "template settings ignored: harvest.network decides them");
        }
        let path = folder.crawl();
        let failed = |source| EngineError::Io { doing: "prepare", path: path.clone(), source };
        fs::create_dir_all(&path).map_err(failed)?;
        folder.save("crawl/job.json", &made.job).map_err(failed)
    }

    async fn take_over(&self, folder: &JobFolder, stored: &mut dyn StoredFiles) -> Result<(), EngineError> {
        let (root, known, clock) = (folder.crawl(), stored.known(), self.clock.clone());
        let begun = importing(move || TakeOver::begin(&root, known, clock)).await?;
        let Some(mut import) = begun else { return Ok(()) };
        match stored.orders().map(serde_json::from_str::<LastingOrders>) {
            Some(Ok(orders)) => {
                import = importing(move || import.follow_orders(&orders).map(|()| import)).await?;
            }
            Some(Err(error)) => {
                tracing::warn!(folder = folder.name(), %error, "the orders that were given to the crawl cannot be read");
            }
            None => {}
        }
        while let Some(path) = stored.next().await.map_err(|source| reading(folder, source))? {
            import = importing(move || import.add_file(&path).map(|()| import)).await?;
        }
        let TakenOver { files, captures, unexplained, queued } = importing(|| import.finish()).await?;
        tracing::info!(
            folder = folder.name(),
            files,
            captures,
            unexplained,
            queued,
            "stored captures imported"
        );
        Ok(())
    }

    async fn run(&self, run: Run) -> Result<Outcome, EngineError> {
        let Run { folder, oracle, progress, chunks, mut wish, stop_within } = run;
        let (root, clock) = (folder.crawl(), self.clock.clone());
        let network = self.network.clone();
        let opened = tokio::task::spawn_blocking(move || {
            // The operator's settings count as they are now, not as they were when the crawl began.
            let mut job = Crawl::job_in(&root)?;
            network.apply(&mut job.template);
            // Before the call is dropped the files are closed in order, whatever the template says.
            let longest = Period::from_millis((stop_within / 2).as_millis() as u64);
            job.template.engine.stop_within = job.template.engine.stop_within.min(longest);
            Crawl::resume_as(job, &root, oracle.0, clock)
        });
        let crawl = match opened.await {
            Ok(Ok(crawl)) => crawl,
            Ok(Err(error)) => return Err(cannot_start(error)),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let handle = crawl.handle();
        if *wish.borrow_and_update() == Wish::Stop {
            handle.stop();
        }
        let (mut told, mut heard) = (BTreeSet::new(), true);
        let mut alerts = Alerts::new(folder.logs());
        let mut orders = OrderText::default();
        let mut snapshots = handle.watch();
        let mut running = std::pin::pin!(crawl.run());
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                changed = wish.changed(), if heard => {
                    // Whoever could want anything may be gone; then nobody wants the crawl.
                    heard = changed.is_ok();
                    if !heard || *wish.borrow_and_update() == Wish::Stop {
                        handle.stop();
                    }
                }
                Ok(()) = snapshots.changed() => {
                    let snapshot = snapshots.borrow_and_update().clone();
                    let orders = orders.of(handle.lasting_orders());
                    tell(&progress, &snapshot, alerts.count(), orders);
                }
                () = self.clock.sleep(LOOK_EVERY) => {
                    for chunk in new_chunks(&folder, &mut told).map_err(|source| reading(&folder, source))? {
                        // Whoever does not listen finds the files at the end.
                        let _ = chunks.send(chunk);
                    }
                }
            }
        };
        let outcome = outcome.map_err(|error| EngineError::Crawl(Box::new(error)))?;
        tell(&progress, &outcome.last, alerts.count(), orders.text);
        for chunk in new_chunks(&folder, &mut told).map_err(|source| reading(&folder, source))? {
            let _ = chunks.send(chunk);
        }
        let end = match outcome.end {
            crawler::End::Finished => End::Finished,
            crawler::End::Unreachable => End::Unreachable,
            crawler::End::Limit(grange_crawl::job::StopReason::TimeLimit) => End::TimeLimit,
            crawler::End::Limit(_) => End::Limit,
            crawler::End::Stopped => End::Stopped,
        };
        let place = folder.clone();
        let ends: Vec<_> = outcome.domains.iter().map(|one| (one.domain.clone(), one.stop_reason)).collect();
        let counted = tokio::task::spawn_blocking(move || statistics::of_job(&place, &ends)).await;
        let counted = match counted {
            Ok(counted) => counted.map_err(|source| reading(&folder, source))?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        Ok(Outcome {
            end,
            ended_at: self.clock.now(),
            objects: counted.objects,
            bytes: counted.bytes,
            domains: leave_unfinished(counted.domains, &outcome.login_troubles),
            login_troubles: outcome.login_troubles,
        })
    }

    fn closed_files(&self, folder: &JobFolder) -> io::Result<Vec<ClosedFile>> {
        let chunks = new_chunks(folder, &mut BTreeSet::new())?;
        let files = chunks.into_iter().flat_map(|chunk| chunk.files);
        Ok(files.filter(|file| file.path.exists()).collect())
    }
}

/// Works on an import beside the threads of the runtime.
async fn importing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TakeOverError> + Send + 'static,
) -> Result<T, EngineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| {
            if error.passes() {
                EngineError::TakeOver(Box::new(error))
            } else {
                EngineError::Job(Chain(&error).to_string())
            }
        }),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

fn cannot_start(error: StartError) -> EngineError {
    let (is_in_use, is_full) = (error.is_in_use(), error.is_disk_full());
    let error = Box::new(error);
    match (is_in_use, is_full) {
        (true, _) => EngineError::InUse(error),
        (_, true) => EngineError::NoSpace(error),
        _ => EngineError::Crawl(error),
    }
}

fn reading(folder: &JobFolder, source: io::Error) -> EngineError {
    EngineError::Io { doing: "read the files of the crawl in", path: folder.crawl(), source }
}

/// The chunks that were closed and not told yet, in the order of their names, which is that of time.
fn new_chunks(folder: &JobFolder, told: &mut BTreeSet<PathBuf>) -> io::Result<Vec<Chunk>> {
    let mut paths = Vec::new();
    let entries = match fs::read_dir(folder.manifests()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") && !told.contains(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut chunks = Vec::new();
    for path in paths {
        let manifest = Manifest::load(&path)?;
        let file = |entry: grange_crawl::record::state::FileEntry| ClosedFile {
            path: folder.warcs().join(&entry.name),
            size: entry.size,
            sha512: Some(entry.sha512),
        };
        chunks.push(Chunk { name: manifest.chunk, files: manifest.files.into_iter().map(file).collect() });
        told.insert(path);
    }
    Ok(chunks)
}

/// A domain whose log-in did not work lacks the pages behind it, so a later harvest takes it up.
fn leave_unfinished(mut domains: Vec<DomainReport>, troubles: &[LoginTrouble]) -> Vec<DomainReport> {
    for report in &mut domains {
        let lacks_pages = troubles.iter().any(|trouble| trouble.domain == report.domain.as_str());
        if lacks_pages && report.stop == StopReason::Complete {
            report.stop = StopReason::Unfinished;
        }
    }
    domains
}

fn tell(progress: &watch::Sender<Option<Sign>>, snapshot: &Snapshot, alerts: u64, orders: Option<Arc<str>>) {
    if let Some(at) = snapshot.at {
        progress.send_replace(Some(Sign { orders, ..sign(snapshot, at, alerts) }));
    }
}

/// The orders to a crawl as text, which is made when they change.
#[derive(Default)]
struct OrderText {
    orders: Arc<LastingOrders>,
    text: Option<Arc<str>>,
}

impl OrderText {
    fn of(&mut self, now: Option<Arc<LastingOrders>>) -> Option<Arc<str>> {
        if let Some(now) = now.filter(|now| !Arc::ptr_eq(now, &self.orders)) {
            self.text =
                (!now.is_empty()).then(|| serde_json::to_string(&*now).ok().map(Into::into)).flatten();
            self.orders = now;
        }
        self.text.clone()
    }
}

/// Whether nothing needs to be finished now. A crawl that waits for failing hosts alone ends that wait itself: hosts that cannot
/// be reached are left after `engine.max_unreachable_wait`, a robots.txt is given up after `robots.cache.give_up`, any other
/// URL after `frontier.max_retries`, an external host after two failures.
fn is_excused(snapshot: &Snapshot) -> bool {
    match snapshot.phase {
        Phase::Paused | Phase::Waiting => true,
        Phase::Running => snapshot.waits_for.is_some(),
        Phase::Preparing | Phase::Stopping | Phase::Finished => false,
    }
}

fn sign(snapshot: &Snapshot, at: Timestamp, alerts: u64) -> Sign {
    let mean = |total: u64| {
        if snapshot.ran_seconds > 0.0 { total as f64 / snapshot.ran_seconds } else { 0.0 }
    };
    let state = match snapshot.phase {
        Phase::Preparing => CrawlState::PreCrawl,
        Phase::Running if snapshot.queued == 0 => CrawlState::Empty,
        Phase::Running => CrawlState::Active,
        Phase::Stopping => CrawlState::Pausing,
        Phase::Paused | Phase::Waiting => CrawlState::Paused,
        Phase::Finished => CrawlState::Finished,
    };
    Sign {
        orders: None,
        finished: snapshot.finished,
        excused: is_excused(snapshot),
        progress: Progress {
            at,
            state,
            elapsed_s: snapshot.ran_seconds as u64,
            discovered: snapshot.discovered,
            downloaded: snapshot.succeeded,
            queued: snapshot.queued,
            bytes: snapshot.bytes,
            queues: snapshot.queues,
            queues_active: snapshot.active_queues,
            queues_retired: snapshot.retired_queues,
            queues_exhausted: snapshot.exhausted_queues,
            objects_per_s: snapshot.urls_per_second,
            objects_per_s_mean: mean(snapshot.finished),
            bytes_per_s: snapshot.bytes_per_second,
            bytes_per_s_mean: mean(snapshot.bytes),
            active: snapshot.in_flight,
            alerts,
            waits_for: snapshot.waits_for.clone(),
        },
    }
}

/// Counts the lines of alerts.log without reading what it has read before.
struct Alerts {
    folder: PathBuf,
    before: u64,
    size: u64,
    lines: u64,
}

impl Alerts {
    fn new(folder: PathBuf) -> Self {
        Self { folder, before: 0, size: 0, lines: 0 }
    }

    fn count(&mut self) -> u64 {
        let path = self.folder.join("alerts.log");
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        if size < self.size {
            // The log was rotated; what it held counts on.
            (self.before, self.size, self.lines) = (self.before + self.lines, 0, 0);
        }
        if size > self.size {
            (self.size, self.lines) = (size, lines(&path));
        }
        self.before + self.lines
    }
}

fn lines(path: &Path) -> u64 {
    fs::read(path).map_or(0, |text| text.split(|byte| *byte == b'\n').count().saturating_sub(1) as u64)
}

/// Refuses templates that the native crawler cannot read, or that set what belongs to the operator; templates of other
/// engines are theirs to judge.
pub fn check_template(text: &str) -> Result<(), String> {
    let template = template::parse(text).map_err(|error| error.to_string())?;
    match template.operator_keys().as_slice() {
        [] => Ok(()),
        keys => {
            let keys = keys.join(", ");
            Err(format!(
                "it sets {keys}, which only the operator can set (harvest.network in the settings of the harvesters)"
            ))
        }
    }
}

/// The templates that come with the crawler: name and text.
pub fn shipped_templates() -> Vec<(&'static str, &'static str)> {
    template::shipped().to_vec()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn a_domain_whose_log_in_did_not_work_is_unfinished() {
        let domain =
            |name: &str, stop| DomainReport { domain: name.parse().unwrap(), objects: 1, bytes: 2, stop };
        let trouble = LoginTrouble { domain: "a.dk".to_owned(), ..LoginTrouble::default() };
        for (name, stop, troubles, expected) in [
            ("a.dk", StopReason::Complete, &[][..], StopReason::Complete),
            ("a.dk", StopReason::Complete, from_ref(&trouble), StopReason::Unfinished),
            ("a.dk", StopReason::ObjectLimit, from_ref(&trouble), StopReason::ObjectLimit),
            ("b.dk", StopReason::Complete, from_ref(&trouble), StopReason::Complete),
        ] {
            let domains = leave_unfinished(vec![domain(name, stop)], troubles);
            assert_eq!(domains[0].stop, expected, "{name} {stop:?} {troubles:?}");
        }
    }

    #[test]
    fn standing_still_is_excused_by_an_order_and_by_whatever_the_crawl_waits_for() {
        let waits = Some("waits for h.example until 1970-01-01T00:31:00Z: robots.txt returned status 503");
        for (phase, waits_for, excused) in [
            (Phase::Preparing, None, false),
            (Phase::Running, None, false),
            (Phase::Running, waits, true),
            (Phase::Paused, None, true),
            (Phase::Waiting, Some("the disk is full"), true),
            (Phase::Stopping, None, false),
            (Phase::Stopping, waits, false),
            (Phase::Finished, None, false),
        ] {
            let waits_for = waits_for.map(str::to_owned);
            let snapshot = Snapshot { phase, waits_for, finished: 7, ..Snapshot::default() };
            let sign = sign(&snapshot, Timestamp::UNIX_EPOCH, 0);
            assert_eq!((sign.excused, sign.finished), (excused, 7), "{snapshot:?}");
            assert_eq!(sign.progress.waits_for, snapshot.waits_for, "people see the reason");
        }
    }
}
