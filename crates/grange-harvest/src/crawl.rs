//! The crawl of a job from its beginning, or from where it was left, to its end; chunks are deposited meanwhile.

use std::io;
use std::sync::Arc;

use grange_base::Chain;
use grange_crawl::record::NoOracle;
use grange_model::harvest::DomainReport;
use tokio::sync::{mpsc, watch};

use crate::crawling::{Watch, Watched};
use crate::dedup;
use crate::deposit::Depositor;
use crate::engine::{Engine, EngineError, OracleHandle, Outcome, Run, Sign, Wish};
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts};
use crate::pulse::Pulse;
use crate::report::{Cause, Ending};
use crate::statistics;
use crate::takeover::{GivenUp, Import};
use crate::watchdog::Patience;

impl Harvester {
    /// Crawls to an end. None if that is for later: this process ends, or the job was lost.
    pub(crate) async fn crawl(
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
        let Parts { archive, clock, settings, .. } = self.parts();
        if folder.must_take_over(info) {
            let Some(pulse) = pulse else {
                // The job is somebody else's or over, and nothing was fetched into this folder.
                folder.remove().map_err(Error::io("remove", folder.root()))?;
                return Ok(None);
            };
            let import = Import { archive: &**archive, clock, folder, info, engine: &*engine };
            let Some(imported) = self.0.shutdown.or(import.run(pulse.listen())).await else {
                return Ok(None);
            };
            let (cause, error) = match imported {
                Ok(()) => (None, None),
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
        let (chunks, closed_chunks) = mpsc::unbounded_channel();
        let depositor =
            Depositor { archive: &**archive, clock, folder, by: self.parts().name.clone(), waiting: None };
        let (crawl_ended, no_more) = watch::channel(false);
        let mut depositing = std::pin::pin!(depositor.chunks(closed_chunks, &no_more));
        let (wish, wanted) = watch::channel(if pulse.is_some() { Wish::Run } else { Wish::Stop });
        let run = Run { folder: folder.clone(), oracle, progress: signs.clone(), chunks, wish: wanted };
        let watch = Watch {
            clock,
            shutdown: &self.0.shutdown,
            patience: Patience {
                inactivity: settings.inactivity_timeout.0,
                no_response: settings.no_response_timeout.0,
            },
            stop_within: settings.stop_within.0,
            heard: pulse.map(Pulse::listen),
        };
        let mut all_deposited = false;
        let watched = {
            let mut crawling = std::pin::pin!(watch.over(&*engine, run, wish, signs.subscribe()));
            tokio::select! {
                watched = &mut crawling => watched,
                // Ends only when nobody closes chunks any more.
                () = &mut depositing => {
                    all_deposited = true;
                    crawling.await
                }
            }
        };
        // The file that is just being stored is waited for, without a place; the others are stored with the rest.
        crawl_ended.send_replace(true);
        if !matches!(watched, Watched::Suspended) {
            self.free_slot(folder);
        }
        if !all_deposited && self.0.shutdown.or(depositing).await.is_none() {
            return Ok(None);
        }
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

    /// Whoever looks at the folder next finds out whether the job can be had again.
    fn let_go(&self, info: &HarvestInfo) -> Option<Ending> {
        tracing::warn!(job = %info.job.id, "the lease of the job was lost; its crawl was stopped");
        self.look_again();
        None
    }

    /// Closes the files of a crawl that broke off, and counts what it has. None if this process ends.
    async fn close(&self, engine: &dyn Engine, folder: &JobFolder) -> Option<Vec<DomainReport>> {
        let (progress, _) = watch::channel(None);
        let (chunks, _) = mpsc::unbounded_channel();
        let (_wish, wanted) = watch::channel(Wish::Stop);
        let oracle = OracleHandle(Arc::new(NoOracle));
        let run = Run { folder: folder.clone(), oracle, progress, chunks, wish: wanted };
        match self.0.shutdown.or(engine.run(run)).await? {
            Ok(outcome) => Some(outcome.domains),
            Err(error) => {
                tracing::error!(folder = folder.name(), error = %Chain(&error), "the crawl cannot be closed in order; its files are mended");
                Some(statistics::of_job(folder, &[]).unwrap_or_default().domains)
            }
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

fn ended(outcome: Outcome, cause: Option<Cause>) -> Ending {
    Ending { domains: outcome.domains.clone(), outcome: Some(outcome), cause, error: None }
}

fn broken(folder: &JobFolder, cause: Option<Cause>, error: &EngineError) -> io::Result<Ending> {
    let domains = statistics::of_job(folder, &[])?.domains;
    Ok(Ending { outcome: None, cause, error: Some(Chain(error).to_string()), domains })
}
