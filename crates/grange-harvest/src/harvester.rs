//! The harvester of one machine: takes jobs while there is room for them, and finishes what it finds in its folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grange_archive::ArchiveClient;
use grange_base::worker::{Hint, Step};
use grange_base::{Chain, Clock, Shutdown, Size};
use grange_bus::Announcer;
use grange_db::{Db, JobClaim};
use grange_model::harvest::{HarvesterState, JobStatus};
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::engine::{Engine, Operator};
use crate::folder::{HarvestInfo, JobFolder};
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
    /// The folders that are being worked on, and jobs that have no folder yet.
    busy: Mutex<BTreeSet<PathBuf>>,
    jobs: Mutex<JoinSet<()>>,
    /// When folders were last looked at.
    looked: Mutex<Option<Timestamp>>,
    /// A folder is to be looked at as soon as it is let go of.
    again: AtomicBool,
    /// No job is taken for want of space; told once.
    full: AtomicBool,
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
        Self(Arc::new(Inner {
            parts,
            shutdown,
            busy: Mutex::default(),
            jobs: Mutex::default(),
            looked: Mutex::default(),
            again: AtomicBool::new(false),
            full: AtomicBool::new(false),
        }))
    }

    /// One round: what was left in folders, a word to the register, a job if there is room for one.
    pub async fn step(&self) -> Result<Step, Error> {
        self.reap();
        self.look_at_folders().await?;
        let Parts { db, settings, .. } = &self.0.parts;
        let free = self.free_bytes();
        let room = free.is_none_or(|free| free >= settings.min_space_left.0);
        let running = self.running();
        let slots = (settings.jobs_at_once as usize).saturating_sub(running);
        self.say(state(room, running), free).await?;
        self.mind_the_disk(room, free).await;
        if !room || slots == 0 {
            return Ok(Step::Idle);
        }
        let claim = db.jobs().claim(&settings.channels, &self.0.parts.name, settings.lease.0).await?;
        let Some(claim) = claim else { return Ok(Step::Idle) };
        tracing::info!(job = %claim.job, attempt = claim.attempt, "took a job");
        self.begin(claim)?;
        Ok(Step::More)
    }

    /// Tells people when space runs out, and when there is some again.
    async fn mind_the_disk(&self, room: bool, free: Option<u64>) {
        let Parts { settings, name, folder, announcer, .. } = &self.0.parts;
        if self.0.full.swap(!room, Ordering::Relaxed) != room {
            return;
        }
        if room {
            tracing::info!(free_bytes = free, "there is space again; jobs are taken");
            return;
        }
        let word = format!(
            "the harvester {name} takes no jobs: {} are left for {}, {} are wanted; free some space, it goes on by itself",
            Size(free.unwrap_or_default()),
            folder.display(),
            settings.min_space_left
        );
        tracing::error!("{word}");
        if let Some(announcer) = announcer {
            announcer.report_error(name, &word).await;
        }
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

    fn free_bytes(&self) -> Option<u64> {
        let folder = &self.0.parts.folder;
        std::fs::create_dir_all(folder).ok()?;
        rustix::fs::statvfs(folder).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn running(&self) -> usize {
        lock(&self.0.busy).len()
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

    /// Begins with a job that was just claimed, in the folder of an earlier attempt if there is one.
    fn begin(&self, claim: JobClaim) -> Result<(), Error> {
        let old = self.folders()?.into_iter().find_map(|folder| {
            let info = folder.info().ok()?;
            (info.job.id == claim.job && !folder.is_reported()).then_some((folder, info))
        });
        let harvester = self.clone();
        if let Some((folder, info)) = old {
            self.spawn(folder.root().to_owned(), async move {
                let claim = harvester.adopt(&folder, info, claim).await?;
                harvester.bring_home(folder, Some(claim)).await
            });
        } else {
            let place = self.0.parts.folder.join(format!("{}_", claim.job));
            self.spawn(place, async move { harvester.new_job(claim).await });
        }
        Ok(())
    }

    /// Takes up what lies in folders that nobody works on: at the start, and every now and then.
    async fn look_at_folders(&self) -> Result<(), Error> {
        let Parts { clock, settings, .. } = &self.0.parts;
        let now = clock.now();
        let due = lock(&self.0.looked).is_none_or(|last| {
            Duration::try_from(now.duration_since(last)).is_ok_and(|gone| gone >= settings.folders_every.0)
        });
        if !due {
            return Ok(());
        }
        if self.running() == 0 {
            let base = &self.0.parts.folder;
            JobFolder::sweep(base).map_err(Error::io("tidy up", base))?;
        }
        for folder in self.folders()? {
            let info = match folder.info() {
                Ok(info) => info,
                Err(error) => {
                    tracing::error!(folder = folder.name(), %error, "this folder of a job cannot be read; look at it");
                    continue;
                }
            };
            let claim = if folder.is_reported() { None } else { self.regain(&folder, info).await? };
            tracing::info!(folder = folder.name(), resumed = claim.is_some(), "found the folder of a job");
            let harvester = self.clone();
            self.spawn(folder.root().to_owned(), async move { harvester.bring_home(folder, claim).await });
        }
        *lock(&self.0.looked) = Some(now);
        Ok(())
    }

    /// Lets the folders be looked at once whoever calls has let go of its own.
    pub(crate) fn look_again(&self) {
        self.0.again.store(true, Ordering::Relaxed);
    }

    /// The folders that nobody works on.
    fn folders(&self) -> Result<Vec<JobFolder>, Error> {
        let base = &self.0.parts.folder;
        let busy = lock(&self.0.busy).clone();
        // A job that is just being taken has a folder soon.
        let taken = |folder: &JobFolder| {
            let job = folder.name().split('_').next().map(|job| base.join(format!("{job}_")));
            busy.contains(folder.root()) || job.is_some_and(|job| busy.contains(&job))
        };
        let all = JobFolder::list(base).map_err(Error::io("list", base))?;
        Ok(all.into_iter().filter(|folder| !taken(folder)).collect())
    }

    /// The claim of a job whose folder was found: still ours, or to be had again. None if it is somebody else's or over.
    async fn regain(&self, folder: &JobFolder, info: HarvestInfo) -> Result<Option<JobClaim>, Error> {
        let Parts { db, settings, name, .. } = &self.0.parts;
        let (job, lease) = (info.job.id, settings.lease.0);
        let mine = JobClaim {
            job,
            token: info.claim_token,
            lease_until: Timestamp::UNIX_EPOCH,
            attempt: info.metadata_number,
        };
        let claim = match db.jobs().renew(&mine, lease).await {
            Ok(beat) => Some(JobClaim { lease_until: beat.lease_until, ..mine }),
            Err(grange_db::Error::LeaseLost { .. }) => db.jobs().take(job, name, lease).await?,
            Err(error) => return Err(error.into()),
        };
        match claim {
            Some(claim) => Ok(Some(self.adopt(folder, info, claim).await?)),
            None => Ok(None),
        }
    }

    /// Goes on with a folder under a claim that may be newer than it.
    async fn adopt(&self, folder: &JobFolder, info: HarvestInfo, claim: JobClaim) -> Result<JobClaim, Error> {
        let Parts { db, settings, .. } = &self.0.parts;
        if info.claim_token != claim.token {
            let info = HarvestInfo { claim_token: claim.token, ..info };
            folder.save_info(&info).map_err(Error::io("write", folder.root()))?;
        }
        let status = db.jobs().get(claim.job).await?.map(|job| job.status);
        if status == Some(JobStatus::Submitted) {
            db.jobs().start(&claim, settings.lease.0).await?;
        }
        Ok(claim)
    }

    fn spawn(&self, place: PathBuf, work: impl Future<Output = Result<(), Error>> + Send + 'static) {
        lock(&self.0.busy).insert(place.clone());
        let harvester = self.clone();
        lock(&self.0.jobs).spawn(async move {
            let _busy = Busy { harvester: &harvester, place: &place };
            if let Err(error) = work.await {
                // Its folder is there; it is taken up again.
                tracing::error!(folder = %place.display(), error = %Chain(&error), "the job could not be brought on");
            }
        });
    }

    pub(crate) fn operator(&self) -> Operator {
        let Parts { settings, host, .. } = &self.0.parts;
        Operator {
            operator: settings.operator.clone(),
            organization: settings.organization.clone(),
            contact_url: settings.contact_url.clone(),
            from: settings.from.clone(),
            host: host.clone(),
        }
    }
}

/// Marks a folder as being worked on.
struct Busy<'a> {
    harvester: &'a Harvester,
    place: &'a Path,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let harvester = &self.harvester.0;
        lock(&harvester.busy).remove(self.place);
        if harvester.again.swap(false, Ordering::Relaxed) {
            *lock(&harvester.looked) = None;
        }
        harvester.parts.hint.wake();
    }
}

/// What a harvester does, in one word.
fn state(room: bool, running: usize) -> HarvesterState {
    match (room, running) {
        (false, _) => HarvesterState::Full,
        (true, 0) => HarvesterState::Idle,
        (true, _) => HarvesterState::Busy,
    }
}

/// What these locks guard is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harvester_says_what_it_does() {
        for (room, running, says) in [
            (true, 0, HarvesterState::Idle),
            (true, 1, HarvesterState::Busy),
            (false, 0, HarvesterState::Full),
            (false, 1, HarvesterState::Full),
        ] {
            assert_eq!(state(room, running), says);
        }
    }
}
