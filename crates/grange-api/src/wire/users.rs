//! Users and their tokens.

use grange_model::account::{Role, Token, User};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub struct NewUser {
    pub name: String,
    pub role: Role,
    /// Made up by the server and told once when absent.
    pub password: Option<String>,
}

/// The answer to whatever made or changed a user. A password made by the server is in it, this once.
#[derive(Debug, Serialize, Deserialize)]
pub struct UserSaved {
    pub user: User,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub password: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct UserChange {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disabled: Option<bool>,
    /// The edition the change was made from; without it the newest is changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub edition: Option<i64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PasswordChange {
    /// Made up by the server and told once when absent.
    pub password: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NewToken {
    /// What it is for, such as "nightly export".
    pub name: String,
    /// Seconds from now; without it the token lives until it is revoked.
    pub lifetime_s: Option<u64>,
}

/// A new token with its secret, told this once.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenMade {
    pub token: Token,
    pub secret: String,
}
