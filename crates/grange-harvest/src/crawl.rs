//! The crawl of a job from its beginning, or from where it was left, to its end; chunks are deposited meanwhile.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use grange_base::{Chain, Retry};
use grange_crawl::record::NoOracle;
use grange_model::harvest::DomainReport;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{mpsc, watch};

use crate::crawling::{Watch, Watched};
use crate::dedup;
use crate::deposit::{Depositor, PAUSES};
use crate::engine::{Engine, EngineError, OracleHandle, Outcome, Run, Sign, Wish};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts};
use crate::pulse::Pulse;
use crate::report::{Cause, Ending};
use crate::statistics;
use crate::takeover::{GivenUp, Import, cause_to_end};
use crate::watchdog::Patience;

/// A process that ends this often within [`CRASHES_WITHIN`] while it crawls a job ends by that job: a document takes all
/// memory, or makes it panic. It would be resumed at that document for ever.
const CRASHES_MAX: usize = 5;
/// Long enough for a node that needs minutes to start; short enough that kills from outside do not add up.
const CRASHES_WITHIN: SignedDuration = SignedDuration::from_hours(1);

impl Harvester {
    /// Crawls to an end. None if that is for later: this process ends, or the job was lost.
    pub(crate) async fn crawl(
        &self,
        folder: &JobFolder,
        info: &HarvestInfo,
        pulse: Option<&Pulse>,
        signs: &watch::Sender<Option<Sign>>,
    ) -> Result<Option<Ending>, Error> {
        let now = self.parts().clock.now();
        let since = now.saturating_sub(CRASHES_WITHIN).unwrap_or(Timestamp::MIN);
        // On a full disk the crawl waits for space itself.
        let crashes = folder.note_crawl_start(now, since).unwrap_or_default();
        if crashes >= CRASHES_MAX {
            tracing::error!(job = %info.job.id, crashes, "the node ended again and again while it crawled this job: the job is ended");
            let error = EngineError::Job(format!(
                "the node ended {crashes} times within an hour while it crawled this job: look into its log and into \
                 the memory of the machine for the reason, and exclude the URLs that were fetched last"
            ));
            return Ok(Some(broken(folder, None, &error).map_err(Error::io("read", folder.root()))?));
        }
        let ending = self.crawl_to_end(folder, info, pulse, signs).await;
        if let Err(error) = folder.clear_crawl_starts() {
            tracing::warn!(job = %info.job.id, %error, "the crawl's mark of having begun cannot be removed");
        }
        ending
    }

    async fn crawl_to_end(
        &self,
        folder: &JobFolder,
        info: &HarvestInfo,
        pulse: Option<&Pulse>,
        signs: &watch::Sender<Option<Sign>>,
    ) -> Result<Option<Ending>, Error> {
        let template =
            std::fs::read_to_string(folder.template()).map_err(Error::io("read", folder.root()))?;
        let engine = match self.engine_for(&template) {
            Ok(engine) => engine,
            Err(error) => {
                return Ok(Some(broken(folder, None, &error).map_err(Error::io("read", folder.root()))?));
            }
        };
        let Parts { archive, clock, .. } = self.parts();
        if folder.must_take_over(info) {
            let Some(pulse) = pulse else {
                // The job is somebody else's or over, and nothing was fetched into this folder.
                folder.remove().map_err(Error::io("remove", folder.root()))?;
                return Ok(None);
            };
            let Some(orders) = self.orders_before(info, pulse).await else { return Ok(None) };
            let import = Import {
                orders: orders.as_deref(),
                archive: &**archive,
                clock,
                shutdown: &self.0.shutdown,
                folder,
                info,
                engine: &*engine,
            };
            let imported = import.run(pulse.listen()).await;
            let (cause, error) = match imported {
                Ok(()) => (None, None),
                Err(GivenUp::Suspended) => return Ok(None),
                Err(GivenUp::Told(Cause::LeaseLost)) => return Ok(self.let_go(info)),
                Err(GivenUp::Told(cause)) => (Some(cause), None),
                Err(GivenUp::Broke(error)) => (None, Some(Chain(&error).to_string())),
            };
            if cause.is_some() || error.is_some() {
                let domains = statistics::of_job(folder, &[]).unwrap_or_default().domains;
                return Ok(Some(Ending { outcome: None, cause, error, domains }));
            }
        }
        // An index over many jobs takes minutes; whoever ends this process does not wait for it.
        let Some(oracle) = self.0.shutdown.or(self.oracle(info, engine.asks(&template))).await else {
            return Ok(None);
        };
        let Some(watched) = self.run_engine(&*engine, folder, &oracle, pulse, signs).await else {
            return Ok(None);
        };
        let interrupted = || pulse.is_none().then_some(Cause::Interrupted);
        let ending = match watched {
            Watched::Suspended => return Ok(None),
            Watched::Ended(_, Some(Cause::LeaseLost))
            | Watched::Broke(_, Some(Cause::LeaseLost))
            | Watched::CutOff(Cause::LeaseLost) => {
                return Ok(self.let_go(info));
            }
            Watched::Ended(outcome, cause) => ended(outcome, cause.or_else(interrupted)),
            Watched::Broke(error, cause) => {
                let Some(closed) = self.close(&*engine, folder).await else { return Ok(None) };
                Ending {
                    error: Some(Chain(&error).to_string()),
                    cause: cause.or_else(interrupted),
                    outcome: None,
                    domains: closed,
                }
            }
            Watched::CutOff(cause) => {
                let Some(closed) = self.close(&*engine, folder).await else { return Ok(None) };
                Ending { error: None, cause: Some(cause), outcome: None, domains: closed }
            }
        };
        Ok(Some(ending))
    }

