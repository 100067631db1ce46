//! Global trap lists and the tester.

use grange_model::account::Permission;
use grange_model::harvest::trap::{self, TrapTester};
use grange_model::harvest::{TrapHits, TrapList};

use super::{bad_lines, parsed};
use crate::{App, Error, Who};

impl App {
    pub async fn trap_lists(&self, who: &Who) -> Result<Vec<TrapList>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.traps().list().await?)
    }

    pub async fn trap_list(&self, who: &Who, name: &str) -> Result<TrapList, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.traps().get(&parsed(name)?).await?)
    }

    /// Makes or replaces a list; `text` has an expression per line.
    pub async fn save_traps(
        &self,
        who: &Who,
        name: &str,
        description: &str,
        active: bool,
        text: &str,
        edition: Option<i64>,
    ) -> Result<TrapList, Error> {
        who.needs(Permission::EditHarvests)?;
        let expressions = trap::parse(text).map_err(|bad| bad_lines("the traps", bad))?;
        let traps = self.db.traps();
        Ok(traps.save(&parsed(name)?, description, active, &expressions, edition, &who.actor()).await?)
    }

    pub async fn set_traps_active(&self, who: &Who, name: &str, active: bool) -> Result<TrapList, Error> {
        let list = self.trap_list(who, name).await?;
        let text = list.expressions.join("\n");
        self.save_traps(who, name, &list.description, active, &text, Some(list.edition)).await
    }

    pub async fn delete_traps(&self, who: &Who, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.traps().delete(&parsed(name)?, &who.actor()).await?)
    }

    /// Counts what expressions would have blocked among the lines of crawl logs.
    pub fn test_traps(&self, who: &Who, text: &str, crawl_log: &str) -> Result<TrapHits, Error> {
        who.needs(Permission::View)?;
        let expressions = trap::parse(text).map_err(|bad| bad_lines("the traps", bad))?;
        let mut tester = TrapTester::new(&expressions).map_err(Error::Invalid)?;
        crawl_log.lines().for_each(|line| tester.line(line));
        Ok(tester.hits())
    }
}
