//! What is asked of a crawl: where it starts, by which template, and how far it may go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much may be taken. In each number -1 means no limit and 0 means nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Documents with an answer (status above 0), prerequisites not counted.
    pub max_objects: i64,
    /// Bytes of answers as they came over the wire.
    pub max_bytes: i64,
    /// Seconds of running time; pauses do not count.
    pub max_seconds: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_objects: -1, max_bytes: -1, max_seconds: -1 }
    }
}

/// Whose wish the byte limit of a domain is. It decides the stop reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByteLimitFrom {
    /// The harvest's: `size-limit`.
    #[default]
    Harvest,
    /// The domain configuration's: `config-size-limit`.
    Configuration,
}

/// The budget of one registrable domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DomainBudget {
    pub limits: Limits,
    pub bytes_from: ByteLimitFrom,
}

/// Why a domain's harvest ended, in the words of the harvest database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Nothing was left to do.
    Completed,
    ObjectLimit,
    SizeLimit,
    ConfigSizeLimit,
    TimeLimit,
    /// The crawl ended before the domain did.
    Unfinished,
}

/// Budgets by registrable domain, and one for every domain not named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    pub crawl: Limits,
    pub domains: BTreeMap<String, DomainBudget>,
    pub other_domains: DomainBudget,
}
