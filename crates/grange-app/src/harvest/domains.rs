//! Domains, their configurations and logins.

use std::collections::BTreeMap;

use grange_db::{
    ConfigurationChange, DomainChange, DomainFilter, FoundDomains, HistoryFilter, NewCredential,
};
use grange_model::account::Permission;
use grange_model::harvest::{
    AliasReview, BadLine, Configuration, CredentialShown, CustomField, Domain, DomainName, FieldNoun,
    HistoryEntry, LoginForm, Name, NewConfiguration, seeds, trap,
};
use serde::{Deserialize, Serialize};

use super::{bad_lines, parsed};
use crate::{App, Error, Who};

/// What became of a list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    pub created: u64,
    pub existing: u64,
    pub illegal: u64,
    /// The first names that were there before.
    pub existing_names: Vec<DomainName>,
    /// The first lines that name no domain.
    pub illegal_lines: Vec<BadLine>,
}

/// A login to be kept.
#[derive(Clone)]
pub struct NewLogin {
    pub name: String,
    pub url: String,
    pub realm: String,
    pub username: String,
    pub form: Option<LoginForm>,
    pub secret: String,
    pub comments: String,
}

impl std::fmt::Debug for NewLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewLogin({})", self.name)
    }
}

/// Names told one by one in a report; the others are counted.
const TOLD_MAX: usize = 100;

/// Names in one act: some tenths of a second of writing.
const NAMES_PER_ACT: usize = 2500;

/// A password that a server asks for by HTTP is sent to the origin of one page. Without one it would be sent to every host of
/// the domain that asks.
fn is_of_a_page(url: &str) -> Result<(), String> {
    let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    match seeds::seed(url) {
        Ok(Some(_)) if is_web => Ok(()),
        // The text does not repeat it: it may have a password.
        _ => Err("cannot keep the login: its url is not the address of a page without user and password, and the secret is \
                  sent only to the scheme, host and port of that page; give a url such as https://example.org/members/"
            .to_owned()),
    }
}

/// What a secret is sealed for.
pub(crate) fn sealed_for(domain: &DomainName, name: &Name) -> String {
    format!("credential {domain} {name}")
}

impl App {
    /// Makes domains from lines of names, separated by blanks; `#` begins a comment line. Bad ones are told, not fatal.
    pub async fn create_domains(
        &self,
        who: &Who,
        lines: &[String],
        first_line: u64,
    ) -> Result<ImportReport, Error> {
        who.needs(Permission::EditHarvests)?;
        let mut report = ImportReport::default();
        let mut names: Vec<DomainName> = Vec::new();
        for (number, line) in (first_line..).zip(lines) {
            if line.trim_start().starts_with('#') {
                continue;
            }
            for word in line.split_whitespace() {
                match word.parse::<DomainName>() {
                    Ok(name) => names.push(name),
                    Err(error) => {
                        report.illegal += 1;
                        if report.illegal_lines.len() < TOLD_MAX {
                            report.illegal_lines.push(BadLine::new(number, word, error.reason));
                        }
                    }
                }
            }
        }
        for chunk in names.chunks(NAMES_PER_ACT) {
            let imported = self.db.domains().import(chunk.to_vec(), &who.actor()).await?;
            report.created += imported.created;
            report.existing += imported.existing.len() as u64;
            let room = TOLD_MAX.saturating_sub(report.existing_names.len());
            report.existing_names.extend(imported.existing.into_iter().take(room));
        }
        Ok(report)
    }

