//! Collections, the index and access rules: what is asked. Answers are the nouns of the store.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Files and folders of the node's machine to be taken into a collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportPaths {
    pub paths: Vec<PathBuf>,
    /// Store them in the archive first; else they are registered where they lie.
    #[serde(default)]
    pub store: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Imported {
    pub new: u64,
    pub known: u64,
    pub again: u64,
    /// What was not taken, with the reason.
    pub passed_over: Vec<String>,
}

/// Which files of a collection: one, those of a job, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marked {
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub job: Option<String>,
    #[serde(default)]
    pub all: bool,
}

/// How many files were marked.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MarkedFiles {
    pub files: u64,
}

/// A rule to be kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAccessRule {
    /// Either the beginning of keys or the URL it is made from.
    #[serde(default)]
    pub surt_prefix: Option<String>,
    #[serde(default)]
    pub url: Option<String>,
    /// With `url`: exact, prefix, host or domain. Without: exact or prefix.
    #[serde(default)]
    pub matches: Option<String>,
    #[serde(default)]
    pub collection: Option<String>,
    #[serde(default)]
    pub mime: Option<String>,
    #[serde(default)]
    pub captured_from: Option<String>,
    #[serde(default)]
    pub captured_to: Option<String>,
    /// `allow`, or `block`, `embargo`, `networks`, `users` with what they say.
    pub decision: Value,
    /// Whom it is for: staff, role:NAME, user:NAME, network:ADDRESS/BITS. Empty: everybody.
    #[serde(default)]
    pub audience: Vec<String>,
    /// Has to be said of a rule that nothing narrows.
    #[serde(default)]
    pub everything: bool,
    #[serde(default)]
    pub note: String,
}

/// Access rules as a table of comma-separated values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessTable {
    pub csv: String,
}

/// What an import made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct AccessImported {
    /// Rules made.
    pub made: u64,
    /// Rules that were there already.
    pub known: u64,
}

/// Who asks for what: is it shown?
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessQuestion {
    pub url: String,
    pub collection: String,
    /// When it was captured, 1 to 14 digits; now if absent.
    #[serde(default)]
    pub captured: Option<String>,
    #[serde(default)]
    pub mime: Option<String>,
    #[serde(default)]
    pub address: Option<String>,
    #[serde(default)]
    pub user: Option<String>,
}

/// The decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccessAnswer {
    pub visible: bool,
    /// The rule that hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Every rule that took part; the one that decides first.
    #[serde(default)]
    pub rules: Vec<AccessRulePart>,
}

/// What one rule did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccessRulePart {
    /// Absent: the rule that is always there, which hides the documentation of crawls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    pub rule: Value,
    /// `hides`, `lifted`, `lets-through`, `allows`, `for-others`, or `depends-on-type`: it is about a MIME type, and the question
    /// names none.
    pub effect: String,
    /// The rule that lifted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_by: Option<i64>,
}
