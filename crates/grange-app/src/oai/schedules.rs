//! Recurring jobs.

use grange_db::NewRecurring;
use grange_model::account::Permission;
use grange_model::oai::{RecurringId, RecurringJob, RepositoryId};

use crate::{App, Error, Who};

impl App {
    pub async fn oai_schedules(
        &self,
        who: &Who,
        repository: Option<RepositoryId>,
    ) -> Result<Vec<RecurringJob>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.oai_recurring().list(repository).await?)
    }

    pub async fn add_oai_schedule(&self, who: &Who, new: NewRecurring) -> Result<RecurringJob, Error> {
        who.needs(Permission::EditHarvests)?;
        self.check_oai_schedule(who, &new).await?;
        let made = self.db.oai_recurring().add(new, &who.actor()).await?;
        self.oai()?.wake();
        Ok(made)
    }

    pub async fn change_oai_schedule(
        &self,
        who: &Who,
        id: RecurringId,
        new: NewRecurring,
        edition: Option<i64>,
    ) -> Result<RecurringJob, Error> {
        who.needs(Permission::EditHarvests)?;
        self.check_oai_schedule(who, &new).await?;
        let changed = self.db.oai_recurring().change(id, new, edition, &who.actor()).await?;
        self.oai()?.wake();
        Ok(changed)
    }

    pub async fn delete_oai_schedule(&self, who: &Who, id: RecurringId) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.oai_recurring().delete(id, &who.actor()).await?)
    }

    async fn check_oai_schedule(&self, who: &Who, new: &NewRecurring) -> Result<(), Error> {
        if new.every.is_some_and(|every| every.count == 0) {
            return Err(Error::Invalid("a rhythm counts from 1".to_owned()));
        }
        if new.ends_at.is_some_and(|end| end < new.starts_at) {
            return Err(Error::Invalid("the schedule ends before it begins".to_owned()));
        }
        if new.spec.accept_deletions {
            let text =
                "cannot accept deletions in a schedule: ask for one harvest with accept_deletions instead";
            return Err(Error::Invalid(text.to_owned()));
        }
        self.check_oai_spec(who, new.repository, &new.spec).await
    }
}
