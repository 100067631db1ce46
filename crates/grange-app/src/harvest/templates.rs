//! Templates.

use grange_model::account::Permission;
use grange_model::harvest::{Name, Template, template};

use super::parsed;
use crate::{App, Error, Who};

impl App {
    pub async fn templates(&self, who: &Who) -> Result<Vec<Template>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.templates().list().await?)
    }

    pub async fn template(&self, who: &Who, name: &str, version: Option<u32>) -> Result<Template, Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "template", name: name.to_owned() };
        let name: Name = name.parse().map_err(|_| missing())?;
        self.db.templates().get(&name, version).await?.ok_or_else(missing)
    }

    /// Keeps a text as the newest version, after the crawl engine found nothing wrong with it.
    pub async fn put_template(
        &self,
        who: &Who,
        name: &str,
        text: &str,
        comments: &str,
    ) -> Result<Template, Error> {
        who.needs(Permission::EditHarvests)?;
        let name: Name = parsed(name)?;
        let refused =
            |reason: String| Error::Invalid(format!("the template {name} cannot be used: {reason}"));
        template::plain_check(text).map_err(refused)?;
        (self.harvesting.template_check)(text).map_err(refused)?;
        Ok(self.db.templates().put(&name, text, comments, &who.actor()).await?)
    }

    pub async fn set_template_active(&self, who: &Who, name: &str, active: bool) -> Result<Template, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.templates().set_active(&parsed(name)?, active, &who.actor()).await?)
    }
}
