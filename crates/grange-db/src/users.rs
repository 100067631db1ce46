//! Users. Passwords arrive here as opaque hashes and leave only through [`Users::credentials`].

use grange_model::{Actor, Role, User, UserId, UserName};
use serde_json::json;
use sqlx::any::AnyRow;

use crate::act::Tx;
use crate::audit::{self, Record};
use crate::bulk::Bulk;
use crate::dialect::Sql;
use crate::error::{Error, Fail, unique};
use crate::open::Db;
use crate::row::{Columns, micros, micros_or_none};

/// The users.
#[derive(Debug)]
pub struct Users<'d>(&'d Db);

/// A user to be made. The hash is a PHC string, or absent for somebody who comes in by token only.
#[derive(Clone)]
pub struct NewUser {
    pub name: UserName,
    pub role: Role,
    pub password_hash: Option<String>,
}

impl std::fmt::Debug for NewUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewUser({}, {})", self.name, self.role)
    }
}

impl Db {
    pub fn users(&self) -> Users<'_> {
        Users(self)
    }
}

impl Users<'_> {
    /// Makes a user; [`Error::Exists`] if the name is taken.
    pub async fn create(&self, new: NewUser, actor: &Actor) -> Result<User, Error> {
        self.0
            .write("create the user", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(create(tx, new, actor))
            })
            .await
    }

    /// Makes a user if there is none at all, however many nodes try at once; `None` if there was one.
    pub async fn create_first(&self, new: NewUser, actor: &Actor) -> Result<Option<User>, Error> {
        self.0
            .write("create the first user", (new, actor.clone()), |tx, (new, actor)| {
                Box::pin(async move {
                    let query = ALONE.on(tx);
                    tx.run(query).await?;
                    if count(tx).await? > 0 {
                        return Ok(None);
                    }
                    create(tx, new, actor).await.map(Some)
                })
            })
            .await
    }

    pub async fn get(&self, name: &UserName) -> Result<Option<User>, Error> {
        Ok(self.credentials(name).await?.map(|(user, _)| user))
    }

    pub async fn by_id(&self, id: UserId) -> Result<Option<User>, Error> {
        self.0
            .read("read the user", id, |tx, id| {
                Box::pin(async move {
                    let query = tx.sql(&BY_ID).bind(id.to_string());
                    tx.row(query).await?.as_ref().map(user).transpose()
                })
            })
            .await
    }

    /// The user and the hash of the password, for checking a login.
    pub async fn credentials(&self, name: &UserName) -> Result<Option<(User, Option<String>)>, Error> {
        self.0
            .read("read the user", name.clone(), |tx, name| {
                Box::pin(async move {
                    let query = tx.sql(&BY_NAME).bind(name.as_str());
                    let row = tx.row(query).await?;
                    row.map(|row| Ok((user(&row)?, row.text_or_none("password_hash")?))).transpose()
                })
            })
            .await
    }

    /// All users, by name.
    pub async fn list(&self) -> Result<Vec<User>, Error> {
        self.0
            .read("list the users", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&LIST);
                    tx.rows(query).await?.iter().map(user).collect()
                })
            })
            .await
    }

    pub async fn count(&self) -> Result<u64, Error> {
        self.0.read("count the users", (), |tx, ()| Box::pin(count(tx))).await
    }

    /// Sets the password's hash and ends the user's sessions. Takes no edition: the latest password wins.
    pub async fn set_password(&self, name: &UserName, hash: &str, actor: &Actor) -> Result<User, Error> {
        self.0
            .write(
                "set the password",
                (name.clone(), hash.to_owned(), actor.clone()),
                |tx, (name, hash, actor)| {
                    Box::pin(async move {
                        let before = locked(tx, name).await?;
                        let query = tx
                            .sql(&SET_PASSWORD)
                            .bind(hash.as_str())
                            .bind(micros(tx.now))
                            .bind(actor.who.as_str())
                            .bind(before.id.to_string());
                        tx.run(query).await?;
                        end_sessions(tx, &before).await?;
                        let after = locked(tx, name).await?;
                        changed(tx, actor, "user.set-password", &before, &after).await
                    })
                },
            )
            .await
    }

    /// Gives the user another role. Refused for the last admin, and for a stale `edition`.
    pub async fn set_role(
        &self,
        name: &UserName,
        role: Role,
        edition: i64,
        actor: &Actor,
    ) -> Result<User, Error> {
        self.0
            .write(
                "change the user's role",
                (name.clone(), role, edition, actor.clone()),
                |tx, (name, role, edition, actor)| {
                    Box::pin(async move {
                        save(tx, actor, "user.set-role", name, *edition, |user| {
                            user.role = *role;
                        })
                        .await
                    })
                },
            )
            .await
    }

    /// Lets the user in again, or no longer: that also ends the sessions, and tokens stop working. Refused for the
    /// last admin, and for a stale `edition`.
    pub async fn set_enabled(
        &self,
        name: &UserName,
        enabled: bool,
        edition: i64,
        actor: &Actor,
    ) -> Result<User, Error> {
        self.0
            .write(
                "enable or disable the user",
                (name.clone(), enabled, edition, actor.clone()),
                |tx, (name, enabled, edition, actor)| {
                    Box::pin(async move {
                        let now = tx.now;
                        let act = if *enabled { "user.enable" } else { "user.disable" };
                        save(tx, actor, act, name, *edition, |user| {
                            user.disabled_at = if *enabled { None } else { user.disabled_at.or(Some(now)) };
                        })
                        .await
                    })
                },
            )
            .await
    }
}

