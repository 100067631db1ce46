//! API tokens: as much as their owner may do, until revoked, expired, or the owner is disabled.

use std::time::Duration;

use grange_db::NewToken;
use grange_model::account::{Permission, Token};

use crate::who::Via;
use crate::{App, Error, Who, secret};

/// Enough to say what a token is for.
const NAME_CHARS_MAX: usize = 100;

impl App {
    /// Makes a token for oneself, or for anyone by those who manage users; gives the secret, this once.
    pub async fn make_token(
        &self,
        who: &Who,
        user: &str,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<(Token, String), Error> {
        if who.name() != user {
            who.needs(Permission::ManageUsers)?;
        }
        let name = name.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
            return Err(Error::TokenName);
        }
        let user = self.found(user).await?;
        let end = |lifetime| self.clock.now().checked_add(lifetime).unwrap_or(jiff::Timestamp::MAX);
        let expires_at = lifetime.map(end);
        let made = secret::make();
        let new = NewToken { user_id: user.id, name: name.to_owned(), hash: secret::hash(&made), expires_at };
        let token = self.db.tokens().create(new, &who.actor()).await?;
        Ok((token, made))
    }

    pub async fn tokens(&self, who: &Who, user: &str) -> Result<Vec<Token>, Error> {
        if who.name() != user {
            who.needs(Permission::ManageUsers)?;
        }
        let user = self.found(user).await?;
        Ok(self.db.tokens().list(Some(user.id)).await?)
    }

    /// Ends a token: one's own, or anyone's by those who manage users.
    pub async fn revoke_token(&self, who: &Who, id: &str) -> Result<(), Error> {
        let missing = || Error::NotFound { noun: "token", name: id.to_owned() };
        let token_id = id.parse().map_err(|_| missing())?;
        if who.role().may(Permission::ManageUsers) {
            self.db.tokens().revoke(token_id, &who.actor()).await?;
            return Ok(());
        }
        let own = self.found(who.name()).await?.id;
        // Somebody else's token is not there for those who may not see it.
        if !self.db.tokens().list(Some(own)).await?.iter().any(|token| token.id == token_id) {
            return Err(missing());
        }
        self.db.tokens().revoke(token_id, &who.actor()).await?;
        Ok(())
    }

    /// Who holds a token, if it still works.
    pub async fn who_has_token(&self, given: &str) -> Result<Who, Error> {
        let found = self.db.tokens().authenticate(&secret::hash(given)).await?;
        let (user, _) = found.ok_or(Error::Unknown)?;
        Ok(Who::user(&user, Via::Token))
    }
}
