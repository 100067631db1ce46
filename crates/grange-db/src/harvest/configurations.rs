//! Configurations: the recipes of a domain.

use grange_model::Actor;
use grange_model::harvest::{Configuration, DomainName, Limits, Name, NewConfiguration};
use serde_json::json;
use sqlx::any::AnyRow;

use super::domains::found;
use super::{Domains, NO_STATE, best, exists, fresh, limits, missing, plain, refused, templates, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

/// What to change of a configuration; what is absent stays.
#[derive(Clone, Debug, Default)]
pub struct ConfigurationChange {
    pub rename: Option<Name>,
    pub template: Option<Name>,
    pub limits: Option<Limits>,
    pub seed_lists: Option<Vec<Name>>,
    pub credentials: Option<Vec<Name>>,
    pub comments: Option<String>,
}

impl Domains<'_> {
    /// A domain's configurations, by name.
    pub async fn configurations(&self, domain: &DomainName) -> Result<Vec<Configuration>, Error> {
        self.0
            .read("list the configurations", domain.clone(), |tx, domain| {
                Box::pin(async move {
                    let id = super::domains::id(tx, domain).await?;
                    list(tx, id).await
                })
            })
            .await
    }

    pub async fn add_configuration(
        &self,
        domain: &DomainName,
        new: NewConfiguration,
        actor: &Actor,
    ) -> Result<Configuration, Error> {
        self.0
            .write(
                "create the configuration",
                (domain.clone(), new, actor.clone()),
                |tx, (domain, new, actor)| {
                    Box::pin(async move {
                        let (id, _) = found(tx, domain).await?;
                        add(tx, id, domain, new, actor).await?;
                        one(tx, id, domain, &new.name).await.map(|(_, configuration)| configuration)
                    })
                },
            )
            .await
    }

    pub async fn change_configuration(
        &self,
        domain: &DomainName,
        name: &Name,
        change: ConfigurationChange,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<Configuration, Error> {
        let input = ((domain.clone(), name.clone()), (change, edition), actor.clone());
        self.0
            .write("change the configuration", input, |tx, ((domain, name), (change, edition), actor)| {
                Box::pin(apply(tx, domain, name, change, *edition, actor))
            })
            .await
    }

    /// Deletes a configuration that is neither the default nor part of a harvest.
    pub async fn delete_configuration(
        &self,
        domain: &DomainName,
        name: &Name,
        actor: &Actor,
    ) -> Result<(), Error> {
        let input = (domain.clone(), name.clone(), actor.clone());
        self.0
            .write("delete the configuration", input, |tx, (domain, name, actor)| {
                Box::pin(async move {
                    let (domain_id, _) = found(tx, domain).await?;
                    let (id, before) = one(tx, domain_id, domain, name).await?;
                    if before.default {
                        return Err(refused(format_args!(
                            "{name} is the default configuration of {domain}: make another the default first"
                        )));
                    }
                    let query = tx.sql(&USED_BY).bind(id);
                    if let Some(row) = tx.row(query).await? {
                        let what = format!("configuration {name} of {domain}");
                        return Err(
                            Error::InUse { what, by: format!("the harvest {}", row.text("name")?) }.into()
                        );
                    }
                    for sql in [&UNLINK_SEEDS, &UNLINK_CREDENTIALS, &DELETE] {
                        let query = tx.sql(sql).bind(id);
                        tx.run(query).await?;
                    }
                    let subject = format!("domain:{domain}/{name}");
                    told(tx, actor, "configuration.delete", subject, Some(&before), NO_STATE).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "c.id, c.name, c.is_default, t.name AS template, c.max_objects, c.max_bytes, c.max_running_s, c.comments, \
         c.best_objects, c.best_bytes, c.best_complete, c.changed_at, c.changed_by, c.edition"
    };
}

static LIST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM configurations c JOIN templates t ON t.id = c.template_id WHERE c.domain_id = $1 ORDER BY c.name"
));
static ONE: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM configurations c JOIN templates t ON t.id = c.template_id WHERE c.domain_id = $1 AND c.name = $2"
));
static SEEDS_OF: Sql = Sql::new(
    "SELECT l.configuration_id, s.name FROM configuration_seed_lists l JOIN seed_lists s ON s.id = l.seed_list_id
     WHERE s.domain_id = $1 ORDER BY s.name",
);
static CREDENTIALS_OF: Sql = Sql::new(
    "SELECT l.configuration_id, s.name FROM configuration_credentials l JOIN credentials s ON s.id = l.credential_id
     WHERE s.domain_id = $1 ORDER BY s.name",
);
static CREATE: Sql = Sql::new(
    "INSERT INTO configurations (domain_id, name, template_id, max_objects, max_bytes, max_running_s, comments,
         changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id",
);
static CHANGE: Sql = Sql::new(
    "UPDATE configurations SET name = $2, template_id = $3, max_objects = $4, max_bytes = $5, max_running_s = $6,
         comments = $7, changed_at = $8, changed_by = $9, edition = edition + 1
     WHERE id = $1",
);
static LINK_SEEDS: Sql = Sql::new(
    "INSERT INTO configuration_seed_lists (configuration_id, seed_list_id)
     SELECT $1, id FROM seed_lists WHERE domain_id = $2 AND name = $3 ON CONFLICT DO NOTHING",
);
static LINK_CREDENTIALS: Sql = Sql::new(
    "INSERT INTO configuration_credentials (configuration_id, credential_id)
     SELECT $1, id FROM credentials WHERE domain_id = $2 AND name = $3 ON CONFLICT DO NOTHING",
);
static UNLINK_SEEDS: Sql = Sql::new("DELETE FROM configuration_seed_lists WHERE configuration_id = $1");
static UNLINK_CREDENTIALS: Sql =
    Sql::new("DELETE FROM configuration_credentials WHERE configuration_id = $1");
static DELETE: Sql = Sql::new("DELETE FROM configurations WHERE id = $1");
static USED_BY: Sql = Sql::new(
    "SELECT h.name FROM harvest_configurations l JOIN harvest_definitions h ON h.id = l.harvest_id
     WHERE l.configuration_id = $1 ORDER BY h.name LIMIT 1",
);

async fn list(tx: &mut Tx<'_>, domain: i64) -> Result<Vec<Configuration>, Fail> {
    let query = tx.sql(&LIST).bind(domain);
    let rows = tx.rows(query).await?;
    let mut links = Vec::new();
    for sql in [&SEEDS_OF, &CREDENTIALS_OF] {
        let query = tx.sql(sql).bind(domain);
        links.push(tx.rows(query).await?);
    }
    let named = |links: &[AnyRow], id: i64| -> Result<Vec<Name>, Fail> {
        let mut names = Vec::new();
        for row in links {
            if row.int("configuration_id")? == id {
                names.push(row.parsed("name")?);
            }
        }
        Ok(names)
    };
    let mut all = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = row.int("id")?;
        let mut one = configuration(row)?;
        (one.seed_lists, one.credentials) = (named(&links[0], id)?, named(&links[1], id)?);
        all.push(one);
    }
    Ok(all)
}

