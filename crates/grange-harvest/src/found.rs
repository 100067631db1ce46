//! Folders that nobody works on: those of jobs that are claimed again, and those that a killed harvester left.

use std::sync::atomic::Ordering;
use std::time::Duration;

use grange_db::JobClaim;
use grange_model::HighestNumbers;
use grange_model::harvest::JobStatus;
use jiff::Timestamp;

use crate::folder::{HarvestInfo, JobFolder};
use crate::harvester::{Error, Harvester, Parts, Phase, lock};

impl Harvester {
    /// Begins with a job that was just claimed, in the folder of an earlier attempt if there is one.
    pub(crate) fn begin(&self, claim: JobClaim) -> Result<(), Error> {
        let old = self.folders()?.into_iter().find_map(|folder| {
            let info = folder.info().ok()?;
            (info.job.id == claim.job && !folder.is_reported()).then_some((folder, info))
        });
        let harvester = self.clone();
        if let Some((folder, info)) = old {
            self.spawn(folder.root().to_owned(), phase_of(&folder), async move {
                let claim = harvester.adopt(&folder, info, claim).await?;
                harvester.bring_home(folder, Some(claim)).await
            });
        } else {
            let place = self.0.parts.folder.join(format!("{}_", claim.job));
            self.spawn(place, Phase::Crawling, async move { harvester.new_job(claim).await });
        }
        Ok(())
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
            let claim = if folder.is_reported() { None } else { self.regain(&folder, info).await? };
            tracing::info!(folder = folder.name(), resumed = claim.is_some(), "found the folder of a job");
            let harvester = self.clone();
            let (place, phase) = (folder.root().to_owned(), phase_of(&folder));
            self.spawn(place, phase, async move { harvester.bring_home(folder, claim).await });
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
        let busy = lock(&self.0.busy).clone();
        // A job that is just being taken has a folder soon.
        let taken = |folder: &JobFolder| {
            let job = folder.name().split('_').next().map(|job| base.join(format!("{job}_")));
            busy.contains_key(folder.root()) || job.is_some_and(|job| busy.contains_key(&job))
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
}

/// What is left to do in a folder that was found.
fn phase_of(folder: &JobFolder) -> Phase {
    if folder.has_ended() { Phase::Depositing } else { Phase::Crawling }
}
