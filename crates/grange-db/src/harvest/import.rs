//! Domains by the thousand: each with its default configuration and seed list.

use grange_model::Actor;
use grange_model::harvest::domain::{default_limits, default_template};
use grange_model::harvest::seeds::default_seeds;
use grange_model::harvest::{DEFAULT_CONFIGURATION, DEFAULT_SEEDS, DomainName};
use serde_json::json;

use super::{NO_STATE, told};
use crate::act::Tx;
use crate::bulk::{Bulk, ids, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

/// What became of a list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub created: u64,
    /// Those that were there before, in the order given; also what was given twice, from the second time on.
    pub existing: Vec<DomainName>,
}

impl super::Domains<'_> {
    /// Makes the domains that are not there. One act: a caller with millions gives a few thousand at a time.
    pub async fn import(&self, names: Vec<DomainName>, actor: &Actor) -> Result<Imported, Error> {
        self.0
            .write("create the domains", (names, actor.clone()), |tx, (names, actor)| {
                Box::pin(import(tx, names, actor))
            })
            .await
    }
}

static CREATE: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO domains (name, created_at, changed_at, changed_by)
         SELECT value, $2, $2, $3 FROM json_each($1) WHERE true
         ON CONFLICT (name) DO NOTHING RETURNING id, name",
    ),
    postgres: Sql::new(
        "INSERT INTO domains (name, created_at, changed_at, changed_by)
         SELECT value, $2, $2, $3 FROM jsonb_array_elements_text($1::jsonb)
         ON CONFLICT (name) DO NOTHING RETURNING id, name",
    ),
};
static CONFIGURE: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO configurations (domain_id, name, is_default, template_id, max_bytes, changed_at, changed_by)
         SELECT value, $2, 1, $3, $4, $5, $6 FROM json_each($1)",
    ),
    postgres: Sql::new(
        "INSERT INTO configurations (domain_id, name, is_default, template_id, max_bytes, changed_at, changed_by)
         SELECT value::bigint, $2, 1, $3, $4, $5, $6 FROM jsonb_array_elements_text($1::jsonb)",
    ),
};
static SEED: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO seed_lists (domain_id, name, seeds, active_count, changed_at, changed_by)
         SELECT value ->> 0, $2, value ->> 1, value ->> 2, $3, $4 FROM json_each($1)",
    ),
    postgres: Sql::new(
        "INSERT INTO seed_lists (domain_id, name, seeds, active_count, changed_at, changed_by)
         SELECT (value ->> 0)::bigint, $2, value ->> 1, (value ->> 2)::bigint, $3, $4
         FROM jsonb_array_elements($1::jsonb)",
    ),
};
static LINK: Bulk = of_ids!(
    "INSERT INTO configuration_seed_lists (configuration_id, seed_list_id)
     SELECT c.id, s.id FROM configurations c JOIN seed_lists s ON s.domain_id = c.domain_id WHERE c.domain_id IN (",
    "$1",
    ")"
);

pub(super) async fn import(tx: &mut Tx<'_>, names: &[DomainName], actor: &Actor) -> Result<Imported, Fail> {
    if names.is_empty() {
        return Ok(Imported::default());
    }
    // In one order for everybody, so that two imports wait for each other instead of going round in a ring.
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let now = micros(tx.now);
    let template = super::templates::id(tx, &default_template()).await?;
    let query = CREATE.on(tx).bind(super::json(&sorted)).bind(now).bind(actor.who.clone());
    let rows = tx.rows(query).await?;
    let mut created = std::collections::HashSet::with_capacity(rows.len());
    let (mut numbers, mut seeds) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let (id, name) = (row.int("id")?, row.parsed::<DomainName>("name")?);
        let text = default_seeds(&name);
        let count = text.lines().count();
        seeds.push((id, text, count));
        numbers.push(id);
        created.insert(name);
    }
    let numbers_list = ids(&numbers);
    let query = CONFIGURE
        .on(tx)
        .bind(numbers_list.clone())
        .bind(DEFAULT_CONFIGURATION)
        .bind(template)
        .bind(default_limits().bytes.number())
        .bind(now)
        .bind(actor.who.clone());
    tx.run(query).await?;
    let query = SEED.on(tx).bind(super::json(&seeds)).bind(DEFAULT_SEEDS).bind(now).bind(actor.who.clone());
    tx.run(query).await?;
    let query = LINK.on(tx).bind(numbers_list);
    tx.run(query).await?;
    if !created.is_empty() {
        // One line for all: a line per domain would make the log a second list of domains.
        let subject = match created.iter().next() {
            Some(one) if created.len() == 1 => format!("domain:{one}"),
            _ => format!("domains:{}", created.len()),
        };
        let state =
            json!({ "created": created.len(), "first": sorted.iter().find(|name| created.contains(*name)) });
        told(tx, actor, "domain.create", subject, NO_STATE, Some(&state)).await?;
    }
    let count = created.len() as u64;
    // A name that is given twice was there the second time.
    let existing = names.iter().filter(|name| !created.remove(*name)).cloned().collect();
    Ok(Imported { created: count, existing })
}
