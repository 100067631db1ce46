//! One job, from its claim to an empty folder.

use std::io;

use grange_base::Chain;
use grange_db::{Afterwards, JobClaim, JobReport};
use grange_model::harvest::JobId;
use tokio::sync::watch;

use crate::deposit::PAUSES;
use crate::engine::EngineError;
use crate::folder::{HarvestInfo, JobFolder, OUTCOME};
use crate::harvester::{Error, Harvester, Parts, lock};
use crate::pulse::Pulse;
use crate::report::{Cause, Ending, found_afterwards, report};
use crate::store::Stored;

impl Harvester {
    /// A job that was just claimed: makes its folder, and goes on from there.
    pub(crate) async fn new_job(&self, claim: JobClaim, task: u64) -> Result<(), Error> {
        let Parts { db, settings, alias_lifetime, .. } = self.parts();
        let spec = db.jobs().spec(claim.job, *alias_lifetime).await?;
        // An older database may have forgotten attempts whose metadata files the archive has; those of folders here may still
        // be on their way to it.
        let stored = db.highest_metadata_number(claim.job).await?;
        let number = claim.attempt.max(1 + stored.max(self.highest_number_here(claim.job)));
        let folder = match self.prepare(&claim, spec, number) {
            Ok(folder) => {
                self.open_gate();
                lock(&self.0.active).set_folder(task, folder.root());
                folder
            }
            Err(EngineError::Job(reason)) => {
                // It would fail anywhere: there is nothing to store, and a person must look at it.
                tracing::warn!(job = %claim.job, reason, "the job cannot be crawled");
                let report = JobReport { harvest_errors: Some(reason), ..JobReport::default() };
                db.jobs().finish(&claim, report).await?;
                self.tell_ended(&claim).await;
                return Ok(());
            }
            Err(error) => {
                let reason = Chain(&error).to_string();
                tracing::error!(job = %claim.job, error = reason, "the job cannot be prepared here");
                // Before the job is free: it must not be taken again at once.
                self.close_gate(&reason).await;
                db.jobs().release(&claim).await?;
                return Ok(());
            }
        };
        db.jobs().start(&claim, settings.lease.0).await?;
        self.bring_home(folder, Some(claim)).await
    }

    /// The highest number of a metadata file that a folder of the job has.
    fn highest_number_here(&self, job: JobId) -> u32 {
        let folders = JobFolder::list(&self.parts().folder).unwrap_or_default();
        let numbers =
            folders.iter().filter(|folder| folder.job() == Some(job)).filter_map(|folder| folder.info().ok());
        numbers.map(|info| info.metadata_number).max().unwrap_or_default()
    }

