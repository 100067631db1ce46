//! Folders that nobody works on: those of jobs that are claimed again, and those that a killed harvester left.

use std::sync::atomic::Ordering;
use std::time::Duration;

use grange_base::Chain;
use grange_db::JobClaim;
use grange_model::HighestNumbers;
use grange_model::harvest::JobStatus;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::active_work::Phase;
use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts, lock};
use crate::pulse::Pulse;

impl Harvester {
    /// Begins with a job that was just claimed, in the folder of an earlier attempt if there is one.
    pub(crate) fn begin(&self, claim: JobClaim) {
        self.spawn(claim.job, None, Phase::Crawling, |harvester, task| async move {
            if !harvester.wait_for_earlier_task(&claim, task).await {
                return Ok(());
            }
            let base = &harvester.parts().folder;
            let listed = JobFolder::list(base).map_err(Error::io("list", base));
            let folders = match listed {
                Ok(folders) => folders,
                Err(error) => return harvester.give_back(&claim, error).await,
            };
            let old =
                folders.into_iter().filter(|folder| folder.job() == Some(claim.job)).find_map(|folder| {
                    let info = folder.info().ok()?;
                    (info.job.id == claim.job && !folder.is_reported()).then_some((folder, info))
                });
            match old {
                Some((folder, info)) => {
                    lock(&harvester.0.active).set_folder(task, folder.root());
                    if folder.has_ended() {
                        harvester.free_slot(&folder);
                    }
                    harvester.go_on(folder, info, claim, task).await
                }
                None => harvester.new_job(claim, task).await,
            }
        });
    }

    /// Waits until no task that began before works on the job any more: a crawl whose lease was lost may be about to stop, in
    /// the folder that the job goes on in. The claim is kept meanwhile. False if it was lost, or if this process ends.
    async fn wait_for_earlier_task(&self, claim: &JobClaim, task: u64) -> bool {
        let is_busy = || lock(&self.0.active).is_busy_before(claim.job, task);
        if !is_busy() {
            return true;
        }
        tracing::info!(job = %claim.job, "this harvester still works on the job under an earlier claim: waiting for that to end");
        let (_nothing, signs) = watch::channel(None);
        let Parts { db, clock, settings, .. } = self.parts();
        let pulse = Pulse::start(db.clone(), clock.clone(), settings, claim.clone(), signs);
        let mut heard = pulse.listen();
        loop {
            let mut ended = std::pin::pin!(self.0.task_ended.notified());
            ended.as_mut().enable();
            if !is_busy() {
                return true;
            }
            tokio::select! {
                () = ended => {}
                Ok(_) = heard.wait_for(|heard| heard.lost) => return false,
                () = self.0.shutdown.wait() => return false,
            }
        }
    }

    /// Gives back a job whose folder cannot be used. Neither this attempt nor any other job is used up by that.
    async fn give_back(&self, claim: &JobClaim, error: Error) -> Result<(), Error> {
        let reason = Chain(&error).to_string();
        self.close_gate(&reason).await;
        self.parts().db.jobs().release(claim).await?;
        Err(error)
    }

    /// Takes up what lies in folders that nobody works on: at the start, and every now and then.
    pub(crate) async fn look_at_folders(&self) -> Result<(), Error> {
        let Parts { clock, settings, .. } = &self.0.parts;
        let now = clock.now();
        let due = lock(&self.0.looked).is_none_or(|last| {
            Duration::try_from(now.duration_since(last)).is_ok_and(|gone| gone >= settings.folders_every.0)
        });
        if !due {
            return Ok(());
        }
        let base = &self.0.parts.folder;
        if self.crawling() == 0 {
            JobFolder::sweep(base).map_err(Error::io("tidy up", base))?;
        }
        if lock(&self.0.looked).is_none() {
            self.note_folders().await?;
        }
        for folder in self.folders()? {
            let info = match folder.info() {
                Ok(info) => info,
                Err(error) => {
                    tracing::error!(folder = folder.name(), %error, "this folder of a job cannot be read; look at it");
                    continue;
                }
            };
            let claim = if folder.is_reported() { None } else { self.regain(&info).await? };
            tracing::info!(folder = folder.name(), resumed = claim.is_some(), "found the folder of a job");
            let (job, phase) = (info.job.id, phase_of(&folder));
            match claim {
                Some(claim) => self.spawn(job, Some(&folder.clone()), phase, |harvester, task| async move {
                    harvester.go_on(folder, info, claim, task).await
                }),
                None => self.spawn(job, Some(&folder.clone()), phase, |harvester, _| async move {
                    harvester.bring_home(folder, None).await
                }),
            }
        }
        *lock(&self.0.looked) = Some(now);
        Ok(())
    }

