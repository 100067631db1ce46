//! Browser sessions.

use std::time::Duration;

use grange_db::NewSession;
use grange_model::account::UserName;
use grange_model::ids::SessionId;

use crate::who::Via;
use crate::{App, Error, Who, password, secret};

/// A new session: the secret goes into the cookie, the CSRF secret onto the pages.
#[derive(Clone)]
pub struct LoggedIn {
    pub who: Who,
    pub secret: String,
    pub csrf: String,
    pub lifetime: Duration,
}

impl std::fmt::Debug for LoggedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedIn").field("who", &self.who).finish_non_exhaustive()
    }
}

/// A session that was found by its secret.
#[derive(Clone, Debug)]
pub struct SessionOf {
    pub who: Who,
    id: SessionId,
    csrf_hash: String,
}

impl SessionOf {
    /// Whether a request repeats the secret of this session's pages. Hashes are compared, so timing tells nothing.
    pub fn csrf_fits(&self, given: &str) -> bool {
        secret::hash(given) == self.csrf_hash
    }
}

/// A user is changed by people: more than twice within a log-in is an attack or a fault.
const LOG_IN_TRIES: u32 = 3;

impl App {
    /// Lets a user in. A wrong name takes as long as a wrong password and gives the same answer.
    pub async fn log_in(&self, name: &str, given: String) -> Result<LoggedIn, Error> {
        // A user who was changed while the password was compared is looked at again: the password may be another now.
        for _ in 1..LOG_IN_TRIES {
            match self.try_log_in(name, given.clone()).await {
                Err(Error::Db(grange_db::Error::Stale { .. })) => {}
                other => return other,
            }
        }
        self.try_log_in(name, given).await
    }

    async fn try_log_in(&self, name: &str, given: String) -> Result<LoggedIn, Error> {
        let found = match name.parse::<UserName>() {
            Ok(name) => self.db.users().credentials(&name).await?,
            Err(_) => None,
        };
        let stored = found.as_ref().and_then(|(_, hash)| hash.clone());
        let fits = password::fits(given, stored).await;
        let user = match found {
            Some((user, _)) if fits && user.enabled() => user,
            _ => {
                tracing::warn!(user = name, "a log-in was refused");
                return Err(Error::WrongPassword);
            }
        };
        let (made, csrf, lifetime) = (secret::make(), secret::make(), self.rules.session_lifetime);
        let expires_at = self.clock.now().checked_add(lifetime).unwrap_or(jiff::Timestamp::MAX);
        let new = NewSession {
            user_id: user.id,
            user_edition: user.edition,
            hash: secret::hash(&made),
            csrf_hash: secret::hash(&csrf),
            expires_at,
        };
        let who = Who::user(&user, Via::Web);
        self.db.sessions().create(new, &who.actor()).await?;
        Ok(LoggedIn { who, secret: made, csrf, lifetime })
    }

    /// Who a session belongs to, if it still holds. Using it keeps it from going idle.
    pub async fn who_has_session(&self, given: &str) -> Result<SessionOf, Error> {
        let found = self.db.sessions().authenticate(&secret::hash(given)).await?;
        let (user, session) = found.ok_or(Error::Unknown)?;
        // As it was before this request, which the store has noted by now.
        let silent = self.clock.now().duration_since(session.last_seen_at);
        if silent.unsigned_abs() > self.rules.session_idle {
            return Err(Error::Unknown);
        }
        Ok(SessionOf { who: Who::user(&user, Via::Web), id: session.id, csrf_hash: session.csrf_hash })
    }

    /// Ends the session with this secret; one that is over already stays over.
    pub async fn log_out(&self, given: &str) -> Result<(), Error> {
        if let Ok(session) = self.who_has_session(given).await {
            self.db.sessions().end(session.id, &session.who.actor()).await?;
        }
        Ok(())
    }
}
