//! Sessions: browsers that logged in, stored as digests of their cookies.

use grange_model::{Actor, Session, SessionId, User, UserId};
use jiff::Timestamp;
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit::{self, Record};
use crate::dialect::Sql;
use crate::error::{Error, Fail, unique};
use crate::open::Db;
use crate::row::{Columns, micros};
use crate::tokens::{TOUCH_EVERY_SECONDS, owner};
use crate::users::{subject, user};

/// The sessions.
#[derive(Debug)]
pub struct Sessions<'d>(&'d Db);

/// A session to be made; both hashes are SHA-256 in hex.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub user_id: UserId,
    /// Of the user when the password was found right: one that was changed or disabled since starts no session.
    pub user_edition: i64,
    /// Of the cookie.
    pub hash: String,
    /// Of the key that the session's forms carry.
    pub csrf_hash: String,
    pub expires_at: Timestamp,
}

impl Db {
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions(self)
    }
}

impl Sessions<'_> {
    /// Starts a session, and writes the login into the audit log. [`Error::Stale`] if the user was changed since.
    pub async fn create(&self, new: NewSession, actor: &Actor) -> Result<Session, Error> {
        self.0
            .write("start the session", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(create(tx, new, actor))
            })
            .await
    }

    /// Whose cookie this is: `None` for one that is unknown or expired, or whose user is disabled.
    pub async fn authenticate(&self, hash: &str) -> Result<Option<(User, Session)>, Error> {
        let now = self.0.0.clocks.acts.now();
        let found = self
            .0
            .read("look up the session", hash.to_owned(), |tx, hash| {
                Box::pin(async move {
                    let query = tx.sql(&BY_HASH).bind(hash.as_str());
                    let row = tx.row(query).await?;
                    row.map(|row| Ok((user(&row)?, session(&row)?))).transpose()
                })
            })
            .await?;
        let Some((user, session)) =
            found.filter(|(user, session)| user.enabled() && now < session.expires_at)
        else {
            return Ok(None);
        };
        if now.duration_since(session.last_seen_at).as_secs() >= TOUCH_EVERY_SECONDS {
            self.0
                .write_one("note the use of the session", session.id, |tx, id| {
                    Box::pin(async move {
                        let query = tx.sql(&TOUCH).bind(micros(tx.now)).bind(id.to_string());
                        tx.run(query).await.map(|_| ())
                    })
                })
                .await?;
        }
        Ok(Some((user, session)))
    }

    /// Ends a session; false if it was over already.
    pub async fn end(&self, id: SessionId, actor: &Actor) -> Result<bool, Error> {
        self.0
            .write("end the session", (id, actor.clone()), |tx, (id, actor)| Box::pin(end(tx, *id, actor)))
            .await
    }

    /// The user's sessions that are not over, newest first.
    pub async fn list(&self, of: UserId) -> Result<Vec<Session>, Error> {
        self.0
            .read("list the sessions", of, |tx, of| {
                Box::pin(async move {
                    let query = tx.sql(&LIST_OF).bind(of.to_string()).bind(micros(tx.now));
                    tx.rows(query).await?.iter().map(session).collect()
                })
            })
            .await
    }

    /// Deletes the sessions whose time is over, and counts them.
    pub async fn expire(&self) -> Result<u64, Error> {
        self.0
            .write_one("delete old sessions", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&EXPIRE).bind(micros(tx.now));
                    tx.run(query).await
                })
            })
            .await
    }
}

macro_rules! columns {
    () => {
        "s.id AS s_id, s.user_id AS s_user_id, s.csrf_hash AS s_csrf_hash, s.created_at AS s_created_at,
         s.expires_at AS s_expires_at, s.last_seen_at AS s_last_seen_at"
    };
}

static CREATE: Sql = Sql::new(
    "INSERT INTO sessions (id, user_id, hash, csrf_hash, created_at, expires_at, last_seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $5)",
);
static HELD: Sql = Sql::new(
    "SELECT id, name, role, disabled_at, created_at, changed_at, changed_by, edition FROM users WHERE id = $1
     {for_share}",
);
static BY_HASH: Sql = Sql::new(concat!(
    "SELECT u.id, u.name, u.role, u.disabled_at, u.created_at, u.changed_at, u.edition, ",
    columns!(),
    " FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.hash = $1"
));
static LIST_OF: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM sessions s WHERE s.user_id = $1 AND s.expires_at > $2 ORDER BY s.created_at DESC, s.id DESC"
));
static TOUCH: Sql = Sql::new("UPDATE sessions SET last_seen_at = $1 WHERE id = $2");
static END: Sql = Sql::new("DELETE FROM sessions WHERE id = $1 RETURNING user_id");
static EXPIRE: Sql = Sql::new("DELETE FROM sessions WHERE expires_at <= $1");

async fn create(tx: &mut Tx<'_>, new: &NewSession, actor: &Actor) -> Result<Session, Fail> {
    // Held: a new password ends the sessions there are, and none may be on its way.
    let query = tx.sql(&HELD).bind(new.user_id.to_string());
    let absent = || Error::NotFound { what: format!("user {}", new.user_id) };
    let row = tx.row(query).await?.ok_or_else(absent)?;
    let owner = user(&row)?;
    if owner.edition != new.user_edition {
        let (what, by) = (format!("user {}", owner.name), row.text("changed_by")?);
        return Err(Error::Stale { what, by, at: owner.changed_at, edition: owner.edition }.into());
    }
    let session = Session {
        id: SessionId::new(),
        user_id: new.user_id,
        created_at: tx.now,
        expires_at: new.expires_at,
        last_seen_at: tx.now,
        csrf_hash: new.csrf_hash.clone(),
    };
    let query = tx
        .sql(&CREATE)
        .bind(session.id.to_string())
        .bind(session.user_id.to_string())
        .bind(new.hash.as_str())
        .bind(new.csrf_hash.as_str())
        .bind(micros(session.created_at))
        .bind(micros(session.expires_at));
    match tx.run(query).await {
        Err(Fail::Sql(error)) if unique(&error) => {
            return Err(Error::Exists { what: "session with this cookie".to_owned() }.into());
        }
        other => other?,
    };
    let after = Some(json!({ "id": session.id, "expires_at": session.expires_at }));
    let record = Record { act: "session.start", subject: subject(&owner.name), before: None, after };
    audit::append(tx, actor, record).await?;
    Ok(session)
}

async fn end(tx: &mut Tx<'_>, id: SessionId, actor: &Actor) -> Result<bool, Fail> {
    let query = tx.sql(&END).bind(id.to_string());
    let Some(row) = tx.row(query).await? else {
        return Ok(false);
    };
    let owner = owner(tx, row.parsed("user_id")?).await?;
    let before = Some(json!({ "id": id }));
    let record = Record { act: "session.end", subject: subject(&owner.name), before, after: None };
    audit::append(tx, actor, record).await?;
    Ok(true)
}

fn session(row: &AnyRow) -> Result<Session, Fail> {
    Ok(Session {
        id: row.parsed("s_id")?,
        user_id: row.parsed("s_user_id")?,
        created_at: row.time("s_created_at")?,
        expires_at: row.time("s_expires_at")?,
        last_seen_at: row.time("s_last_seen_at")?,
        csrf_hash: row.text("s_csrf_hash")?,
    })
}