    /// A page of domains whose name, comments and traps match; `*` and `?` stand for any characters and one.
    pub async fn domains(
        &self,
        who: &Who,
        name: Option<String>,
        comments: Option<String>,
        traps: Option<String>,
        after: Option<DomainName>,
        limit: u32,
    ) -> Result<FoundDomains, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.domains().list(&DomainFilter { name, comments, traps, after, limit }).await?)
    }

    pub async fn domain(&self, who: &Who, name: &str) -> Result<(Domain, Vec<Configuration>), Error> {
        who.needs(Permission::View)?;
        let missing = || Error::NotFound { noun: "domain", name: name.to_owned() };
        let parsed: DomainName = name.parse().map_err(|_| missing())?;
        let domain = self.db.domains().get(&parsed).await?.ok_or_else(missing)?;
        Ok((domain, self.db.domains().configurations(&parsed).await?))
    }

    /// Changes a domain; `traps` is a text with an expression per line.
    #[allow(clippy::too_many_arguments)] // One row, spelled out.
    pub async fn change_domain(
        &self,
        who: &Who,
        name: &str,
        comments: Option<String>,
        traps: Option<&str>,
        alias_of: Option<Option<String>>,
        default_configuration: Option<Name>,
        fields: Option<BTreeMap<String, String>>,
        edition: Option<i64>,
    ) -> Result<Domain, Error> {
        who.needs(Permission::EditHarvests)?;
        let traps = traps.map(trap::parse).transpose().map_err(|bad| bad_lines("the traps", bad))?;
        let alias_of = alias_of.map(|of| of.map(|of| parsed(&of)).transpose()).transpose()?;
        let change = DomainChange { comments, traps, alias_of, default_configuration, fields };
        Ok(self.db.domains().change(&parsed(name)?, change, edition, &who.actor()).await?)
    }

    pub async fn aliases(&self, who: &Who) -> Result<Vec<AliasReview>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.domains().aliases(self.harvesting.settings.alias_lifetime.0).await?)
    }

    /// How many domains there are below each suffix, and in all.
    pub async fn domain_counts(&self, who: &Who) -> Result<(u64, BTreeMap<String, u64>), Error> {
        who.needs(Permission::View)?;
        Ok((self.db.domains().count().await?, self.db.domains().count_by_suffix().await?))
    }

    /// What was harvested of a domain, newest first.
    pub async fn history(
        &self,
        who: &Who,
        domain: &str,
        configuration: Option<Name>,
        limit: u32,
    ) -> Result<Vec<HistoryEntry>, Error> {
        who.needs(Permission::View)?;
        let filter = HistoryFilter { domain: Some(parsed(domain)?), configuration, job: None, limit };
        Ok(self.db.domains().history(&filter).await?)
    }

    pub async fn add_configuration(
        &self,
        who: &Who,
        domain: &str,
        new: NewConfiguration,
    ) -> Result<Configuration, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.domains().add_configuration(&parsed(domain)?, new, &who.actor()).await?)
    }

    pub async fn change_configuration(
        &self,
        who: &Who,
        domain: &str,
        name: &str,
        change: ConfigurationChange,
        edition: Option<i64>,
    ) -> Result<Configuration, Error> {
        who.needs(Permission::EditHarvests)?;
        let (domain, name) = (parsed(domain)?, parsed(name)?);
        Ok(self.db.domains().change_configuration(&domain, &name, change, edition, &who.actor()).await?)
    }

    pub async fn delete_configuration(&self, who: &Who, domain: &str, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.domains().delete_configuration(&parsed(domain)?, &parsed(name)?, &who.actor()).await?)
    }

    pub async fn logins(&self, who: &Who, domain: &str) -> Result<Vec<CredentialShown>, Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.domains().credentials(&parsed(domain)?).await?)
    }

    /// Keeps a login; its secret is sealed before it reaches the database and never shown again.
    pub async fn save_login(&self, who: &Who, domain: &str, new: NewLogin) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        let (domain, name): (DomainName, Name) = (parsed(domain)?, parsed(&new.name)?);
        match &new.form {
            Some(form) => form.check(&new.url).map_err(Error::Invalid)?,
            None => is_of_a_page(&new.url).map_err(Error::Invalid)?,
        }
        let sealed = self.vault()?.seal(&sealed_for(&domain, &name), &new.secret)?;
        let NewLogin { url, realm, username, form, comments, .. } = new;
        let login = NewCredential { name, url, realm, username, form, sealed, comments };
        Ok(self.db.domains().save_credential(&domain, login, &who.actor()).await?)
    }

    pub async fn delete_login(&self, who: &Who, domain: &str, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.domains().delete_credential(&parsed(domain)?, &parsed(name)?, &who.actor()).await?)
    }

    pub async fn custom_fields(&self, who: &Who, noun: FieldNoun) -> Result<Vec<CustomField>, Error> {
        who.needs(Permission::View)?;
        Ok(self.db.custom_fields().list(noun).await?)
    }

    pub async fn save_custom_field(&self, who: &Who, field: CustomField) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.custom_fields().save(field, &who.actor()).await?)
    }

    pub async fn delete_custom_field(&self, who: &Who, noun: FieldNoun, name: &str) -> Result<(), Error> {
        who.needs(Permission::EditHarvests)?;
        Ok(self.db.custom_fields().delete(noun, &parsed(name)?, &who.actor()).await?)
    }
}
