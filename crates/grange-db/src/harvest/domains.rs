//! Domains.

use std::collections::BTreeMap;
use std::time::Duration;

use grange_model::Actor;
use grange_model::harvest::fields::check as check_fields;
use grange_model::harvest::{Alias, AliasReview, Domain, DomainName, FieldNoun, Name, alias};
use sqlx::any::AnyRow;

use super::{fresh, handle, json, like, lines, missing, plain, refused, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length, micros, micros_or_none};

handle! {
    /// The domains, with their configurations, seed lists and logins.
    Domains, domains
}

/// What to change of a domain; what is absent stays.
#[derive(Clone, Debug, Default)]
pub struct DomainChange {
    pub comments: Option<String>,
    /// Checked expressions.
    pub traps: Option<Vec<String>>,
    /// `Some(None)` ends an alias; the same one again renews it.
    pub alias_of: Option<Option<DomainName>>,
    pub default_configuration: Option<Name>,
    pub fields: Option<BTreeMap<String, String>>,
}

/// Which domains to list.
#[derive(Clone, Debug, Default)]
pub struct DomainFilter {
    /// `*` and `?` stand for any characters and one.
    pub name: Option<String>,
    pub comments: Option<String>,
    pub traps: Option<String>,
    /// Only names after this one: the next page.
    pub after: Option<DomainName>,
    pub limit: u32,
}

/// A page of domains.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Found {
    pub domains: Vec<Domain>,
    /// Ask with `after=` this for the next page.
    pub next: Option<DomainName>,
}

