//! Repairs: asked for by one person, confirmed by another or by the replica's credential, done once.
//!
//! A confirmed repair has a row in `work` (kind [`REPAIR_WORK`], key its id) until it ends: whoever performs it holds that
//! row, so two confirmations at once perform it once, and any node completes the repair of a node that was killed.

use std::time::Duration;

use grange_model::{Actor, FileName, LogRecord, RepairId, RepairKind, RepairState, ReplicaName};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit;
use crate::bulk::{self, Bulk, of_ids};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::logbook;
use crate::open::Db;
use crate::row::{Columns, length, micros};
use crate::store::{drop_work, fence};
use crate::work::{self, Claim, Offer};

/// The queue of repairs that are confirmed and not performed yet.
pub const REPAIR_WORK: &str = "archive.repair";

macro_rules! columns {
    () => {
        "p.id, f.name, r.name AS replica, p.kind, p.state, p.bad_checksum, p.new_checksum, p.asked_by, p.asked_at, \
         p.confirmed_by, p.confirmed_at, p.ended_at, p.last_error FROM repairs p \
         JOIN files f ON f.id = p.file_id JOIN replicas r ON r.id = p.replica_id"
    };
}

/// The repairs.
#[derive(Debug)]
pub struct Repairs<'d>(&'d Db);

/// One repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepairRow {
    pub id: RepairId,
    pub name: FileName,
    pub replica: ReplicaName,
    pub kind: RepairKind,
    pub state: RepairState,
    /// What the copy to be taken out answered.
    pub bad_checksum: Option<String>,
    /// For a repair of the record: the checksum that is to be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_checksum: Option<String>,
    pub asked_by: String,
    #[schemars(with = "String")]
    pub asked_at: Timestamp,
    pub confirmed_by: Option<String>,
    #[schemars(with = "Option<String>")]
    pub confirmed_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// A repair to be asked for.
#[derive(Clone, Debug)]
pub struct NewRepair {
    pub file_id: i64,
    pub replica_id: i64,
    pub kind: RepairKind,
    pub bad_checksum: Option<String>,
    /// For a repair of the record: the checksum that is to be recorded.
    pub new_checksum: Option<String>,
    /// What stands for the second pair of eyes, where none is needed or it was given at once.
    pub confirmed_by: Option<String>,
}

/// What came of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    Yes(RepairRow),
    /// Whoever asked cannot be the second pair of eyes.
    SamePerson(RepairRow),
}

/// Whose turn it is to perform a repair.
#[derive(Clone, Debug)]
pub enum RepairTurn {
    /// It is ours.
    Claimed(RepairRow, Claim),
    /// Somebody else performs it now.
    Busy(RepairRow),
    /// It is not confirmed, or has ended.
    NotDue(RepairRow),
}

impl Db {
    pub fn repairs(&self) -> Repairs<'_> {
        Repairs(self)
    }
}

