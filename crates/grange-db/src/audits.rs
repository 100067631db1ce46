//! Checks of replicas: asked for, going on from where they were, ended.

use std::time::Duration;

use grange_model::{Actor, AuditId, AuditKind, AuditState, LogRecord};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::logbook;
use crate::open::Db;
use crate::row::{Columns, micros};
use crate::store::{drop_work, fence};
use crate::work::{Claim, Offer};

/// The queue of checks that are not ended; the key is the check's id.
pub const AUDIT_WORK: &str = "archive.audit";

/// The checks.
#[derive(Debug)]
pub struct Audits<'d>(pub(crate) &'d Db);

/// What a check has counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Copies looked at.
    pub files: u64,
    pub bytes: u64,
    pub ok: u64,
    pub missing: u64,
    pub corrupt: u64,
    /// The voters were split evenly.
    pub undecided: u64,
    /// On the replica, but unknown here.
    pub extra: u64,
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.ok += other.ok;
        self.missing += other.missing;
        self.corrupt += other.corrupt;
        self.undecided += other.undecided;
        self.extra += other.extra;
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    pub id: AuditId,
    pub replica_id: i64,
    pub replica: grange_model::ReplicaName,
    pub kind: AuditKind,
    pub state: AuditState,
    /// The last name that was dealt with.
    pub position: Option<String>,
    #[serde(flatten)]
    pub found: Found,
    pub asked_by: String,
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    #[schemars(with = "String")]
    pub updated_at: Timestamp,
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

impl Db {
    pub fn audits(&self) -> Audits<'_> {
        Audits(self)
    }
}

impl Audits<'_> {
    /// Starts a check, or gives the one that runs already. A check by the calendar gives way to one that a person wants.
    pub async fn start(&self, replica: i64, kind: AuditKind, actor: &Actor) -> Result<AuditRow, Error> {
        self.0
            .write("start the check", (replica, kind, actor.clone()), |tx, (replica, kind, actor)| {
                Box::pin(start(tx, *replica, *kind, actor))
            })
            .await
    }

    pub async fn get(&self, id: AuditId) -> Result<Option<AuditRow>, Error> {
        self.0
            .read("read the check", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.to_string());
                    tx.row(query).await?.as_ref().map(audit_row).transpose()
                })
            })
            .await
    }

    /// The newest checks first.
    pub async fn list(&self, limit: u32) -> Result<Vec<AuditRow>, Error> {
        self.0
            .read("list the checks", i64::from(limit), |tx, limit| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(*limit);
                    tx.rows(query).await?.iter().map(audit_row).collect()
                })
            })
            .await
    }

    /// When the last check of this kind on the replica was begun, ended or not, of those that were begun until `now`: the
    /// clock may have been ahead once.
    pub async fn last_start(
        &self,
        replica: i64,
        kind: AuditKind,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        self.0
            .read("look for the last check", (replica, kind, now), |tx, (replica, kind, now)| {
                Box::pin(async move {
                    let query = tx.sql(&LAST).bind(*replica).bind(kind.as_str()).bind(micros(*now));
                    tx.row(query).await?.map_or(Ok(None), |row| row.time_or_none("at"))
                })
            })
            .await
    }

    /// The check is over; the row leaves the queue. A whole one is stamped on its replica.
    pub async fn end(
        &self,
        claim: &Claim,
        id: AuditId,
        state: AuditState,
        error: Option<String>,
        records: Vec<LogRecord>,
    ) -> Result<AuditRow, Error> {
        self.end_counted(claim, id, state, error, Found::default(), records).await
    }

    /// The same of a check that counted everything at once; `found` is added to what it counted before.
    pub async fn end_counted(
        &self,
        claim: &Claim,
        id: AuditId,
        state: AuditState,
        error: Option<String>,
        found: Found,
        records: Vec<LogRecord>,
    ) -> Result<AuditRow, Error> {
        self.0
            .write(
                "end the check",
                (claim.clone(), id, state, error, found, records),
                |tx, (claim, id, state, error, found, records)| {
                    Box::pin(async move {
                        fence(tx, claim).await?;
                        count(tx, *id, *found).await?;
                        let row = end(tx, *id, *state, error.clone()).await?;
                        drop_work(tx, claim).await?;
                        logbook::append(tx, records).await?;
                        Ok(row)
                    })
                },
            )
            .await
    }

    /// The check cannot go on now: it comes back after `wait`, and its row says why until it has got on.
    pub async fn rest(&self, claim: &Claim, id: AuditId, reason: &str, wait: Duration) -> Result<(), Error> {
        // The text may come from afar, and PostgreSQL keeps no NUL.
        let reason = reason.replace('\0', "\u{fffd}");
        self.0
            .write(
                "let the check rest",
                (claim.clone(), id, reason, wait),
                |tx, (claim, id, reason, wait)| {
                    Box::pin(async move {
                        fence(tx, claim).await?;
                        let query = tx.sql(&REST).bind(id.to_string()).bind(reason.clone());
                        tx.run(query).await?;
                        crate::work::fail(tx, claim, reason, *wait).await.map(|_| ())
                    })
                },
            )
            .await
    }

    /// A person stops the check. What it found stays.
    pub async fn cancel(&self, id: AuditId, actor: &Actor) -> Result<AuditRow, Error> {
        self.0
            .write("cancel the check", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(async move {
                    let row = end(tx, *id, AuditState::Cancelled, None).await?;
                    let query = tx.sql(&UNQUEUE).bind(AUDIT_WORK).bind(id.to_string());
                    tx.run(query).await?;
                    told(tx, actor, "check.cancel", &row).await?;
                    Ok(row)
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "a.id, a.replica_id, r.name AS replica, a.kind, a.state, a.position, a.files, a.bytes, a.ok, a.missing, \
         a.corrupt, a.undecided, a.extra, a.asked_by, a.started_at, a.updated_at, a.ended_at, a.last_error \
         FROM audits a JOIN replicas r ON r.id = a.replica_id"
    };
}

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " WHERE a.id = $1"));
static RUNNING: Sql =
    Sql::new("SELECT id FROM audits WHERE replica_id = $1 AND kind = $2 AND state = 'running'");
