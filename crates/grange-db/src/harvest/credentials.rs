//! Logins of a domain. Their secrets arrive sealed and leave only towards a harvester that claimed a job.

use grange_model::Actor;
use grange_model::harvest::{CredentialShown, DomainName, LoginForm, Name};
use serde_json::json;

use super::domains::found;
use super::{Domains, NO_STATE, missing, plain, told};
use crate::dialect::Sql;
use crate::error::Error;
use crate::row::{Columns, micros};

/// A login to be kept. `sealed` is the encrypted secret.
#[derive(Clone)]
pub struct NewCredential {
    pub name: Name,
    pub url: String,
    pub realm: String,
    pub username: String,
    pub form: Option<LoginForm>,
    pub sealed: String,
    pub comments: String,
}

impl std::fmt::Debug for NewCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewCredential({})", self.name)
    }
}

impl Domains<'_> {
    pub async fn credentials(&self, domain: &DomainName) -> Result<Vec<CredentialShown>, Error> {
        self.0
            .read("list the logins", domain.clone(), |tx, domain| {
                Box::pin(async move {
                    let id = super::domains::id(tx, domain).await?;
                    let query = tx.sql(&LIST).bind(id);
                    let read = |row: &sqlx::any::AnyRow| {
                        Ok(CredentialShown {
                            name: row.parsed("name")?,
                            url: row.text("url")?,
                            realm: row.text("realm")?,
                            username: row.text("username")?,
                            form: row.json_or_none("form")?,
                            comments: row.text("comments")?,
                            changed_at: row.time("changed_at")?,
                        })
                    };
                    tx.rows(query).await?.iter().map(read).collect()
                })
            })
            .await
    }

    /// Makes or replaces a login.
    pub async fn save_credential(
        &self,
        domain: &DomainName,
        new: NewCredential,
        actor: &Actor,
    ) -> Result<(), Error> {
        self.0
            .write("keep the login", (domain.clone(), new, actor.clone()), |tx, (domain, new, actor)| {
                Box::pin(async move {
                    let (id, _) = found(tx, domain).await?;
                    for text in [&new.url, &new.realm, &new.username, &new.comments] {
                        plain("login", text)?;
                    }
                    let form = new.form.as_ref().map(|form| json!(form).to_string());
                    let query = tx
                        .sql(&SAVE)
                        .bind(id)
                        .bind(new.name.to_string())
                        .bind(new.url.clone())
                        .bind(new.realm.clone())
                        .bind(new.username.clone())
                        .bind(form)
                        .bind(new.sealed.clone())
                        .bind(new.comments.clone())
                        .bind(micros(tx.now))
                        .bind(actor.who.clone());
                    tx.run(query).await?;
                    let state = json!({ "url": new.url, "realm": new.realm, "username": new.username, "form": new.form });
                    let subject = format!("domain:{domain}/{}", new.name);
                    told(tx, actor, "credential.save", subject, NO_STATE, Some(&state)).await
                })
            })
            .await
    }

    /// Deletes a login that no configuration uses.
    pub async fn delete_credential(
        &self,
        domain: &DomainName,
        name: &Name,
        actor: &Actor,
    ) -> Result<(), Error> {
        let input = (domain.clone(), name.clone(), actor.clone());
        self.0
            .write("delete the login", input, |tx, (domain, name, actor)| {
                Box::pin(async move {
                    let (domain_id, _) = found(tx, domain).await?;
                    let query = tx.sql(&USED_BY).bind(domain_id).bind(name.to_string());
                    let what = format!("login {name} of {domain}");
                    if let Some(user) = tx.row(query).await? {
                        return Err(Error::InUse {
                            what,
                            by: format!("the configuration {}", user.text("name")?),
                        }
                        .into());
                    }
                    let query = tx.sql(&DELETE).bind(domain_id).bind(name.to_string());
                    if tx.run(query).await? == 0 {
                        return Err(missing(&format!("login of {domain} named"), name));
                    }
                    told(
                        tx,
                        actor,
                        "credential.delete",
                        format!("domain:{domain}/{name}"),
                        NO_STATE,
                        NO_STATE,
                    )
                    .await
                })
            })
            .await
    }
}

static LIST: Sql = Sql::new(
    "SELECT name, url, realm, username, form, comments, changed_at FROM credentials WHERE domain_id = $1 ORDER BY name",
);
static SAVE: Sql = Sql::new(
    "INSERT INTO credentials (domain_id, name, url, realm, username, form, sealed, comments, changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (domain_id, name) DO UPDATE SET url = excluded.url, realm = excluded.realm,
         username = excluded.username, form = excluded.form, sealed = excluded.sealed, comments = excluded.comments,
         changed_at = excluded.changed_at, changed_by = excluded.changed_by",
);
static USED_BY: Sql = Sql::new(
    "SELECT c.name FROM credentials p JOIN configuration_credentials l ON l.credential_id = p.id
     JOIN configurations c ON c.id = l.configuration_id WHERE p.domain_id = $1 AND p.name = $2 LIMIT 1",
);
static DELETE: Sql = Sql::new("DELETE FROM credentials WHERE domain_id = $1 AND name = $2");
