//! Definitions of custom fields. Their values are part of the rows they belong to.

use grange_model::Actor;
use grange_model::harvest::{CustomField, FieldNoun, Name};

use super::{NO_STATE, handle, json, missing, told};
use crate::act::Tx;
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::row::Columns;

handle! {
    /// The custom fields.
    CustomFields, custom_fields
}

impl CustomFields<'_> {
    pub async fn save(&self, field: CustomField, actor: &Actor) -> Result<(), Error> {
        self.0
            .write("keep the custom field", (field, actor.clone()), |tx, (field, actor)| {
                Box::pin(async move {
                    let query = tx
                        .sql(&SAVE)
                        .bind(field.noun.as_str())
                        .bind(field.name.to_string())
                        .bind(json(field));
                    tx.run(query).await?;
                    told(tx, actor, "field.save", format!("field:{}", field.name), NO_STATE, Some(field))
                        .await
                })
            })
            .await
    }

    /// Values that were written stay in their rows and come back with the field.
    pub async fn delete(&self, noun: FieldNoun, name: &Name, actor: &Actor) -> Result<(), Error> {
        self.0
            .write(
                "delete the custom field",
                (noun, name.clone(), actor.clone()),
                |tx, (noun, name, actor)| {
                    Box::pin(async move {
                        let query = tx.sql(&DELETE).bind(noun.as_str()).bind(name.to_string());
                        if tx.run(query).await? == 0 {
                            return Err(missing("custom field", name));
                        }
                        told(tx, actor, "field.delete", format!("field:{name}"), NO_STATE, NO_STATE).await
                    })
                },
            )
            .await
    }

    pub async fn list(&self, noun: FieldNoun) -> Result<Vec<CustomField>, Error> {
        self.0.read("list the custom fields", noun, |tx, noun| Box::pin(list(tx, *noun))).await
    }
}

static SAVE: Sql = Sql::new(
    "INSERT INTO custom_fields (noun, name, body) VALUES ($1, $2, $3)
     ON CONFLICT (noun, name) DO UPDATE SET body = excluded.body",
);
static DELETE: Sql = Sql::new("DELETE FROM custom_fields WHERE noun = $1 AND name = $2");
static LIST: Sql = Sql::new("SELECT body FROM custom_fields WHERE noun = $1 ORDER BY name");

pub(super) async fn list(tx: &mut Tx<'_>, noun: FieldNoun) -> Result<Vec<CustomField>, Fail> {
    let query = tx.sql(&LIST).bind(noun.as_str());
    let mut fields: Vec<CustomField> =
        tx.rows(query).await?.iter().map(|row| row.json("body")).collect::<Result<_, _>>()?;
    fields.sort_by_key(|field| field.position);
    Ok(fields)
}
