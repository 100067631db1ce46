//! Repositories: the data providers that are harvested.

use std::collections::HashSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::{DeletedPolicy, DeletedSupport, Granularity, Slices};
use super::ids::RepositoryId;

/// What a repository said about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identified {
    pub name: String,
    pub protocol_version: String,
    pub admin_emails: Vec<String>,
    pub granularity: Granularity,
    pub deleted_support: DeletedSupport,
    /// Before the first record, as it says; not to be relied on.
    #[schemars(with = "Option<String>")]
    pub earliest: Option<Timestamp>,
    /// The `repositoryIdentifier` of its oai-identifier description.
    pub registry_prefix: Option<String>,
    pub formats: Vec<Format>,
    pub sets: Vec<Set>,
    /// What was odd about its answers, for people.
    pub remarks: Vec<String>,
    /// The list of formats is known to lack some. Of this answer only, and not kept.
    #[serde(skip)]
    pub formats_incomplete: bool,
    /// The list of sets is known to lack some. Of this answer only, and not kept.
    #[serde(skip)]
    pub sets_incomplete: bool,
}

impl Identified {
    /// With the formats and sets that were known before, where a list of this answer is incomplete.
    #[must_use]
    pub fn keeping(mut self, known: &Self) -> Self {
        if self.formats_incomplete {
            let missing = known.formats.iter().filter(|format| !self.formats.contains(format));
            self.formats.extend(missing.cloned().collect::<Vec<_>>());
        }
        if self.sets_incomplete {
            let listed: HashSet<_> = self.sets.iter().map(|set| set.spec.clone()).collect();
            self.sets.extend(known.sets.iter().filter(|set| !listed.contains(&set.spec)).cloned());
        }
        self
    }
}

/// A metadata format that a repository offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Format {
    pub prefix: String,
    pub schema: String,
    pub namespace: String,
}

/// A set that a repository offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    pub spec: String,
    pub name: String,
}

/// How one repository's records are kept and how it is treated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepositoryRules {
    /// Where its files are: a path below the folder of all repositories, or an absolute one. Empty: its number.
    pub folder: String,
    /// Make folders from the parts of identifiers; else all files lie in one folder.
    pub parse_id: bool,
    /// The most files in one folder; the others lie in `starting_at_…` below it. 0: no such folders.
    pub files_per_folder: u32,
    pub deleted: DeletedPolicy,
    pub slices: Slices,
    /// Between two requests, in milliseconds.
    pub delay_ms: u64,
    /// Keep every answer in WARC files as well.
    pub keep_responses: bool,
    /// It ignores `from` and `until`, so only whole lists are right. Found out by harvests.
    pub no_windows: bool,
    /// Send resumption tokens as they are: it cannot read encoded ones.
    pub verbatim_tokens: bool,
    /// Its completeListSize is an estimate: a list with fewer records can be complete.
    pub estimated_size: bool,
}

impl Default for RepositoryRules {
    fn default() -> Self {
        Self {
            folder: String::new(),
            parse_id: true,
            // The Illinois harvester's number: what people and their tools can still browse.
            files_per_folder: 5_000,
            deleted: DeletedPolicy::Remove,
            slices: Slices::Whole,
            delay_ms: 0,
            keep_responses: false,
            no_windows: false,
            verbatim_tokens: false,
            estimated_size: false,
        }
    }
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repository {
    pub id: RepositoryId,
    pub base_url: String,
    #[serde(flatten)]
    pub said: Identified,
    pub rules: RepositoryRules,
    #[schemars(with = "String")]
    pub added_at: Timestamp,
    /// Counts the changes; a save names the edition it was made from.
    pub edition: i64,
}
