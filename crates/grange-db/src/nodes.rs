//! The registry of nodes. Heartbeats are stamped by the clock that leases are judged by.

use std::collections::BTreeMap;
use std::time::Duration;

use grange_model::{Actor, Liveness, NodeId, NodeRecord, NodeRole};
use jiff::Timestamp;
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, length};

/// The nodes.
#[derive(Debug)]
pub struct Nodes<'d>(&'d Db);

/// What a node says of itself when it starts.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Kept by the node across restarts.
    pub id: NodeId,
    pub name: String,
    pub host: String,
    pub roles: Vec<NodeRole>,
    pub version: String,
    pub addresses: BTreeMap<String, String>,
    pub free_bytes: Option<u64>,
}

/// What a node reports of itself at each heartbeat.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeHeartbeat {
    pub free_bytes: Option<u64>,
    /// Milliseconds by which the machine's clock is ahead of the database's.
    pub clock_ahead_ms: Option<i64>,
}

impl Db {
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes(self)
    }
}

impl Nodes<'_> {
    /// Enters the node as started now, anew or in place of what was known of it.
    pub async fn register(&self, new: NewNode) -> Result<NodeRecord, Error> {
        self.0.write_one("register the node", new, |tx, new| Box::pin(register(tx, new))).await
    }

    /// Says that the node lives. [`Error::NotFound`] if it was forgotten: it must register again.
    pub async fn heartbeat(&self, id: NodeId, beat: NodeHeartbeat) -> Result<(), Error> {
        self.0
            .write_one("send the heartbeat", (id, beat), |tx, (id, beat)| {
                Box::pin(async move {
                    let query = tx
                        .timed(&HEARTBEAT)
                        .bind(id.to_string())
                        .bind(beat.free_bytes.map(|bytes| bytes as i64))
                        .bind(beat.clock_ahead_ms);
                    touched(tx.run(query).await?, *id)
                })
            })
            .await
    }

    /// Says goodbye.
    pub async fn mark_stopped(&self, id: NodeId) -> Result<(), Error> {
        self.0
            .write_one("mark the node as stopped", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.timed(&STOPPED).bind(id.to_string());
                    touched(tx.run(query).await?, *id)
                })
            })
            .await
    }

    pub async fn get(&self, id: NodeId) -> Result<Option<NodeRecord>, Error> {
        self.0
            .read("read the node", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(id.to_string());
                    tx.row(query).await?.as_ref().map(node).transpose()
                })
            })
            .await
    }

    /// All nodes by name, each judged by the clock that stamped its heartbeat.
    pub async fn list(&self, lost_after: Duration) -> Result<Vec<(NodeRecord, Liveness)>, Error> {
        self.0
            .read("list the nodes", lost_after, |tx, lost_after| {
                Box::pin(async move {
                    let query = tx.timed(&LIST);
                    let judged = |row: &AnyRow| {
                        let (node, now): (_, Timestamp) = (node(row)?, row.time("now")?);
                        let liveness = node.liveness(now, *lost_after);
                        Ok((node, liveness))
                    };
                    tx.rows(query).await?.iter().map(judged).collect()
                })
            })
            .await
    }

    /// Deletes one node that is stopped or lost; a person says that it will not come back.
    pub async fn forget_one(&self, id: NodeId, lost_after: Duration, actor: &Actor) -> Result<(), Error> {
        let input = (id, length(lost_after), actor.clone());
        self.0
            .write("forget the node", input, |tx, (id, lost_after, actor)| {
                Box::pin(async move {
                    let query = tx.timed(&FORGET_ONE).bind(id.to_string()).bind(*lost_after);
                    let row = tx.row(query).await?.ok_or_else(|| gone(*id))?;
                    // Its indexes are free for others at once.
                    let query = tx.sql(&FREE_INDEXES).bind(id.to_string());
                    tx.run(query).await?;
                    let record = audit::Record {
                        act: "node.forget",
                        subject: format!("node:{id}"),
                        before: Some(json!({ "name": row.text("name")? })),
                        after: None,
                    };
                    audit::append(tx, actor, record).await
                })
            })
            .await
    }

    /// Deletes the nodes not heard of for `silence`, stopped or lost, and gives their ids.
    pub async fn forget(&self, silence: Duration) -> Result<Vec<NodeId>, Error> {
        self.0
            .write_one("forget nodes", length(silence), |tx, silence| {
                Box::pin(async move {
                    let query = tx.timed(&FORGET).bind(*silence);
                    tx.rows(query).await?.iter().map(|row| row.parsed("id")).collect()
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "id, name, host, roles, version, addresses, free_bytes, clock_ahead_ms, started_at, seen_at, stopped_at"
    };
}

static REGISTER: Sql = Sql::new(concat!(
    "INSERT INTO nodes (id, name, host, roles, version, addresses, free_bytes, started_at, seen_at)
     VALUES ($2, $3, $4, $5, $6, $7, $8, {now}, {now})
     ON CONFLICT (id) DO UPDATE SET
         name = excluded.name, host = excluded.host, roles = excluded.roles, version = excluded.version,
         addresses = excluded.addresses, free_bytes = excluded.free_bytes, clock_ahead_ms = NULL, started_at = excluded.started_at,
         seen_at = excluded.seen_at, stopped_at = NULL, edition = nodes.edition + 1
     RETURNING ",
    columns!()
));
static HEARTBEAT: Sql = Sql::new(
    "UPDATE nodes SET seen_at = {now}, free_bytes = COALESCE($3, free_bytes), clock_ahead_ms = $4, stopped_at = NULL
     WHERE id = $2",
);
static STOPPED: Sql =
    Sql::new("UPDATE nodes SET seen_at = {now}, stopped_at = {now}, edition = edition + 1 WHERE id = $2");
static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM nodes WHERE id = $1"));
static LIST: Sql = Sql::new(concat!("SELECT ", columns!(), ", {now} AS now FROM nodes ORDER BY name, id"));
static FORGET_ONE: Sql = Sql::new(
    "DELETE FROM nodes WHERE id = $2 AND (stopped_at IS NOT NULL OR seen_at < {now} - $3) RETURNING name",
);
static FREE_INDEXES: Sql = Sql::new("UPDATE index_owners SET until_at = 0 WHERE owner = $1");
static FORGET: Sql = Sql::new("DELETE FROM nodes WHERE seen_at < {now} - $2 RETURNING id");

async fn register(tx: &mut Tx<'_>, new: &NewNode) -> Result<NodeRecord, Fail> {
    let json = |text: serde_json::Result<String>| {
        text.map_err(|error| Error::Row { column: "nodes", reason: error.to_string() })
    };
    let query = tx
        .timed(&REGISTER)
        .bind(new.id.to_string())
        .bind(new.name.as_str())
        .bind(new.host.as_str())
        .bind(json(serde_json::to_string(&new.roles))?)
        .bind(new.version.as_str())
        .bind(json(serde_json::to_string(&new.addresses))?)
        .bind(new.free_bytes.map(|bytes| bytes as i64));
    let row = tx.row(query).await?.ok_or_else(|| gone(new.id))?;
    node(&row)
}

fn touched(rows: u64, id: NodeId) -> Result<(), Fail> {
    if rows == 0 { Err(gone(id).into()) } else { Ok(()) }
}

fn gone(id: NodeId) -> Error {
    Error::NotFound { what: format!("node {id}") }
}

fn node(row: &AnyRow) -> Result<NodeRecord, Fail> {
    Ok(NodeRecord {
        id: row.parsed("id")?,
        name: row.text("name")?,
        host: row.text("host")?,
        // A newer node in the same archive may have roles that this program does not know.
        roles: row.json::<Vec<String>>("roles")?.iter().filter_map(|role| role.parse().ok()).collect(),
        version: row.text("version")?,
        addresses: row.json("addresses")?,
        free_bytes: row.int_or_none("free_bytes")?.map(|bytes| bytes as u64),
        clock_ahead_ms: row.int_or_none("clock_ahead_ms")?,
        started_at: row.time("started_at")?,
        seen_at: row.time("seen_at")?,
        stopped_at: row.time_or_none("stopped_at")?,
    })
}
