//! From arguments to a job.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use clap::ValueEnum;
use grange_base::{Period, Size};
use grange_crawl::engine::StartError;
use grange_crawl::job::{Budgets, Job};
use grange_crawl::politeness::Pace;
use grange_crawl::robots::Policy;
use grange_crawl::scope::Traps;
use grange_crawl::template::{self, Template, Values};
use jiff::Timestamp;

use super::CrawlArgs;
use crate::exit::UsageError;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum RobotsArg {
    /// Fetch nothing that is forbidden
    Obey,
    /// Fetch it, and note in the log that it was forbidden
    Ignore,
    /// Obey, but complete pages with images, styles and scripts that are forbidden
    ObeyExceptEmbeds,
}

/// A number of documents; -1 for no limit.
pub(super) fn objects(text: &str) -> Result<i64, String> {
    let number = text.parse::<i64>().map_err(|_| format!("{text:?} is not a number"))?;
    count(number)
}

fn count(number: i64) -> Result<i64, String> {
    if number < -1 {
        return Err(format!("{number} is not a limit: expected 0 or more, or -1 for none"));
    }
    Ok(number)
}

/// A number of bytes, with a unit or without.
pub(super) fn bytes(text: &str) -> Result<i64, String> {
    if let Ok(number) = text.parse::<i64>() {
        return count(number);
    }
    let size = Size::from_str(text).map_err(|error| error.to_string())?;
    Ok(i64::try_from(size.0).unwrap_or(i64::MAX))
}

/// A length of time, in seconds; -1 for none.
pub(super) fn seconds(text: &str) -> Result<i64, String> {
    if text == "-1" {
        return Ok(-1);
    }
    let period = Period::from_str(text).map_err(|error| error.to_string())?;
    Ok(i64::try_from(period.0.as_secs()).unwrap_or(i64::MAX))
}

/// What the person can put right is wrong use; the rest is a failure.
pub(super) fn refuse(error: StartError) -> anyhow::Error {
    match error {
        StartError::NoSeeds
        | StartError::Seed(_)
        | StartError::Scope(_)
        | StartError::Template(_)
        | StartError::Scanner(_)
        | StartError::Folder(grange_crawl::engine::FolderError::NoCrawl(_)) => {
            UsageError(error.to_string()).into()
        }
        other => other.into(),
    }
}

