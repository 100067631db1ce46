//! Repositories: added by their address alone.

use grange_model::account::Permission;
use grange_model::oai::{Repository, RepositoryId, RepositoryRules};

use crate::{App, Error, Who};

/// The longest base URL. It is a key, whose rows PostgreSQL limits to 2,704 bytes.
const BASE_URL_BYTES_MAX: usize = 1_000;

impl App {
    pub async fn oai_repositories(&self, who: &Who) -> Result<Vec<Repository>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.oai_repositories().list().await?)
    }

    /// A repository with its sets and formats, and how many of its records are active and deleted.
    pub async fn oai_repository(
        &self,
        who: &Who,
        id: RepositoryId,
    ) -> Result<(Repository, (u64, u64)), Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "repository", name: id.to_string() };
        let found = self.db.oai_repositories().get(id).await?.ok_or_else(missing)?;
        Ok((found, self.db.oai_records().count(id).await?))
    }

    /// Adds a repository; all else is asked of it.
    pub async fn add_oai_repository(
        &self,
        who: &Who,
        base_url: &str,
        rules: RepositoryRules,
    ) -> Result<Repository, Error> {
        who.needs(Permission::EditHarvests)?;
        check_rules(who, &rules)?;
        let base_url = base_url.trim();
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            let text = format!("\"{base_url}\" is not a base URL: write it with http:// or https://");
            return Err(Error::Invalid(text));
        }
        if base_url.len() > BASE_URL_BYTES_MAX {
            let text = format!("the base URL is longer than {BASE_URL_BYTES_MAX} bytes: write a shorter one");
            return Err(Error::Invalid(text));
        }
        let said = self.oai()?.probe(base_url).await.map_err(Error::Invalid)?;
        Ok(self.db.oai_repositories().add(base_url, said, rules, &who.actor()).await?)
    }

    /// Asks a repository anew who it is.
    pub async fn refresh_oai_repository(&self, who: &Who, id: RepositoryId) -> Result<Repository, Error> {
        who.needs(Permission::EditHarvests)?;
        let (known, _) = self.oai_repository(who, id).await?;
        let said = self.oai()?.probe(&known.base_url).await.map_err(Error::Invalid)?;
        self.db.oai_repositories().identified(id, said.keeping(&known.said)).await?;
        Ok(self.oai_repository(who, id).await?.0)
    }

    pub async fn change_oai_repository(
        &self,
        who: &Who,
        id: RepositoryId,
        rules: RepositoryRules,
        edition: Option<i64>,
    ) -> Result<Repository, Error> {
        who.needs(Permission::EditHarvests)?;
        check_rules(who, &rules)?;
        let (before, (active, deleted)) = self.oai_repository(who, id).await?;
        if before.rules.folder != rules.folder && active + deleted > 0 {
            let text = "its records lie in the folder it has: a repository with records keeps its folder";
            return Err(Error::Invalid(text.to_owned()));
        }
        Ok(self.db.oai_repositories().change(id, rules, edition, &who.actor()).await?)
    }

    pub async fn delete_oai_repository(&self, who: &Who, id: RepositoryId) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.oai_repositories().delete(id, &who.actor()).await?)
    }

    /// The base URLs in a list of repositories.
    pub async fn oai_friends(
        &self,
        who: &Who,
        text: Option<&str>,
        url: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        who.needs(Permission::EditHarvests)?;
        self.oai()?.friends(text, url).await.map_err(Error::Invalid)
    }
}

/// A folder outside of the archive's own is for people who have the machine.
fn check_rules(who: &Who, rules: &RepositoryRules) -> Result<(), Error> {
    let path = std::path::Path::new(&rules.folder);
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !plain && !who.is_local() {
        return Err(Error::NotLocal { what: "choose a folder outside of Grange's own" });
    }
    Ok(())
}
