//! Findings: states that need a person, each opened once, announced once and closed when it is over.
//!
//! Rows of files, nodes, jobs and so on are the truth. [`Findings::look`] compares them with the findings that are open;
//! any number of nodes may do so at once. Announcing is a claim with a lease: a process that is killed between its log
//! line and the row leaves the finding to the next one, so a line may come twice after a kill and is never lost.

mod look;

use std::time::Duration;

use grange_model::finding::{ANNOUNCE_AGAIN_AFTER, collective_detail};
use grange_model::{Condition, FindingChanges, FindingKind, LogRecord, OpenFinding};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::bulk::{self, Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::logbook;
use crate::open::Db;
use crate::row::{Columns, length, micros};

pub use look::Look;

/// The findings.
#[derive(Debug)]
pub struct Findings<'d>(&'d Db);

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub id: i64,
    pub kind: FindingKind,
    /// The copy, node, job and so on that it is about.
    pub subject: String,
    pub detail: String,
    #[schemars(with = "String")]
    pub opened_at: Timestamp,
    #[schemars(with = "Option<String>")]
    pub announced_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub closed_at: Option<Timestamp>,
}

/// A copy that could not be served to a reader.
#[derive(Clone, Debug)]
pub struct UnservableCopy {
    pub file_id: i64,
    pub replica_id: i64,
    pub replica: String,
    pub reason: String,
    /// Enters the log with the finding.
    pub record: LogRecord,
}

impl Db {
    pub fn findings(&self) -> Findings<'_> {
        Findings(self)
    }
}