static LIST: Sql =
    Sql::new(concat!("SELECT ", columns!(), " ORDER BY a.started_at DESC, a.id DESC LIMIT $1"));
// One that failed or was cancelled checked nothing: the next is due as if it had never begun.
static LAST: Sql = Sql::new(
    "SELECT max(started_at) AS at FROM audits
     WHERE replica_id = $1 AND kind = $2 AND state IN ('running', 'done') AND started_at <= $3",
);
static START: Sql = Sql::new(
    "INSERT INTO audits (id, replica_id, kind, state, asked_by, started_at, updated_at)
     VALUES ($1, $2, $3, 'running', $4, $5, $5) ON CONFLICT DO NOTHING",
);
static END: Sql = Sql::new(
    "UPDATE audits SET state = $2, last_error = $3, ended_at = $4, updated_at = $4, edition = edition + 1
     WHERE id = $1 AND state = 'running'",
);
// Not `updated_at`: that says when the check last got on.
static REST: Sql =
    Sql::new("UPDATE audits SET last_error = $2, edition = edition + 1 WHERE id = $1 AND state = 'running'");
static STAMP_LIST: Sql = Sql::new("UPDATE replicas SET listed_at = $2, edition = edition + 1 WHERE id = $1");
static STAMP_SUMS: Sql =
    Sql::new("UPDATE replicas SET listed_at = $2, checked_at = $2, edition = edition + 1 WHERE id = $1");
static COUNT: Sql = Sql::new(
    "UPDATE audits SET files = files + $2, bytes = bytes + $3, ok = ok + $4, missing = missing + $5,
         corrupt = corrupt + $6, undecided = undecided + $7, extra = extra + $8, edition = edition + 1
     WHERE id = $1 AND state = 'running'",
);
static UNQUEUE: Sql = Sql::new("DELETE FROM work WHERE kind = $1 AND key = $2");