macro_rules! columns {
    () => {
        "id, name, role, password_hash, disabled_at, created_at, changed_at, changed_by, edition"
    };
}

static CREATE: Sql = Sql::new(
    "INSERT INTO users (id, name, role, password_hash, created_at, changed_at, changed_by)
     VALUES ($1, $2, $3, $4, $5, $5, $6)",
);
static BY_ID: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM users WHERE id = $1"));
static BY_NAME: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM users WHERE name = $1"));
static LOCKED: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM users WHERE name = $1 {for_update}"));
static LIST: Sql = Sql::new(concat!("SELECT ", columns!(), " FROM users ORDER BY name"));
static COUNT: Sql = Sql::new("SELECT count(*) AS count FROM users");
// Whether there is any user can only be held for all of them: until the commit nobody else makes one.
static ALONE: Bulk =
    Bulk { sqlite: Sql::new("SELECT 1"), postgres: Sql::new("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE") };
static SET_PASSWORD: Sql = Sql::new(
    "UPDATE users SET password_hash = $1, changed_at = $2, changed_by = $3, edition = edition + 1 WHERE id = $4",
);
static SAVE: Sql = Sql::new(
    "UPDATE users SET role = $1, disabled_at = $2, changed_at = $3, changed_by = $4, edition = edition + 1
     WHERE id = $5",
);
// Locked, so that two admins cannot send each other away at the same moment.
static ADMINS: Sql =
    Sql::new("SELECT id FROM users WHERE role = 'admin' AND disabled_at IS NULL ORDER BY id {for_update}");
static END_SESSIONS: Sql = Sql::new("DELETE FROM sessions WHERE user_id = $1");

async fn create(tx: &mut Tx<'_>, new: &NewUser, actor: &Actor) -> Result<User, Fail> {
    let id = UserId::new();
    let query = tx
        .sql(&CREATE)
        .bind(id.to_string())
        .bind(new.name.as_str())
        .bind(new.role.as_str())
        .bind(new.password_hash.clone())
        .bind(micros(tx.now))
        .bind(actor.who.as_str());
    match tx.run(query).await {
        Err(Fail::Sql(error)) if unique(&error) => {
            return Err(Error::Exists { what: format!("user {}", new.name) }.into());
        }
        other => other?,
    };
    let user = User {
        id,
        name: new.name.clone(),
        role: new.role,
        disabled_at: None,
        created_at: tx.now,
        changed_at: tx.now,
        edition: 1,
    };
    let record =
        Record { act: "user.create", subject: subject(&user.name), before: None, after: Some(state(&user)) };
    audit::append(tx, actor, record).await?;
    Ok(user)
}

