//! What is asked of a crawl: where it starts, by which template, and how far it may go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fetch::login::FormLogin;
use crate::scope::Traps;
use crate::template::Template;

/// One crawl.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The job's number or name; part of manifests and reports.
    pub name: String,
    /// Where the crawl starts.
    pub seeds: Vec<String>,
    pub template: Template,
    #[serde(default)]
    pub budgets: Budgets,
    #[serde(default)]
    pub traps: Traps,
    /// Log-ins by domain.
    #[serde(default)]
    pub credentials: Vec<Credential>,
    /// Further lines of the warcinfo records, such as `operator` and `description`.
    #[serde(default)]
    pub info: Vec<(String, String)>,
}

/// How to log in somewhere. Secrets: printed as little as possible, and never logged.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// The registrable domain it is for; never sent elsewhere.
    pub domain: String,
    // Unknown fields are refused by the kind: serde cannot refuse them here beside what is flattened.
    #[serde(flatten)]
    pub kind: CredentialKind,
}

/// The ways to log in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CredentialKind {
    /// HTTP basic or digest, whichever the server asks for, in this realm or any.
    Http {
        /// Scheme, host and port that it is for, such as `https://example.org`. None: every host of the domain.
        #[serde(default)]
        origin: Option<String>,
        #[serde(default)]
        realm: Option<String>,
        user: String,
        password: String,
    },
    /// A form, sent once before the first page of the domain.
    Form(FormLogin),
}

/// Without user, password and fields.
impl std::fmt::Debug for CredentialKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CredentialKind::Http { .. } => "Http",
            CredentialKind::Form(_) => "Form",
        })
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("domain", &self.domain).finish_non_exhaustive()
    }
}

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

/// Limits to change; those that are absent stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_objects: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<i64>,
}

impl LimitsChange {
    pub fn applied_to(self, limits: Limits) -> Limits {
        Limits {
            max_objects: self.max_objects.unwrap_or(limits.max_objects),
            max_bytes: self.max_bytes.unwrap_or(limits.max_bytes),
            max_seconds: self.max_seconds.unwrap_or(limits.max_seconds),
        }
    }
}

impl From<Limits> for LimitsChange {
    /// All of them.
    fn from(limits: Limits) -> LimitsChange {
        LimitsChange {
            max_objects: Some(limits.max_objects),
            max_bytes: Some(limits.max_bytes),
            max_seconds: Some(limits.max_seconds),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_comes_back_from_the_folder_of_its_job() {
        let http = CredentialKind::Http {
            origin: None,
            realm: None,
            user: "u".to_owned(),
            password: "p".to_owned(),
        };
        let login = Credential { domain: "a.dk".to_owned(), kind: http };
        let text = serde_json::to_string(&login).unwrap();
        assert_eq!(serde_json::from_str::<Credential>(&text).unwrap(), login, "{text}");
        for (text, known) in [
            (r#"{"domain": "a.dk", "kind": "http", "user": "u", "password": "p"}"#, true),
            (r#"{"domain": "a.dk", "kind": "http", "user": "u", "password": "p", "relm": "x"}"#, false),
            (r#"{"domain": "a.dk", "kind": "htp", "user": "u", "password": "p"}"#, false),
            (r#"{"kind": "http", "user": "u", "password": "p"}"#, false),
        ] {
            assert_eq!(serde_json::from_str::<Credential>(text).is_ok(), known, "{text}");
        }
    }
}
