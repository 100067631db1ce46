//! Claims jobs and runs them, one per step; several workers run beside each other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Clock, Shutdown, Trigger};
use grange_db::{Db, Ending, OaiClaim, OaiPolicy};
use grange_oai::{Ended, Harvest, Order, Settings};

use super::ledger::DbLedger;

/// Runs jobs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OaiWorker {
    db: Db,
    clock: Clock,
    settings: Arc<Settings>,
    /// The folder of all repositories.
    root: PathBuf,
    owner: String,
}

impl OaiWorker {
    pub fn new(db: Db, clock: Clock, settings: Settings, root: PathBuf, owner: &str) -> Self {
        Self { db, clock, settings: Arc::new(settings), root, owner: owner.to_owned() }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Recurring jobs become jobs, and jobs of dead harvesters come back.
    pub async fn manage_step(&self) -> Result<Step, grange_db::Error> {
        let planned = self.db.oai_recurring().plan().await?;
        let policy = OaiPolicy {
            takeovers_max: self.settings.takeovers_max,
            failures_max: self.settings.failures_max,
        };
        let dead = self.db.oai_jobs().supervise(policy).await?;
        if !dead.taken_back.is_empty() || !dead.ended.is_empty() {
            tracing::warn!(?dead.taken_back, ?dead.ended, "harvesters of metadata fell silent");
        }
        Ok(if planned > 0 { Step::More } else { Step::Idle })
    }

    /// Runs the job that is due longest, to its end or until shutdown.
    pub async fn work_step(&self, shutdown: &Shutdown) -> Result<Step, grange_db::Error> {
        let Some(claim) = self.db.oai_jobs().claim(&self.owner, self.settings.lease.0).await? else {
            return Ok(Step::Idle);
        };
        self.run(&claim, shutdown).await?;
        Ok(Step::More)
    }

    async fn run(&self, claim: &OaiClaim, shutdown: &Shutdown) -> Result<(), grange_db::Error> {
        let jobs = self.db.oai_jobs();
        let (job, repository, position, next_from) = jobs.order(claim).await?;
        tracing::info!(job = %job.id, repository = repository.base_url, prefix = job.spec.prefix, "harvest begins");
        let ledger = DbLedger {
            db: self.db.clone(),
            claim: claim.clone(),
            repository: repository.id,
            prefix: job.spec.prefix.clone(),
            set: job.spec.set.clone(),
        };
        let folder = super::folder(&self.root, &repository);
        let order = Order { job: job.id, repository, spec: job.spec, position, next_from, folder };
        // Ends with the node, when a person wants it to, and when the lease is lost.
        let stop = Trigger::below(shutdown);
        let lost = AtomicBool::new(false);
        let harvest =
            Harvest::run(order, (*self.settings).clone(), &ledger, self.clock.clone(), stop.listener());
        let ended = tokio::select! {
            ended = harvest => ended,
            never = self.live(claim, &stop, &lost) => match never {},
        };
        if lost.load(Ordering::Relaxed) {
            tracing::warn!(job = %claim.job, "the job was taken by another harvester");
            return Ok(());
        }
        let stopped_by_person = !shutdown.requested();
        let ending = match ended {
            Ended::Whole { next_from } => Ending::Whole { next_from },
            Ended::Failed(reason) => Ending::Failed { reason },
            Ended::Stopped if stopped_by_person => Ending::Stopped,
            // The node stops: another, or this one later, goes on where this one is.
            Ended::Stopped => return jobs.release(claim).await,
        };
        tracing::info!(job = %claim.job, ?ending, "harvest ended");
        jobs.finish(claim, ending, self.settings.failures_max).await
    }

    /// Signs of life, for ever. Pulls the trigger when the job is to end.
    async fn live(&self, claim: &OaiClaim, stop: &Trigger, lost: &AtomicBool) -> std::convert::Infallible {
        let lease = self.settings.lease.0;
        // Three words per lease, so that one may be lost; and quick to hear that a person wants it to end.
        let every = (lease / 3).min(Duration::from_secs(5));
        loop {
            self.clock.sleep(every).await;
            match self.db.oai_jobs().renew(claim, lease).await {
                Ok(beat) if beat.stop_wanted => stop.pull(),
                Ok(_) => {}
                Err(error) if error.code() == "lease-lost" => {
                    lost.store(true, Ordering::Relaxed);
                    stop.pull();
                }
                // The database is away: the lease ends by itself if that lasts.
                Err(error) => tracing::warn!(%error, "could not say that the harvest lives"),
            }
        }
    }
}
