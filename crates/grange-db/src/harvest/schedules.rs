//! Schedules.

use grange_model::Actor;
use grange_model::harvest::{Name, Schedule};

use super::{NO_STATE, fresh, handle, json, missing, told};
use crate::act::{Query, Tx};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

handle! {
    /// The schedules.
    Schedules, schedules
}

impl Schedules<'_> {
    /// Adds those that are not there. For what comes with Grange.
    pub async fn ship(&self, shipped: Vec<Schedule>) -> Result<(), Error> {
        let known = self.list().await?;
        let absent: Vec<_> = shipped
            .into_iter()
            .filter(|new| !known.iter().any(|(known, _)| known.name == new.name))
            .collect();
        if absent.is_empty() {
            return Ok(());
        }
        self.0
            .write("add the shipped schedules", absent, |tx, absent| {
                Box::pin(async move {
                    for schedule in absent {
                        if enter(tx, schedule, &Actor::system()).await? {
                            wrote(tx, None, schedule, &Actor::system()).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Makes or changes a schedule that was checked. Harvests that use it keep the date of their next run.
    pub async fn save(&self, schedule: Schedule, edition: Option<i64>, actor: &Actor) -> Result<(), Error> {
        self.0
            .write(
                "keep the schedule",
                (schedule, edition, actor.clone()),
                |tx, (schedule, edition, actor)| Box::pin(save(tx, schedule, *edition, actor)),
            )
            .await
    }

    /// A schedule and its edition.
    pub async fn get(&self, name: &Name) -> Result<Option<(Schedule, i64)>, Error> {
        self.0
            .read("read the schedule", name.clone(), |tx, name| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(name.as_str());
                    tx.row(query).await?.map(|row| Ok((row.json("body")?, row.int("edition")?))).transpose()
                })
            })
            .await
    }

    /// All of them, by name, with their editions.
    pub async fn list(&self) -> Result<Vec<(Schedule, i64)>, Error> {
        self.0
            .read("list the schedules", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    let rows = tx.rows(query).await?;
                    rows.iter().map(|row| Ok((row.json("body")?, row.int("edition")?))).collect()
                })
            })
            .await
    }

    /// Deletes a schedule that no harvest uses.
    pub async fn delete(&self, name: &Name, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the schedule", (name.clone(), actor.clone()), |tx, (name, actor)| {
                Box::pin(async move {
                    let (id, schedule) = find(tx, name).await?.ok_or_else(|| missing("schedule", name))?;
                    let query = tx.sql(&USERS).bind(id);
                    if let Some(user) = tx.row(query).await? {
                        let (what, by) =
                            (format!("schedule {name}"), format!("the harvest {}", user.text("name")?));
                        return Err(Error::InUse { what, by }.into());
                    }
                    let query = tx.sql(&DELETE).bind(id);
                    tx.run(query).await?;
                    told(tx, actor, "schedule.delete", format!("schedule:{name}"), Some(&schedule), NO_STATE)
                        .await
                })
            })
            .await
    }
}

static GET: Sql =
    Sql::new("SELECT id, body, edition, changed_at, changed_by FROM schedules WHERE name = $1 {for_update}");
static LIST: Sql = Sql::new("SELECT body, edition FROM schedules ORDER BY name");
static ENTER: Sql = Sql::new(
    "INSERT INTO schedules (name, body, changed_at, changed_by) VALUES ($1, $2, $3, $4)
     ON CONFLICT (name) DO NOTHING",
);
static SAVE: Sql = Sql::new(
    "UPDATE schedules SET body = $2, changed_at = $3, changed_by = $4, edition = edition + 1 WHERE name = $1",
);
static USERS: Sql =
    Sql::new("SELECT name FROM harvest_definitions WHERE schedule_id = $1 ORDER BY name LIMIT 1");
static DELETE: Sql = Sql::new("DELETE FROM schedules WHERE id = $1");

pub(super) async fn find(tx: &mut Tx<'_>, name: &Name) -> Result<Option<(i64, Schedule)>, Fail> {
    let query = tx.sql(&GET).bind(name.to_string());
    tx.row(query).await?.map(|row| Ok((row.int("id")?, row.json("body")?))).transpose()
}

/// Makes the schedule unless there is one of its name.
async fn enter(tx: &mut Tx<'_>, schedule: &Schedule, actor: &Actor) -> Result<bool, Fail> {
    let query = written(tx, &ENTER, schedule, actor);
    Ok(tx.run(query).await? == 1)
}

fn written<'q>(tx: &Tx<'_>, sql: &'static Sql, schedule: &Schedule, actor: &Actor) -> Query<'q> {
    let query = tx.sql(sql).bind(schedule.name.to_string()).bind(json(schedule));
    query.bind(micros(tx.now)).bind(actor.who.clone())
}

async fn wrote(
    tx: &mut Tx<'_>,
    before: Option<&Schedule>,
    schedule: &Schedule,
    actor: &Actor,
) -> Result<(), Fail> {
    let subject = format!("schedule:{}", schedule.name);
    told(tx, actor, "schedule.save", subject, before, Some(schedule)).await
}

async fn save(tx: &mut Tx<'_>, schedule: &Schedule, edition: Option<i64>, actor: &Actor) -> Result<(), Fail> {
    // An edition is of something that was there: what was deleted since is not made again by a change of it.
    if edition.is_none() && enter(tx, schedule, actor).await? {
        return wrote(tx, None, schedule, actor).await;
    }
    let query = tx.sql(&GET).bind(schedule.name.to_string());
    let row = tx.row(query).await?.ok_or_else(|| missing("schedule", &schedule.name))?;
    fresh(&row, format_args!("schedule {}", schedule.name), edition)?;
    let before: Schedule = row.json("body")?;
    let query = written(tx, &SAVE, schedule, actor);
    tx.run(query).await?;
    wrote(tx, Some(&before), schedule, actor).await
}