impl Domains<'_> {
    pub async fn get(&self, name: &DomainName) -> Result<Option<Domain>, Error> {
        self.0.read("read the domain", name.clone(), |tx, name| Box::pin(get(tx, name))).await
    }

    pub async fn list(&self, filter: &DomainFilter) -> Result<Found, Error> {
        self.0
            .read("list the domains", filter.clone(), |tx, filter| {
                Box::pin(async move {
                    let pattern = |text: &Option<String>| text.as_deref().map(like);
                    let query = tx
                        .sql(&LIST)
                        .bind(filter.after.as_ref().map_or(String::new(), ToString::to_string))
                        .bind(pattern(&filter.name))
                        .bind(pattern(&filter.comments))
                        .bind(pattern(&filter.traps))
                        .bind(i64::from(filter.limit));
                    let domains: Vec<_> =
                        tx.rows(query).await?.iter().map(domain).collect::<Result<_, _>>()?;
                    let full = domains.len() == filter.limit as usize;
                    let next = domains.last().filter(|_| full).map(|domain| domain.name.clone());
                    Ok(Found { domains, next })
                })
            })
            .await
    }

    /// How many there are.
    pub async fn count(&self) -> Result<u64, Error> {
        self.0
            .read("count the domains", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&COUNT);
                    Ok(tx.row(query).await?.map(|row| row.int("count")).transpose()?.unwrap_or_default()
                        as u64)
                })
            })
            .await
    }

    /// How many domains there are below each last label.
    pub async fn count_by_suffix(&self) -> Result<BTreeMap<String, u64>, Error> {
        let mut counts = BTreeMap::new();
        let mut after = None;
        loop {
            // Names alone, a page at a time: millions of them do not fit a page of memory.
            let names: Vec<String> = self
                .0
                .read("count the domains", after.take().unwrap_or_default(), |tx, after: &String| {
                    Box::pin(async move {
                        let query = tx.sql(&NAMES).bind(after.as_str());
                        tx.rows(query).await?.iter().map(|row| row.text("name")).collect()
                    })
                })
                .await?;
            for name in &names {
                let mut rest = name.as_str();
                while let Some((_, suffix)) =
                    rest.split_once('.').filter(|_| rest.parse::<std::net::IpAddr>().is_err())
                {
                    *counts.entry(suffix.to_owned()).or_default() += 1;
                    rest = suffix;
                }
            }
            match names.last() {
                Some(last) => after = Some(last.clone()),
                None => return Ok(counts),
            }
        }
    }

    pub async fn change(
        &self,
        name: &DomainName,
        change: DomainChange,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<Domain, Error> {
        self.0
            .write(
                "change the domain",
                (name.clone(), change, edition, actor.clone()),
                |tx, (name, change, edition, actor)| Box::pin(apply(tx, name, change, *edition, actor)),
            )
            .await
    }

    /// All aliases by their end: the expired, then those that will be.
    pub async fn aliases(&self, lifetime: Duration) -> Result<Vec<AliasReview>, Error> {
        self.0
            .read("list the aliases", lifetime, |tx, lifetime| {
                Box::pin(async move {
                    let now = tx.now;
                    let query = tx.sql(&ALIASES);
                    let read = |row: &AnyRow| -> Result<AliasReview, Fail> {
                        let alias = Alias { of: row.parsed("alias_name")?, set_at: row.time("alias_at")? };
                        let expires_at = alias.expires_at(*lifetime);
                        let expired = alias.expired(*lifetime, now);
                        Ok(AliasReview { domain: row.parsed("name")?, alias, expires_at, expired })
                    };
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }

    /// The unexpired aliases of these domains.
    pub(crate) async fn aliases_of(
        &self,
        domains: Vec<i64>,
        lifetime: Duration,
    ) -> Result<Vec<(DomainName, DomainName)>, Error> {
        let input = (crate::bulk::ids(&domains), length(lifetime));
        self.0
            .read("list the aliases", input, |tx, (domains, lifetime)| {
                Box::pin(async move {
                    let query = ALIASES_OF.on(tx).bind(micros(tx.now) - *lifetime).bind(domains.as_str());
                    let read = |row: &AnyRow| Ok((row.parsed("name")?, row.parsed("alias_name")?));
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "d.id, d.name, d.comments, d.traps, d.fields, d.alias_at, d.created_at, d.changed_at, d.changed_by, d.edition, \
         (SELECT c.name FROM configurations c WHERE c.domain_id = d.id AND c.is_default = 1) AS default_name, \
         (SELECT a.name FROM domains a WHERE a.id = d.alias_of) AS alias_name"
    };
}

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM domains d WHERE d.name = $1"));
// Apart from reading: a statement that waited for the row sees what its subqueries ask for as it was before it waited.
static LOCK: Sql = Sql::new("SELECT id FROM domains WHERE name = $1 {for_update}");
static LIST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM domains d WHERE d.name > $1 AND ($2 IS NULL OR d.name LIKE $2 ESCAPE '\\')
     AND ($3 IS NULL OR d.comments LIKE $3 ESCAPE '\\') AND ($4 IS NULL OR d.traps LIKE $4 ESCAPE '\\')
     ORDER BY d.name LIMIT $5"
));
static COUNT: Sql = Sql::new("SELECT count(*) AS count FROM domains");
static NAMES: Sql = Sql::new("SELECT name FROM domains WHERE name > $1 ORDER BY name LIMIT 20000");
static CHANGE: Sql = Sql::new(
    "UPDATE domains SET comments = $2, traps = $3, fields = $4, alias_of = $5, alias_at = $6, changed_at = $7,
         changed_by = $8, edition = edition + 1
     WHERE id = $1",
);
static UNSET_DEFAULT: Sql =
    Sql::new("UPDATE configurations SET is_default = 0 WHERE domain_id = $1 AND is_default = 1");
static SET_DEFAULT: Sql =
    Sql::new("UPDATE configurations SET is_default = 1 WHERE domain_id = $1 AND name = $2");
static ALIASES_OF_ONE: Sql = Sql::new("SELECT name FROM domains WHERE alias_of = $1 ORDER BY name LIMIT 10");
static ALIASES: Sql = Sql::new(
    "SELECT d.name, d.alias_at, a.name AS alias_name FROM domains d JOIN domains a ON a.id = d.alias_of
     ORDER BY d.alias_at, d.name",
);
static ALIASES_OF: crate::bulk::Bulk = crate::bulk::of_ids!(
    "SELECT d.name, a.name AS alias_name FROM domains d JOIN domains a ON a.id = d.alias_of
     WHERE d.alias_at > $1 AND d.alias_of IN (",
    "$2",
    ") ORDER BY d.name"
);

/// The domain and its id, held until the transaction ends: for all who change it or what it has.
pub(super) async fn found(tx: &mut Tx<'_>, name: &DomainName) -> Result<(i64, Domain), Fail> {
    let row = locked(tx, name).await?;
    Ok((row.int("id")?, domain(&row)?))
}

async fn locked(tx: &mut Tx<'_>, name: &DomainName) -> Result<AnyRow, Fail> {
    let query = tx.sql(&LOCK).bind(name.to_string());
    tx.rows(query).await?;
    row(tx, name).await
}

async fn row(tx: &mut Tx<'_>, name: &DomainName) -> Result<AnyRow, Fail> {
    let query = tx.sql(&GET).bind(name.to_string());
    tx.row(query).await?.ok_or_else(|| missing("domain", name))
}

/// The id of a domain, for those who only read.
pub(super) async fn id(tx: &mut Tx<'_>, name: &DomainName) -> Result<i64, Fail> {
    row(tx, name).await?.int("id")
}

async fn get(tx: &mut Tx<'_>, name: &DomainName) -> Result<Option<Domain>, Fail> {
    let query = tx.sql(&GET).bind(name.to_string());
    tx.row(query).await?.as_ref().map(domain).transpose()
}

async fn apply(
    tx: &mut Tx<'_>,
    name: &DomainName,
    change: &DomainChange,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<Domain, Fail> {
    let row = locked(tx, name).await?;
    fresh(&row, format_args!("domain {name}"), edition)?;
    let (id, before) = (row.int("id")?, domain(&row)?);
    let mut after = before.clone();
    let mut alias_id = None;
    if let Some(comments) = &change.comments {
        plain("comments of the domain", comments)?;
        after.comments.clone_from(comments);
    }
    if let Some(traps) = &change.traps {
        traps.iter().try_for_each(|trap| plain("traps", trap))?;
        after.traps.clone_from(traps);
    }
    if let Some(fields) = &change.fields {
        let known = super::fields::list(tx, FieldNoun::Domain).await?;
        check_fields(&known, fields).map_err(refused)?;
        after.fields.clone_from(fields);
    }
    match &change.alias_of {
        Some(Some(of)) => {
            let (of_id, of_domain) = found(tx, of).await?;
            let query = tx.sql(&ALIASES_OF_ONE).bind(id);
            let own: Vec<DomainName> =
                tx.rows(query).await?.iter().map(|row| row.parsed("name")).collect::<Result<_, _>>()?;
            let its = of_domain.alias.as_ref().map(|alias| &alias.of);
            alias::check(name, of, its, &own).map_err(refused)?;
            after.alias = Some(Alias { of: of.clone(), set_at: tx.now });
            alias_id = Some(of_id);
        }
        Some(None) => after.alias = None,
        None => {
            if let Some(alias) = &before.alias {
                alias_id = Some(found(tx, &alias.of).await?.0);
            }
        }
    }
    if let Some(wanted) = &change.default_configuration {
        let query = tx.sql(&UNSET_DEFAULT).bind(id);
        tx.run(query).await?;
        let query = tx.sql(&SET_DEFAULT).bind(id).bind(wanted.to_string());
        if tx.run(query).await? == 0 {
            return Err(missing(&format!("configuration of {name} named"), wanted));
        }
        after.default_configuration = wanted.clone();
    }
    (after.changed_at, after.edition) = (tx.now, before.edition + 1);
    let query = tx
        .sql(&CHANGE)
        .bind(id)
        .bind(after.comments.clone())
        .bind(after.traps.join("\n"))
        .bind(json(&after.fields))
        .bind(alias_id)
        .bind(micros_or_none(after.alias.as_ref().map(|alias| alias.set_at)))
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await?;
    told(tx, actor, "domain.change", format!("domain:{name}"), Some(&before), Some(&after)).await?;
    Ok(after)
}

pub(super) fn domain(row: &AnyRow) -> Result<Domain, Fail> {
    let name: DomainName = row.parsed("name")?;
    let alias = match (row.text_or_none("alias_name")?, row.time_or_none("alias_at")?) {
        (Some(_), Some(set_at)) => Some(Alias { of: row.parsed("alias_name")?, set_at }),
        _ => None,
    };
    Ok(Domain {
        readable: name.readable(),
        name,
        comments: row.text("comments")?,
        default_configuration: row.parsed("default_name")?,
        alias,
        traps: lines(&row.text("traps")?),
        fields: row.json("fields")?,
        created_at: row.time("created_at")?,
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
