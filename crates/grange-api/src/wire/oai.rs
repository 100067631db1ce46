//! Metadata harvesting: what is asked. Answers are the nouns of `grange-model` as they are.

use grange_model::harvest::Every;
use grange_model::oai::{
    HarvestSpec, HistoryId, HistoryLine, OaiJob, Repository, RepositoryId, RepositoryRules,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A repository to be added.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRepository {
    pub base_url: String,
    #[serde(default)]
    pub rules: RepositoryRules,
}

/// How a repository is to be treated.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesEdit {
    pub rules: RepositoryRules,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// A repository and how much is held of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RepositoryShown {
    #[serde(flatten)]
    pub repository: Repository,
    pub records: u64,
    pub deleted: u64,
}

/// A recurring job to be made or changed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEdit {
    pub repository: RepositoryId,
    pub spec: HarvestSpec,
    /// Absent: now.
    #[serde(default)]
    pub starts_at: Option<Timestamp>,
    #[serde(default)]
    pub ends_at: Option<Timestamp>,
    /// Absent: once.
    #[serde(default)]
    pub every: Option<Every>,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// A list of repositories: a text, or where it lies.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Friends {
    pub text: Option<String>,
    pub url: Option<String>,
}

/// A job, or how it ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobShown {
    pub job: Option<OaiJob>,
    pub ended: Option<HistoryLine>,
}

/// Lines of history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryLines {
    pub lines: Vec<HistoryId>,
}
