//! An older database takes the place of a newer one: the keys that come back to life with it are named, and sessions
//! end.

use grange_model::{Actor, Token, TokenId, User, UserName};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::act::Tx;
use crate::audit::{self, Record};
use crate::dialect::Sql;
use crate::error::{Error, Fail};
use crate::open::Db;
use crate::row::{Columns, micros};
use crate::users::user;

/// Who comes in, as one database knows it.
#[derive(Clone, Default)]
pub struct KeyRing {
    pub users: Vec<(User, Option<String>)>,
    pub tokens: Vec<Token>,
}

/// Hashes of passwords stay inside.
impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyRing({} users, {} tokens)", self.users.len(), self.tokens.len())
    }
}

/// An API token that works in the restored database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenBack {
    pub id: TokenId,
    pub user: String,
    pub name: String,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When it was revoked in the database that was replaced; absent if that database does not know it.
    #[schemars(with = "Option<String>")]
    pub revoked_at: Option<Timestamp>,
}

/// A user who may do more, or something else, in the restored database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserBack {
    pub name: UserName,
    /// What is different, for people.
    pub change: String,
}

/// What a restored database brought back to life, and what it forgot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CameBack {
    /// False: there was no newer database to compare with, and everything that works is listed.
    pub compared: bool,
    /// Tokens that work again; those that were revoked are revoked again.
    pub tokens: Vec<TokenBack>,
    /// Users whose older password works again.
    pub passwords: Vec<UserName>,
    pub users: Vec<UserBack>,
    /// Users that the restored database does not know.
    pub lost_users: Vec<UserName>,
    /// How many tokens the restored database does not know.
    pub lost_tokens: u64,
}

impl CameBack {
    pub fn is_empty(&self) -> bool {
        let Self { tokens, passwords, users, lost_users, lost_tokens, .. } = self;
        tokens.is_empty()
            && passwords.is_empty()
            && users.is_empty()
            && lost_users.is_empty()
            && *lost_tokens == 0
    }
}

/// Compares who comes in before and after. Without a database before, everybody who comes in is listed.
pub fn came_back(replaced: Option<&KeyRing>, restored: &KeyRing, now: Timestamp) -> CameBack {
    let mut came = CameBack { compared: replaced.is_some(), ..CameBack::default() };
    let owner = |token: &Token| restored.users.iter().find(|(user, _)| user.id == token.user_id);
    for token in restored.tokens.iter().filter(|token| token.valid(now)) {
        let before = replaced.and_then(|ring| ring.tokens.iter().find(|one| one.id == token.id));
        if before.is_some_and(|before| before.valid(now)) {
            continue;
        }
        came.tokens.push(TokenBack {
            id: token.id,
            user: owner(token).map_or_else(String::new, |(user, _)| user.name.to_string()),
            name: token.name.clone(),
            created_at: token.created_at,
            revoked_at: before.and_then(|before| before.revoked_at),
        });
    }
    for (user, hash) in restored.users.iter().filter(|(user, _)| user.enabled()) {
        let Some(ring) = replaced else {
            came.passwords.extend(hash.as_ref().map(|_| user.name.clone()));
            continue;
        };
        let back = |change: String| UserBack { name: user.name.clone(), change };
        let Some((before, known)) = ring.users.iter().find(|(one, _)| one.id == user.id) else {
            came.users.push(back("unknown to the replaced database".to_owned()));
            continue;
        };
        if hash.is_some() && hash != known {
            came.passwords.push(user.name.clone());
        }
        if !before.enabled() {
            came.users.push(back("disabled in the replaced database, enabled now".to_owned()));
        }
        if before.role != user.role {
            came.users.push(back(format!("{} in the replaced database, {} now", before.role, user.role)));
        }
    }
    if let Some(ring) = replaced {
        let lost =
            |(user, _): &&(User, Option<String>)| !restored.users.iter().any(|(one, _)| one.id == user.id);
        came.lost_users = ring.users.iter().filter(lost).map(|(user, _)| user.name.clone()).collect();
        let lost = |token: &&Token| token.valid(now) && !restored.tokens.iter().any(|one| one.id == token.id);
        came.lost_tokens = ring.tokens.iter().filter(lost).count() as u64;
    }
    came
}

impl Db {
    /// Everybody who comes in, with the hashes of their passwords.
    pub async fn key_ring(&self) -> Result<KeyRing, Error> {
        let users = self
            .read("read the users", (), |tx, ()| {
                Box::pin(async move {
                    let query = tx.sql(&USERS);
                    let pair = |row| Ok((user(row)?, row.text_or_none("password_hash")?));
                    tx.rows(query).await?.iter().map(pair).collect::<Result<Vec<_>, Fail>>()
                })
            })
            .await?;
        Ok(KeyRing { users, tokens: self.tokens().list(None).await? })
    }

