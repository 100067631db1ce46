//! Seed lists of a domain.

use grange_model::account::Permission;
use grange_model::harvest::{SeedList, seeds};

use super::{bad_lines, parsed};
use crate::{App, Error, Who};

impl App {
    pub async fn seed_lists(&self, who: &Who, domain: &str) -> Result<Vec<SeedList>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.domains().seed_lists(&parsed(domain)?).await?)
    }

    /// Makes or replaces a seed list. Every line that is no seed, comment or blank is told, and nothing kept.
    pub async fn save_seeds(
        &self,
        who: &Who,
        domain: &str,
        name: &str,
        text: &str,
        comments: &str,
        edition: Option<i64>,
    ) -> Result<SeedList, Error> {
        who.needs(Permission::EditHarvests)?;
        let active = seeds::active(text).map_err(|bad| bad_lines("the seed list", bad))?;
        let (domain, name) = (parsed(domain)?, parsed(name)?);
        let domains = self.db.domains();
        Ok(domains.save_seeds(&domain, &name, text, &active, comments, edition, &who.actor()).await?)
    }

    pub async fn delete_seeds(&self, who: &Who, domain: &str, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.domains().delete_seeds(&parsed(domain)?, &parsed(name)?, &who.actor()).await?)
    }
}
