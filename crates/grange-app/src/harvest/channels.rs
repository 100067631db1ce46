//! Channels and harvesters.

use grange_db::NewChannel;
use grange_model::account::Permission;
use grange_model::harvest::{Channel, Harvester};

use super::parsed;
use crate::{App, Error, Who};

impl App {
    pub async fn channels(&self, who: &Who) -> Result<Vec<Channel>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.channels().list(self.harvesting.settings.harvester_lost_after.0).await?)
    }

    pub async fn harvesters(&self, who: &Who) -> Result<Vec<Harvester>, Error> {
        who.needs(Permission::ReadSystem)?;
        Ok(self.db.channels().harvesters(self.harvesting.settings.harvester_lost_after.0).await?)
    }

    pub async fn create_channel(&self, who: &Who, new: NewChannel) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.channels().create(new, &who.actor()).await?)
    }

    pub async fn set_default_channel(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.channels().set_default(&parsed(name)?, &who.actor()).await?)
    }

    pub async fn delete_channel(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.channels().delete(&parsed(name)?, &who.actor()).await?)
    }
}
