//! People: their names, roles and what a role may do, and the two keys that prove who is asking.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::ids::{SessionId, TokenId, UserId};
use crate::nearest::named;

named! {
    /// What a person is to the archive. One role each; [`Role::may`] says what it allows.
    Role, "role" {
        /// Everything, people included.
        Admin = "admin",
        /// Decides what is harvested and judges what came back.
        Curator = "curator",
        /// Keeps the machines and the bits.
        Operator = "operator",
        /// Looks.
        Viewer = "viewer",
    }
}

named! {
    /// One thing that not everybody may do. Acts name the permission they need, never a role.
    Permission, "permission" {
        ManageUsers = "manage-users",
        ReadAudit = "read-audit",
        ReadSystem = "read-system",
        ManageSystem = "manage-system",
        EditHarvests = "edit-harvests",
        View = "view",
    }
}

impl Role {
    /// Whether people of this role work at the archive instead of only reading it.
    pub const fn is_staff(self) -> bool {
        !matches!(self, Self::Viewer)
    }

    /// The one table of who may what.
    pub const fn may(self, permission: Permission) -> bool {
        use Permission as P;
        match self {
            Self::Admin => true,
            Self::Curator => matches!(permission, P::EditHarvests | P::ReadSystem | P::View),
            Self::Operator => matches!(permission, P::ManageSystem | P::ReadSystem | P::ReadAudit | P::View),
            Self::Viewer => matches!(permission, P::View),
        }
    }
}

/// A user's name: 1 to 64 letters, digits, `.`, `-`, `_` or `@`, kept in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct UserName(String);

/// A text that cannot be a user's name; says the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" cannot be a user name: use 1 to 64 letters, digits, '.', '-', '_' or '@'", .0.escape_debug())]
pub struct UserNameError(String);

/// What mail systems allow before the `@`, and it still fits a column on a page.
const USER_NAME_CHARS_MAX: usize = 64;

impl UserName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = UserNameError;

    fn from_str(text: &str) -> Result<Self, UserNameError> {
        let lower = text.to_lowercase();
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
        // Counted after lower-casing, which can lengthen a text.
        let count = lower.chars().count();
        if (1..=USER_NAME_CHARS_MAX).contains(&count) && lower.chars().all(allowed) {
            Ok(Self(lower))
        } else {
            // An error line is no place for a pasted novel.
            Err(UserNameError(text.chars().take(USER_NAME_CHARS_MAX + 1).collect()))
        }
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for UserName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for UserName {
    fn schema_name() -> Cow<'static, str> {
        "UserName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": USER_NAME_CHARS_MAX })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A person with access. The password's hash is deliberately not part of it: this value is shown and logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    pub id: UserId,
    pub name: UserName,
    pub role: Role,
    /// Since when the user may no longer come in; absent for everyone who may.
    #[schemars(with = "Option<String>")]
    pub disabled_at: Option<Timestamp>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    /// Counts the changes; a save names the edition it was made from.
    pub edition: i64,
}

impl User {
    pub fn enabled(&self) -> bool {
        self.disabled_at.is_none()
    }

    /// A disabled user may nothing, whatever the role.
    pub fn may(&self, permission: Permission) -> bool {
        self.enabled() && self.role.may(permission)
    }
}

/// A key for programs. Only its digest is stored; the key itself is shown once, when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: TokenId,
    pub user_id: UserId,
    /// What the owner calls it, such as "nightly export".
    pub name: String,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// Absent: does not expire.
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Timestamp>,
    /// To the minute or so: not every use is written down.
    #[schemars(with = "Option<String>")]
    pub last_used_at: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    pub fn valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// A browser that logged in. Only digests of its cookie and of its form key are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    pub user_id: UserId,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// To the minute or so: not every request is written down.
    #[schemars(with = "String")]
    pub last_seen_at: Timestamp,
    /// SHA-256, in hex, of the key that every form of this session must carry.
    #[serde(skip)]
    pub csrf_hash: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_table_of_permissions_reads_as_intended() {
        let allowed = |role: Role| {
            let names = Permission::ALL.iter().filter(|p| role.may(**p)).map(|p| p.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            allowed(Role::Admin),
            "manage-users read-audit read-system manage-system edit-harvests view"
        );
        assert_eq!(allowed(Role::Curator), "read-system edit-harvests view");
        assert_eq!(allowed(Role::Operator), "read-audit read-system manage-system view");
        assert_eq!(allowed(Role::Viewer), "view");
    }

    #[test]
    fn a_wrong_role_names_the_nearest_and_all() {
        assert_eq!("curator".parse::<Role>().unwrap(), Role::Curator);
        assert_eq!(serde_json::to_string(&Role::Admin).unwrap(), "\"admin\"");
        assert_eq!(
            "curater".parse::<Role>().unwrap_err().to_string(),
            "\"curater\" is not a role (did you mean \"curator\"?): choose from admin, curator, operator, viewer"
        );
        assert_eq!(
            "king".parse::<Role>().unwrap_err().to_string(),
            "\"king\" is not a role: choose from admin, curator, operator, viewer"
        );
    }

    #[test]
    fn user_names_are_checked_and_lower_cased() {
        for (text, expected) in [
            ("Anna", Some("anna")),
            ("ÅSE.Holm-2_x@kb.dk", Some("åse.holm-2_x@kb.dk")),
            ("", None),
            ("two words", None),
            ("semi;colon", None),
            ("new\nline", None),
            ("a/b", None),
            (&"x".repeat(64), Some(&"x".repeat(64))),
            (&"x".repeat(65), None),
        ] {
            assert_eq!(text.parse::<UserName>().ok().as_ref().map(UserName::as_str), expected, "{text:?}");
        }
        assert_eq!(
            "new\nline".parse::<UserName>().unwrap_err().to_string(),
            "\"new\\nline\" cannot be a user name: use 1 to 64 letters, digits, '.', '-', '_' or '@'"
        );
    }

    proptest! {
        #[test]
        fn a_name_made_is_made_again_equal(text in "\\PC{0,70}") {
            if let Ok(name) = text.parse::<UserName>() {
                prop_assert_eq!(name.as_str().parse::<UserName>().unwrap(), name);
            }
        }
    }
}
