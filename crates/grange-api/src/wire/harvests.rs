//! Domains, seeds, schedules, templates, harvests, jobs, channels and traps: what is asked. Answers are the nouns of
//! `grange-model` as they are.

use std::collections::BTreeMap;

use grange_model::harvest::domain::default_template;
use grange_model::harvest::{
    ChannelKind, ChannelName, HarvestKind, JobId, Limits, LoginForm, Name, Schedule,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Lines of names of domains to be made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NewDomains {
    pub lines: Vec<String>,
    /// The number of the first line in the file it comes from, for reports.
    #[serde(default = "one")]
    pub first_line: u64,
}

fn one() -> u64 {
    1
}

/// What to change of a domain; what is absent stays.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DomainEdit {
    pub comments: Option<String>,
    /// An expression per line.
    pub traps: Option<String>,
    /// The same again renews it; empty ends it.
    pub alias_of: Option<String>,
    pub default_configuration: Option<Name>,
    pub fields: Option<BTreeMap<String, String>>,
    pub edition: Option<i64>,
}

/// What to change of a configuration; what is absent stays.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigurationEdit {
    pub rename: Option<Name>,
    pub template: Option<Name>,
    pub limits: Option<Limits>,
    pub seed_lists: Option<Vec<Name>>,
    pub credentials: Option<Vec<Name>>,
    pub comments: Option<String>,
    pub edition: Option<i64>,
}

/// A login to be kept. The secret goes in and never comes out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginEdit {
    pub url: String,
    #[serde(default)]
    pub realm: String,
    pub username: String,
    /// How its form is filled in, where the site has one.
    #[serde(default)]
    pub form: Option<LoginForm>,
    pub secret: String,
    #[serde(default)]
    pub comments: String,
}

impl std::fmt::Debug for LoginEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoginEdit({})", self.url)
    }
}

/// A seed list as it is to be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedsEdit {
    pub seeds: String,
    #[serde(default)]
    pub comments: String,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// A schedule with its edition.
#[derive(Debug, Serialize, Deserialize)]
pub struct ScheduleShown {
    #[serde(flatten)]
    pub schedule: Schedule,
    pub edition: i64,
}

/// A schedule as it is to be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEdit {
    pub schedule: Schedule,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// A template's new text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateEdit {
    pub text: String,
    #[serde(default)]
    pub comments: String,
}

/// Whether something is in service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Active {
    pub active: bool,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// A harvest to be made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewHarvest {
    pub name: Name,
    pub kind: HarvestKind,
    #[serde(default)]
    pub comments: String,
    #[serde(default)]
    pub audience: String,
    #[serde(default)]
    pub schedule: Option<Name>,
    #[serde(default)]
    pub channel: Option<ChannelName>,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub continues: Option<Name>,
    #[serde(default)]
    pub traps: Vec<String>,
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// What to change of a harvest; what is absent stays.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HarvestEdit {
    pub comments: Option<String>,
    pub audience: Option<String>,
    pub schedule: Option<Name>,
    pub channel: Option<ChannelName>,
    pub limits: Option<Limits>,
    pub continues: Option<Name>,
    pub traps: Option<Vec<String>>,
    pub fields: Option<BTreeMap<String, String>>,
    pub next_at: Option<Timestamp>,
    pub edition: Option<i64>,
}

/// Configurations to add or take out, as `domain` or `domain/configuration`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    pub domains: Vec<String>,
    /// Make domains that are not there.
    #[serde(default)]
    pub create: bool,
}

/// Seeds of an event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSeeds {
    pub seeds: String,
    #[serde(default = "default_template")]
    pub template: Name,
    #[serde(default)]
    pub limits: Limits,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobIds {
    pub jobs: Vec<JobId>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewChannel {
    pub name: ChannelName,
    pub kind: ChannelKind,
    #[serde(default)]
    pub comments: String,
}

/// A trap list as it is to be: an expression per line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrapsEdit {
    pub expressions: String,
    #[serde(default)]
    pub description: String,
    pub active: bool,
    #[serde(default)]
    pub edition: Option<i64>,
}

/// Crawl logs to run traps over: these lines, or else those of stored jobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrapTest {
    pub expressions: String,
    #[serde(default)]
    pub crawl_log: Option<String>,
    /// The newest that are done, if none is named.
    #[serde(default)]
    pub jobs: Vec<JobId>,
}