    /// Brings a folder as far as it goes: crawl, papers, deposit, report. Without a claim what is there is only closed,
    /// documented and stored. Every step can be repeated.
    pub(crate) async fn bring_home(&self, folder: JobFolder, claim: Option<JobClaim>) -> Result<(), Error> {
        let Parts { db, clock, settings, .. } = self.parts();
        let info = folder.info().map_err(Error::io("read", folder.root()))?;
        let (tell, signs) = watch::channel(None);
        let pulse = claim
            .clone()
            .map(|claim| Pulse::start(db.clone(), clock.clone(), settings, claim, signs.clone()));
        let ending = match folder.load::<Ending>(OUTCOME) {
            Ok(ending) => ending,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(ending) = self.crawl(&folder, &info, pulse.as_ref(), &tell).await? else {
                    return Ok(());
                };
                if !self.save_ending(&folder, &ending, pulse.as_ref()).await? {
                    return Ok(());
                }
                ending
            }
            Err(error) => return Err(Error::io("read", folder.root())(error)),
        };
        // From here on the harvester lives, but there is no crawl to tell of.
        tell.send_replace(None);
        // Nor is its place needed any more: its files are safe in the folder, whatever the archive does.
        self.free_slot(&folder);
        self.note_waiting(&folder, &info, None).await;
        let depositing = async {
            let _permit = self.0.deposit_permits.acquire().await;
            self.store_all(&folder, &info).await
        };
        let Some(stored) = self.0.shutdown.or(depositing).await else { return Ok(()) };
        drop(pulse);
        if folder.is_reported() {
            self.tell_stored(&info, &stored).await?;
        } else {
            self.tell_end(&info, claim.as_ref(), &ending, &stored).await?;
            folder.set_reported().map_err(Error::io("write", folder.root()))?;
        }
        if stored.is_whole() {
            folder.remove().map_err(Error::io("remove", folder.root()))?;
            self.forget_waiting(&folder).await
        } else {
            let reason =
                stored.failures.first().map(|failure| failure.reason.as_str()).or(stored.papers.as_deref());
            self.note_waiting(&folder, &info, reason).await;
            Ok(())
        }
    }

    /// Keeps how the crawl ended before anything of it goes. On a full disk that is waited for while the job is ours. False
    /// if this process ends.
    async fn save_ending(
        &self,
        folder: &JobFolder,
        ending: &Ending,
        pulse: Option<&Pulse>,
    ) -> Result<bool, Error> {
        loop {
            let Err(error) = folder.save(OUTCOME, ending) else { return Ok(true) };
            let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let Some(pulse) = pulse.filter(|_| full) else {
                return Err(Error::io("write", folder.root())(error));
            };
            tracing::error!(folder = folder.name(), %error, "the end of the crawl cannot be noted; waiting for space");
            match self.wait_under(pulse, PAUSES.most).await {
                None => return Ok(false),
                Some(Some(Cause::LeaseLost)) => return Err(Error::io("write", folder.root())(error)),
                Some(_) => {}
            }
        }
    }

    /// Reports the job. What is found of one that is over, or somebody else's, is added to what is known of it.
    async fn tell_end(
        &self,
        info: &HarvestInfo,
        claim: Option<&JobClaim>,
        ending: &Ending,
        stored: &Stored,
    ) -> Result<(), Error> {
        let Parts { db, name, .. } = self.parts();
        let Stored { files, failures, papers } = stored;
        if let Some(claim) = claim {
            let cancelled = match ending.cause {
                Some(Cause::Cancelled) => db.jobs().get(claim.job).await?.and_then(|job| job.harvest_errors),
                _ => None,
            };
            let report = report(ending, cancelled.as_deref(), papers.as_deref(), *files, failures);
            let finished = db.jobs().finish(claim, report).await;
            match finished {
                Ok(reported) => {
                    tracing::info!(job = %claim.job, done = reported.done, "the job is reported");
                    self.tell_ended(claim).await;
                    return Ok(());
                }
                Err(grange_db::Error::LeaseLost { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let said = Afterwards {
            harvest: Some(found_afterwards(name, info.metadata_number, *files, failures)),
            upload: None,
            domains: ending.domains.clone(),
        };
        let kept = db.jobs().tell_afterwards(info.job.id, said).await?;
        tracing::warn!(job = %info.job.id, domains = kept, "the job is somebody else's or over; what was left of it is stored");
        Ok(())
    }

    /// The files of a job that was reported are stored at last.
    async fn tell_stored(&self, info: &HarvestInfo, stored: &Stored) -> Result<(), Error> {
        let Parts { db, clock, name, .. } = self.parts();
        if stored.is_whole() {
            let now = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ");
            let upload =
                format!("{now}: the harvester {name} has stored what was left; every replica is proven");
            tracing::info!(job = %info.job.id, "what was left of the job is stored");
            let said = Afterwards { upload: Some(upload), ..Afterwards::default() };
            db.jobs().tell_afterwards(info.job.id, said).await?;
        }
        Ok(())
    }

    async fn tell_ended(&self, claim: &JobClaim) {
        if let Some(announcer) = &self.parts().announcer {
            announcer.hint(&announcer.channels().harvestmon(), "job-ended", &claim.job.to_string()).await;
        }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }
}
