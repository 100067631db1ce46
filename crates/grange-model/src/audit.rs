//! The audit log: who changed what, when, by which door, and what it was before and after.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who acts and by which door. Every change carries one, and the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    /// A user's name, or `grange` for what the system does by itself.
    pub who: String,
    /// `cli`, `web`, `api`, `node`: where the wish came in.
    pub via: String,
}

/// Begins the name of somebody on the node's machine whose person the system does not show. No account and no user has a name
/// with a colon, so nobody is called this by chance.
pub const UNIDENTIFIED: &str = "unidentified:";

impl Actor {
    pub fn new(who: impl Into<String>, via: impl Into<String>) -> Self {
        Self { who: who.into(), via: via.into() }
    }

    /// What Grange does by itself, such as making the first user.
    pub fn system() -> Self {
        Self::new("grange", "node")
    }

    /// Whether the name is that of one person: only then can it be compared with another name.
    pub fn is_identified(&self) -> bool {
        !self.who.starts_with(UNIDENTIFIED)
    }
}

/// One line of the log. Lines are added in the transaction of the change they tell of, and never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// Grows with every line; pages of the log are cut by it.
    pub number: i64,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub who: String,
    pub via: String,
    /// What was done, as `noun.verb`: `user.create`, `token.revoke`.
    pub act: String,
    /// To what, as `noun:name`: `user:anna`.
    pub subject: String,
    /// The state before, without secrets; absent when there was none.
    pub before: Option<Value>,
    /// The state after, without secrets; absent when there is none.
    pub after: Option<Value>,
}
