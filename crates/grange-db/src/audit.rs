//! The audit log. Other acts write to it inside their own transaction; this file also lets people read it.

use grange_model::{Actor, AuditEntry};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, micros, micros_or_none};

/// The audit log.
#[derive(Debug)]
pub struct Audit<'d>(&'d Db);

/// A line to be written: what was done to what, and the states without secrets.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub act: &'static str,
    pub subject: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// Which lines to show. The default is the newest hundred.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    pub who: Option<String>,
    /// The beginning of the act: `user.` shows everything done to users.
    pub act: Option<String>,
    pub subject: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only lines older than this number: the next page.
    pub before: Option<i64>,
    pub limit: u32,
}

impl Default for AuditFilter {
    fn default() -> Self {
        Self { who: None, act: None, subject: None, since: None, until: None, before: None, limit: 100 }
    }
}

impl Db {
    pub fn audit(&self) -> Audit<'_> {
        Audit(self)
    }
}

impl Audit<'_> {
    /// Adds a line for something that changes no row here, such as a refused login.
    pub async fn append(&self, record: Record, actor: &Actor) -> Result<(), Error> {
        self.0
            .write_one("write to the audit log", (record, actor.clone()), |tx, (record, actor)| {
                Box::pin(append(tx, actor, record.clone()))
            })
            .await
    }

    /// The lines that pass the filter, newest first.
    pub async fn list(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Error> {
        self.0.read("read the audit log", filter.clone(), |tx, filter| Box::pin(list(tx, filter))).await
    }
}

static APPEND: Sql = Sql::new(
    "INSERT INTO audit_log (at, who, via, act, subject, state_before, state_after)
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);

/// Writes the line in the transaction of the change.
pub(crate) async fn append(tx: &mut Tx<'_>, actor: &Actor, record: Record) -> Result<(), Fail> {
    let query = tx
        .sql(&APPEND)
        .bind(micros(tx.now))
        .bind(actor.who.clone())
        .bind(actor.via.clone())
        .bind(record.act)
        .bind(record.subject)
        .bind(record.before.map(|state| state.to_string()))
        .bind(record.after.map(|state| state.to_string()));
    tx.run(query).await.map(|_| ())
}

async fn list(tx: &mut Tx<'_>, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Fail> {
    let mut sql =
        "SELECT number, at, who, via, act, subject, state_before, state_after FROM audit_log".to_owned();
    // Only the conditions asked for, so that each engine can choose its index.
    let conditions = [
        (filter.who.is_some(), "who = $1"),
        (filter.act.is_some(), "substr(act, 1, length($2)) = $2"),
        (filter.subject.is_some(), "subject = $3"),
        (filter.since.is_some(), "at >= $4"),
        (filter.until.is_some(), "at < $5"),
        (filter.before.is_some(), "number < $6"),
    ];
    let asked: Vec<_> = conditions.iter().filter(|(asked, _)| *asked).map(|(_, sql)| *sql).collect();
    if !asked.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&asked.join(" AND "));
    }
    sql.push_str(" ORDER BY number DESC LIMIT $7");
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(filter.who.clone())
        .bind(filter.act.clone())
        .bind(filter.subject.clone())
        .bind(micros_or_none(filter.since))
        .bind(micros_or_none(filter.until))
        .bind(filter.before)
        .bind(i64::from(filter.limit));
    tx.rows(query).await?.iter().map(entry).collect()
}

fn entry(row: &AnyRow) -> Result<AuditEntry, Fail> {
    Ok(AuditEntry {
        number: row.int("number")?,
        at: row.time("at")?,
        who: row.text("who")?,
        via: row.text("via")?,
        act: row.text("act")?,
        subject: row.text("subject")?,
        before: row.json_or_none("state_before")?,
        after: row.json_or_none("state_after")?,
    })
}
