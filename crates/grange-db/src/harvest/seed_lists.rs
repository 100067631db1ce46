//! Seed lists of a domain.

use grange_model::Actor;
use grange_model::harvest::{DomainName, Name, SeedList};
use sqlx::any::AnyRow;

use super::domains::found;
use super::{Domains, NO_STATE, fresh, missing, plain, refused, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

impl Domains<'_> {
    pub async fn seed_lists(&self, domain: &DomainName) -> Result<Vec<SeedList>, Error> {
        self.0
            .read("list the seed lists", domain.clone(), |tx, domain| {
                Box::pin(async move {
                    let id = super::domains::id(tx, domain).await?;
                    let query = tx.sql(&LIST).bind(id);
                    tx.rows(query).await?.iter().map(seed_list).collect()
                })
            })
            .await
    }

    /// Makes or replaces a seed list; `active` are the seeds among its lines.
    #[allow(clippy::too_many_arguments)] // One row, spelled out.
    pub async fn save_seeds(
        &self,
        domain: &DomainName,
        name: &Name,
        seeds: &str,
        active: &[String],
        comments: &str,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<SeedList, Error> {
        let input = (
            (domain.clone(), name.clone(), seeds.to_owned()),
            (active.to_vec(), comments.to_owned()),
            (edition, actor.clone()),
        );
        self.0
            .write(
                "keep the seed list",
                input,
                |tx, ((domain, name, seeds), (active, comments), (edition, actor))| {
                    Box::pin(async move {
                        let (id, _) = found(tx, domain).await?;
                        save(tx, (id, domain), name, seeds, active, comments, *edition, actor).await
                    })
                },
            )
            .await
    }

    /// Deletes a seed list that no configuration uses and that is not the last.
    pub async fn delete_seeds(&self, domain: &DomainName, name: &Name, actor: &Actor) -> Result<(), Error> {
        let input = (domain.clone(), name.clone(), actor.clone());
        self.0
            .write("delete the seed list", input, |tx, (domain, name, actor)| {
                Box::pin(async move {
                    let (domain_id, _) = found(tx, domain).await?;
                    let what = format!("seed list {name} of {domain}");
                    let query = tx.sql(&ONE).bind(domain_id).bind(name.to_string());
                    let row = tx.row(query).await?.ok_or_else(|| Error::NotFound { what: what.clone() })?;
                    let (id, before) = (row.int("id")?, seed_list(&row)?);
                    let query = tx.sql(&USED_BY).bind(id);
                    if let Some(user) = tx.row(query).await? {
                        let by = format!("the configuration {}", user.text("name")?);
                        return Err(Error::InUse { what, by }.into());
                    }
                    let query = tx.sql(&LIST).bind(domain_id);
                    if tx.rows(query).await?.len() < 2 {
                        return Err(refused(format_args!("{name} is the last seed list of {domain}")));
                    }
                    let query = tx.sql(&DELETE).bind(id);
                    tx.run(query).await?;
                    told(
                        tx,
                        actor,
                        "seeds.delete",
                        format!("domain:{domain}/{name}"),
                        Some(&before),
                        NO_STATE,
                    )
                    .await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, name, comments, seeds, active_count, changed_at, changed_by, edition"
    };
}

static LIST: Sql =
    Sql::new(concat!("SELECT ", columns!(), " FROM seed_lists WHERE domain_id = $1 ORDER BY name"));
static ONE: Sql =
    Sql::new(concat!("SELECT ", columns!(), " FROM seed_lists WHERE domain_id = $1 AND name = $2"));
static SAVE: Sql = Sql::new(
    "INSERT INTO seed_lists (domain_id, name, comments, seeds, active, active_count, changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (domain_id, name) DO UPDATE SET comments = excluded.comments, seeds = excluded.seeds,
         active = excluded.active, active_count = excluded.active_count, changed_at = excluded.changed_at,
         changed_by = excluded.changed_by, edition = seed_lists.edition + 1",
);
static USED_BY: Sql = Sql::new(
    "SELECT c.name FROM configuration_seed_lists l JOIN configurations c ON c.id = l.configuration_id
     WHERE l.seed_list_id = $1 ORDER BY c.name LIMIT 1",
);
static DELETE: Sql = Sql::new("DELETE FROM seed_lists WHERE id = $1");

#[allow(clippy::too_many_arguments)] // One row, spelled out.
pub(super) async fn save(
    tx: &mut Tx<'_>,
    (domain_id, domain): (i64, &DomainName),
    name: &Name,
    seeds: &str,
    active: &[String],
    comments: &str,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<SeedList, Fail> {
    plain("seeds", seeds)?;
    plain("comments of the seed list", comments)?;
    let query = tx.sql(&ONE).bind(domain_id).bind(name.to_string());
    let row = tx.row(query).await?;
    match &row {
        Some(row) => fresh(row, format_args!("seed list {name} of {domain}"), edition)?,
        // An edition is of something that was there: what was deleted since is not made again by a change of it.
        None if edition.is_some() => return Err(missing(&format!("seed list of {domain} named"), name)),
        None => {}
    }
    let before = row.as_ref().map(seed_list).transpose()?;
    let clean = active.join("\n");
    let query = tx
        .sql(&SAVE)
        .bind(domain_id)
        .bind(name.to_string())
        .bind(comments.to_owned())
        .bind(seeds.to_owned())
        .bind((clean != seeds).then_some(clean))
        .bind(active.len() as i64)
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await?;
    let query = tx.sql(&ONE).bind(domain_id).bind(name.to_string());
    let after = seed_list(&tx.row(query).await?.ok_or_else(|| missing("seed list", name))?)?;
    told(tx, actor, "seeds.save", format!("domain:{domain}/{name}"), before.as_ref(), Some(&after)).await?;
    Ok(after)
}

fn seed_list(row: &AnyRow) -> Result<SeedList, Fail> {
    Ok(SeedList {
        name: row.parsed("name")?,
        comments: row.text("comments")?,
        seeds: row.text("seeds")?,
        active: row.int("active_count")? as u64,
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
