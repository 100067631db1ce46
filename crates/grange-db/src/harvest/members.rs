//! Which configurations a selective harvest has.

use std::collections::BTreeMap;

use grange_model::Actor;
use grange_model::harvest::event_seeds::configuration_name;
use grange_model::harvest::{DomainName, HarvestDefinition, HarvestKind, Limits, Name, NewConfiguration};
use serde_json::json;

use super::definitions::locked;
use super::{Definitions, NO_STATE, configurations, domains, import, missing, refused, seed_lists, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::Columns;

/// What became of configurations to be added.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Added {
    pub added: u64,
    pub already: u64,
    pub domains_created: u64,
    /// Domains that are not there and were not to be created.
    pub unknown: Vec<DomainName>,
}

impl Definitions<'_> {
    /// Adds a configuration of each domain, the default one when none is named. Unknown domains are created if asked.
    pub async fn add_domains(
        &self,
        harvest: &Name,
        wanted: Vec<(DomainName, Option<Name>)>,
        create: bool,
        actor: &Actor,
    ) -> Result<Added, Error> {
        let input = (harvest.clone(), wanted, create, actor.clone());
        self.0
            .write("add to the harvest", input, |tx, (harvest, wanted, create, actor)| {
                Box::pin(add(tx, harvest, wanted, *create, actor))
            })
            .await
    }

    /// Takes configurations out: the named one, or all of the domain's.
    pub async fn remove_domains(
        &self,
        harvest: &Name,
        wanted: Vec<(DomainName, Option<Name>)>,
        actor: &Actor,
    ) -> Result<u64, Error> {
        self.0
            .write(
                "take out of the harvest",
                (harvest.clone(), wanted, actor.clone()),
                |tx, (harvest, wanted, actor)| {
                    Box::pin(async move {
                        let (_, definition) = locked(tx, harvest).await?;
                        let mut removed = 0;
                        for (domain, configuration) in wanted {
                            let (id, _) = domains::found(tx, domain).await?;
                            let query = tx
                                .sql(&REMOVE)
                                .bind(definition.id.0)
                                .bind(id)
                                .bind(configuration.as_ref().map(ToString::to_string));
                            removed += tx.run(query).await?;
                        }
                        let state = json!({ "removed": removed });
                        told(
                            tx,
                            actor,
                            "harvest.remove",
                            format!("harvest:{harvest}"),
                            NO_STATE,
                            Some(&state),
                        )
                        .await?;
                        Ok(removed)
                    })
                },
            )
            .await
    }

    /// The configurations of a harvest, by domain.
    pub async fn members(&self, harvest: &Name) -> Result<Vec<(DomainName, Name)>, Error> {
        self.0
            .read("list the harvest's configurations", harvest.clone(), |tx, harvest| {
                Box::pin(async move {
                    let query = tx.sql(&MEMBERS).bind(harvest.as_str());
                    let read = |row: &sqlx::any::AnyRow| Ok((row.parsed("domain")?, row.parsed("name")?));
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }

    /// Adds seeds that were sorted by domain: domains that are not there are created, each gets a configuration and a
    /// seed list named after the harvest, the template and the limits, and these are added to the harvest.
    pub async fn add_event_seeds(
        &self,
        harvest: &Name,
        seeds: BTreeMap<DomainName, Vec<String>>,
        template: &Name,
        limits: Limits,
        actor: &Actor,
    ) -> Result<Added, Error> {
        let input = ((harvest.clone(), seeds), (template.clone(), limits), actor.clone());
        self.0
            .write("add seeds to the harvest", input, |tx, ((harvest, seeds), (template, limits), actor)| {
                Box::pin(add_seeds(tx, harvest, seeds, template, *limits, actor))
            })
            .await
    }
}

static ADD: Sql = Sql::new(
    "INSERT INTO harvest_configurations (harvest_id, configuration_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
);
static REMOVE: Sql = Sql::new(
    "DELETE FROM harvest_configurations WHERE harvest_id = $1 AND configuration_id IN
         (SELECT id FROM configurations WHERE domain_id = $2 AND ($3 IS NULL OR name = $3))",
);
static MEMBERS: Sql = Sql::new(
    "SELECT d.name AS domain, c.name FROM harvest_definitions h
     JOIN harvest_configurations l ON l.harvest_id = h.id
     JOIN configurations c ON c.id = l.configuration_id JOIN domains d ON d.id = c.domain_id
     WHERE h.name = $1 ORDER BY d.name, c.name",
);
static FIND: Sql = Sql::new(
    "SELECT c.id FROM domains d JOIN configurations c ON c.domain_id = d.id
     WHERE d.name = $1 AND ((c.is_default = 1 AND $2 IS NULL) OR c.name = $2)",
);
static TAKEN: Sql = Sql::new(
    "SELECT name FROM configurations WHERE domain_id = $1 AND name = $2
     UNION ALL SELECT name FROM seed_lists WHERE domain_id = $1 AND name = $2",
);

async fn selective(tx: &mut Tx<'_>, name: &Name) -> Result<HarvestDefinition, Fail> {
    let (_, definition) = locked(tx, name).await?;
    if definition.kind == HarvestKind::Snapshot {
        return Err(refused(format_args!("{name} is a snapshot and takes every domain by itself")));
    }
    Ok(definition)
}

async fn add(
    tx: &mut Tx<'_>,
    harvest: &Name,
    wanted: &[(DomainName, Option<Name>)],
    create: bool,
    actor: &Actor,
) -> Result<Added, Fail> {
    let definition = selective(tx, harvest).await?;
    let mut added = Added::default();
    if create {
        let names: Vec<_> = wanted.iter().map(|(domain, _)| domain.clone()).collect();
        added.domains_created = import::import(tx, &names, actor).await?.created;
    }
    for (domain, configuration) in wanted {
        let query =
            tx.sql(&FIND).bind(domain.to_string()).bind(configuration.as_ref().map(ToString::to_string));
        match (tx.row(query).await?, configuration) {
            (Some(row), _) => {
                let query = tx.sql(&ADD).bind(definition.id.0).bind(row.int("id")?);
                if tx.run(query).await? == 1 { added.added += 1 } else { added.already += 1 }
            }
            (None, Some(configuration)) => {
                return Err(missing(&format!("configuration of {domain} named"), configuration));
            }
            (None, None) => added.unknown.push(domain.clone()),
        }
    }
    told(tx, actor, "harvest.add", format!("harvest:{harvest}"), NO_STATE, Some(&added)).await?;
    Ok(added)
}

async fn add_seeds(
    tx: &mut Tx<'_>,
    harvest: &Name,
    seeds: &BTreeMap<DomainName, Vec<String>>,
    template: &Name,
    limits: Limits,
    actor: &Actor,
) -> Result<Added, Fail> {
    let definition = selective(tx, harvest).await?;
    let names: Vec<_> = seeds.keys().cloned().collect();
    let imported = import::import(tx, &names, actor).await?;
    let mut added = Added { domains_created: imported.created, ..Added::default() };
    let plain_name = configuration_name(harvest, template, limits);
    for (domain, seeds) in seeds {
        let (id, _) = domains::found(tx, domain).await?;
        let query = tx.sql(&TAKEN).bind(id).bind(plain_name.clone());
        let taken = !tx.rows(query).await?.is_empty();
        let name =
            if taken { format!("{plain_name}_{}", tx.now.as_millisecond()) } else { plain_name.clone() };
        let name: Name = name.parse().map_err(refused)?;
        seed_lists::save(tx, (id, domain), &name, &seeds.join("\n"), seeds, "", None, actor).await?;
        let new = NewConfiguration {
            name: name.clone(),
            template: template.clone(),
            limits,
            seed_lists: vec![name],
            credentials: Vec::new(),
            comments: String::new(),
        };
        let configuration = configurations::add(tx, id, domain, &new, actor).await?;
        let query = tx.sql(&ADD).bind(definition.id.0).bind(configuration);
        added.added += tx.run(query).await?;
    }
    told(tx, actor, "harvest.add-seeds", format!("harvest:{harvest}"), NO_STATE, Some(&added)).await?;
    Ok(added)
}
