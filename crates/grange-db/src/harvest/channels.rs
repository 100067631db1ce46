//! Channels and the harvesters that serve them.

use std::time::Duration;

use grange_model::Actor;
use grange_model::harvest::{Channel, ChannelKind, ChannelName, Harvester, HarvesterState, JobId};
use serde_json::json;

use super::{NO_STATE, exists, handle, json, missing, refused, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, length};

handle! {
    /// The channels and their harvesters.
    Channels, channels
}

/// A channel to be made: a lane of its own for some harvests.
#[derive(Clone, Debug)]
pub struct NewChannel {
    pub name: ChannelName,
    pub kind: ChannelKind,
    pub comments: String,
}

impl Channels<'_> {
    pub async fn create(&self, new: NewChannel, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("create the channel", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(async move {
                    super::plain("comments of the channel", &new.comments)?;
                    let query = tx
                        .sql(&CREATE)
                        .bind(new.name.as_str())
                        .bind(new.kind.as_str())
                        .bind(new.comments.as_str());
                    tx.run(query).await.map_err(|fail| exists(fail, "channel", &new.name))?;
                    let state = json!({ "kind": new.kind });
                    told(tx, actor, "channel.create", format!("channel:{}", new.name), NO_STATE, Some(&state))
                        .await
                })
            })
            .await
    }

    /// Makes it the channel of harvests of its kind that name none.
    pub async fn set_default(&self, name: &ChannelName, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("change the default channel", (name.clone(), actor.clone()), |tx, (name, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&LOCK_ALL);
                    tx.rows(query).await?;
                    let query = tx.sql(&UNSET).bind(name.as_str());
                    tx.run(query).await?;
                    let query = tx.sql(&SET).bind(name.as_str());
                    if tx.run(query).await? == 0 {
                        return Err(missing("channel", name));
                    }
                    told(tx, actor, "channel.set-default", format!("channel:{name}"), NO_STATE, NO_STATE)
                        .await
                })
            })
            .await
    }

    pub async fn delete(&self, name: &ChannelName, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the channel", (name.clone(), actor.clone()), |tx, (name, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&LOCK).bind(name.as_str());
                    tx.rows(query).await?;
                    let query = tx.sql(&USED).bind(name.as_str());
                    let row = tx.row(query).await?.ok_or_else(|| missing("channel", name))?;
                    let what = format!("channel {name}");
                    if row.int("is_default")? == 1 {
                        return Err(refused(format_args!(
                            "{what} is the default of its kind: make another the default first"
                        )));
                    }
                    if let Some(harvest) = row.text_or_none("harvest")? {
                        return Err(Error::InUse { what, by: format!("the harvest {harvest}") }.into());
                    }
                    if row.int("jobs")? > 0 {
                        return Err(Error::InUse {
                            what,
                            by: format!("{} jobs that are not done", row.int("jobs")?),
                        }
                        .into());
                    }
                    let query = tx.sql(&DELETE).bind(name.as_str());
                    tx.run(query).await?;
                    told(tx, actor, "channel.delete", format!("channel:{name}"), NO_STATE, NO_STATE).await
                })
            })
            .await
    }

    /// All channels, with what waits and who serves. Harvesters silent for longer than `lost_after` do not count.
    pub async fn list(&self, lost_after: Duration) -> Result<Vec<Channel>, Error> {
        let harvesters = self.harvesters(lost_after).await?;
        let mut channels = self
            .0
            .read("list the channels", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    let read = |row: &sqlx::any::AnyRow| {
                        Ok(Channel {
                            name: row.parsed("name")?,
                            kind: row.parsed("kind")?,
                            default: row.int("is_default")? == 1,
                            comments: row.text("comments")?,
                            waiting: row.int("waiting")? as u64,
                            harvesters: 0,
                        })
                    };
                    tx.rows(query).await?.iter().map(read).collect::<Result<Vec<_>, Fail>>()
                })
            })
            .await?;
        for channel in &mut channels {
            let serves =
                |harvester: &&Harvester| harvester.alive && harvester.channels.contains(&channel.name);
            channel.harvesters = harvesters.iter().filter(serves).count() as u64;
        }
        Ok(channels)
    }

    /// A harvester says that it lives and what it serves. [`Error::NotFound`] names a channel that is not there.
    pub async fn serve(
        &self,
        name: &str,
        host: &str,
        channels: &[ChannelName],
        state: HarvesterState,
        free_bytes: Option<u64>,
    ) -> Result<(), Error> {
        let input = ((name.to_owned(), host.to_owned()), (channels.to_vec(), state, free_bytes));
        self.0
            .write("register the harvester", input, |tx, ((name, host), (channels, state, free))| {
                Box::pin(async move {
                    for channel in channels {
                        known(tx, channel).await?;
                    }
                    let query = tx
                        .timed(&SERVE)
                        .bind(name.as_str())
                        .bind(host.as_str())
                        .bind(json(channels))
                        .bind(state.as_str())
                        .bind(free.map(|bytes| bytes as i64));
                    tx.run(query).await.map(|_| ())
                })
            })
            .await
    }

    /// All harvesters ever heard of in the last month, the living first.
    pub async fn harvesters(&self, lost_after: Duration) -> Result<Vec<Harvester>, Error> {
        self.0
            .read("list the harvesters", length(lost_after), |tx, lost_after| {
                Box::pin(async move {
                    let query = tx.timed(&HARVESTERS).bind(*lost_after);
                    let rows = tx.rows(query).await?;
                    let query = tx.sql(&RUNNING);
                    let running = tx.rows(query).await?;
                    let mut harvesters = Vec::with_capacity(rows.len());
                    for row in &rows {
                        let name = row.text("name")?;
                        let mut jobs = Vec::new();
                        for job in &running {
                            if job.text_or_none("harvester")?.as_deref() == Some(name.as_str()) {
                                jobs.push(JobId(job.int("id")?));
                            }
                        }
                        harvesters.push(Harvester {
                            name,
                            host: row.text("host")?,
                            channels: row.json("channels")?,
                            state: row.parsed("state")?,
                            free_bytes: row.int_or_none("free_bytes")?.map(|bytes| bytes as u64),
                            jobs,
                            seen_at: row.time("seen_at")?,
                            alive: row.int("alive")? == 1,
                        });
                    }
                    Ok(harvesters)
                })
            })
            .await
    }
}

