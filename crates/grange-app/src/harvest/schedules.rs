//! Schedules.

use grange_model::account::Permission;
use grange_model::harvest::{Name, Schedule};
use jiff::Timestamp;

use super::parsed;
use crate::{App, Error, Who};

impl App {
    pub async fn schedules(&self, who: &Who) -> Result<Vec<(Schedule, i64)>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.schedules().list().await?)
    }

    pub async fn schedule(&self, who: &Who, name: &str) -> Result<(Schedule, i64), Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "schedule", name: name.to_owned() };
        let name: Name = name.parse().map_err(|_| missing())?;
        self.db.schedules().get(&name).await?.ok_or_else(missing)
    }

    pub async fn save_schedule(
        &self,
        who: &Who,
        schedule: Schedule,
        edition: Option<i64>,
    ) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        schedule.check().map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(self.db.schedules().save(schedule, edition, &who.actor()).await?)
    }

    pub async fn delete_schedule(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.schedules().delete(&parsed(name)?, &who.actor()).await?)
    }

    /// The dates a harvest made now would run at.
    pub async fn schedule_dates(&self, who: &Who, name: &str, count: usize) -> Result<Vec<Timestamp>, Error> {
        let (schedule, _) = self.schedule(who, name).await?;
        let wrong = |error: grange_model::harvest::ScheduleError| Error::Invalid(error.to_string());
        let mut at = schedule.first(self.clock.now()).map_err(wrong)?;
        let mut dates = Vec::new();
        while let Some(due) = at.filter(|_| dates.len() < count) {
            dates.push(due);
            at = schedule.next(due, dates.len() as u64, due).map_err(wrong)?.at;
        }
        Ok(dates)
    }
}