impl Repairs<'_> {
    /// Asks for a repair. An open one of the same kind on the same copy is given instead, confirmed if this one is. An
    /// open one of another kind, or with another checksum to record, ends as superseded: a confirmation counts only for
    /// the very repair that was asked for. So does one that waits on another copy of the file and contradicts this one.
    pub async fn ask(&self, new: NewRepair, actor: &Actor) -> Result<RepairRow, Error> {
        self.0
            .write("ask for the repair", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(ask(tx, new, actor))
            })
            .await
    }

    /// Somebody else says yes.
    pub async fn confirm(&self, id: RepairId, actor: &Actor) -> Result<Confirmed, Error> {
        self.0
            .write("confirm the repair", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let row = get(tx, *id).await?;
                    if row.asked_by == actor.who {
                        return Ok(Confirmed::SamePerson(row));
                    }
                    let query =
                        tx.sql(&CONFIRM).bind(id.to_string()).bind(actor.who.clone()).bind(micros(tx.now));
                    let confirmed = tx.run(query).await? == 1;
                    let row = get(tx, *id).await?;
                    // Somebody else may have been the second pair of eyes a moment before.
                    if confirmed {
                        offer(tx, *id).await?;
                        told(tx, actor, "repair.confirm", &row).await?;
                    }
                    Ok(Confirmed::Yes(row))
                })
            })
            .await
    }

    /// Claims a confirmed repair for `owner`. Of several who want to perform it, one gets it.
    pub async fn begin(&self, id: RepairId, owner: &str, lease: Duration) -> Result<RepairTurn, Error> {
        self.0
            .write("claim the repair", (id, owner.to_owned(), length(lease)), |tx, (id, owner, lease)| {
                Box::pin(async move {
                    // First the queue, then the repair, as at its end: two acts never wait for each other.
                    let claim = work::take(tx, REPAIR_WORK, &id.to_string(), owner, *lease).await?;
                    let row = get(tx, *id).await?;
                    let confirmed = row.state == RepairState::Confirmed;
                    Ok(match claim {
                        Some(claim) if confirmed => RepairTurn::Claimed(row, claim),
                        Some(claim) => {
                            drop_work(tx, &claim).await?;
                            RepairTurn::NotDue(row)
                        }
                        None if confirmed => RepairTurn::Busy(row),
                        None => RepairTurn::NotDue(row),
                    })
                })
            })
            .await
    }

    /// Claims some confirmed repair that nobody performs: its node was killed, or has not begun.
    pub async fn claim(&self, owner: &str, lease: Duration) -> Result<Option<(RepairRow, Claim)>, Error> {
        self.0
            .write("claim a repair", (owner.to_owned(), length(lease)), |tx, (owner, lease)| {
                Box::pin(async move {
                    while let Some(claim) = work::claim_one(tx, REPAIR_WORK, owner, *lease).await? {
                        if let Ok(id) = claim.key.parse()
                            && let Some(row) = find(tx, id).await?
                            && row.state == RepairState::Confirmed
                        {
                            return Ok(Some((row, claim)));
                        }
                        // Superseded since it was confirmed, or gone with its file.
                        drop_work(tx, &claim).await?;
                    }
                    Ok(None)
                })
            })
            .await
    }

    /// The repair is over, well or not; the records enter the log with it. [`Error::LeaseLost`] when somebody else
    /// performs it now.
    pub async fn end(
        &self,
        claim: &Claim,
        id: RepairId,
        error: Option<String>,
        records: Vec<LogRecord>,
    ) -> Result<RepairRow, Error> {
        let input = (claim.clone(), id, error, records);
        self.0
            .write("end the repair", input, |tx, (claim, id, error, records)| {
                Box::pin(async move {
                    fence(tx, claim).await?;
                    drop_work(tx, claim).await?;
                    let state = if error.is_some() { RepairState::Failed } else { RepairState::Done };
                    let query = tx
                        .sql(&END)
                        .bind(id.to_string())
                        .bind(state.as_str())
                        .bind(error.as_ref().map(|error| error.replace('\0', "\u{fffd}")))
                        .bind(micros(tx.now));
                    tx.run(query).await?;
                    let row = get(tx, *id).await?;
                    logbook::append(tx, records).await?;
                    Ok(row)
                })
            })
            .await
    }

    /// A person takes back a repair that waits. One that does not wait any more is given as it is, unchanged.
    pub async fn withdraw(&self, id: RepairId, actor: &Actor) -> Result<RepairRow, Error> {
        self.0
            .write("withdraw the repair", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let reason = format!("withdrawn by {}", actor.who);
                    let query = tx.sql(&WITHDRAW).bind(id.to_string()).bind(reason).bind(micros(tx.now));
                    let withdrawn = tx.run(query).await? == 1;
                    let row = get(tx, *id).await?;
                    if withdrawn {
                        told(tx, actor, "repair.withdraw", &row).await?;
                    }
                    Ok(row)
                })
            })
            .await
    }

    /// The newest first, of one state or of all.
    pub async fn list(&self, state: Option<RepairState>, limit: u32) -> Result<Vec<RepairRow>, Error> {
        self.0
            .read("list the repairs", (state, i64::from(limit)), |tx, (state, limit)| {
                Box::pin(async move {
                    let mut sql = concat!("SELECT ", columns!()).to_owned();
                    if state.is_some() {
                        sql.push_str(" WHERE p.state = $1");
                    }
                    sql.push_str(" ORDER BY p.asked_at DESC, p.id DESC LIMIT $2");
                    let query =
                        sqlx::query(AssertSqlSafe(sql)).bind(state.map(RepairState::as_str)).bind(*limit);
                    tx.rows(query).await?.iter().map(repair).collect()
                })
            })
            .await
    }

    /// All open repairs, however old, then the newest of those that have ended.
    pub async fn open_first(&self, ended_max: u32) -> Result<Vec<RepairRow>, Error> {
        self.0
            .read("list the repairs", i64::from(ended_max), |tx, ended_max| {
                Box::pin(async move {
                    let query = tx.sql(&OPEN_ONES);
                    let mut rows = tx.rows(query).await?;
                    let query = tx.sql(&ENDED).bind(*ended_max);
                    rows.extend(tx.rows(query).await?);
                    rows.iter().map(repair).collect()
                })
            })
            .await
    }

    /// Those of these files that wait for a second person, the newest first.
    pub async fn waiting_for(&self, files: Vec<i64>) -> Result<Vec<RepairRow>, Error> {
        self.0
            .read("look for open repairs", files, |tx, files| {
                Box::pin(async move {
                    let query = WAITING_FOR.on(tx).bind(bulk::ids(files));
                    tx.rows(query).await?.iter().map(repair).collect()
                })
            })
            .await
    }

    pub async fn get(&self, id: RepairId) -> Result<RepairRow, Error> {
        self.0.read("read the repair", id, |tx, id| Box::pin(get(tx, *id))).await
    }
}