impl Findings<'_> {
    /// Compares the rows with the open findings and writes what changed. A node without a heartbeat for `lost_after` is
    /// lost.
    pub async fn look(&self, lost_after: Duration) -> Result<Look, Error> {
        let look = self
            .0
            .read("look for findings", length(lost_after), |tx, lost_after| {
                Box::pin(look::look(tx, *lost_after))
            })
            .await?;
        if look.changes != FindingChanges::default() {
            self.apply(look.changes.clone()).await?;
        }
        Ok(look)
    }

    /// The same for copies alone: after an audit, before what it found is repaired.
    pub async fn look_at_copies(&self) -> Result<(), Error> {
        let changes = self.0.read("look for findings", (), |tx, ()| Box::pin(look::of_copies(tx))).await?;
        if changes != FindingChanges::default() {
            self.apply(changes).await?;
        }
        Ok(())
    }

    async fn apply(&self, changes: FindingChanges) -> Result<(), Error> {
        self.0.write("keep the findings", changes, |tx, changes| Box::pin(apply(tx, changes))).await
    }

    /// Keeps what no row shows: `detail` when it is wrong, nothing when it is right again. True when that is new.
    pub async fn observe(
        &self,
        kind: FindingKind,
        subject: &str,
        detail: Option<String>,
    ) -> Result<bool, Error> {
        let known = self
            .0
            .read("look for findings", (kind, subject.to_owned()), |tx, (kind, subject)| {
                Box::pin(async move {
                    let query = tx.sql(&KNOWN).bind(kind.as_str()).bind(subject.clone());
                    tx.row(query).await?.map(|row| row.int("id")).transpose()
                })
            })
            .await?;
        match (known, detail) {
            (Some(_), Some(_)) | (None, None) => Ok(false),
            (Some(id), None) => {
                self.apply(FindingChanges { close: vec![id], ..FindingChanges::default() }).await?;
                Ok(true)
            }
            (None, Some(detail)) => {
                let new = (kind, subject.to_owned(), detail);
                self.0
                    .write("keep the finding", new, |tx, (kind, subject, detail)| {
                        Box::pin(async move {
                            let condition = Condition {
                                subject: subject.clone(),
                                detail: detail.clone(),
                                ..Condition::default()
                            };
                            open(tx, *kind, "", &condition).await
                        })
                    })
                    .await
            }
        }
    }

    /// Keeps that a copy could not be served: once until it is over, however many readers ask for it. True when that is
    /// new; only then is anything written.
    pub async fn unservable(&self, copy: UnservableCopy) -> Result<bool, Error> {
        let known = self
            .0
            .read("look for findings", (copy.file_id, copy.replica_id), |tx, (file, replica)| {
                Box::pin(async move {
                    let query = tx.sql(&UNSERVABLE).bind(*file).bind(*replica);
                    Ok(tx.row(query).await?.is_some())
                })
            })
            .await?;
        if known {
            return Ok(false);
        }
        self.0.write("keep the finding", copy, |tx, copy| Box::pin(unservable(tx, copy))).await
    }

    /// Takes findings that were not announced, for as long as the lease lasts.
    pub async fn claim_unannounced(&self, owner: &str, lease: Duration) -> Result<Vec<Finding>, Error> {
        let none = self
            .0
            .read("look for findings", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.timed(&ANY_UNANNOUNCED);
                    Ok(tx.row(query).await?.is_none())
                })
            })
            .await?;
        if none {
            return Ok(Vec::new());
        }
        self.0
            .write_one("claim findings", (owner.to_owned(), length(lease)), |tx, (owner, lease)| {
                Box::pin(async move {
                    let query = tx.timed(&CLAIM).bind(owner.clone()).bind(*lease);
                    let mut found =
                        tx.rows(query).await?.iter().map(finding).collect::<Result<Vec<_>, _>>()?;
                    found.sort_by_key(|one| one.id);
                    Ok(found)
                })
            })
            .await
    }

    /// The findings were announced by whoever claimed them.
    pub async fn announced(&self, owner: &str, ids: Vec<i64>) -> Result<(), Error> {
        self.0
            .write_one("keep that findings were announced", (owner.to_owned(), ids), |tx, (owner, ids)| {
                Box::pin(async move {
                    let query = match tx.dialect {
                        crate::dialect::Dialect::Sqlite => tx.timed(&ANNOUNCED.sqlite),
                        crate::dialect::Dialect::Postgres => tx.timed(&ANNOUNCED.postgres),
                    };
                    tx.run(query.bind(owner.clone()).bind(bulk::ids(ids))).await.map(|_| ())
                })
            })
            .await
    }

    /// The newest first: those that are open, or all.
    pub async fn list(&self, closed_too: bool, limit: u32) -> Result<Vec<Finding>, Error> {
        self.0
            .read("list the findings", (closed_too, i64::from(limit)), |tx, (closed_too, limit)| {
                Box::pin(async move {
                    let query = tx.sql(if *closed_too { &ALL } else { &OPEN }).bind(*limit);
                    tx.rows(query).await?.iter().map(finding).collect()
                })
            })
            .await
    }

    /// Deletes findings that were closed longer ago than `age`; gives how many.
    pub async fn forget(&self, age: Duration) -> Result<u64, Error> {
        self.0
            .write_one("forget findings", length(age), |tx, age| {
                Box::pin(async move {
                    let query = tx.timed(&FORGET).bind(*age);
                    tx.run(query).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, kind, subject, detail, opened_at, announced_at, closed_at"
    };
}

static KNOWN: Sql =
    Sql::new("SELECT id FROM findings WHERE kind = $1 AND subject = $2 AND closed_at IS NULL");
static UNSERVABLE: Sql = Sql::new(
    "SELECT id FROM findings WHERE kind = 'unservable-copy' AND closed_at IS NULL
         AND (file_id = $1 OR file_id IS NULL) AND replica_id = $2",
);
static UNSERVABLE_COUNT: Sql = Sql::new(
    "SELECT count(*) AS count FROM findings WHERE kind = 'unservable-copy' AND closed_at IS NULL AND replica_id = $1",
);
static INSERT: Sql = Sql::new(
    "INSERT INTO findings (kind, grouped_by, subject, detail, file_id, replica_id, opened_at, due_at, states)
     VALUES ($2, $3, $4, $5, $6, $7, $8, {now} + $9, $10) ON CONFLICT DO NOTHING",
);
static ALREADY_ANNOUNCED: Sql = Sql::new(
    "UPDATE findings SET announced_at = {now} WHERE kind = $2 AND subject = $3 AND closed_at IS NULL",
);
static FEWER: Sql = Sql::new(
    "UPDATE findings SET states = $2, detail = $3 WHERE id = $1 AND closed_at IS NULL AND states > $2",
);
// Announced again, but not sooner than that: one that was not announced yet says the new number when it is. Whoever is
// announcing the old number does not announce this one.
static MORE: Sql = Sql::new(
    "UPDATE findings SET states = $2, detail = $3,
         due_at = CASE WHEN announced_at IS NULL THEN due_at ELSE announced_at + $4 END,
         announced_at = NULL, lease_owner = NULL, lease_until = NULL
     WHERE id = $1 AND closed_at IS NULL AND states < $2",
);
static CLOSE: Sql = Sql::new("UPDATE findings SET closed_at = {now} WHERE id = $2 AND closed_at IS NULL");
// One that was over before it was due is nobody's business.
macro_rules! unannounced {
    () => {
        "FROM findings WHERE announced_at IS NULL AND due_at <= {now} AND (closed_at IS NULL OR closed_at >= due_at)
             AND (lease_until IS NULL OR lease_until <= {now})"
    };
}
static ANY_UNANNOUNCED: Sql = Sql::new(concat!("SELECT id ", unannounced!(), " LIMIT 1"));
static CLAIM: Sql = Sql::new(concat!(
    "UPDATE findings SET lease_owner = $2, lease_until = {now} + $3 WHERE id IN (SELECT id ",
    unannounced!(),
    " ORDER BY id LIMIT 100 {skip_locked}) RETURNING ",
    columns!()
));
static ANNOUNCED: Bulk = of_ids!(
    "UPDATE findings SET announced_at = {now}, lease_owner = NULL, lease_until = NULL
     WHERE lease_owner = $2 AND id IN (",
    "$3",
    ")"
);
static OPEN: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM findings WHERE closed_at IS NULL ORDER BY id DESC LIMIT $1"
));
static ALL: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM findings ORDER BY id DESC LIMIT $1"));
static FORGET: Sql = Sql::new("DELETE FROM findings WHERE closed_at < {now} - $2");

async fn apply(tx: &mut Tx<'_>, changes: &FindingChanges) -> Result<(), Fail> {
    for id in &changes.close {
        let query = tx.timed(&CLOSE).bind(*id);
        tx.run(query).await?;
    }
    for (kind, group, condition) in &changes.open {
        open(tx, *kind, group, condition).await?;
    }
    for (kind, group, condition) in &changes.open_announced {
        if open(tx, *kind, group, condition).await? {
            let query = tx.timed(&ALREADY_ANNOUNCED).bind(kind.as_str()).bind(condition.subject.clone());
            tx.run(query).await?;
        }
    }
    for (id, states) in &changes.counted {
        let detail = collective_detail(*states);
        let query = tx.sql(&FEWER).bind(*id).bind(*states as i64).bind(detail.clone());
        tx.run(query).await?;
        let again = length(ANNOUNCE_AGAIN_AFTER);
        let query = tx.sql(&MORE).bind(*id).bind(*states as i64).bind(detail).bind(again);
        tx.run(query).await?;
    }
    Ok(())
}

/// False when somebody else was faster.
async fn open(tx: &mut Tx<'_>, kind: FindingKind, group: &str, condition: &Condition) -> Result<bool, Fail> {
    let query = tx
        .timed(&INSERT)
        .bind(kind.as_str())
        .bind(group.to_owned())
        .bind(condition.subject.clone())
        // The text may come from afar, and PostgreSQL keeps no NUL.
        .bind(condition.detail.replace('\0', "\u{fffd}"))
        .bind(condition.file_id)
        .bind(condition.replica_id)
        .bind(micros(tx.now))
        .bind(length(kind.patience()))
        .bind(condition.states.max(1) as i64);
    Ok(tx.run(query).await? == 1)
}

async fn unservable(tx: &mut Tx<'_>, copy: &UnservableCopy) -> Result<bool, Fail> {
    let kind = FindingKind::UnservableCopy;
    let query = tx.sql(&UNSERVABLE_COUNT).bind(copy.replica_id);
    let count = tx.row(query).await?.map_or(Ok(0), |row| row.int("count"))? as u64;
    let name = copy.record.name.as_deref().unwrap_or_default();
    let condition = if count >= grange_model::finding::FINDINGS_PER_GROUP_MAX {
        // The disk is to blame, not its files; no reader adds to the log any more.
        let (subject, detail) =
            (kind.collective(&copy.replica), format!("{name} was the last: {}", copy.reason));
        let states = count + 1;
        Condition { subject, detail, replica_id: Some(copy.replica_id), states, ..Condition::default() }
    } else {
        Condition {
            subject: format!("{name} on {}", copy.replica),
            detail: copy.reason.clone(),
            opens: true,
            file_id: Some(copy.file_id),
            replica_id: Some(copy.replica_id),
            states: 1,
        }
    };
    let new = open(tx, kind, &copy.replica, &condition).await?;
    if new {
        logbook::append(tx, std::slice::from_ref(&copy.record)).await?;
    }
    Ok(new)
}

fn finding(row: &AnyRow) -> Result<Finding, Fail> {
    Ok(Finding {
        id: row.int("id")?,
        kind: row.parsed("kind")?,
        subject: row.text("subject")?,
        detail: row.text("detail")?,
        opened_at: row.time("opened_at")?,
        announced_at: row.time_or_none("announced_at")?,
        closed_at: row.time_or_none("closed_at")?,
    })
}

fn open_finding(row: &AnyRow) -> Result<OpenFinding, Fail> {
    Ok(OpenFinding {
        id: row.int("id")?,
        kind: row.parsed("kind")?,
        group: row.text("grouped_by")?,
        subject: row.text("subject")?,
        states: row.int("states")?.max(1) as u64,
    })
}
