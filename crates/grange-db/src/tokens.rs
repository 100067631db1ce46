//! Tokens: keys of programs, stored as digests.

use grange_model::{Actor, Token, TokenId, User, UserId};
use jiff::Timestamp;
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit::{self, Record};
use crate::dialect::Sql;
use crate::error::{Error, Fail, unique};
use crate::open::Db;
use crate::row::{Columns, micros, micros_or_none};
use crate::users::{subject, user};

/// How exact "last used" is: a program that asks a hundred times a second costs one write a minute.
pub(crate) const TOUCH_EVERY_SECONDS: i64 = 60;

/// The tokens.
#[derive(Debug)]
pub struct Tokens<'d>(&'d Db);

/// A token to be made; `hash` is the SHA-256 of the key, in hex.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub user_id: UserId,
    pub name: String,
    pub hash: String,
    pub expires_at: Option<Timestamp>,
}

impl Db {
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens(self)
    }
}

impl Tokens<'_> {
    /// Makes a token; [`Error::NotFound`] if there is no such user.
    pub async fn create(&self, new: NewToken, actor: &Actor) -> Result<Token, Error> {
        self.0
            .write("create the token", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(create(tx, new, actor))
            })
            .await
    }

    /// Whose key this is: `None` for one that is unknown, revoked or expired, or whose owner is disabled.
    pub async fn authenticate(&self, hash: &str) -> Result<Option<(User, Token)>, Error> {
        let now = self.0.0.clocks.acts.now();
        let found = self
            .0
            .read("look up the token", hash.to_owned(), |tx, hash| {
                Box::pin(async move {
                    let query = tx.sql(&BY_HASH).bind(hash.as_str());
                    let row = tx.row(query).await?;
                    row.map(|row| Ok((user(&row)?, token(&row)?))).transpose()
                })
            })
            .await?;
        let Some((user, token)) = found.filter(|(user, token)| user.enabled() && token.valid(now)) else {
            return Ok(None);
        };
        let stale = |at: Timestamp| now.duration_since(at).as_secs() >= TOUCH_EVERY_SECONDS;
        if token.last_used_at.is_none_or(stale) {
            self.0
                .write_one("note the use of the token", token.id, |tx, id| {
                    Box::pin(async move {
                        let query = tx.sql(&TOUCH).bind(micros(tx.now)).bind(id.to_string());
                        tx.run(query).await.map(|_| ())
                    })
                })
                .await?;
        }
        Ok(Some((user, token)))
    }

    /// The tokens of one user, or of all; oldest first, revoked ones too.
    pub async fn list(&self, of: Option<UserId>) -> Result<Vec<Token>, Error> {
        self.0
            .read("list the tokens", of, |tx, of| {
                Box::pin(async move {
                    let query = match of {
                        Some(user) => tx.sql(&LIST_OF).bind(user.to_string()),
                        None => tx.sql(&LIST),
                    };
                    tx.rows(query).await?.iter().map(token).collect()
                })
            })
            .await
    }

    /// Ends a token for good. Revoking it twice is revoking it once.
    pub async fn revoke(&self, id: TokenId, actor: &Actor) -> Result<Token, Error> {
        self.0
            .write("revoke the token", (id, actor.clone()), |tx, (id, actor)| {
                Box::pin(revoke(tx, *id, actor))
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "t.id AS t_id, t.user_id AS t_user_id, t.name AS t_name, t.created_at AS t_created_at,
         t.expires_at AS t_expires_at, t.last_used_at AS t_last_used_at, t.revoked_at AS t_revoked_at"
    };
}

static CREATE: Sql = Sql::new(
    "INSERT INTO tokens (id, user_id, name, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
);
static OWNER: Sql =
    Sql::new("SELECT id, name, role, disabled_at, created_at, changed_at, edition FROM users WHERE id = $1");
static BY_HASH: Sql = Sql::new(concat!(
    "SELECT u.id, u.name, u.role, u.disabled_at, u.created_at, u.changed_at, u.edition, ",
    columns!(),
    " FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = $1"
));
static LOCKED: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM tokens t WHERE t.id = $1 {for_update}"));
static LIST: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM tokens t ORDER BY t.created_at, t.id"));
static LIST_OF: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM tokens t WHERE t.user_id = $1 ORDER BY t.created_at, t.id"
));
static TOUCH: Sql = Sql::new("UPDATE tokens SET last_used_at = $1 WHERE id = $2");
static REVOKE: Sql = Sql::new("UPDATE tokens SET revoked_at = $1, edition = edition + 1 WHERE id = $2");

async fn create(tx: &mut Tx<'_>, new: &NewToken, actor: &Actor) -> Result<Token, Fail> {
    let owner = owner(tx, new.user_id).await?;
    let token = Token {
        id: TokenId::new(),
        user_id: new.user_id,
        name: new.name.clone(),
        created_at: tx.now,
        expires_at: new.expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let query = tx
        .sql(&CREATE)
        .bind(token.id.to_string())
        .bind(token.user_id.to_string())
        .bind(token.name.as_str())
        .bind(new.hash.as_str())
        .bind(micros(token.created_at))
        .bind(micros_or_none(token.expires_at));
    match tx.run(query).await {
        Err(Fail::Sql(error)) if unique(&error) => {
            return Err(Error::Exists { what: "token with this key".to_owned() }.into());
        }
        other => other?,
    };
    let after = Some(json!({ "id": token.id, "name": token.name, "expires_at": token.expires_at }));
    let record = Record { act: "token.create", subject: subject(&owner.name), before: None, after };
    audit::append(tx, actor, record).await?;
    Ok(token)
}

async fn revoke(tx: &mut Tx<'_>, id: TokenId, actor: &Actor) -> Result<Token, Fail> {
    let query = tx.sql(&LOCKED).bind(id.to_string());
    let row = tx.row(query).await?.ok_or_else(|| Error::NotFound { what: format!("token {id}") })?;
    let mut token = token(&row)?;
    if token.revoked_at.is_some() {
        return Ok(token);
    }
    token.revoked_at = Some(tx.now);
    let query = tx.sql(&REVOKE).bind(micros(tx.now)).bind(id.to_string());
    tx.run(query).await?;
    let owner = owner(tx, token.user_id).await?;
    let before = Some(json!({ "id": token.id, "name": token.name }));
    let record = Record { act: "token.revoke", subject: subject(&owner.name), before, after: None };
    audit::append(tx, actor, record).await?;
    Ok(token)
}

pub(crate) async fn owner(tx: &mut Tx<'_>, id: UserId) -> Result<User, Fail> {
    let query = tx.sql(&OWNER).bind(id.to_string());
    let row = tx.row(query).await?.ok_or_else(|| Error::NotFound { what: format!("user {id}") })?;
    user(&row)
}

fn token(row: &AnyRow) -> Result<Token, Fail> {
    Ok(Token {
        id: row.parsed("t_id")?,
        user_id: row.parsed("t_user_id")?,
        name: row.text("t_name")?,
        created_at: row.time("t_created_at")?,
        expires_at: row.time_or_none("t_expires_at")?,
        last_used_at: row.time_or_none("t_last_used_at")?,
        revoked_at: row.time_or_none("t_revoked_at")?,
    })
}
