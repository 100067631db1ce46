//! Harvests and their history.

use grange_db::{NewOaiJob, OaiHistoryFilter};
use grange_model::account::Permission;
use grange_model::oai::{HarvestSpec, HistoryId, HistoryLine, OaiJob, OaiJobId, Outcome, RepositoryId};

use crate::{App, Error, Who};

/// The longest set spec that can be harvested by itself. It is part of a key, whose rows PostgreSQL limits to 2,704 bytes.
const SET_BYTES_MAX: usize = 1_000;

impl App {
    /// Plans one harvest, as soon as may be.
    pub async fn oai_harvest(
        &self,
        who: &Who,
        repository: RepositoryId,
        spec: HarvestSpec,
    ) -> Result<OaiJob, Error> {
        who.needs(Permission::EditHarvests)?;
        self.check_oai_spec(who, repository, &spec).await?;
        let new = NewOaiJob { repository, spec, due_at: self.clock.now() };
        let job = self.db.oai_jobs().add(new, &who.actor()).await?;
        self.oai()?.wake();
        Ok(job)
    }

    pub(super) async fn check_oai_spec(
        &self,
        who: &Who,
        repository: RepositoryId,
        spec: &HarvestSpec,
    ) -> Result<(), Error> {
        let (known, _) = self.oai_repository(who, repository).await?;
        let formats = &known.said.formats;
        if !formats.iter().any(|format| format.prefix == spec.prefix) {
            let names: Vec<_> = formats.iter().map(|format| format.prefix.as_str()).collect();
            let names = names.join(", ");
            let text = format!("repository {repository} does not offer {}: choose from {names}", spec.prefix);
            return Err(Error::Invalid(text));
        }
        if spec.from.zip(spec.until).is_some_and(|(from, until)| until < from) {
            return Err(Error::Invalid("the harvest ends before it begins".to_owned()));
        }
        if spec.set.as_ref().is_some_and(|set| set.len() > SET_BYTES_MAX) {
            let text = format!("the set spec is longer than {SET_BYTES_MAX} bytes: harvest a set above it");
            return Err(Error::Invalid(text));
        }
        self.oai()?.check(spec).map_err(Error::Invalid)
    }

    pub async fn oai_jobs(&self, who: &Who, repository: Option<RepositoryId>) -> Result<Vec<OaiJob>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.oai_jobs().list(repository).await?)
    }

    /// A job that waits or runs, or how it ended. With `attend`, somebody waits for it.
    pub async fn oai_job(
        &self,
        who: &Who,
        id: OaiJobId,
        attend: bool,
    ) -> Result<(Option<OaiJob>, Option<HistoryLine>), Error> {
        who.needs(Permission::View)?;
        if attend {
            self.oai()?.attend();
        }
        if let Some(job) = self.db.oai_jobs().get(id).await? {
            return Ok((Some(job), None));
        }
        let filter = OaiHistoryFilter { job: Some(id), ..OaiHistoryFilter::default() };
        let history = self.db.oai_history().list(&filter).await?;
        let line = history.into_iter().find(|line| line.outcome != Outcome::Warning);
        let missing = || Error::NotFound { noun: "harvest of metadata", name: id.to_string() };
        Ok((None, Some(line.ok_or_else(missing)?)))
    }

    /// Deletes a job; one that runs is stopped first.
    pub async fn delete_oai_job(&self, who: &Who, id: OaiJobId) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.oai_jobs().delete(id, &who.actor()).await?)
    }

    pub async fn oai_history(&self, who: &Who, filter: &OaiHistoryFilter) -> Result<Vec<HistoryLine>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.oai_history().list(filter).await?)
    }

    pub async fn delete_oai_history(&self, who: &Who, lines: &[HistoryId]) -> Result<u64, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.oai_history().delete(lines, &who.actor()).await?)
    }
}