static CREATE: Sql = Sql::new("INSERT INTO channels (name, kind, comments) VALUES ($1, $2, $3)");
// What a channel is used by is asked in a statement of its own, when the row is held: the same statement would count by
// what there was before it waited.
static LOCK: Sql = Sql::new("SELECT id FROM channels WHERE name = $1 {for_update}");
static LOCK_ALL: Sql = Sql::new("SELECT id FROM channels ORDER BY id {for_update}");
static HELD: Sql = Sql::new("SELECT id FROM channels WHERE name = $1 {for_share}");
static UNSET: Sql = Sql::new(
    "UPDATE channels SET is_default = 0
     WHERE is_default = 1 AND kind = (SELECT kind FROM channels WHERE name = $1)",
);
static SET: Sql = Sql::new("UPDATE channels SET is_default = 1 WHERE name = $1");
static DELETE: Sql = Sql::new("DELETE FROM channels WHERE name = $1");
static KNOWN: Sql = Sql::new("SELECT id, kind FROM channels WHERE name = $1");
static USED: Sql = Sql::new(
    "SELECT c.is_default,
         (SELECT min(h.name) FROM harvest_definitions h WHERE h.channel_id = c.id) AS harvest,
         (SELECT count(*) FROM jobs j WHERE j.channel = c.name AND j.status IN ('new', 'submitted', 'started')) AS jobs
     FROM channels c WHERE c.name = $1",
);
static LIST: Sql = Sql::new(
    "SELECT c.name, c.kind, c.is_default, c.comments,
         (SELECT count(*) FROM jobs j WHERE j.channel = c.name AND j.status = 'new') AS waiting
     FROM channels c ORDER BY c.name",
);
static SERVE: Sql = Sql::new(
    "INSERT INTO harvesters (name, host, channels, state, free_bytes, seen_at) VALUES ($2, $3, $4, $5, $6, {now})
     ON CONFLICT (name) DO UPDATE SET host = excluded.host, channels = excluded.channels, state = excluded.state,
         free_bytes = excluded.free_bytes, seen_at = excluded.seen_at",
);
static HARVESTERS: Sql = Sql::new(
    "SELECT name, host, channels, state, free_bytes, seen_at,
         CASE WHEN seen_at > {now} - $2 THEN 1 ELSE 0 END AS alive
     FROM harvesters WHERE seen_at > {now} - 2592000000000 ORDER BY alive DESC, name",
);
static RUNNING: Sql =
    Sql::new("SELECT id, harvester FROM jobs WHERE status IN ('submitted', 'started') ORDER BY id");

/// Whether the channel is there; it stays until the commit. For those who put jobs into it by its name.
pub(super) async fn held(tx: &mut Tx<'_>, name: &ChannelName) -> Result<bool, Fail> {
    let query = tx.sql(&HELD).bind(name.to_string());
    Ok(tx.row(query).await?.is_some())
}

/// The id and kind of a channel.
pub(super) async fn known(tx: &mut Tx<'_>, name: &ChannelName) -> Result<(i64, ChannelKind), Fail> {
    let query = tx.sql(&KNOWN).bind(name.to_string());
    let row = tx.row(query).await?.ok_or_else(|| missing("channel", name))?;
    Ok((row.int("id")?, row.parsed("kind")?))
}
