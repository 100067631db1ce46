//! Who acts. Every act takes a [`Who`], and asks it for permission in one place.

use grange_model::account::{Permission, Role, User};
use grange_model::audit::Actor;

use crate::error::Error;

/// Someone who was let in: a name for the record, a role for permission, and the door they came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    name: String,
    role: Role,
    via: Via,
}

/// The door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A browser session.
    Web,
    /// An API token.
    Token,
    /// Someone on the node's own machine who may read its data folder.
    Local,
}

impl Via {
    fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Token => "token",
            Self::Local => "local",
        }
    }
}

impl Who {
    pub(crate) fn user(user: &User, via: Via) -> Self {
        Self { name: user.name.to_string(), role: user.role, via }
    }

    /// Someone who can read the data folder: they hold the database itself, so they may do everything.
    pub fn local(user: &str) -> Self {
        Self { name: user.to_owned(), role: Role::Admin, via: Via::Local }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether they came through the node's own machine.
    pub fn is_local(&self) -> bool {
        self.via == Via::Local
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// The name for the record of changes.
    pub(crate) fn actor(&self) -> Actor {
        Actor::new(self.name.clone(), self.via.as_str())
    }

    /// The one place where permission is asked.
    pub(crate) fn needs(&self, permission: Permission) -> Result<(), Error> {
        if self.role.may(permission) {
            Ok(())
        } else {
            Err(Error::Forbidden { user: self.name.clone(), role: self.role, permission })
        }
    }
}
