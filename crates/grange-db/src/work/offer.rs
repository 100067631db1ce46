//! Offering work, and looking at what there is.

use std::time::Duration;

use grange_model::{Actor, WorkId};
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::{Counts, Item, Offer, Offered, State, Work, WorkFilter, columns, item};
use crate::act::Tx;
use crate::audit::{self, Record};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length, micros_or_none};

impl Work<'_> {
    /// Offers work. The same kind and key offered again changes nothing, whatever state it is in.
    pub async fn offer(&self, offer: Offer) -> Result<Offered, Error> {
        self.0.write_one("offer work", offer, |tx, new| Box::pin(offer_one(tx, new))).await
    }

    /// Offers all of them, or none if one cannot be.
    pub async fn offer_many(&self, offers: Vec<Offer>) -> Result<Vec<Offered>, Error> {
        self.0
            .write("offer work", offers, |tx, offers| {
                Box::pin(async move {
                    let mut offered = Vec::with_capacity(offers.len());
                    for new in offers {
                        offered.push(offer_one(tx, new).await?);
                    }
                    Ok(offered)
                })
            })
            .await
    }

    pub async fn get(&self, id: WorkId) -> Result<Option<Item>, Error> {
        self.0
            .read("read the work", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.to_string());
                    tx.row(query).await?.as_ref().map(item).transpose()
                })
            })
            .await
    }

    pub async fn find(&self, kind: &str, key: &str) -> Result<Option<Item>, Error> {
        self.0
            .read("read the work", (kind.to_owned(), key.to_owned()), |tx, (kind, key)| {
                Box::pin(async move { find(tx, kind, key).await })
            })
            .await
    }

    /// The items that pass the filter, in the order they were offered.
    pub async fn list(&self, filter: &WorkFilter) -> Result<Vec<Item>, Error> {
        self.0.read("list the work", filter.clone(), |tx, filter| Box::pin(list(tx, filter))).await
    }

    pub async fn counts(&self, kind: &str) -> Result<Counts, Error> {
        self.0
            .read("count the work", kind.to_owned(), |tx, kind| {
                Box::pin(async move {
                    let query = tx.sql(&COUNTS).bind(kind.as_str());
                    let mut counts = Counts::default();
                    for row in tx.rows(query).await? {
                        let count = row.int("count")? as u64;
                        match (row.text_or_none("outcome")?.as_deref(), row.int("claimed")?) {
                            (None, 0) => counts.ready = count,
                            (None, _) => counts.claimed = count,
                            (Some("done"), _) => counts.done = count,
                            (Some(_), _) => counts.failed = count,
                        }
                    }
                    Ok(counts)
                })
            })
            .await
    }

    /// A person gives failed work a new set of attempts. [`Error::NotFound`] unless it stands as failed.
    pub async fn retry(&self, id: WorkId, actor: &Actor) -> Result<Item, Error> {
        self.0
            .write("try the work again", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(retry(tx, *id, actor))
            })
            .await
    }

    /// Deletes what was done longer ago than `age`, and counts it. Its keys can then be offered anew.
    pub async fn prune(&self, kind: &str, age: Duration) -> Result<u64, Error> {
        self.0
            .write_one("delete old work", (kind.to_owned(), length(age)), |tx, (kind, age)| {
                Box::pin(async move {
                    let query = tx.timed(&PRUNE).bind(kind.as_str()).bind(*age);
                    tx.run(query).await
                })
            })
            .await
    }
}

