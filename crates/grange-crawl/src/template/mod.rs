//! Templates: what a curator chooses. A TOML file whose tables are the settings of the crawler's parts; whatever it
//! does not say is the part's default.
//!
//! A bad template is refused when it is uploaded, with every fault at once, each with its line, its column, its key
//! and what would do. Texts may hold placeholders (`{operator}`), which are filled for each job.

mod network;
mod placeholder;
mod problem;
mod read;
mod shipped;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use network::NetworkSettings;
pub use placeholder::{PLACEHOLDERS, Values};
pub use problem::{Place, Problem, TemplateError};
pub use shipped::shipped;

use crate::record::oracle::DedupRules;
use crate::record::{Dedup, Write};
use crate::{engine, extract, fetch, frontier, robots, scope, virus};

/// A crawl profile. Each table belongs to the part of the crawler that obeys it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Template {
    /// What curators choose it by.
    pub name: String,
    /// What it is for, in a sentence or two.
    pub description: String,
    /// Who crawls.
    pub crawler: Crawler,
    /// How the engine runs.
    pub engine: engine::Settings,
    /// Whether robots.txt is heeded, and how long it counts.
    pub robots: Robots,
    /// Queues, order, pace and retries.
    pub frontier: frontier::Settings,
    /// How servers are asked.
    pub fetch: fetch::Settings,
    /// Which URLs belong to the crawl.
    pub scope: scope::Settings,
    /// Which links are looked for.
    pub extract: extract::Settings,
    /// When a capture is written as a revisit of an earlier one.
    pub dedup: Dedup,
    /// How captures are written down.
    pub write: Write,
    /// The scan before writing.
    pub virus: virus::Settings,
}

/// Whether robots.txt is heeded, and how long it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Robots {
    /// The name by which robots.txt files speak to this crawler; the user agent should hold it too.
    pub product_token: String,
    /// `obey`, `ignore` (legal deposit; what was forbidden is noted in the log) or `obey-except-embeds`.
    pub policy: robots::Policy,
    /// How long answers count, and what follows when there is none.
    pub cache: robots::Settings,
}

impl Default for Robots {
    fn default() -> Robots {
        Robots {
            product_token: "grange".to_owned(),
            policy: robots::Policy::default(),
            cache: robots::Settings::default(),
        }
    }
}

/// Who crawls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crawler {
    /// The crawler of this program.
    #[default]
    Native,
}

/// Tables in which braces mean something else: quantifiers of expressions, and the names of files, which are filled
/// when a file is begun.
const OWN_BRACES: &[&str] = &["scope", "write.name", "dedup.skip_types"];

/// Reads a template, or says everything that is wrong with it.
pub fn parse(text: &str) -> Result<Template, TemplateError> {
    let (template, places) = read::read::<Template>(text)?;
    let faults = template.faults();
    if faults.is_empty() {
        return Ok(template);
    }
    let problems = faults.into_iter().map(|(key, reason)| {
        let place = places.of(&key);
        Problem { place, key, reason, nearest: None }
    });
    Err(TemplateError(problems.collect()))
}

impl Template {
    /// What no type can refuse: key and reason of everything that cannot be used.
    fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        if self.name.is_empty()
            || !self.name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        {
            let reason = "a template needs a name of letters, digits, dashes, dots and underscores";
            faults.push(("name".to_owned(), reason.to_owned()));
        }
        faults.extend(self.scope.faults().into_iter().map(|(key, reason)| (format!("scope.{key}"), reason)));
        // Who crawls is often known only when a job is made.
        if let Err(error) = self.fetch.check()
            && error.field != "contact_url"
        {
            faults.push((format!("fetch.{}", error.field), error.why));
        }
        if let Some(reason) = self.write.problem() {
            faults.push(("write".to_owned(), reason));
        }
        if let Err(error) = DedupRules::new(&self.dedup) {
            faults.push(("dedup.skip_types".to_owned(), error.to_string()));
        }
        if let Err(error) = virus::Scanner::new(&self.virus) {
            faults.push(("virus.clamd".to_owned(), error.to_string()));
        }
        faults
    }

    /// This template with its placeholders filled for one job.
    pub fn fill(&self, values: &Values) -> Result<Template, TemplateError> {
        let refuse = |key: String, reason: String| {
            TemplateError(vec![Problem { place: None, key, reason, nearest: None }])
        };
        let mut tree =
            serde_json::to_value(self).map_err(|error| refuse(String::new(), error.to_string()))?;
        placeholder::fill(&mut tree, values, OWN_BRACES);
        let filled: Template = serde_path_to_error::deserialize(tree)
            .map_err(|error| refuse(error.path().to_string(), error.into_inner().to_string()))?;
        let faults = filled.faults();
        if let Some((key, reason)) = faults.into_iter().next() {
            return Err(refuse(key, reason));
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests;