async fn count(tx: &mut Tx<'_>) -> Result<u64, Fail> {
    let query = tx.sql(&COUNT);
    let row = tx.row(query).await?;
    Ok(row.map(|row| row.int("count")).transpose()?.unwrap_or_default() as u64)
}

/// The user, held until the transaction ends.
async fn locked(tx: &mut Tx<'_>, name: &UserName) -> Result<User, Fail> {
    let query = tx.sql(&LOCKED).bind(name.as_str());
    let row = tx.row(query).await?.ok_or_else(|| Error::NotFound { what: format!("user {name}") })?;
    user(&row)
}

/// Saves a changed role or a changed admission, with the rules that hold for both.
async fn save(
    tx: &mut Tx<'_>,
    actor: &Actor,
    act: &'static str,
    name: &UserName,
    edition: i64,
    change: impl FnOnce(&mut User) + Send,
) -> Result<User, Fail> {
    // Before the user's own row, so that two such acts lock in the same order.
    let query = tx.sql(&ADMINS);
    let admins = tx.rows(query).await?.len();
    let query = tx.sql(&LOCKED).bind(name.as_str());
    let row = tx.row(query).await?.ok_or_else(|| Error::NotFound { what: format!("user {name}") })?;
    let before = user(&row)?;
    if before.edition != edition {
        let (by, at) = (row.text("changed_by")?, before.changed_at);
        return Err(Error::Stale { what: format!("user {name}"), by, at, edition: before.edition }.into());
    }
    let mut after = before.clone();
    change(&mut after);
    let was_admin = before.role == Role::Admin && before.enabled();
    if was_admin && !(after.role == Role::Admin && after.enabled()) && admins <= 1 {
        return Err(Error::LastAdmin { name: name.to_string() }.into());
    }
    after.changed_at = tx.now;
    after.edition += 1;
    let query = tx
        .sql(&SAVE)
        .bind(after.role.as_str())
        .bind(micros_or_none(after.disabled_at))
        .bind(micros(after.changed_at))
        .bind(actor.who.as_str())
        .bind(after.id.to_string());
    tx.run(query).await?;
    if !after.enabled() {
        end_sessions(tx, &after).await?;
    }
    changed(tx, actor, act, &before, &after).await
}

async fn end_sessions(tx: &mut Tx<'_>, user: &User) -> Result<(), Fail> {
    let query = tx.sql(&END_SESSIONS).bind(user.id.to_string());
    tx.run(query).await.map(|_| ())
}

async fn changed(
    tx: &mut Tx<'_>,
    actor: &Actor,
    act: &'static str,
    before: &User,
    after: &User,
) -> Result<User, Fail> {
    let (before, after_state) = (Some(state(before)), Some(state(after)));
    let record = Record { act, subject: subject(&after.name), before, after: after_state };
    audit::append(tx, actor, record).await?;
    Ok(after.clone())
}

pub(crate) fn subject(name: &UserName) -> String {
    format!("user:{name}")
}

/// What the log keeps of a user: no hash.
fn state(user: &User) -> serde_json::Value {
    json!({ "role": user.role, "enabled": user.enabled(), "edition": user.edition })
}

pub(crate) fn user(row: &AnyRow) -> Result<User, Fail> {
    Ok(User {
        id: row.parsed("id")?,
        name: row.parsed("name")?,
        role: row.parsed("role")?,
        disabled_at: row.time_or_none("disabled_at")?,
        created_at: row.time("created_at")?,
        changed_at: row.time("changed_at")?,
        edition: row.int("edition")?,
    })
}