    /// After a restore: ends every session, revokes these tokens again, and writes the restore down. Gives how many
    /// sessions were ended.
    pub async fn settle_restored(
        &self,
        backup: &str,
        revoked: Vec<TokenId>,
        actor: &Actor,
    ) -> Result<u64, Error> {
        let input = (backup.to_owned(), revoked, actor.clone());
        self.write("end the sessions of the restored database", input, |tx, (backup, revoked, actor)| {
            Box::pin(settle(tx, backup, revoked, actor))
        })
        .await
    }
}

static USERS: Sql = Sql::new(
    "SELECT id, name, role, disabled_at, created_at, changed_at, edition, password_hash FROM users ORDER BY name",
);
static END_SESSIONS: Sql = Sql::new("DELETE FROM sessions");
static RECOVERY_PENDING: Sql = Sql::new("UPDATE archive_identity SET recovery_pending_since = $1");
static REVOKE: Sql =
    Sql::new("UPDATE tokens SET revoked_at = $1, edition = edition + 1 WHERE id = $2 AND revoked_at IS NULL");

async fn settle(tx: &mut Tx<'_>, backup: &str, revoked: &[TokenId], actor: &Actor) -> Result<u64, Fail> {
    let query = tx.sql(&END_SESSIONS);
    let sessions = tx.run(query).await?;
    // Replicas may have been declared since the backup.
    let query = tx.sql(&RECOVERY_PENDING).bind(micros(tx.now));
    tx.run(query).await?;
    for id in revoked {
        let query = tx.sql(&REVOKE).bind(micros(tx.now)).bind(id.to_string());
        tx.run(query).await?;
    }
    let after = json!({ "backup": backup, "sessions_ended": sessions, "tokens_revoked": revoked });
    let record =
        Record { act: "database.restore", subject: "database".to_owned(), before: None, after: Some(after) };
    audit::append(tx, actor, record).await?;
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use grange_model::{Role, UserId};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn person(id: UserId, name: &str, role: Role, disabled: bool, hash: &str) -> (User, Option<String>) {
        let user = User {
            id,
            name: name.parse().unwrap(),
            role,
            disabled_at: disabled.then(|| at(5)),
            created_at: at(0),
            changed_at: at(0),
            edition: 1,
        };
        (user, Some(hash.to_owned()))
    }

    fn token(id: TokenId, user_id: UserId, revoked: Option<i64>) -> Token {
        Token {
            id,
            user_id,
            name: "t".to_owned(),
            created_at: at(0),
            expires_at: None,
            last_used_at: None,
            revoked_at: revoked.map(at),
        }
    }

    #[test]
    fn what_works_again_is_listed_and_what_always_worked_is_not() {
        let [anna, berta, carl, dora] = [(); 4].map(|()| UserId::new());
        let [kept, revoked, unknown, lost] = [(); 4].map(|()| TokenId::new());
        let restored = KeyRing {
            users: vec![
                person(anna, "anna", Role::Admin, false, "old"),
                person(berta, "berta", Role::Curator, false, "same"),
                person(carl, "carl", Role::Admin, false, "same"),
            ],
            tokens: vec![token(kept, anna, None), token(revoked, anna, None), token(unknown, berta, None)],
        };
        let replaced = KeyRing {
            users: vec![
                person(anna, "anna", Role::Admin, false, "new"),
                person(berta, "berta", Role::Curator, true, "same"),
                person(carl, "carl", Role::Viewer, false, "same"),
                person(dora, "dora", Role::Viewer, false, "x"),
            ],
            tokens: vec![token(kept, anna, None), token(revoked, anna, Some(7)), token(lost, anna, None)],
        };
        let came = came_back(Some(&replaced), &restored, at(10));
        let tokens: Vec<_> = came.tokens.iter().map(|one| (one.id, one.revoked_at)).collect();
        assert_eq!(tokens, [(revoked, Some(at(7))), (unknown, None)]);
        assert_eq!(came.passwords, ["anna".parse().unwrap()]);
        let users: Vec<_> = came.users.iter().map(|one| format!("{}: {}", one.name, one.change)).collect();
        assert_eq!(
            users,
            [
                "berta: disabled in the replaced database, enabled now",
                "carl: viewer in the replaced database, admin now"
            ]
        );
        assert_eq!((came.lost_users, came.lost_tokens), (vec!["dora".parse().unwrap()], 1));
        let same = came_back(Some(&restored), &restored, at(10));
        assert!(same.is_empty() && same.compared, "{same:?}");
        let alone = came_back(None, &restored, at(10));
        assert_eq!((alone.compared, alone.tokens.len(), alone.passwords.len()), (false, 3, 3));
    }
}