    /// The orders that were given to earlier crawls of the job. A database that is away is waited for: without them URLs would
    /// be fetched that a person has rejected. None if that is for later.
    async fn orders_before(&self, info: &HarvestInfo, pulse: &Pulse) -> Option<Option<String>> {
        let mut attempt = 0;
        loop {
            let error = match self.parts().db.jobs().orders_of(info.job.id).await {
                Ok(orders) => return Some(orders),
                Err(error) => error,
            };
            attempt += 1;
            let (job, reason) = (info.job.id, Chain(&error).to_string());
            tracing::warn!(%job, reason, "the orders that were given to the crawl of this job cannot be read yet");
            if self.wait_under(pulse, pause(attempt)).await? == Some(Cause::LeaseLost) {
                self.let_go(info);
                return None;
            }
        }
    }

    /// Runs the engine to an end, and deposits chunks meanwhile. A crawl that cannot begin yet keeps its place and its claim.
    /// None if this process ends.
    async fn run_engine(
        &self,
        engine: &dyn Engine,
        folder: &JobFolder,
        oracle: &OracleHandle,
        pulse: Option<&Pulse>,
        signs: &watch::Sender<Option<Sign>>,
    ) -> Option<Watched> {
        let Parts { archive, clock, settings, .. } = self.parts();
        let mut attempt = 0;
        loop {
            let (chunks, closed_chunks) = mpsc::unbounded_channel();
            let depositor = Depositor {
                archive: &**archive,
                clock,
                folder,
                by: self.parts().name.clone(),
                waiting: None,
            };
            let (crawl_ended, no_more) = watch::channel(false);
            let mut depositing = std::pin::pin!(depositor.chunks(closed_chunks, &no_more));
            let (wish, wanted) = watch::channel(if pulse.is_some() { Wish::Run } else { Wish::Stop });
            let (oracle, progress) = (oracle.clone(), signs.clone());
            let stop_within = settings.stop_within.0;
            let run = Run { folder: folder.clone(), oracle, progress, chunks, wish: wanted, stop_within };
            let watch = Watch {
                clock,
                shutdown: &self.0.shutdown,
                patience: Patience {
                    inactivity: settings.inactivity_timeout.0,
                    no_response: settings.no_response_timeout.0,
                },
                stop_within,
                heard: pulse.map(Pulse::listen),
            };
            let mut all_deposited = false;
            let mut watched = {
                let mut crawling = std::pin::pin!(watch.over(engine, run, wish, signs.subscribe()));
                tokio::select! {
                    watched = &mut crawling => watched,
                    // Ends only when nobody closes chunks any more.
                    () = &mut depositing => {
                        all_deposited = true;
                        crawling.await
                    }
                }
            };
            if let (
                Watched::Broke(error @ (EngineError::InUse(_) | EngineError::NoSpace(_)), cause),
                Some(pulse),
            ) = (&mut watched, pulse)
                && cause.is_none()
            {
                attempt += 1;
                let (wait, job) = (pause(attempt), folder.name());
                tracing::error!(job, error = %Chain(error), retry_in_s = wait.as_secs(), "the crawl cannot be resumed yet");
                *cause = self.wait_under(pulse, wait).await?;
                if cause.is_none() {
                    continue;
                }
            }
            // The file that is just being stored is waited for, without a place; the others are stored with the rest.
            crawl_ended.send_replace(true);
            if !matches!(watched, Watched::Suspended) {
                self.free_slot(folder);
            }
            if !all_deposited {
                self.0.shutdown.or(depositing).await?;
            }
            return Some(watched);
        }
    }

