//! Harvest definitions: made, changed, put into and out of service.

use std::collections::BTreeMap;

use grange_model::Actor;
use grange_model::harvest::fields::check as check_fields;
use grange_model::harvest::{
    ChannelKind, ChannelName, FieldNoun, HarvestDefinition, HarvestId, HarvestKind, Limits, Name,
};
use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::{
    NO_STATE, channels, exists, fresh, handle, json, limits, lines, missing, plain, refused, schedules, told,
};
use crate::act::Tx;
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros, micros_or_none};

handle! {
    /// The harvest definitions.
    Definitions, harvests
}

/// A harvest to be made. It starts out of service.
#[derive(Clone, Debug)]
pub struct NewHarvest {
    pub name: Name,
    pub kind: HarvestKind,
    pub comments: String,
    pub audience: String,
    /// Of a selective harvest.
    pub schedule: Option<Name>,
    pub channel: Option<ChannelName>,
    /// Of a snapshot.
    pub limits: Limits,
    /// Of a snapshot: only what this earlier one did not complete.
    pub continues: Option<Name>,
    pub traps: Vec<String>,
    pub fields: BTreeMap<String, String>,
}

/// What to change of a harvest; what is absent stays.
#[derive(Clone, Debug, Default)]
pub struct HarvestChange {
    pub comments: Option<String>,
    pub audience: Option<String>,
    pub schedule: Option<Name>,
    /// `Some(None)`: the default channel of its kind.
    pub channel: Option<Option<ChannelName>>,
    pub limits: Option<Limits>,
    pub continues: Option<Option<Name>>,
    pub traps: Option<Vec<String>>,
    pub fields: Option<BTreeMap<String, String>>,
    /// The date of the next run, set by hand.
    pub next_at: Option<Timestamp>,
}

