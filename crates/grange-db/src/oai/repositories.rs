//! Repositories with their sets and formats.

use grange_model::Actor;
use grange_model::oai::{Format, Identified, Repository, RepositoryId, RepositoryRules, Set};
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, exists, fresh, handle, json, missing, told};
use crate::row::{Columns, micros};

handle! {
    /// The repositories that are harvested.
    OaiRepositories, oai_repositories
}

impl OaiRepositories<'_> {
    /// Adds a repository that was asked who it is.
    pub async fn add(
        &self,
        base_url: &str,
        said: Identified,
        rules: RepositoryRules,
        actor: &Actor,
    ) -> Result<Repository, Error> {
        let input = (base_url.to_owned(), said, rules, actor.clone());
        self.0
            .write("add the repository", input, |tx, (base_url, said, rules, actor)| {
                Box::pin(async move {
                    let query = tx
                        .sql(&ADD)
                        .bind(base_url.as_str())
                        .bind(said.name.as_str())
                        .bind(json(&bare(said)))
                        .bind(json(rules))
                        .bind(micros(tx.now))
                        .bind(actor.who.clone());
                    let row = tx.row(query).await.map_err(|fail| exists(fail, "repository", base_url))?;
                    let id = row.ok_or_else(|| missing("repository", base_url))?.int("id")?;
                    describe(tx, id, said).await?;
                    let made = found(tx, id).await?;
                    let subject = format!("repository:{id}");
                    let state = json!({ "base_url": base_url, "name": said.name, "rules": rules });
                    told(tx, actor, "repository.add", subject, NO_STATE, Some(&state)).await?;
                    Ok(made)
                })
            })
            .await
    }

    /// What the repository says of itself now.
    pub async fn identified(&self, id: RepositoryId, said: Identified) -> Result<(), Error> {
        self.0
            .write("keep what the repository said", (id, said), |tx, (id, said)| {
                Box::pin(async move {
                    let query = tx.sql(&SAID).bind(id.0).bind(said.name.as_str()).bind(json(&bare(said)));
                    if tx.run(query).await? == 0 {
                        return Err(missing("repository", id));
                    }
                    describe(tx, id.0, said).await
                })
            })
            .await
    }

    /// Changes how a repository is treated.
    pub async fn change(
        &self,
        id: RepositoryId,
        rules: RepositoryRules,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<Repository, Error> {
        self.0
            .write("change the repository", (id, rules, edition, actor.clone()), |tx, input| {
                let (id, rules, edition, actor) = input;
                Box::pin(async move {
                    let query = tx.sql(&LOCK).bind(id.0);
                    let row = tx.row(query).await?.ok_or_else(|| missing("repository", id))?;
                    fresh(&row, format_args!("repository {id}"), *edition)?;
                    let before: RepositoryRules = row.json("rules")?;
                    let query = tx
                        .sql(&RULES)
                        .bind(id.0)
                        .bind(json(rules))
                        .bind(micros(tx.now))
                        .bind(actor.who.clone());
                    tx.run(query).await?;
                    let subject = format!("repository:{id}");
                    told(tx, actor, "repository.change", subject, Some(&before), Some(rules)).await?;
                    found(tx, id.0).await
                })
            })
            .await
    }

    pub async fn get(&self, id: RepositoryId) -> Result<Option<Repository>, Error> {
        self.0
            .read("read the repository", id, |tx, id| {
                Box::pin(async move {
                    match found(tx, id.0).await {
                        Ok(repository) => Ok(Some(repository)),
                        Err(Fail::Told(Error::NotFound { .. })) => Ok(None),
                        Err(fail) => Err(fail),
                    }
                })
            })
            .await
    }

    /// All of them, by number, without their sets and formats.
    pub async fn list(&self) -> Result<Vec<Repository>, Error> {
        self.0
            .read("list the repositories", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    tx.rows(query).await?.iter().map(repository).collect()
                })
            })
            .await
    }

    /// Forgets a repository and what is known of its records; its history and its files stay. Refused while it is
    /// harvested.
    pub async fn delete(&self, id: RepositoryId, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the repository", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    held(tx, id.0).await?;
                    let was = found(tx, id.0).await?;
                    // Those that wait go first: after that none of them can begin.
                    let query = tx.sql(&UNPLAN).bind(id.0);
                    tx.run(query).await?;
                    let query = tx.sql(&RUNNING).bind(id.0);
                    if let Some(job) = tx.row(query).await? {
                        let by = format!("the harvest {} that is under way", job.int("id")?);
                        return Err(Error::InUse { what: format!("repository {id}"), by }.into());
                    }
                    for sql in &FORGET {
                        let query = tx.sql(sql).bind(id.0);
                        tx.run(query).await?;
                    }
                    let subject = format!("repository:{id}");
                    let state = json!({ "base_url": was.base_url, "name": was.said.name });
                    told(tx, actor, "repository.delete", subject, Some(&state), NO_STATE).await
                })
            })
            .await
    }

    /// The number of a list that begins now. Grows with every list of the repository.
    pub async fn begin_list(&self, id: RepositoryId) -> Result<i64, Error> {
        self.0
            .write_one("begin a list", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&BEGIN_LIST).bind(id.0);
                    tx.row(query).await?.ok_or_else(|| missing("repository", id))?.int("lists")
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, base_url, said, rules, added_at, changed_at, changed_by, edition"
    };
}