static WAITING_FOR: Bulk = of_ids!(
    concat!("SELECT ", columns!(), " WHERE p.state = 'waiting' AND p.file_id IN ("),
    "$1",
    ") ORDER BY p.asked_at DESC, p.id DESC"
);
static OPEN_ONES: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " WHERE p.state IN ('waiting', 'confirmed') ORDER BY p.asked_at DESC, p.id DESC"
));
static ENDED: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " WHERE p.state NOT IN ('waiting', 'confirmed') ORDER BY p.asked_at DESC, p.id DESC LIMIT $1"
));
static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " WHERE p.id = $1"));
static WITHDRAW: Sql = Sql::new(
    "UPDATE repairs SET state = 'withdrawn', last_error = $2, ended_at = $3, edition = edition + 1
     WHERE id = $1 AND state = 'waiting'",
);
static OPEN: Sql = Sql::new(
    "SELECT id FROM repairs WHERE file_id = $1 AND replica_id = $2 AND state IN ('waiting', 'confirmed')
         AND kind = $3 AND COALESCE(new_checksum, '') = $4
         AND (kind <> 'corrupt' OR COALESCE(bad_checksum, '') = $5)",
);
static SUPERSEDE: Sql = Sql::new(
    "UPDATE repairs SET state = 'failed', last_error = $5, ended_at = $6, edition = edition + 1
     WHERE file_id = $1 AND replica_id = $2 AND state IN ('waiting', 'confirmed')
         AND (kind <> $3 OR COALESCE(new_checksum, '') <> $4
             OR (kind = 'corrupt' AND COALESCE(bad_checksum, '') <> $7))",
);
// Two requests of which one replaces the bytes that the other wants recorded. Only those that wait: two people have agreed on a
// confirmed one.
static SUPERSEDE_CONTRADICTING: Sql = Sql::new(
    "UPDATE repairs SET state = 'failed', last_error = $5, ended_at = $6, edition = edition + 1
     WHERE file_id = $1 AND state = 'waiting'
         AND ((kind = 'corrupt' AND $2 = 'record' AND bad_checksum = $3)
             OR (kind = 'record' AND $2 = 'corrupt' AND new_checksum = $4))",
);
static LOCK_FILE: Sql = Sql::new("SELECT id FROM files WHERE id = $1 {for_update}");
static ASK: Sql = Sql::new(
    "INSERT INTO repairs (id, file_id, replica_id, kind, state, bad_checksum, new_checksum, asked_by, asked_at)
     VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7, $8) ON CONFLICT DO NOTHING",
);
static CONFIRM: Sql = Sql::new(
    "UPDATE repairs SET state = 'confirmed', confirmed_by = $2, confirmed_at = $3, edition = edition + 1
     WHERE id = $1 AND state = 'waiting'",
);
static END: Sql = Sql::new(
    "UPDATE repairs SET state = $2, last_error = $3, ended_at = $4, edition = edition + 1
     WHERE id = $1 AND state IN ('waiting', 'confirmed')",
);