impl Definitions<'_> {
    pub async fn create(&self, new: NewHarvest, actor: &Actor) -> Result<HarvestDefinition, Error> {
        self.0
            .write("create the harvest", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(create(tx, new, actor))
            })
            .await
    }

    pub async fn get(&self, name: &Name) -> Result<Option<HarvestDefinition>, Error> {
        self.0
            .read("read the harvest", name.clone(), |tx, name| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(name.as_str());
                    tx.row(query).await?.as_ref().map(definition).transpose()
                })
            })
            .await
    }

    /// All of a kind, or all, by name.
    pub async fn list(&self, kind: Option<HarvestKind>) -> Result<Vec<HarvestDefinition>, Error> {
        self.0
            .read("list the harvests", kind, |tx, kind| {
                Box::pin(async move {
                    let query = tx.sql(&LIST).bind(kind.map(HarvestKind::as_str));
                    tx.rows(query).await?.iter().map(definition).collect()
                })
            })
            .await
    }

    pub async fn change(
        &self,
        name: &Name,
        change: HarvestChange,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<HarvestDefinition, Error> {
        self.0
            .write(
                "change the harvest",
                (name.clone(), change, edition, actor.clone()),
                |tx, (name, change, edition, actor)| Box::pin(apply(tx, name, change, *edition, actor)),
            )
            .await
    }

    /// Puts a harvest into service or out of it. A snapshot runs at once, and only once.
    pub async fn set_active(
        &self,
        name: &Name,
        active: bool,
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<HarvestDefinition, Error> {
        self.0
            .write(
                "put the harvest into or out of service",
                (name.clone(), active, edition, actor.clone()),
                |tx, (name, active, edition, actor)| Box::pin(set_active(tx, name, *active, *edition, actor)),
            )
            .await
    }
}

macro_rules! columns {
    () => {
        "h.id, h.name, h.kind, h.comments, h.audience, h.active, h.deactivated, h.runs, h.next_at, s.name AS schedule, \
         c.name AS channel, h.max_objects, h.max_bytes, h.max_running_s, p.name AS continues, h.traps, h.fields, \
         (SELECT count(*) FROM harvest_configurations l WHERE l.harvest_id = h.id) AS configurations, h.created_at, \
         h.changed_at, h.changed_by, h.edition, h.plan_token, h.schedule_id, h.channel_id, h.continues AS continues_id"
    };
}
macro_rules! joined {
    () => {
        " FROM harvest_definitions h LEFT JOIN schedules s ON s.id = h.schedule_id
         LEFT JOIN channels c ON c.id = h.channel_id LEFT JOIN harvest_definitions p ON p.id = h.continues "
    };
}

pub(super) static GET: Sql = Sql::new(concat!("SELECT ", columns!(), joined!(), "WHERE h.name = $1"));
pub(super) static BY_ID: Sql = Sql::new(concat!("SELECT ", columns!(), joined!(), "WHERE h.id = $1"));
static LIST: Sql =
    Sql::new(concat!("SELECT ", columns!(), joined!(), "WHERE $1 IS NULL OR h.kind = $1 ORDER BY h.name"));
static LOCK: Sql = Sql::new("SELECT id FROM harvest_definitions WHERE name = $1 {for_update}");
// SQLite: the number is part of the names of files, so it is above every one that numbers.rs knows of.
static CREATE: Bulk = Bulk {
    sqlite: Sql::new(
        "INSERT INTO harvest_definitions (id, name, kind, comments, audience, next_at, schedule_id, channel_id,
             max_objects, max_bytes, max_running_s, continues, traps, fields, created_at, changed_at, changed_by)
         SELECT 1 + max(COALESCE((SELECT max(id) FROM harvest_definitions), 0),
                 COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'harvest_definitions'), 0)),
             $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15",
    ),
    postgres: Sql::new(
        "INSERT INTO harvest_definitions (name, kind, comments, audience, next_at, schedule_id, channel_id,
             max_objects, max_bytes, max_running_s, continues, traps, fields, created_at, changed_at, changed_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)",
    ),
};
static CHANGE: Sql = Sql::new(
    "UPDATE harvest_definitions SET comments = $2, audience = $3, next_at = $4, schedule_id = $5, channel_id = $6,
         max_objects = $7, max_bytes = $8, max_running_s = $9, continues = $10, traps = $11, fields = $12,
         changed_at = $13, changed_by = $14, edition = edition + 1
     WHERE id = $1",
);
static SET_ACTIVE: Sql = Sql::new(
    "UPDATE harvest_definitions SET active = $2, next_at = $3, deactivated = NULL, changed_at = $4, changed_by = $5,
         edition = edition + 1
     WHERE id = $1",
);
static UNFINISHED: Sql = Sql::new(
    "SELECT count(*) AS jobs, COALESCE(sum(CASE WHEN status IN ('new', 'submitted', 'started') THEN 1 ELSE 0 END), 0)
         AS open
     FROM jobs WHERE harvest_id = $1 AND status <> 'draft'",
);

/// The harvest, held until the transaction ends.
pub(super) async fn locked(tx: &mut Tx<'_>, name: &Name) -> Result<(AnyRow, HarvestDefinition), Fail> {
    let query = tx.sql(&LOCK).bind(name.to_string());
    tx.row(query).await?.ok_or_else(|| missing("harvest", name))?;
    let query = tx.sql(&GET).bind(name.to_string());
    let row = tx.row(query).await?.ok_or_else(|| missing("harvest", name))?;
    let found = definition(&row)?;
    Ok((row, found))
}

/// The ids of what a harvest refers to, after checking that they fit its kind.
async fn references(
    tx: &mut Tx<'_>,
    kind: HarvestKind,
    channel: Option<&ChannelName>,
    continues: Option<&Name>,
) -> Result<(Option<i64>, Option<i64>), Fail> {
    let mut channel_id = None;
    if let Some(name) = channel {
        let (id, of) = channels::known(tx, name).await?;
        if (of == ChannelKind::Snapshot) != (kind == HarvestKind::Snapshot) {
            return Err(refused(format_args!(
                "the channel {name} is for {of} harvests, this is a {kind} one"
            )));
        }
        channel_id = Some(id);
    }
    let mut continues_id = None;
    if let Some(name) = continues {
        let (_, earlier) = locked(tx, name).await?;
        if earlier.kind != HarvestKind::Snapshot || kind != HarvestKind::Snapshot {
            return Err(refused("only a snapshot can take up what an earlier snapshot left"));
        }
        continues_id = Some(earlier.id.0);
    }
    Ok((channel_id, continues_id))
}