static OFFER: Sql = Sql::new(
    "INSERT INTO work (id, kind, key, payload, priority, due_at, attempts_max, created_at, updated_at)
     VALUES ($2, $3, $4, $5, $6, COALESCE($7, {now}), $8, {now}, {now})
     ON CONFLICT (kind, key) DO NOTHING",
);
static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM work WHERE id = $1"));
static FIND: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM work WHERE kind = $1 AND key = $2"));
static COUNTS: Sql = Sql::new(
    "SELECT outcome, CASE WHEN lease_owner IS NULL THEN 0 ELSE 1 END AS claimed, count(*) AS count
     FROM work WHERE kind = $1 AND outcome IS NULL GROUP BY 1, 2
     UNION ALL
     SELECT outcome, 0 AS claimed, count(*) AS count
     FROM work WHERE kind = $1 AND outcome IS NOT NULL GROUP BY 1",
);
static RETRY: Sql = Sql::new(concat!(
    "UPDATE work SET outcome = NULL, ended_at = NULL, attempts = 0, due_at = {now}, updated_at = {now},
         edition = edition + 1
     WHERE id = $2 AND outcome = 'failed' RETURNING ",
    columns!()
));
static PRUNE: Sql =
    Sql::new("DELETE FROM work WHERE kind = $2 AND outcome = 'done' AND ended_at < {now} - $3");

/// Offering inside another act's transaction: the fact and the work that follows from it are one.
pub(crate) async fn offer_one(tx: &mut Tx<'_>, new: &Offer) -> Result<Offered, Fail> {
    // PostgreSQL cannot keep it, and both engines behave alike. The payload is JSON, which spells it out.
    if new.kind.contains('\0') || new.key.contains('\0') {
        return Err(Error::BadText { what: "key of the work" }.into());
    }
    let id = WorkId::new();
    loop {
        let query = tx
            .timed(&OFFER)
            .bind(id.to_string())
            .bind(new.kind.as_str())
            .bind(new.key.as_str())
            .bind(new.payload.to_string())
            .bind(new.priority)
            .bind(micros_or_none(new.not_before))
            .bind(i64::from(new.attempts_max));
        if tx.run(query).await? == 1 {
            return Ok(Offered { id, new: true, state: State::Ready });
        }
        // Between the two statements it may have been pruned; then there is room for it.
        if let Some(known) = find(tx, &new.kind, &new.key).await? {
            return Ok(Offered { id: known.id, new: false, state: known.state });
        }
    }
}

async fn find(tx: &mut Tx<'_>, kind: &str, key: &str) -> Result<Option<Item>, Fail> {
    let query = tx.sql(&FIND).bind(kind.to_owned()).bind(key.to_owned());
    tx.row(query).await?.as_ref().map(item).transpose()
}

async fn list(tx: &mut Tx<'_>, filter: &WorkFilter) -> Result<Vec<Item>, Fail> {
    let mut sql = concat!("SELECT ", columns!(), " FROM work").to_owned();
    let conditions = [
        (filter.kind.is_some(), "kind = $1"),
        (filter.after.is_some(), "id > $2"),
        (filter.state == Some(State::Ready), "outcome IS NULL AND lease_owner IS NULL"),
        (filter.state == Some(State::Claimed), "outcome IS NULL AND lease_owner IS NOT NULL"),
        (filter.state == Some(State::Done), "outcome = 'done'"),
        (filter.state == Some(State::Failed), "outcome = 'failed'"),
    ];
    let asked: Vec<_> = conditions.iter().filter(|(asked, _)| *asked).map(|(_, sql)| *sql).collect();
    if !asked.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&asked.join(" AND "));
    }
    sql.push_str(" ORDER BY id LIMIT $3");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(filter.kind.clone())
        .bind(filter.after.map(|id| id.to_string()))
        .bind(i64::from(filter.limit));
    tx.rows(query).await?.iter().map(item).collect()
}

async fn retry(tx: &mut Tx<'_>, id: WorkId, actor: &Actor) -> Result<Item, Fail> {
    let query = tx.timed(&RETRY).bind(id.to_string());
    let row = tx
        .row(query)
        .await?
        .ok_or_else(|| Error::NotFound { what: format!("failed work with the id {id}") })?;
    let item = item(&row)?;
    let before = Some(json!({ "state": State::Failed, "error": item.last_error }));
    let after = Some(json!({ "state": item.state }));
    let subject = format!("work:{} {}", item.kind, item.key);
    audit::append(tx, actor, Record { act: "work.retry", subject, before, after }).await?;
    Ok(item)
}