async fn start(tx: &mut Tx<'_>, replica: i64, kind: AuditKind, actor: &Actor) -> Result<AuditRow, Fail> {
    let id = AuditId::new();
    loop {
        let query = tx
            .sql(&START)
            .bind(id.to_string())
            .bind(replica)
            .bind(kind.as_str())
            .bind(actor.who.clone())
            .bind(micros(tx.now));
        if tx.run(query).await? == 1 {
            break;
        }
        let query = tx.sql(&RUNNING).bind(replica).bind(kind.as_str());
        // It ended between the two statements: there is room for a new one.
        let Some(running) = tx.row(query).await? else { continue };
        let running = get(tx, running.text("id")?).await?;
        let by_itself = |who: &str| who == Actor::system().who;
        if running.state == AuditState::Running && (by_itself(&actor.who) || !by_itself(&running.asked_by)) {
            return Ok(running);
        }
        // A person wants to know now; a check by the calendar may take a week and began days ago. Somebody else may want
        // the same at this moment, and have ended it already.
        let reason = Some(format!("{} asked for a new one", actor.who));
        if ended(tx, running.id, AuditState::Cancelled, reason).await?.is_some() {
            let query = tx.sql(&UNQUEUE).bind(AUDIT_WORK).bind(running.id.to_string());
            tx.run(query).await?;
        }
    }
    // It goes on until it is ended; a replica that is down for a week is no reason to forget it.
    // What a person waits for comes before what the calendar asked for.
    let priority = i64::from(actor.who != Actor::system().who);
    let offer = Offer::new(AUDIT_WORK, id.to_string(), json!({})).attempts_max(0).priority(priority);
    crate::work::offer_one(tx, &offer).await?;
    let row = get(tx, id.to_string()).await?;
    told(tx, actor, "check.start", &row).await?;
    Ok(row)
}

async fn count(tx: &mut Tx<'_>, id: AuditId, found: Found) -> Result<(), Fail> {
    if found == Found::default() {
        return Ok(());
    }
    let mut query = tx.sql(&COUNT).bind(id.to_string());
    let Found { files, bytes, ok, missing, corrupt, undecided, extra } = found;
    for number in [files, bytes, ok, missing, corrupt, undecided, extra] {
        query = query.bind(number as i64);
    }
    tx.run(query).await.map(|_| ())
}

async fn get(tx: &mut Tx<'_>, id: String) -> Result<AuditRow, Fail> {
    let query = tx.sql(&GET).bind(id.clone());
    let gone = || Error::NotFound { what: format!("check {id}") };
    audit_row(&tx.row(query).await?.ok_or_else(gone)?)
}

async fn end(
    tx: &mut Tx<'_>,
    id: AuditId,
    state: AuditState,
    error: Option<String>,
) -> Result<AuditRow, Fail> {
    let absent = || Error::NotFound { what: format!("running check {id}") };
    Ok(ended(tx, id, state, error).await?.ok_or_else(absent)?)
}

/// Ends the check; nothing if it was over.
async fn ended(
    tx: &mut Tx<'_>,
    id: AuditId,
    state: AuditState,
    error: Option<String>,
) -> Result<Option<AuditRow>, Fail> {
    let now = micros(tx.now);
    let query = tx.sql(&END).bind(id.to_string()).bind(state.as_str()).bind(error).bind(now);
    if tx.run(query).await? == 0 {
        return Ok(None);
    }
    let row = get(tx, id.to_string()).await?;
    let stamp = match (state, row.kind) {
        (AuditState::Done, AuditKind::List) => Some(&STAMP_LIST),
        (AuditState::Done, AuditKind::Checksum) => Some(&STAMP_SUMS),
        _ => None,
    };
    if let Some(stamp) = stamp {
        let query = tx.sql(stamp).bind(row.replica_id).bind(now);
        tx.run(query).await?;
    }
    Ok(Some(row))
}

async fn told(tx: &mut Tx<'_>, actor: &Actor, act: &'static str, row: &AuditRow) -> Result<(), Fail> {
    let after = Some(json!({ "id": row.id, "kind": row.kind, "state": row.state }));
    let subject = format!("replica:{}", row.replica);
    audit::append(tx, actor, audit::Record { act, subject, before: None, after }).await
}

fn audit_row(row: &AnyRow) -> Result<AuditRow, Fail> {
    let count = |column| Ok::<_, Fail>(row.int(column)? as u64);
    Ok(AuditRow {
        id: row.parsed("id")?,
        replica_id: row.int("replica_id")?,
        replica: row.parsed("replica")?,
        kind: row.parsed("kind")?,
        state: row.parsed("state")?,
        position: row.text_or_none("position")?,
        found: Found {
            files: count("files")?,
            bytes: count("bytes")?,
            ok: count("ok")?,
            missing: count("missing")?,
            corrupt: count("corrupt")?,
            undecided: count("undecided")?,
            extra: count("extra")?,
        },
        asked_by: row.text("asked_by")?,
        started_at: row.time("started_at")?,
        updated_at: row.time("updated_at")?,
        ended_at: row.time_or_none("ended_at")?,
        last_error: row.text_or_none("last_error")?,
    })
}
