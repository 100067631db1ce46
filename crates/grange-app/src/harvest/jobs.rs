//! Jobs as people look at them and what they do about them.

use grange_db::{HistoryFilter, JobFilter};
use grange_model::account::Permission;
use grange_model::harvest::{HistoryEntry, Job, JobConfiguration, JobId, Progress};

use crate::{App, Error, Who};

/// Statistics of a job shown at once: as many as a job has configurations by default.
const STATISTICS_MAX: u32 = 10_000;

impl App {
    pub async fn jobs(&self, who: &Who, filter: &JobFilter) -> Result<Vec<Job>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.jobs().list(filter).await?)
    }

    pub async fn job(&self, who: &Who, id: JobId) -> Result<Job, Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "job", name: id.to_string() };
        self.db.jobs().get(id).await?.ok_or_else(missing)
    }

    /// The configurations of a job with seeds and traps, and what was harvested of them so far.
    pub async fn job_configurations(
        &self,
        who: &Who,
        id: JobId,
    ) -> Result<(Vec<JobConfiguration>, Vec<HistoryEntry>), Error> {
        who.needs(Permission::View)?;
        let filter =
            HistoryFilter { domain: None, configuration: None, job: Some(id), limit: STATISTICS_MAX };
        Ok((self.db.jobs().configurations(id).await?, self.db.domains().history(&filter).await?))
    }

    pub async fn job_progress(
        &self,
        who: &Who,
        id: JobId,
    ) -> Result<(Option<Progress>, Vec<Progress>), Error> {
        who.needs(Permission::View)?;
        Ok((self.db.jobs().progress_of(id).await?, self.db.jobs().samples_of(id).await?))
    }

    /// Plans failed jobs anew: all of them or none.
    pub async fn resubmit_jobs(&self, who: &Who, ids: Vec<JobId>) -> Result<Vec<JobId>, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.jobs().resubmit(ids, &who.actor()).await?)
    }

    pub async fn reject_job(&self, who: &Who, id: JobId, reject: bool) -> Result<Job, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.jobs().reject(id, reject, &who.actor()).await?)
    }

    pub async fn cancel_job(&self, who: &Who, id: JobId) -> Result<Job, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.jobs().cancel(id, &who.actor()).await?)
    }
}
