//! Templates and their versions. A version is never changed and never deleted: jobs name it.

use grange_model::Actor;
use grange_model::harvest::{Name, Template};
use serde_json::json;
use sqlx::any::AnyRow;

use super::{NO_STATE, handle, missing, plain, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::{Columns, micros};

handle! {
    /// The templates.
    Templates, templates
}

impl Templates<'_> {
    /// Adds those that are not there, and brings those up to date that nobody has changed. For what comes with Grange.
    pub async fn ship(&self, shipped: Vec<(Name, String)>) -> Result<(), Error> {
        let mut stale = Vec::new();
        for (name, text) in shipped {
            let known = self.get(&name, None).await?;
            if known.is_none_or(|known| outdated(&known, &text)) {
                stale.push((name, text));
            }
        }
        if stale.is_empty() {
            return Ok(());
        }
        self.0
            .write("add the shipped templates", stale, |tx, stale| {
                Box::pin(async move {
                    for (name, text) in stale {
                        held(tx, name, &Actor::system()).await?;
                        if newest(tx, name).await?.is_none_or(|known| outdated(&known, text)) {
                            put(tx, name, text, "", &Actor::system()).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Keeps a text as the newest version; the same text again changes nothing.
    pub async fn put(
        &self,
        name: &Name,
        text: &str,
        comments: &str,
        actor: &Actor,
    ) -> Result<Template, Error> {
        self.0
            .write(
                "keep the template",
                (name.clone(), text.to_owned(), comments.to_owned(), actor.clone()),
                |tx, (name, text, comments, actor)| Box::pin(put(tx, name, text, comments, actor)),
            )
            .await
    }

    /// Offers a template for new configurations, or no longer.
    pub async fn set_active(&self, name: &Name, active: bool, actor: &Actor) -> Result<Template, Error> {
        self.0
            .write(
                "change the template",
                (name.clone(), active, actor.clone()),
                |tx, (name, active, actor)| {
                    Box::pin(async move {
                        let query = tx.sql(&LOCK).bind(name.as_str());
                        tx.rows(query).await?;
                        let before = newest(tx, name).await?.ok_or_else(|| missing("template", name))?;
                        let query = tx
                            .sql(&SET_ACTIVE)
                            .bind(name.as_str())
                            .bind(i64::from(*active))
                            .bind(micros(tx.now))
                            .bind(actor.who.as_str());
                        tx.run(query).await?;
                        let state = |active| json!({ "active": active });
                        let (was, is) = (state(before.active), state(*active));
                        told(
                            tx,
                            actor,
                            "template.set-active",
                            format!("template:{name}"),
                            Some(&was),
                            Some(&is),
                        )
                        .await?;
                        newest(tx, name).await?.ok_or_else(|| missing("template", name))
                    })
                },
            )
            .await
    }

    /// The newest version, or the one asked for.
    pub async fn get(&self, name: &Name, version: Option<u32>) -> Result<Option<Template>, Error> {
        self.0
            .read("read the template", (name.clone(), version), |tx, (name, version)| {
                Box::pin(async move {
                    let query = tx.sql(&GET).bind(name.as_str()).bind(version.map(i64::from));
                    tx.row(query).await?.as_ref().map(template).transpose()
                })
            })
            .await
    }

    /// The newest version of each, by name, without its text.
    pub async fn list(&self) -> Result<Vec<Template>, Error> {
        self.0
            .read("list the templates", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    tx.rows(query).await?.iter().map(template).collect()
                })
            })
            .await
    }
}

static GET: Sql = Sql::new(
    "SELECT t.name, v.version, v.text, t.active, t.comments, v.created_at AS changed_at, v.created_by AS changed_by
     FROM templates t JOIN template_versions v ON v.template_id = t.id AND v.version = COALESCE($2, t.version)
     WHERE t.name = $1",
);
static LIST: Sql = Sql::new(
    "SELECT name, version, '' AS text, active, comments, changed_at, changed_by FROM templates ORDER BY name",
);
// Version 0 is never seen: whoever enters it gives it a text in the same act.
static ENTER: Sql = Sql::new(
    "INSERT INTO templates (name, version, changed_at, changed_by) VALUES ($1, 0, $2, $3)
     ON CONFLICT (name) DO NOTHING",
);
static LOCK: Sql = Sql::new("SELECT id FROM templates WHERE name = $1 {for_update}");
static NEXT: Sql = Sql::new(
    "UPDATE templates SET version = version + 1, comments = $2, active = 1, changed_at = $3, changed_by = $4
     WHERE name = $1 RETURNING id, version",
);
static ADD_VERSION: Sql = Sql::new(
    "INSERT INTO template_versions (template_id, version, text, created_at, created_by) VALUES ($1, $2, $3, $4, $5)",
);
static SET_ACTIVE: Sql =
    Sql::new("UPDATE templates SET active = $2, changed_at = $3, changed_by = $4 WHERE name = $1");
static ID: Sql = Sql::new("SELECT id FROM templates WHERE name = $1");

/// Whether a template in use is an older one that came with Grange. A text that a person kept is never replaced.
fn outdated(known: &Template, shipped: &str) -> bool {
    known.active && known.changed_by == Actor::system().who && known.text != shipped
}

async fn newest(tx: &mut Tx<'_>, name: &Name) -> Result<Option<Template>, Fail> {
    let query = tx.sql(&GET).bind(name.to_string()).bind(None::<i64>);
    tx.row(query).await?.as_ref().map(template).transpose()
}

/// Holds the template until the commit, entered if it was not there: what is newest then stays so, for the others too.
async fn held(tx: &mut Tx<'_>, name: &Name, actor: &Actor) -> Result<(), Fail> {
    let query = tx.sql(&ENTER).bind(name.to_string()).bind(micros(tx.now)).bind(actor.who.clone());
    tx.run(query).await?;
    let query = tx.sql(&LOCK).bind(name.to_string());
    tx.rows(query).await.map(|_| ())
}

/// The id of a template, for those that use it.
pub(super) async fn id(tx: &mut Tx<'_>, name: &Name) -> Result<i64, Fail> {
    let query = tx.sql(&ID).bind(name.to_string());
    tx.row(query).await?.ok_or_else(|| missing("template", name))?.int("id")
}

async fn put(
    tx: &mut Tx<'_>,
    name: &Name,
    text: &str,
    comments: &str,
    actor: &Actor,
) -> Result<Template, Fail> {
    plain("text of the template", text)?;
    held(tx, name, actor).await?;
    let before = newest(tx, name).await?;
    if let Some(before) = before.filter(|before| before.text == text && before.comments == comments) {
        return Ok(before);
    }
    let query = tx
        .sql(&NEXT)
        .bind(name.to_string())
        .bind(comments.to_owned())
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    let row = tx.row(query).await?.ok_or_else(|| missing("template", name))?;
    let query = tx
        .sql(&ADD_VERSION)
        .bind(row.int("id")?)
        .bind(row.int("version")?)
        .bind(text.to_owned())
        .bind(micros(tx.now))
        .bind(actor.who.clone());
    tx.run(query).await?;
    let after = newest(tx, name).await?.ok_or_else(|| missing("template", name))?;
    let state = json!({ "version": after.version });
    told(tx, actor, "template.put", format!("template:{name}"), NO_STATE, Some(&state)).await?;
    Ok(after)
}

fn template(row: &AnyRow) -> Result<Template, Fail> {
    Ok(Template {
        name: row.parsed("name")?,
        version: row.int("version")? as u32,
        text: row.text("text")?,
        active: row.int("active")? == 1,
        comments: row.text("comments")?,
        changed_at: row.time("changed_at")?,
        changed_by: row.text("changed_by")?,
    })
}