static ADD: Sql = Sql::new(
    "INSERT INTO oai_repositories (base_url, name, said, rules, added_at, changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, $5, $6) RETURNING id",
);
static SAID: Sql = Sql::new("UPDATE oai_repositories SET name = $2, said = $3 WHERE id = $1");
static RULES: Sql = Sql::new(
    "UPDATE oai_repositories SET rules = $2, changed_at = $3, changed_by = $4, edition = edition + 1 WHERE id = $1",
);
static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM oai_repositories WHERE id = $1"));
static LOCK: Sql =
    Sql::new(concat!("SELECT ", columns!(), " FROM oai_repositories WHERE id = $1 {for_update}"));
static LIST: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM oai_repositories ORDER BY id"));
static RUNNING: Sql = Sql::new("SELECT id FROM oai_jobs WHERE repository_id = $1 AND status <> 'scheduled'");
static BEGIN_LIST: Sql =
    Sql::new("UPDATE oai_repositories SET lists = lists + 1 WHERE id = $1 RETURNING lists");
static UNPLAN: Sql = Sql::new("DELETE FROM oai_jobs WHERE repository_id = $1 AND status = 'scheduled'");
static FORGET: [Sql; 9] = [
    Sql::new("DELETE FROM oai_recurring_jobs WHERE repository_id = $1"),
    Sql::new("DELETE FROM oai_progress WHERE repository_id = $1"),
    Sql::new("DELETE FROM oai_folders WHERE repository_id = $1"),
    Sql::new(
        "DELETE FROM oai_record_sets WHERE record_id IN (SELECT id FROM oai_records WHERE repository_id = $1)",
    ),
    Sql::new("DELETE FROM oai_records WHERE repository_id = $1"),
    Sql::new("DELETE FROM oai_repository_formats WHERE repository_id = $1"),
    Sql::new("DELETE FROM oai_sets WHERE repository_id = $1"),
    Sql::new(
        "DELETE FROM oai_formats WHERE id NOT IN (SELECT format_id FROM oai_repository_formats) AND $1 = $1",
    ),
    Sql::new("DELETE FROM oai_repositories WHERE id = $1"),
];
static SETS: Sql = Sql::new("SELECT spec, name FROM oai_sets WHERE repository_id = $1 ORDER BY spec");
static FORMATS: Sql = Sql::new(
    "SELECT f.prefix, f.namespace, f.schema FROM oai_formats f
     JOIN oai_repository_formats r ON r.format_id = f.id WHERE r.repository_id = $1 ORDER BY f.prefix, f.id",
);
static FORGET_SETS: Sql = Sql::new("DELETE FROM oai_sets WHERE repository_id = $1");
static ADD_SETS: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO oai_sets (repository_id, spec, name)
         SELECT $2, value ->> 0, value ->> 1 FROM json_each($1) WHERE true ON CONFLICT DO NOTHING",
    ),
    postgres: Sql::new(
        "INSERT INTO oai_sets (repository_id, spec, name)
         SELECT $2, value ->> 0, value ->> 1 FROM jsonb_array_elements($1::jsonb) ON CONFLICT DO NOTHING",
    ),
};
static ADD_FORMAT: Sql = Sql::new(
    "INSERT INTO oai_formats (prefix, namespace, schema) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);
static FORGET_FORMATS: Sql = Sql::new("DELETE FROM oai_repository_formats WHERE repository_id = $1");
static ADD_MAPPING: Sql = Sql::new(
    "INSERT INTO oai_repository_formats (repository_id, format_id)
     SELECT $4, id FROM oai_formats WHERE prefix = $1 AND namespace = $2 AND schema = $3 ON CONFLICT DO NOTHING",
);

/// Without what has tables of its own.
fn bare(said: &Identified) -> Identified {
    Identified { formats: Vec::new(), sets: Vec::new(), ..said.clone() }
}

/// Replaces the sets and formats as a whole.
async fn describe(tx: &mut Tx<'_>, id: i64, said: &Identified) -> Result<(), Fail> {
    let query = tx.sql(&FORGET_SETS).bind(id);
    tx.run(query).await?;
    let sets: Vec<_> = said.sets.iter().map(|set| (&set.spec, &set.name)).collect();
    let query = ADD_SETS.on(tx).bind(json(&sets)).bind(id);
    tx.run(query).await?;
    let query = tx.sql(&FORGET_FORMATS).bind(id);
    tx.run(query).await?;
    for format in &said.formats {
        let of = |sql: &'static Sql, tx: &Tx<'_>| {
            let Format { prefix, namespace, schema } = format;
            tx.sql(sql).bind(prefix.clone()).bind(namespace.clone()).bind(schema.clone())
        };
        // Once more if the format went, between the two, with the last repository that had it.
        for _ in 0..2 {
            let query = of(&ADD_FORMAT, tx);
            tx.run(query).await?;
            let query = of(&ADD_MAPPING, tx).bind(id);
            if tx.run(query).await? == 1 {
                break;
            }
        }
    }
    Ok(())
}

/// Holds the repository until the transaction ends: for those who plan something of it, or delete it.
pub(super) async fn held(tx: &mut Tx<'_>, id: i64) -> Result<(), Fail> {
    let query = tx.sql(&LOCK).bind(id);
    tx.row(query).await?.map(|_| ()).ok_or_else(|| missing("repository", id))
}

pub(super) async fn found(tx: &mut Tx<'_>, id: i64) -> Result<Repository, Fail> {
    let query = tx.sql(&GET).bind(id);
    let mut found = repository(&tx.row(query).await?.ok_or_else(|| missing("repository", id))?)?;
    let query = tx.sql(&SETS).bind(id);
    for row in &tx.rows(query).await? {
        found.said.sets.push(Set { spec: row.text("spec")?, name: row.text("name")? });
    }
    let query = tx.sql(&FORMATS).bind(id);
    for row in &tx.rows(query).await? {
        let (prefix, namespace, schema) = (row.text("prefix")?, row.text("namespace")?, row.text("schema")?);
        found.said.formats.push(Format { prefix, schema, namespace });
    }
    Ok(found)
}

fn repository(row: &AnyRow) -> Result<Repository, Fail> {
    Ok(Repository {
        id: RepositoryId(row.int("id")?),
        base_url: row.text("base_url")?,
        said: row.json("said")?,
        rules: row.json("rules")?,
        added_at: row.time("added_at")?,
        edition: row.int("edition")?,
    })
}
