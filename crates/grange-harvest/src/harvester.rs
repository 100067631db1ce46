//! The harvester of one machine: takes jobs while there is room for them, and finishes what it finds in its folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grange_archive::ArchiveClient;
use grange_base::worker::{Hint, Step};
use grange_base::{Chain, Clock, Shutdown};
use grange_bus::Announcer;
use grange_db::Db;
use grange_model::harvest::{HarvesterState, JobId};
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::active_work::{ActiveWork, Phase};
use crate::engine::Engine;
use crate::folder::JobFolder;
use crate::gate::state;
use crate::prepare_gate::PrepareGate;
use crate::settings::Settings;

/// What a harvester is made of.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub archive: Arc<dyn ArchiveClient>,
    pub clock: Clock,
    pub settings: Settings,
    /// The way to crawl, the first that understands a template.
    pub engines: Vec<Arc<dyn Engine>>,
    pub announcer: Option<Announcer>,
    /// Where the folders of jobs are.
    pub folder: PathBuf,
    /// Where indexes for duplicate reduction are kept.
    pub dedup_cache: PathBuf,
    /// The key that logins are sealed with.
    pub vault: PathBuf,
    /// The name in the register of harvesters: never that of another machine.
    pub name: String,
    pub host: String,
    /// Program and version, for papers.
    pub software: String,
    /// How long an alias holds, for papers.
    pub alias_lifetime: Duration,
    /// Wakes the worker; pulled by the bus and when a job ends.
    pub hint: Hint,
}

/// A harvester. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Harvester(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) parts: Parts,
    pub(crate) shutdown: Shutdown,
    pub(crate) active: Mutex<ActiveWork>,
    /// Woken whenever a task ends.
    pub(crate) task_ended: Notify,
    /// Room for deposits, apart from the room for crawls: a replica that is away holds up no crawl.
    pub(crate) deposit_permits: Semaphore,
    /// Files and bytes that wait in each folder whose crawl has ended.
    pub(crate) waiting: Mutex<BTreeMap<String, (u64, u64)>>,
    jobs: Mutex<JoinSet<()>>,
    /// When folders were last looked at.
    pub(crate) looked: Mutex<Option<Timestamp>>,
    /// A folder is to be looked at as soon as it is let go of.
    pub(crate) again: AtomicBool,
    /// No job is taken for want of space; told once.
    pub(crate) full: AtomicBool,
    /// No job is taken after one that could not be prepared.
    pub(crate) gate: Mutex<PrepareGate>,
}

/// What a harvester could not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Db(#[from] grange_db::Error),
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path: path.clone(), source }
    }
}

impl Harvester {
    /// `shutdown` lays running jobs aside, to be taken up by the next process.
    pub fn new(parts: Parts, shutdown: Shutdown) -> Self {
        let deposit_permits = Semaphore::new(parts.settings.deposits_at_once.max(1) as usize);
        Self(Arc::new(Inner {
            parts,
            shutdown,
            active: Mutex::default(),
            task_ended: Notify::new(),
            deposit_permits,
            waiting: Mutex::default(),
            jobs: Mutex::default(),
            looked: Mutex::default(),
            again: AtomicBool::new(false),
            full: AtomicBool::new(false),
            gate: Mutex::default(),
        }))
    }

    /// One round: what was left in folders, a word to the register, a job if there is room for one.
    pub async fn step(&self) -> Result<Step, Error> {
        self.reap();
        match self.look_at_folders().await {
            Ok(()) => {}
            Err(error @ Error::Db(_)) => return Err(error),
            // The harvester is there all the same, and takes jobs when the folder is mended.
            Err(error) => {
                let reason = Chain(&error).to_string();
                if self.is_gate_open() {
                    self.close_gate(&reason).await;
                }
            }
        }
        let Parts { db, settings, .. } = &self.0.parts;
        let free = self.free_bytes();
        let room = free.is_none_or(|free| free >= settings.min_space_left.0);
        let (running, ready) = (self.running(), self.is_gate_open());
        let slots = (settings.jobs_at_once as usize).saturating_sub(self.crawling());
        self.say(state(room && ready, running), free).await?;
        self.mind_the_disk(room, free).await;
        if !room || !ready || slots == 0 {
            return Ok(Step::Idle);
        }
        let claim = db.jobs().claim(&settings.channels, &self.0.parts.name, settings.lease.0).await?;
        let Some(claim) = claim else { return Ok(Step::Idle) };
        tracing::info!(job = %claim.job, attempt = claim.attempt, "took a job");
        self.begin(claim);
        Ok(Step::More)
    }

    /// Waits until every job has been laid aside, and says good-bye. For after the worker ended.
    pub async fn leave(&self) {
        let mut jobs = std::mem::take(&mut *lock(&self.0.jobs));
        while let Some(ended) = jobs.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a job did not end in order");
            }
        }
        if let Err(error) = self.say(HarvesterState::Leaving, self.free_bytes()).await {
            tracing::warn!(error = %Chain(&error), "could not sign off; the register finds out by itself");
        }
    }

    async fn say(&self, state: HarvesterState, free: Option<u64>) -> Result<(), Error> {
        let Parts { db, settings, name, host, .. } = &self.0.parts;
        Ok(db.channels().serve(name, host, &settings.channels, state, free).await?)
    }

    pub(crate) fn running(&self) -> usize {
        lock(&self.0.active).running()
    }

    pub(crate) fn crawling(&self) -> usize {
        lock(&self.0.active).crawling()
    }

    /// The crawl of this folder has ended: its place is free for the next job.
    pub(crate) fn free_slot(&self, folder: &JobFolder) {
        lock(&self.0.active).set_depositing(folder.root());
        self.0.parts.hint.wake();
    }

    /// Takes note of jobs that ended. A panic goes on as a panic.
    fn reap(&self) {
        let mut jobs = lock(&self.0.jobs);
        while let Some(ended) = jobs.try_join_next() {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                drop(jobs);
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Works on a job in a task. `work` is given the number of the task.
    pub(crate) fn spawn<W>(
        &self,
        job: JobId,
        folder: Option<&JobFolder>,
        phase: Phase,
        work: impl FnOnce(Harvester, u64) -> W,
    ) where
        W: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let root = folder.map(|folder| folder.root().to_owned());
        let task = lock(&self.0.active).begin(job, root, phase);
        let active = ActiveGuard { harvester: self.clone(), task };
        let work = work(self.clone(), task);
        lock(&self.0.jobs).spawn(async move {
            let _active = active;
            if let Err(error) = work.await {
                // Its folder is there; it is taken up again.
                tracing::error!(%job, error = %Chain(&error), "the job could not be brought on");
            }
        });
    }
}

/// Ends the entry of a task with the task.
struct ActiveGuard {
    harvester: Harvester,
    task: u64,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        let harvester = &self.harvester.0;
        lock(&harvester.active).end(self.task);
        harvester.task_ended.notify_waiters();
        if harvester.again.swap(false, Ordering::Relaxed) {
            *lock(&harvester.looked) = None;
        }
        harvester.parts.hint.wake();
    }
}

/// What these locks guard is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "harvester_tests.rs"]
mod tests;
