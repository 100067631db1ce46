//! Access rules as rows. What they say is decided elsewhere; here they are kept and told.

use std::collections::HashSet;

use grange_model::{Actor, WorkId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::harvest::{NO_STATE, handle, missing, plain, told};
use crate::row::{Columns, micros};

handle! {
    /// The access rules.
    AccessRules, access_rules
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessRow {
    pub id: i64,
    pub rule: Value,
    /// Why it is there, for colleagues.
    pub note: String,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    pub created_by: String,
    /// Names the rule beside the bits, in every database that ever knows it. Absent until it is kept there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Tells one state of all rules from another. Rules are never changed; a database that was restored gives numbers again, but
/// at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRulesMark {
    count: i64,
    last: i64,
    sum: i64,
    /// The sum of the times at which rules were made, each as the remainder of a prime: it sees every one of them, and a
    /// hundred thousand rules are far from the largest number there is.
    made: i64,
}

impl AccessRules<'_> {
    /// All rules, oldest first.
    pub async fn list(&self) -> Result<Vec<AccessRow>, Error> {
        self.0.read("list the access rules", (), |tx, ()| Box::pin(rows(tx))).await
    }

    /// What tells the rules there are from those that were there before, without reading them.
    pub async fn mark(&self) -> Result<AccessRulesMark, Error> {
        self.0
            .read("look whether the access rules changed", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&MARK);
                    let row = tx.row(query).await?.ok_or_else(|| missing("access rule", "count"))?;
                    let (count, last, sum) = (row.int("count")?, row.int("last")?, row.int("sum")?);
                    let made = row.int("made")?;
                    Ok(AccessRulesMark { count, last, sum, made })
                })
            })
            .await
    }

    /// Keeps many rules with their notes, all or none, and those that are there already only once. Gives those made.
    pub async fn import(&self, rules: Vec<(Value, String)>, actor: &Actor) -> Result<u64, Error> {
        self.0
            .write("import the access rules", (rules, actor.clone()), |tx, (rules, actor)| {
                Box::pin(async move {
                    let known = rows(tx).await?;
                    let mut known: HashSet<String> = known.iter().map(|row| row.rule.to_string()).collect();
                    let mut made = 0;
                    for (rule, note) in rules {
                        plain("note of the access rule", note)?;
                        if known.insert(rule.to_string()) {
                            insert(tx, rule, note, actor).await?;
                            made += 1;
                        }
                    }
                    if made > 0 {
                        let state = json!({ "rules": made });
                        told(tx, actor, "access.import", "access".to_owned(), NO_STATE, Some(&state)).await?;
                    }
                    Ok(made)
                })
            })
            .await
    }

    /// Keeps rules, all or none.
    pub async fn add(&self, rules: Vec<Value>, note: &str, actor: &Actor) -> Result<Vec<AccessRow>, Error> {
        self.0
            .write(
                "keep the access rules",
                (rules, note.to_owned(), actor.clone()),
                |tx, (rules, note, actor)| {
                    Box::pin(async move {
                        plain("note of the access rule", note)?;
                        let mut made = Vec::with_capacity(rules.len());
                        for rule in rules {
                            made.push(add(tx, rule, note, actor).await?);
                        }
                        Ok(made)
                    })
                },
            )
            .await
    }

    pub async fn remove(&self, id: i64, actor: &Actor) -> Result<AccessRow, Error> {
        self.0
            .write("remove the access rule", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&REMOVE).bind(*id);
                    let gone = row(&tx.row(query).await?.ok_or_else(|| missing("access rule", id))?)?;
                    if let Some(key) = &gone.key {
                        let query =
                            tx.sql(&REMOVED).bind(key.as_str()).bind(micros(tx.now)).bind(actor.who.as_str());
                        tx.run(query).await?;
                    }
                    let state = json!({ "rule": gone.rule, "note": gone.note });
                    told(tx, actor, "access.remove", format!("access:{id}"), Some(&state), NO_STATE).await?;
                    Ok(gone)
                })
            })
            .await
    }
}

async fn add(tx: &mut Tx<'_>, rule: &Value, note: &str, actor: &Actor) -> Result<AccessRow, Fail> {
    let made = insert(tx, rule, note, actor).await?;
    let state = json!({ "rule": made.rule, "note": made.note });
    told(tx, actor, "access.add", format!("access:{}", made.id), NO_STATE, Some(&state)).await?;
    Ok(made)
}

async fn insert(tx: &mut Tx<'_>, rule: &Value, note: &str, actor: &Actor) -> Result<AccessRow, Fail> {
    let text = rule.to_string();
    if text.contains("\\u0000") {
        return Err(Error::BadText { what: "access rule" }.into());
    }
    let query = tx
        .sql(&ADD)
        .bind(text)
        .bind(note.to_owned())
        .bind(micros(tx.now))
        .bind(actor.who.clone())
        .bind(WorkId::new().to_string());
    let made = tx.row(query).await?;
    row(&made.ok_or_else(|| missing("access rule", "just made"))?)
}

static MARK: Sql = Sql::new(
    "SELECT count(*) AS count, coalesce(max(id), 0) AS last, CAST(coalesce(sum(id), 0) AS BIGINT) AS sum,
     CAST(coalesce(sum(created_at % 1000000007), 0) AS BIGINT) AS made
     FROM access_rules",
);
static LIST: Sql =
    Sql::new("SELECT id, rule, note, created_at, created_by, key FROM access_rules ORDER BY id");
pub(super) static ADD: Sql = Sql::new(
    "INSERT INTO access_rules (rule, note, created_at, created_by, key) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING RETURNING id, rule, note, created_at, created_by, key",
);
static REMOVE: Sql =
    Sql::new("DELETE FROM access_rules WHERE id = $1 RETURNING id, rule, note, created_at, created_by, key");
pub(super) static REMOVED: Sql = Sql::new(
    "INSERT INTO access_rules_removed (key, removed_at, removed_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);

pub(super) async fn rows(tx: &mut Tx<'_>) -> Result<Vec<AccessRow>, Fail> {
    let query = tx.sql(&LIST);
    tx.rows(query).await?.iter().map(row).collect()
}

pub(super) fn row(row: &AnyRow) -> Result<AccessRow, Fail> {
    Ok(AccessRow {
        id: row.int("id")?,
        rule: row.json("rule")?,
        note: row.text("note")?,
        created_at: row.time("created_at")?,
        created_by: row.text("created_by")?,
        key: row.text_or_none("key")?,
    })
}