pub(super) async fn one(
    tx: &mut Tx<'_>,
    domain_id: i64,
    domain: &DomainName,
    name: &Name,
) -> Result<(i64, Configuration), Fail> {
    let query = tx.sql(&ONE).bind(domain_id).bind(name.to_string());
    let absent = || missing(&format!("configuration of {domain} named"), name);
    let id = tx.row(query).await?.ok_or_else(absent)?.int("id")?;
    let found = list(tx, domain_id).await?.into_iter().find(|one| one.name == *name);
    Ok((id, found.ok_or_else(absent)?))
}

/// Makes a configuration and gives its id.
pub(super) async fn add(
    tx: &mut Tx<'_>,
    domain_id: i64,
    domain: &DomainName,
    new: &NewConfiguration,
    actor: &Actor,
) -> Result<i64, Fail> {
    plain("comments of the configuration", &new.comments)?;
    let template = templates::id(tx, &new.template).await?;
    let query = tx
        .sql(&CREATE)
        .bind(domain_id)
        .bind(new.name.to_string())
        .bind(template)
        .bind(new.limits.objects.number())
        .bind(new.limits.bytes.number())
        .bind(new.limits.running_s.number())
        .bind(new.comments.clone())
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    let made = tx
        .row(query)
        .await
        .map_err(|fail| exists(fail, &format!("configuration of {domain} named"), &new.name))?;
    let id = made.ok_or_else(|| missing("configuration", &new.name))?.int("id")?;
    link(tx, id, domain_id, domain, &new.seed_lists, &new.credentials).await?;
    let subject = format!("domain:{domain}/{}", new.name);
    told(tx, actor, "configuration.create", subject, NO_STATE, Some(new)).await?;
    Ok(id)
}

