//! Harvest definitions: made, filled, previewed, put into service.

use grange_db::{Added, HarvestChange, NewHarvest};
use grange_model::account::Permission;
use grange_model::harvest::{
    BadLine, DomainName, HarvestDefinition, HarvestKind, Limits, Name, Run, event_seeds, trap,
};
use grange_schedule::Preview;
use jiff::Timestamp;

use super::{bad_lines, parsed};
use crate::{App, Error, Who};

/// Runs shown at once.
const RUNS_MAX: u32 = 1000;

impl App {
    pub async fn harvests(
        &self,
        who: &Who,
        kind: Option<HarvestKind>,
    ) -> Result<Vec<HarvestDefinition>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.harvests().list(kind).await?)
    }

    pub async fn harvest(&self, who: &Who, name: &str) -> Result<HarvestDefinition, Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "harvest", name: name.to_owned() };
        let name: Name = name.parse().map_err(|_| missing())?;
        self.db.harvests().get(&name).await?.ok_or_else(missing)
    }

    /// Makes a harvest, out of service. The traps are checked here.
    pub async fn create_harvest(&self, who: &Who, new: NewHarvest) -> Result<HarvestDefinition, Error> {
        who.needs(Permission::EditHarvests)?;
        trap::parse(&new.traps.join("\n")).map_err(|bad| bad_lines("the traps", bad))?;
        Ok(self.db.harvests().create(new, &who.actor()).await?)
    }

    pub async fn change_harvest(
        &self,
        who: &Who,
        name: &str,
        change: HarvestChange,
        edition: Option<i64>,
    ) -> Result<HarvestDefinition, Error> {
        who.needs(Permission::EditHarvests)?;
        let traps = change.traps.clone().unwrap_or_default().join("\n");
        trap::parse(&traps).map_err(|bad| bad_lines("the traps", bad))?;
        let changed = self.db.harvests().change(&parsed(name)?, change, edition, &who.actor()).await?;
        self.wake_scheduler(name).await;
        Ok(changed)
    }

    /// Puts a harvest into service or out of it.
    pub async fn set_harvest_active(
        &self,
        who: &Who,
        name: &str,
        active: bool,
        edition: Option<i64>,
    ) -> Result<HarvestDefinition, Error> {
        who.needs(Permission::EditHarvests)?;
        let changed = self.db.harvests().set_active(&parsed(name)?, active, edition, &who.actor()).await?;
        self.wake_scheduler(name).await;
        Ok(changed)
    }

    /// Puts a selective harvest into service with its next run now.
    pub async fn run_harvest_now(&self, who: &Who, name: &str) -> Result<HarvestDefinition, Error> {
        who.needs(Permission::EditHarvests)?;
        let definition = self.harvest(who, name).await?;
        if definition.kind == HarvestKind::Selective {
            let now = Timestamp::from_second(self.clock.now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
            let change = HarvestChange { next_at: Some(now), ..HarvestChange::default() };
            self.db.harvests().change(&definition.name, change, None, &who.actor()).await?;
        }
        self.set_harvest_active(who, name, true, None).await
    }

    /// Adds `domain` or `domain/configuration` to a selective harvest. Unknown domains are created if asked, else told.
    pub async fn add_to_harvest(
        &self,
        who: &Who,
        name: &str,
        wanted: &[String],
        create: bool,
    ) -> Result<Added, Error> {
        who.needs(Permission::EditHarvests)?;
        let wanted = wanted.iter().map(|text| member(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.db.harvests().add_domains(&parsed(name)?, wanted, create, &who.actor()).await?)
    }

    pub async fn remove_from_harvest(&self, who: &Who, name: &str, wanted: &[String]) -> Result<u64, Error> {
        who.needs(Permission::EditHarvests)?;
        let wanted = wanted.iter().map(|text| member(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.db.harvests().remove_domains(&parsed(name)?, wanted, &who.actor()).await?)
    }

    pub async fn harvest_members(&self, who: &Who, name: &str) -> Result<Vec<(DomainName, Name)>, Error> {
        let definition = self.harvest(who, name).await?;
        Ok(self.db.harvests().members(&definition.name).await?)
    }

    /// Adds pasted seeds: their domains, configurations and seed lists are made as needed. Bad lines are told.
    pub async fn add_event_seeds(
        &self,
        who: &Who,
        name: &str,
        text: &str,
        template: &Name,
        limits: Limits,
    ) -> Result<(Added, Vec<BadLine>), Error> {
        who.needs(Permission::EditHarvests)?;
        let sorted = event_seeds::sort(text);
        let (harvests, name) = (self.db.harvests(), parsed(name)?);
        let added = harvests.add_event_seeds(&name, sorted.by_domain, template, limits, &who.actor()).await?;
        Ok((added, sorted.bad))
    }

    /// What the next run would amount to.
    pub async fn preview_harvest(&self, who: &Who, name: &str) -> Result<Preview, Error> {
        let definition = self.harvest(who, name).await?;
        Ok(grange_schedule::preview(&self.db, &self.harvesting.settings, &definition).await?)
    }

    pub async fn runs(&self, who: &Who, name: &str) -> Result<Vec<Run>, Error> {
        let definition = self.harvest(who, name).await?;
        Ok(self.db.harvests().runs(&definition.name, RUNS_MAX).await?)
    }
}

fn member(text: &str) -> Result<(DomainName, Option<Name>), Error> {
    match text.split_once('/') {
        Some((domain, configuration)) => Ok((parsed(domain)?, Some(parsed(configuration)?))),
        None => Ok((parsed(text)?, None)),
    }
}
