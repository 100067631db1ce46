//! Global trap lists: what no crawl follows while they are active.

use grange_model::Actor;
use grange_model::harvest::{Name, TrapList};
use serde_json::json;
use sqlx::any::AnyRow;

use super::{NO_STATE, fresh, handle, lines, missing, plain, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

handle! {
    /// The global trap lists.
    Traps, traps
}

impl Traps<'_> {
    /// Makes or replaces a list. Its expressions were checked.
    pub async fn save(
        &self,
        name: &Name,
        description: &str,
        active: bool,
        expressions: &[String],
        edition: Option<i64>,
        actor: &Actor,
    ) -> Result<TrapList, Error> {
        let input = (
            (name.clone(), description.to_owned()),
            (active, expressions.join("\n")),
            (edition, actor.clone()),
        );
        self.0
            .write("keep the trap list", input, |tx, ((name, description), (active, text), (edition, actor))| {
                Box::pin(async move {
                    plain("description of the trap list", description)?;
                    plain("traps", text)?;
                    let row = held(tx, name, *edition, actor).await?;
                    let before = row.as_ref().map(list).transpose()?;
                    let query = tx
                        .sql(&SAVE)
                        .bind(name.as_str())
                        .bind(description.as_str())
                        .bind(i64::from(*active))
                        .bind(text.as_str())
                        .bind(micros(tx.now))
                        .bind(actor.who.as_str());
                    tx.run(query).await?;
                    let after = find(tx, name).await?;
                    let state = |list: &TrapList| json!({ "active": list.active, "traps": list.expressions.len() });
                    let (was, is) = (before.as_ref().map(state), state(&after));
                    told(tx, actor, "traps.save", format!("traps:{name}"), was.as_ref(), Some(&is)).await?;
                    Ok(after)
                })
            })
            .await
    }

    pub async fn get(&self, name: &Name) -> Result<TrapList, Error> {
        self.0.read("read the trap list", name.clone(), |tx, name| Box::pin(find(tx, name))).await
    }

    pub async fn list(&self) -> Result<Vec<TrapList>, Error> {
        self.0
            .read("list the trap lists", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    tx.rows(query).await?.iter().map(list).collect()
                })
            })
            .await
    }

    pub async fn delete(&self, name: &Name, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("delete the trap list", (name.clone(), actor.clone()), |tx, (name, actor)| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(name.as_str());
                    let before = list(&tx.row(query).await?.ok_or_else(|| missing("trap list", name))?)?;
                    let query = tx.sql(&DELETE).bind(name.as_str());
                    tx.run(query).await?;
                    told(tx, actor, "traps.delete", format!("traps:{name}"), Some(&before), NO_STATE).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "name, description, active, expressions, changed_at, changed_by, edition"
    };
}

static GET: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM trap_lists WHERE name = $1 {for_update}"));
static FIND: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM trap_lists WHERE name = $1"));
static LIST: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM trap_lists ORDER BY name"));
static ACTIVE: Sql = Sql::new("SELECT expressions FROM trap_lists WHERE active = 1 ORDER BY name");
static DELETE: Sql = Sql::new("DELETE FROM trap_lists WHERE name = $1");
// Edition 0 is never seen: whoever enters it saves it in the same act.
static ENTER: Sql = Sql::new(
    "INSERT INTO trap_lists (name, active, expressions, changed_at, changed_by, edition) VALUES ($1, 0, '', $2, $3, 0)
     ON CONFLICT (name) DO NOTHING",
);
static SAVE: Sql = Sql::new(
    "UPDATE trap_lists SET description = $2, active = $3, expressions = $4, changed_at = $5, changed_by = $6,
         edition = edition + 1
     WHERE name = $1",
);

/// The list as it is, held until the commit; entered, and nothing, where a new one is saved.
async fn held(
    tx: &mut Tx<'_>,
    name: &Name,
    edition: Option<i64>,
    actor: &Actor,
) -> Result<Option<AnyRow>, Fail> {
    let mut entered = false;
    if edition.is_none() {
        let query = tx.sql(&ENTER).bind(name.to_string()).bind(micros(tx.now)).bind(actor.who.clone());
        entered = tx.run(query).await? == 1;
    }
    let query = tx.sql(&GET).bind(name.to_string());
    let row = tx.row(query).await?.ok_or_else(|| missing("trap list", name))?;
    fresh(&row, format_args!("trap list {name}"), edition)?;
    Ok(Some(row).filter(|_| !entered))
}

async fn find(tx: &mut Tx<'_>, name: &Name) -> Result<TrapList, Fail> {
    let query = tx.sql(&FIND).bind(name.to_string());
    list(&tx.row(query).await?.ok_or_else(|| missing("trap list", name))?)
}

/// What new jobs get.
pub(super) async fn active(tx: &mut Tx<'_>) -> Result<Vec<String>, Fail> {
    let query = tx.sql(&ACTIVE);
    let mut all = Vec::new();
    for row in tx.rows(query).await? {
        all.extend(lines(&row.text("expressions")?));
    }
    Ok(all)
}

fn list(row: &AnyRow) -> Result<TrapList, Fail> {
    Ok(TrapList {
        name: row.parsed("name")?,
        description: row.text("description")?,
        active: row.int("active")? == 1,
        expressions: lines(&row.text("expressions")?),
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