    /// At the start: numbers in the names of folders are not given again, whatever the database knows; and folders that
    /// are gone do not wait any more.
    async fn note_folders(&self) -> Result<(), Error> {
        let Parts { db, name, folder: base, .. } = &self.0.parts;
        let folders = JobFolder::list(base).map_err(Error::io("list", base))?;
        let mut highest = HighestNumbers::default();
        for folder in &folders {
            highest.see_job_folder(&folder.name());
        }
        if db.raise_numbers(highest).await? {
            tracing::warn!(
                job = highest.job,
                "a job folder has a higher number than any job of the database, which may be older than this folder; jobs are numbered above it"
            );
        }
        let names: Vec<_> = folders.iter().map(JobFolder::name).collect();
        Ok(db.deposits().retain(name, &names).await?)
    }

    /// Lets the folders be looked at once whoever calls has let go of its own.
    pub(crate) fn look_again(&self) {
        self.0.again.store(true, Ordering::Relaxed);
    }

    /// The folders that nobody works on.
    fn folders(&self) -> Result<Vec<JobFolder>, Error> {
        let base = &self.0.parts.folder;
        let mut all = JobFolder::list(base).map_err(Error::io("list", base))?;
        let active = lock(&self.0.active);
        all.retain(|folder| !active.holds(folder.job(), folder.root()));
        Ok(all)
    }

    /// The claim of a job whose folder was found: still ours, or to be had again. None if it is somebody else's or over.
    async fn regain(&self, info: &HarvestInfo) -> Result<Option<JobClaim>, Error> {
        let Parts { db, settings, name, .. } = &self.0.parts;
        let (job, lease) = (info.job.id, settings.lease.0);
        let mine = JobClaim {
            job,
            token: info.claim_token,
            lease_until: Timestamp::UNIX_EPOCH,
            attempt: info.attempt,
        };
        match db.jobs().renew(&mine, lease).await {
            Ok(beat) => Ok(Some(JobClaim { lease_until: beat.lease_until, ..mine })),
            Err(grange_db::Error::LeaseLost { .. }) => Ok(db.jobs().take(job, name, lease).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with a folder under a claim that may be newer than it. If another harvester had the job in between, it has
    /// stored captures that this folder knows nothing of: what is here is stored too, and a new folder goes on from both.
    async fn go_on(
        &self,
        folder: JobFolder,
        info: HarvestInfo,
        claim: JobClaim,
        task: u64,
    ) -> Result<(), Error> {
        if info.attempt == 0 || claim.attempt <= info.attempt + 1 {
            self.adopt(&folder, info, &claim).await?;
            return self.bring_home(folder, Some(claim)).await;
        }
        tracing::warn!(
            job = %claim.job,
            folder = folder.name(),
            "another harvester had the job since this folder was left: its files are stored, and the job goes on in a new one"
        );
        lock(&self.0.active).choose_again(task);
        let (_nothing, signs) = watch::channel(None);
        let Parts { db, clock, settings, .. } = self.parts();
        let pulse = Pulse::start(db.clone(), clock.clone(), settings, claim.clone(), signs);
        if let Err(error) = self.bring_home(folder, None).await {
            return self.give_back(&claim, error).await;
        }
        if self.0.shutdown.requested() || pulse.listen().borrow().lost {
            return Ok(());
        }
        drop(pulse);
        self.new_job(claim, task).await
    }

    /// Notes in the folder under which claim it is worked on.
    async fn adopt(&self, folder: &JobFolder, info: HarvestInfo, claim: &JobClaim) -> Result<(), Error> {
        let Parts { db, settings, .. } = &self.0.parts;
        if info.claim_token != claim.token {
            let info = HarvestInfo { claim_token: claim.token, attempt: claim.attempt, ..info };
            if let Err(error) = folder.save_info(&info).map_err(Error::io("write", folder.root())) {
                return self.give_back(claim, error).await;
            }
        }
        let status = db.jobs().get(claim.job).await?.map(|job| job.status);
        if status == Some(JobStatus::Submitted) {
            db.jobs().start(claim, settings.lease.0).await?;
        }
        Ok(())
    }
}

/// What is left to do in a folder that was found.
fn phase_of(folder: &JobFolder) -> Phase {
    if folder.has_ended() { Phase::Depositing } else { Phase::Crawling }
}