fn check_texts(comments: &str, audience: &str, traps: &[String]) -> Result<(), Fail> {
    plain("comments of the harvest", comments)?;
    plain("audience of the harvest", audience)?;
    traps.iter().try_for_each(|trap| plain("traps", trap))
}

async fn create(tx: &mut Tx<'_>, new: &NewHarvest, actor: &Actor) -> Result<HarvestDefinition, Fail> {
    check_texts(&new.comments, &new.audience, &new.traps)?;
    let known = super::fields::list(tx, FieldNoun::Harvest).await?;
    check_fields(&known, &new.fields).map_err(refused)?;
    let (mut schedule_id, mut next_at) = (None, None);
    match (new.kind, &new.schedule) {
        (HarvestKind::Selective, Some(name)) => {
            let (id, schedule) = schedules::find(tx, name).await?.ok_or_else(|| missing("schedule", name))?;
            next_at = schedule.first(tx.now).map_err(refused)?;
            schedule_id = Some(id);
        }
        (HarvestKind::Selective, None) => return Err(refused("a selective harvest needs a schedule")),
        (HarvestKind::Snapshot, Some(_)) => return Err(refused("a snapshot runs once and has no schedule")),
        (HarvestKind::Snapshot, None) => {}
    }
    let (channel, continues) = references(tx, new.kind, new.channel.as_ref(), new.continues.as_ref()).await?;
    let query = CREATE
        .on(tx)
        .bind(new.name.to_string())
        .bind(new.kind.as_str())
        .bind(new.comments.clone())
        .bind(new.audience.clone())
        .bind(micros_or_none(next_at))
        .bind(schedule_id)
        .bind(channel)
        .bind(new.limits.objects.number())
        .bind(new.limits.bytes.number())
        .bind(new.limits.running_s.number())
        .bind(continues)
        .bind(new.traps.join("\n"))
        .bind(json(&new.fields))
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await.map_err(|fail| exists(fail, "harvest", &new.name))?;
    let (_, made) = locked(tx, &new.name).await?;
    told(tx, actor, "harvest.create", format!("harvest:{}", new.name), NO_STATE, Some(&made)).await?;
    Ok(made)
}