async fn link(
    tx: &mut Tx<'_>,
    id: i64,
    domain_id: i64,
    domain: &DomainName,
    seed_lists: &[Name],
    credentials: &[Name],
) -> Result<(), Fail> {
    if seed_lists.is_empty() {
        return Err(refused("a configuration has at least one seed list"));
    }
    for sql in [&UNLINK_SEEDS, &UNLINK_CREDENTIALS] {
        let query = tx.sql(sql).bind(id);
        tx.run(query).await?;
    }
    let seeds = seed_lists.iter().map(|name| (&LINK_SEEDS, "seed list", name));
    let logins = credentials.iter().map(|name| (&LINK_CREDENTIALS, "login", name));
    let mut done = std::collections::HashSet::new();
    for (sql, noun, name) in seeds.chain(logins).collect::<Vec<_>>() {
        if !done.insert((noun, name)) {
            continue;
        }
        let query = tx.sql(sql).bind(id).bind(domain_id).bind(name.to_string());
        if tx.run(query).await? == 0 {
            return Err(missing(&format!("{noun} of {domain} named"), name));
        }
    }
    Ok(())
}

async fn apply(
    tx: &mut Tx<'_>,
    domain: &DomainName,
    name: &Name,
    change: &ConfigurationChange,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<Configuration, Fail> {
    let (domain_id, _) = found(tx, domain).await?;
    let (id, before) = one(tx, domain_id, domain, name).await?;
    let query = tx.sql(&ONE).bind(domain_id).bind(name.to_string());
    let row = tx.row(query).await?.ok_or_else(|| missing("configuration", name))?;
    fresh(&row, format_args!("configuration {name} of {domain}"), edition)?;
    let renamed = change.rename.as_ref().filter(|new| *new != name);
    if before.default && renamed.is_some() {
        return Err(refused(format_args!(
            "{name} is the default configuration of {domain} and keeps its name"
        )));
    }
    let template = templates::id(tx, change.template.as_ref().unwrap_or(&before.template)).await?;
    let limits = change.limits.unwrap_or(before.limits);
    let comments = change.comments.as_ref().unwrap_or(&before.comments);
    plain("comments of the configuration", comments)?;
    let new_name = renamed.unwrap_or(name);
    let query = tx
        .sql(&CHANGE)
        .bind(id)
        .bind(new_name.to_string())
        .bind(template)
        .bind(limits.objects.number())
        .bind(limits.bytes.number())
        .bind(limits.running_s.number())
        .bind(comments.clone())
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query)
        .await
        .map_err(|fail| exists(fail, &format!("configuration of {domain} named"), new_name))?;
    let seed_lists = change.seed_lists.as_ref().unwrap_or(&before.seed_lists);
    let credentials = change.credentials.as_ref().unwrap_or(&before.credentials);
    link(tx, id, domain_id, domain, seed_lists, credentials).await?;
    let (_, after) = one(tx, domain_id, domain, new_name).await?;
    let subject = format!("domain:{domain}/{name}");
    told(tx, actor, "configuration.change", subject, Some(&json!(before)), Some(&json!(after))).await?;
    Ok(after)
}

fn configuration(row: &AnyRow) -> Result<Configuration, Fail> {
    Ok(Configuration {
        name: row.parsed("name")?,
        default: row.int("is_default")? == 1,
        template: row.parsed("template")?,
        limits: limits(row)?,
        seed_lists: Vec::new(),
        credentials: Vec::new(),
        comments: row.text("comments")?,
        best: best(row)?,
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