    /// Waits for a while, or until there is a cause to let go of the job. None if this process ends.
    pub(crate) async fn wait_under(&self, pulse: &Pulse, wait: Duration) -> Option<Option<Cause>> {
        let mut heard = pulse.listen();
        tokio::select! {
            () = self.parts().clock.sleep(wait) => Some(None),
            cause = cause_to_end(&mut heard) => Some(Some(cause)),
            () = self.0.shutdown.wait() => None,
        }
    }

    /// Whoever looks at the folder next finds out whether the job can be had again.
    fn let_go(&self, info: &HarvestInfo) -> Option<Ending> {
        tracing::warn!(job = %info.job.id, "the lease of the job was lost; its crawl was stopped");
        self.look_again();
        None
    }

    /// Closes the files of a crawl that broke off, and counts what it has. Whatever still writes into the folder has ended
    /// before anything is changed there. None if this process ends.
    async fn close(&self, engine: &dyn Engine, folder: &JobFolder) -> Option<Vec<DomainReport>> {
        let mut attempt = 0;
        loop {
            let (progress, _) = watch::channel(None);
            let (chunks, _) = mpsc::unbounded_channel();
            let (_wish, wish) = watch::channel(Wish::Stop);
            let oracle = OracleHandle(Arc::new(NoOracle));
            let stop_within = self.parts().settings.stop_within.0;
            let run = Run { folder: folder.clone(), oracle, progress, chunks, wish, stop_within };
            let error = match self.0.shutdown.or(engine.run(run)).await? {
                Ok(outcome) => return Some(outcome.domains),
                Err(error) => error,
            };
            let (name, reason) = (folder.name(), Chain(&error).to_string());
            if !matches!(error, EngineError::InUse(_) | EngineError::NoSpace(_)) {
                tracing::error!(
                    folder = name,
                    error = reason,
                    "the crawl cannot be closed in order; its files are mended"
                );
                return Some(statistics::of_job(folder, &[]).unwrap_or_default().domains);
            }
            attempt += 1;
            let wait = pause(attempt);
            tracing::warn!(
                folder = name,
                retry_in_s = wait.as_secs(),
                error = reason,
                "the files of the crawl cannot be closed yet"
            );
            self.0.shutdown.or(self.parts().clock.sleep(wait)).await?;
        }
    }

    /// What the crawl asks for earlier captures. Without one it stores everything.
    async fn oracle(&self, info: &HarvestInfo, by: dedup::By) -> OracleHandle {
        let Parts { archive, dedup_cache, .. } = self.parts();
        match dedup::oracle_for(archive, dedup_cache, &info.duplicate_reduction_jobs, by).await {
            Ok(prepared) => {
                if !prepared.missing.is_empty() {
                    let missing = &prepared.missing;
                    tracing::warn!(job = %info.job.id, ?missing, "nothing is known of jobs that this one continues from");
                }
                OracleHandle(prepared.oracle)
            }
            Err(error) => {
                tracing::warn!(job = %info.job.id, error = %Chain(&error), "crawling without duplicate reduction");
                OracleHandle(Arc::new(NoOracle))
            }
        }
    }
}

fn pause(attempt: u32) -> Duration {
    PAUSES.wait(attempt, Retry::Soon).unwrap_or(PAUSES.most)
}

fn ended(outcome: Outcome, cause: Option<Cause>) -> Ending {
    Ending { domains: outcome.domains.clone(), outcome: Some(outcome), cause, error: None }
}

fn broken(folder: &JobFolder, cause: Option<Cause>, error: &EngineError) -> io::Result<Ending> {
    let domains = statistics::of_job(folder, &[])?.domains;
    Ok(Ending { outcome: None, cause, error: Some(Chain(error).to_string()), domains })
}