impl CrawlArgs {
    pub(super) fn job(&self) -> anyhow::Result<Job> {
        let name = Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
        let mut seeds = self.urls.clone();
        if let Some(path) = &self.seeds {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
            seeds.extend(lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned));
        }
        let seeds = seeds.into_iter().map(with_scheme).collect();
        let text = template_text(&self.template)?;
        let named =
            |error: template::TemplateError| UsageError(format!("the template {}: {error}", self.template));
        let text = set(&text, &self.template_set)?;
        let mut template = template::parse(&text).map_err(named)?;
        if self.contact.is_none() && template.fetch.user_agent.contains("{contact_url}") {
            // Nobody is to be bothered by somebody nameless: the name of who runs this, if nothing better is said.
            let agent = concat!("Mozilla/5.0 (compatible; grange/", env!("CARGO_PKG_VERSION"), "; ");
            template.fetch.user_agent = format!("{agent}{})", operator());
        }
        let values = Values {
            job_id: name.clone(),
            harvest: name.clone(),
            operator: operator(),
            contact_url: self.contact.clone().unwrap_or_default(),
            from: self.from.clone().unwrap_or_default(),
            template: template.name.clone(),
            ..Values::default()
        };
        let template = template.fill(&values).map_err(named)?;
        let mut job = Job {
            name,
            seeds,
            template,
            budgets: Budgets::default(),
            traps: Traps::default(),
            credentials: Vec::new(),
            info: vec![("operator".to_owned(), operator())],
        };
        self.apply(&mut job)?;
        Ok(job)
    }

    /// Whether anything is said that changes a crawl that was begun.
    pub(super) fn changes_limits(&self) -> bool {
        self.max_objects.is_some()
            || self.max_bytes.is_some()
            || self.max_time.is_some()
            || self.delay.is_some()
            || self.workers.is_some()
            || self.all_hosts_to.is_some()
            || !self.resolve.is_empty()
            || !self.allow_networks.is_empty()
    }

    /// Puts what the arguments say above what the template says.
    pub(super) fn apply(&self, job: &mut Job) -> anyhow::Result<()> {
        let limits = &mut job.budgets.crawl;
        limits.max_objects = self.max_objects.unwrap_or(limits.max_objects);
        limits.max_bytes = self.max_bytes.unwrap_or(limits.max_bytes);
        if let Some(time) = self.max_time {
            limits.max_seconds = i64::try_from(time.0.as_secs()).unwrap_or(i64::MAX);
        }
        let template: &mut Template = &mut job.template;
        if let Some(delay) = self.delay {
            template.frontier.pace = Pace::fixed(delay.0);
        }
        if let Some(hops) = self.max_hops {
            template.scope.max_hops = hops;
        }
        if let Some(policy) = self.robots {
            template.robots.policy = match policy {
                RobotsArg::Obey => Policy::Obey,
                RobotsArg::Ignore => Policy::Ignore,
                RobotsArg::ObeyExceptEmbeds => Policy::ObeyExceptEmbeds,
            };
        }
        if let Some(workers) = self.workers {
            template.engine.workers = workers;
        }
        if let Some(size) = self.chunk_size {
            template.write.chunk_size = size;
        }
        if let Some(contact) = &self.contact {
            template.fetch.contact_url.clone_from(contact);
        }
        if let Some(from) = &self.from {
            template.fetch.from.clone_from(from);
        }
        template.fetch.allow_networks.extend_from_slice(&self.allow_networks);
        template.fetch.resolve.extend(self.resolve.iter().cloned());
        if let Some(place) = &self.all_hosts_to {
            template.fetch.all_hosts_to.clone_from(place);
        }
        template.fetch.check().map_err(|error| UsageError(error.to_string()))?;
        Ok(())
    }
}

/// `example.org` as people type it.
pub(super) fn with_scheme(url: String) -> String {
    if url.contains("://") { url } else { format!("http://{url}") }
}

fn template_text(name: &str) -> anyhow::Result<String> {
    let shipped = template::shipped();
    if let Some((_, text)) = shipped.iter().find(|(shipped, _)| *shipped == name) {
        return Ok((*text).to_owned());
    }
    let path = Path::new(name);
    if path.exists() {
        return fs::read_to_string(path).with_context(|| format!("cannot read the template {name}"));
    }
    let names: Vec<_> = shipped.iter().map(|(name, _)| *name).collect();
    let text = format!("{name} is neither a file nor a template; there are {}", names.join(", "));
    Err(UsageError(text).into())
}

/// The template with some values exchanged.
fn set(text: &str, changes: &[String]) -> anyhow::Result<String> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    let mut table: toml::Table =
        text.parse().map_err(|error| UsageError(format!("the template: {error}")))?;
    for change in changes {
        let wrong = |why: &str| UsageError(format!("--template-set {change}: {why}"));
        let (key, value) = change.split_once('=').ok_or_else(|| wrong("write KEY=VALUE"))?;
        let value = format!("v = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut parsed| parsed.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        let mut place = &mut table;
        let mut parts: Vec<_> = key.trim().split('.').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let next = place.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            place = next.as_table_mut().ok_or_else(|| wrong("a part of the key is no table"))?;
        }
        place.insert(last.to_owned(), value);
    }
    Ok(toml::to_string(&table)?)
}

fn operator() -> String {
    let user =
        std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "operator".to_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = if host.contains('.') { host } else { format!("{host}.invalid") };
    format!("{user}@{host}")
}
