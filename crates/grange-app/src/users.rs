//! Users: made, listed, changed. Never deleted, because the record of changes names them.

use grange_db::NewUser;
use grange_model::account::{Permission, Role, User, UserName};
use grange_model::audit::Actor;

use crate::{App, Error, Who, password};

impl App {
    /// Makes the first admin when there is no user at all; gives its password, this once.
    pub async fn first_admin(&self) -> Result<Option<String>, Error> {
        if self.db.users().count().await? > 0 {
            return Ok(None);
        }
        let made = password::make();
        let hash = password::hash(made.clone()).await?;
        let new = NewUser { name: "admin".parse()?, role: Role::Admin, password_hash: Some(hash) };
        // Two nodes may start at the same moment on one database: only one of them makes the admin.
        let user = self.db.users().create_first(new, &Actor::system()).await?;
        Ok(user.map(|_| made))
    }

    /// Adds a user; without a password one is made, and given back this once.
    pub async fn add_user(
        &self,
        who: &Who,
        name: &str,
        role: Role,
        given: Option<String>,
    ) -> Result<(User, Option<String>), Error> {
        who.needs(Permission::ManageUsers)?;
        let name: UserName = name.parse()?;
        let (hash, made) = hashed(given).await?;
        let new = NewUser { name, role, password_hash: Some(hash) };
        let user = self.db.users().create(new, &who.actor()).await?;
        Ok((user, made))
    }

    pub async fn users(&self, who: &Who) -> Result<Vec<User>, Error> {
        who.needs(Permission::ManageUsers)?;
        Ok(self.db.users().list().await?)
    }

    /// One user: oneself, or anyone for those who manage users.
    pub async fn user(&self, who: &Who, name: &str) -> Result<User, Error> {
        if who.name() != name {
            who.needs(Permission::ManageUsers)?;
        }
        self.found(name).await
    }

    /// Changes role or state. A change made from an older edition is refused; without an edition the newest is taken.
    pub async fn change_user(
        &self,
        who: &Who,
        name: &str,
        role: Option<Role>,
        disabled: Option<bool>,
        edition: Option<i64>,
    ) -> Result<User, Error> {
        who.needs(Permission::ManageUsers)?;
        let mut user = self.found(name).await?;
        let mut edition = edition.unwrap_or(user.edition);
        if let Some(role) = role {
            user = self.db.users().set_role(&user.name, role, edition, &who.actor()).await?;
            edition = user.edition;
        }
        if let Some(disabled) = disabled {
            user = self.db.users().set_enabled(&user.name, !disabled, edition, &who.actor()).await?;
        }
        Ok(user)
    }

    /// A new password for oneself, or for anyone by those who manage users. Without one, one is made.
    pub async fn set_password(
        &self,
        who: &Who,
        name: &str,
        given: Option<String>,
    ) -> Result<(User, Option<String>), Error> {
        if who.name() != name {
            who.needs(Permission::ManageUsers)?;
        }
        let user = self.found(name).await?;
        let (hash, made) = hashed(given).await?;
        let user = self.db.users().set_password(&user.name, &hash, &who.actor()).await?;
        Ok((user, made))
    }

    pub(crate) async fn found(&self, name: &str) -> Result<User, Error> {
        // A name that cannot be a name is not there either.
        let missing = || Error::NotFound { noun: "user", name: name.to_owned() };
        let name: UserName = name.parse().map_err(|_| missing())?;
        self.db.users().get(&name).await?.ok_or_else(missing)
    }
}

/// The hash of the password given or made, and the one made.
async fn hashed(given: Option<String>) -> Result<(String, Option<String>), Error> {
    let made = given.is_none().then(password::make);
    let password = given.or_else(|| made.clone()).unwrap_or_default();
    Ok((password::hash(password).await?, made))
}
