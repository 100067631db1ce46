//! Who may see a capture: a pure function of rules, capture, reader and time.
//!
//! This is the one place that decides. Restrictions combine: a capture is visible if every restriction about it lets the
//! reader through. Only an explicit allow lifts restrictions, and it says for whom. The more restrictions there are, the less
//! is visible: adding one never opens anything.
//!
//! - [`Rule`] is what people write, [`RuleSet`] many of them looked up by key.
//! - [`CaptureFacts`] is all that rules know of a capture, [`Reader`] all that they know of who asks.
//! - [`RuleSet::judge`] decides, [`RuleSet::explain`] names every rule that took part.

mod audience;
mod facts;
mod network;
mod own_key;
mod rule_set;
mod verdict;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

pub use audience::{Audience, UnknownAudience};
pub use facts::{CaptureFacts, CapturedUrl, MediaType, is_crawl_documentation};
pub use network::{Network, NetworkError};
pub use rule_set::{CompiledRule, LookupHint, RuleSet};
pub use verdict::{Effect, RuleEffect, Verdict};

/// A rule about captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A beginning of keys: `com,example)/private`, `com,example,` for hosts below, empty for all.
    pub surt_prefix: String,
    /// Only this whole key, not those that begin with it.
    #[serde(default)]
    pub exact: bool,
    /// Only this collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// Only this MIME type, or all of a kind: `video/*`. Case does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Only captures from this time on (1 to 17 digits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_from: Option<String>,
    /// Only captures up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_to: Option<String>,
    pub decision: Decision,
    /// Whom the rule is for: readers who are one of these. Empty: everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Audience>,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Lifts restrictions for the audience of the rule.
    Allow,
    /// Nobody sees it. The message is for those who ask for it by name.
    Block { message: String },
    /// Nobody sees it until so many seconds after its capture.
    Embargo { seconds: u64 },
    /// Only readers in these networks (`192.0.2.0/24`, `2001:db8::/32`).
    Networks { networks: Vec<String> },
    /// Only these users; `*` is everybody who is signed in.
    Users { users: Vec<String> },
}

/// Who asks, and when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    pub address: Option<IpAddr>,
    pub user: Option<&'a str>,
    /// The role of the user's account.
    pub role: Option<&'a str>,
    /// Whether that role works at the archive instead of only reading it.
    pub staff: bool,
    /// The present moment, as 14 digits of UTC.
    pub now: Stamp,
}

impl Rule {
    /// A rule about keys, for everybody.
    pub fn new(surt_prefix: &str, decision: Decision) -> Self {
        Self {
            surt_prefix: surt_prefix.to_owned(),
            exact: false,
            collection: None,
            mime: None,
            captured_from: None,
            captured_to: None,
            decision,
            audience: Vec::new(),
        }
    }
}

impl Decision {
    /// Its name, as in the stored form.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block { .. } => "block",
            Self::Embargo { .. } => "embargo",
            Self::Networks { .. } => "networks",
            Self::Users { .. } => "users",
        }
    }
}

#[cfg(test)]
mod tests;
