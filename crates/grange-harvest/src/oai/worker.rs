//! Claims jobs and runs them, one per step; several workers run beside each other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Clock, Shutdown, Trigger};
use grange_db::{ClaimedHarvest, Db, Ending, OaiClaim, OaiPolicy};
use grange_oai::store::journal;
use grange_oai::{Ended, Harvest, Order, Outcome, Settings};
use jiff::Timestamp;

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
    /// Journals of harvests that are over, and since when.
    journals: Arc<Mutex<Vec<Left>>>,
}

#[derive(Debug)]
struct Left {
    since: Timestamp,
    folder: PathBuf,
    segments: Vec<PathBuf>,
}

/// How long a journal is left when its harvest is over: by then the system has written nearly all files by itself,
/// and syncing the rest is cheap.
const JOURNAL_LEFT: Duration = Duration::from_secs(60);

impl OaiWorker {
    pub fn new(db: Db, clock: Clock, settings: Settings, root: PathBuf, owner: &str) -> Self {
        Self {
            db,
            clock,
            settings: Arc::new(settings),
            root,
            owner: owner.to_owned(),
            journals: Arc::default(),
        }
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
        self.retire_journals().await;
        Ok(if planned > 0 { Step::More } else { Step::Idle })
    }

    /// Makes the files of harvests durable that are over for a while, and forgets the journals that guarded them.
    async fn retire_journals(&self) {
        let now = self.clock.now();
        let is_due = |left: &mut Left| {
            Duration::try_from(now.duration_since(left.since)).unwrap_or_default() >= JOURNAL_LEFT
        };
        let due: Vec<_> = {
            let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
            journals.extract_if(.., is_due).collect()
        };
        for left in due {
            let retired =
                tokio::task::spawn_blocking(move || journal::retire(&left.folder, &left.segments)).await;
            if let Ok(Err(error)) = retired {
                tracing::warn!(error = %grange_base::Chain(&error), "the journal of a harvest stays");
            }
        }
    }

    /// Runs the job that is due longest, to its end or until shutdown.
    pub async fn work_step(&self, shutdown: &Shutdown) -> Result<Step, grange_db::Error> {
        let Some(claim) = self.db.oai_jobs().claim(&self.owner, self.settings.lease.0).await? else {
            return Ok(Step::Idle);
        };
        Box::pin(self.run(&claim, shutdown)).await?;
        Ok(Step::More)
    }

    async fn run(&self, claim: &OaiClaim, shutdown: &Shutdown) -> Result<(), grange_db::Error> {
        let jobs = self.db.oai_jobs();
        let ClaimedHarvest { job, repository, position, next_from, rules: judged_by, lacking } =
            jobs.order(claim).await?;
        let rules = grange_oai::rules_of(&job.spec);
        // Records judged by other rules are not delivered again since then.
        let next_from = next_from.filter(|_| judged_by == rules);
        tracing::info!(job = %job.id, repository = repository.base_url, prefix = job.spec.prefix, "harvest begins");
        let ledger = DbLedger {
            db: self.db.clone(),
            claim: claim.clone(),
            repository: repository.id,
            prefix: job.spec.prefix.clone(),
            set: job.spec.set.clone(),
        };
        let folder = super::folder(&self.root, &repository);
        let order = Order {
            job: job.id,
            repository,
            spec: job.spec,
            position,
            next_from,
            lacking,
            folder: folder.clone(),
        };
        // Ends with the node, when a person wants it to, and when the lease is lost.
        let stop = Trigger::below(shutdown);
        let lost = AtomicBool::new(false);
        let (settings, ledger) = ((*self.settings).clone(), Arc::new(ledger));
        let harvest = Harvest::run(order, settings, ledger, self.clock.clone(), stop.listener());
        let Outcome { ended, segments, replayed } = tokio::select! {
            outcome = harvest => outcome,
            never = self.live(claim, &stop, &lost) => match never {},
        };
        if replayed > 0 {
            tracing::info!(job = %claim.job, replayed, "pages came from the journal of an attempt that died");
        }
        self.leave_journal(folder, segments);
        if lost.load(Ordering::Relaxed) {
            tracing::warn!(job = %claim.job, "the job was taken by another harvester");
            return Ok(());
        }
        let stopped_by_person = !shutdown.requested();
        let ending = match ended {
            Ended::Whole { next_from, lacking } => Ending::Whole { next_from, rules, lacking },
            Ended::Incomplete(reason) => Ending::Incomplete { reason },
            Ended::Failed(reason) => Ending::Failed { reason },
            Ended::Stopped if stopped_by_person => Ending::Stopped,
            // The node stops: another, or this one later, goes on where this one is.
            Ended::Stopped => return jobs.release(claim).await,
        };
        if let Ending::Incomplete { reason } = &ending {
            tracing::warn!(job = %claim.job, reason, "OAI-PMH harvest is incomplete; the next one asks for the same again");
        }
        tracing::info!(job = %claim.job, ?ending, "harvest ended");
        jobs.finish(claim, ending, self.settings.failures_max).await
    }

    fn leave_journal(&self, folder: PathBuf, segments: Vec<PathBuf>) {
        if !segments.is_empty() {
            let left = Left { since: self.clock.now(), folder, segments };
            self.journals.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
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