async fn ask(tx: &mut Tx<'_>, new: &NewRepair, actor: &Actor) -> Result<RepairRow, Fail> {
    let now = micros(tx.now);
    let fresh = RepairId::new();
    let checksum = new.new_checksum.clone().unwrap_or_default();
    let bad = new.bad_checksum.clone().unwrap_or_default();
    // Of two contradicting requests at once, the later one sees the earlier one.
    let query = tx.sql(&LOCK_FILE).bind(new.file_id);
    tx.row(query).await?;
    let query = tx
        .sql(&SUPERSEDE_CONTRADICTING)
        .bind(new.file_id)
        .bind(new.kind.as_str())
        .bind(checksum.clone())
        .bind(bad.clone())
        .bind("superseded: a later decision about this file contradicts it; nothing was changed")
        .bind(now);
    tx.run(query).await?;
    let (id, added) = loop {
        let query = tx
            .sql(&SUPERSEDE)
            .bind(new.file_id)
            .bind(new.replica_id)
            .bind(new.kind.as_str())
            .bind(checksum.clone())
            .bind(format!("superseded: the copy now needs another repair, of kind {}", new.kind))
            .bind(now)
            .bind(bad.clone());
        tx.run(query).await?;
        let query = tx
            .sql(&ASK)
            .bind(fresh.to_string())
            .bind(new.file_id)
            .bind(new.replica_id)
            .bind(new.kind.as_str())
            .bind(new.bad_checksum.clone())
            .bind(new.new_checksum.clone())
            .bind(actor.who.clone())
            .bind(now);
        if tx.run(query).await? == 1 {
            break (fresh, true);
        }
        let query = tx.sql(&OPEN).bind(new.file_id).bind(new.replica_id);
        let query = query.bind(new.kind.as_str()).bind(checksum.clone()).bind(bad.clone());
        // Asked for between the two statements, the open one may be of another kind, or it ended: both begin anew.
        if let Some(row) = tx.row(query).await? {
            break (row.parsed("id")?, false);
        }
    };
    if let Some(by) = &new.confirmed_by {
        let query = tx.sql(&CONFIRM).bind(id.to_string()).bind(by.clone()).bind(now);
        if tx.run(query).await? == 1 {
            offer(tx, id).await?;
        }
    }
    let row = get(tx, id).await?;
    if added {
        told(tx, actor, "repair.ask", &row).await?;
    }
    Ok(row)
}

/// Queues a repair that was just confirmed. It is tried until it has ended, however often a node is killed at it.
async fn offer(tx: &mut Tx<'_>, id: RepairId) -> Result<(), Fail> {
    let offer = Offer::new(REPAIR_WORK, id.to_string(), json!({})).attempts_max(0);
    work::offer_one(tx, &offer).await.map(|_| ())
}

async fn find(tx: &mut Tx<'_>, id: RepairId) -> Result<Option<RepairRow>, Fail> {
    let query = tx.sql(&GET).bind(id.to_string());
    tx.row(query).await?.as_ref().map(repair).transpose()
}

async fn get(tx: &mut Tx<'_>, id: RepairId) -> Result<RepairRow, Fail> {
    let gone = || Error::NotFound { what: format!("repair with the id {id}") };
    Ok(find(tx, id).await?.ok_or_else(gone)?)
}

async fn told(tx: &mut Tx<'_>, actor: &Actor, act: &'static str, row: &RepairRow) -> Result<(), Fail> {
    let after = Some(json!({ "id": row.id, "replica": row.replica, "kind": row.kind, "state": row.state }));
    let subject = format!("file:{}", row.name);
    audit::append(tx, actor, audit::Record { act, subject, before: None, after }).await
}

fn repair(row: &AnyRow) -> Result<RepairRow, Fail> {
    Ok(RepairRow {
        id: row.parsed("id")?,
        name: row.parsed("name")?,
        replica: row.parsed("replica")?,
        kind: row.parsed("kind")?,
        state: row.parsed("state")?,
        bad_checksum: row.text_or_none("bad_checksum")?,
        new_checksum: row.text_or_none("new_checksum")?,
        asked_by: row.text("asked_by")?,
        asked_at: row.time("asked_at")?,
        confirmed_by: row.text_or_none("confirmed_by")?,
        confirmed_at: row.time_or_none("confirmed_at")?,
        ended_at: row.time_or_none("ended_at")?,
        last_error: row.text_or_none("last_error")?,
    })
}
