//! Domains and the configurations they are harvested with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alias::Alias;
use super::domain_name::DomainName;
use super::history::Best;
use super::limit::{Limit, Limits};
use super::name::Name;

/// The configuration that every new domain gets, and snapshots use until another is made the default.
pub const DEFAULT_CONFIGURATION: &str = "defaultconfig";
/// The seed list of every new domain.
pub const DEFAULT_SEEDS: &str = "defaultseeds";
/// The template of every new configuration.
pub const DEFAULT_TEMPLATE: &str = "default";
/// What a new configuration may fetch, in bytes: NetarchiveSuite's number, a large site but not a runaway one.
pub const DEFAULT_BYTES: u64 = 1_000_000_000;

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Domain {
    pub name: DomainName,
    /// The name as people read it.
    pub readable: String,
    pub comments: String,
    pub default_configuration: Name,
    pub alias: Option<Alias>,
    pub traps: Vec<String>,
    pub fields: BTreeMap<String, String>,
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub edition: i64,
}

/// A recipe for one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    pub name: Name,
    pub default: bool,
    pub template: Name,
    pub limits: Limits,
    pub seed_lists: Vec<Name>,
    pub credentials: Vec<Name>,
    pub comments: String,
    /// What its history says about the next harvest.
    pub best: Option<Best>,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub edition: i64,
}

/// A configuration to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConfiguration {
    pub name: Name,
    #[serde(default = "default_template")]
    pub template: Name,
    #[serde(default = "default_limits")]
    pub limits: Limits,
    /// At least one.
    pub seed_lists: Vec<Name>,
    #[serde(default)]
    pub credentials: Vec<Name>,
    #[serde(default)]
    pub comments: String,
}

/// The template of a new configuration.
pub fn default_template() -> Name {
    DEFAULT_TEMPLATE.parse().unwrap_or_else(|_| unreachable!("it is a name"))
}

/// The limits of a new configuration.
pub fn default_limits() -> Limits {
    Limits { bytes: Limit::of(DEFAULT_BYTES), ..Limits::NONE }
}
