//! The acts of curators: domains, seeds, schedules, templates, harvests, jobs, channels, traps.

mod channels;
mod domains;
mod harvests;
mod jobs;
mod schedules;
mod seeds;
mod templates;
mod traps;

pub use domains::{ImportReport, NewLogin};
pub use traps::{CrawlLogs, ReadCrawlLog};

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use grange_base::Vault;
use grange_bus::Announcer;
use grange_model::harvest::{BadLine, Name, Schedule, TemplateCheck, template};

use crate::{App, Error};

/// What the settings and the node bring to the acts of harvests.
#[derive(Clone, Debug)]
pub struct Harvesting {
    pub settings: grange_schedule::Settings,
    /// The file with the key that logins are sealed with; made when the first login is kept.
    pub vault: Option<PathBuf>,
    /// Refuses templates that the crawl engine cannot read.
    pub template_check: TemplateCheck,
    /// The templates that come with the crawl engine: name and text.
    pub templates: Vec<(Name, String)>,
    /// Wakes the scheduler.
    pub announcer: Option<Announcer>,
    /// Reads the crawl logs of stored jobs.
    pub crawl_logs: Option<CrawlLogs>,
}

impl Default for Harvesting {
    fn default() -> Self {
        Self {
            settings: grange_schedule::Settings::default(),
            vault: None,
            template_check: template::plain_check,
            templates: Vec::new(),
            announcer: None,
            crawl_logs: None,
        }
    }
}

impl App {
    /// Adds the templates and schedules that come with Grange, where they are missing.
    pub async fn ship(&self) -> Result<(), Error> {
        self.db.templates().ship(self.harvesting.templates.clone()).await?;
        self.db.schedules().ship(Schedule::shipped().to_vec()).await?;
        Ok(())
    }

    fn vault(&self) -> Result<Vault, Error> {
        let path = self.harvesting.vault.as_ref().ok_or(Error::NoVault)?;
        Ok(Vault::open(path)?)
    }

    /// A harvest changed: the scheduler need not wait for its minute.
    async fn wake_scheduler(&self, about: &str) {
        if let Some(announcer) = &self.harvesting.announcer {
            announcer.hint(&announcer.channels().the_sched(), "harvest-changed", about).await;
        }
    }
}

/// Reads a name or a number that a person wrote.
fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Invalid(error.to_string()))
}

/// How many bad lines are told in one sentence.
const LINES_TOLD_MAX: usize = 5;

/// One sentence about lines that cannot be used.
fn bad_lines(what: &str, lines: Vec<BadLine>) -> Error {
    let told: Vec<_> = lines
        .iter()
        .take(LINES_TOLD_MAX)
        .map(|bad| format!("line {} \"{}\": {}", bad.line, bad.text.escape_debug(), bad.reason))
        .collect();
    let more = lines.len().saturating_sub(LINES_TOLD_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Error::Invalid(format!("{what} cannot be used: {}{more}", told.join("; ")))
}