async fn apply(
    tx: &mut Tx<'_>,
    name: &Name,
    change: &HarvestChange,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<HarvestDefinition, Fail> {
    let (row, before) = locked(tx, name).await?;
    fresh(&row, format_args!("harvest {name}"), edition)?;
    let comments = change.comments.as_ref().unwrap_or(&before.comments);
    let audience = change.audience.as_ref().unwrap_or(&before.audience);
    let traps = change.traps.as_ref().unwrap_or(&before.traps);
    let fields = change.fields.as_ref().unwrap_or(&before.fields);
    let limits = change.limits.unwrap_or(before.limits);
    check_texts(comments, audience, traps)?;
    if change.fields.is_some() {
        let known = super::fields::list(tx, FieldNoun::Harvest).await?;
        check_fields(&known, fields).map_err(refused)?;
    }
    let (mut schedule_id, mut next_at) = (row.int_or_none("schedule_id")?, before.next_at);
    if let Some(wanted) = change.schedule.as_ref().filter(|wanted| Some(*wanted) != before.schedule.as_ref())
    {
        if before.kind == HarvestKind::Snapshot {
            return Err(refused("a snapshot runs once and has no schedule"));
        }
        let (id, schedule) = schedules::find(tx, wanted).await?.ok_or_else(|| missing("schedule", wanted))?;
        schedule_id = Some(id);
        // A harvest that will never run again stays so until somebody sets a date.
        next_at = match next_at {
            Some(at) => schedule.first(at).map_err(refused)?,
            None => None,
        };
    }
    let channel = change.channel.as_ref().unwrap_or(&before.channel);
    let continues = change.continues.as_ref().unwrap_or(&before.continues);
    let (channel, continues) = references(tx, before.kind, channel.as_ref(), continues.as_ref()).await?;
    if continues == Some(before.id.0) {
        return Err(refused("a snapshot cannot take up what it left itself"));
    }
    if change.next_at.is_some() && before.kind == HarvestKind::Snapshot {
        return Err(refused("a snapshot runs when it is put into service and has no date"));
    }
    let query = tx
        .sql(&CHANGE)
        .bind(before.id.0)
        .bind(comments.clone())
        .bind(audience.clone())
        .bind(micros_or_none(change.next_at.or(next_at)))
        .bind(schedule_id)
        .bind(channel)
        .bind(limits.objects.number())
        .bind(limits.bytes.number())
        .bind(limits.running_s.number())
        .bind(continues)
        .bind(traps.join("\n"))
        .bind(json(fields))
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await?;
    let (_, after) = locked(tx, name).await?;
    told(tx, actor, "harvest.change", format!("harvest:{name}"), Some(&before), Some(&after)).await?;
    Ok(after)
}

async fn set_active(
    tx: &mut Tx<'_>,
    name: &Name,
    active: bool,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<HarvestDefinition, Fail> {
    let (row, before) = locked(tx, name).await?;
    fresh(&row, format_args!("harvest {name}"), edition)?;
    let mut next_at = before.next_at;
    if active && before.kind == HarvestKind::Snapshot {
        if before.runs > 0 {
            return Err(refused(format_args!(
                "the snapshot {name} has run: make another, which may take up what this one left"
            )));
        }
        if let Some(earlier) = row.int_or_none("continues_id")? {
            let query = tx.sql(&UNFINISHED).bind(earlier);
            let counts = tx.row(query).await?.ok_or_else(|| missing("harvest", name))?;
            let continued = before.continues.as_ref().map_or("", Name::as_str);
            if counts.int("jobs")? == 0 {
                return Err(refused(format_args!(
                    "the snapshot {continued} has not run yet: nothing can be taken up"
                )));
            }
            if counts.int("open")? > 0 {
                return Err(refused(format_args!(
                    "the snapshot {continued} still has {} jobs that are not done: wait for them or cancel them",
                    counts.int("open")?
                )));
            }
        }
        next_at = Some(tx.now);
    }
    if !active && before.kind == HarvestKind::Snapshot {
        next_at = None;
    }
    let query = tx
        .sql(&SET_ACTIVE)
        .bind(before.id.0)
        .bind(i64::from(active))
        .bind(micros_or_none(next_at))
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await?;
    let (_, after) = locked(tx, name).await?;
    let act = if active { "harvest.activate" } else { "harvest.deactivate" };
    told(tx, actor, act, format!("harvest:{name}"), Some(&before), Some(&after)).await?;
    Ok(after)
}

pub(super) fn definition(row: &AnyRow) -> Result<HarvestDefinition, Fail> {
    let name = |column| -> Result<Option<Name>, Fail> {
        row.text_or_none(column)?.map(|_| row.parsed(column)).transpose()
    };
    Ok(HarvestDefinition {
        id: HarvestId(row.int("id")?),
        name: row.parsed("name")?,
        kind: row.parsed("kind")?,
        comments: row.text("comments")?,
        audience: row.text("audience")?,
        active: row.int("active")? == 1,
        deactivated_because: row.text_or_none("deactivated")?,
        runs: row.int("runs")? as u64,
        next_at: row.time_or_none("next_at")?,
        schedule: name("schedule")?,
        channel: row.text_or_none("channel")?.map(|_| row.parsed("channel")).transpose()?,
        limits: limits(row)?,
        continues: name("continues")?,
        traps: lines(&row.text("traps")?),
        fields: row.json("fields")?,
        configurations: row.int("configurations")? as u64,
        created_at: row.time("created_at")?,
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
