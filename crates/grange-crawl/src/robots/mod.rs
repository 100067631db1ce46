//! robots.txt, by RFC 9309: what it says to us, and what follows from getting it or not.
//!
//! * [`Robots`] is one file as read for one crawler.
//! * [`HostRobots`] is what is known of one host's file over time: when to ask, and what counts meanwhile.
//! * [`Policy`] is the curator's choice whether to heed it.
//!
//! All of it are pure functions; who asks the server is the engine.

mod answer;
mod lines;
mod pattern;
mod policy;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, Extent, HostRobots, Means, Settings, Standing, answer, meaning};
pub use lines::sitemaps_in;
pub use policy::{Decision, Policy};

use lines::{Field, fields};
use pattern::{matches, normal_path, normal_pattern};

/// Only so much of a file is read. The standard asks for 500 KiB at least; a line that is cut there is dropped.
pub const READ_BYTES_MAX: usize = 500 * 1024;

/// What a robots.txt says to one crawler. Stored as it is; no text needs to be kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Robots {
    rules: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crawl_delay_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sitemaps: Vec<String>,
}

/// One line of `Allow` or `Disallow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Where it stands in the file, from 1.
    pub line: u32,
    pub allow: bool,
    /// In normal form: percent-encoded as far as it must be, with `*` and a `$` at the end as the only signs.
    pub pattern: String,
}

/// Whether a path may be fetched, and by which rule; without one everything may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    pub allowed: bool,
    pub rule: Option<&'a Rule>,
}

impl Robots {
    /// Nothing is forbidden.
    pub fn allow_all() -> Robots {
        Robots::default()
    }

    /// What `text` says to the crawler whose user agent begins with `product_token`. Whatever the text is, it says
    /// something; what is not understood is skipped.
    pub fn parse(text: &[u8], product_token: &str) -> Robots {
        let ours = token(product_token);
        let (mut named, mut anyone) = (Group::default(), Group::default());
        let mut sitemaps = Vec::new();
        let (mut for_us, mut for_anyone) = (false, false);
        // Names in a row share one group; the first rule behind them ends the row.
        let mut naming = false;
        fields(text, |line, field, value| match field {
            Field::UserAgent => {
                if !naming {
                    (for_us, for_anyone) = (false, false);
                }
                naming = true;
                if is_anyone(value) {
                    for_anyone = true;
                } else if !ours.is_empty() && token(value).eq_ignore_ascii_case(ours) {
                    for_us = true;
                }
                named.present |= for_us;
            }
            Field::Allow | Field::Disallow => {
                naming = false;
                if value.is_empty() || !(for_us || for_anyone) {
                    return;
                }
                let rule = Rule { line, allow: field == Field::Allow, pattern: normal_pattern(value) };
                if for_anyone {
                    anyone.rules.push(rule.clone());
                }
                if for_us {
                    named.rules.push(rule);
                }
            }
            Field::CrawlDelay => {
                let delay = value.parse::<f64>().ok().filter(|delay| delay.is_finite() && *delay >= 0.0);
                if for_us {
                    named.crawl_delay_s = named.crawl_delay_s.or(delay);
                }
                if for_anyone {
                    anyone.crawl_delay_s = anyone.crawl_delay_s.or(delay);
                }
            }
            Field::Sitemap => sitemaps.push(value.to_owned()),
        });
        // Whoever is named is not anyone any more, even if nothing is said to them.
        let mut group = if named.present { named } else { anyone };
        drop_repeated(&mut group.rules);
        Robots { rules: group.rules, crawl_delay_s: group.crawl_delay_s, sitemaps }
    }

    /// The memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        let rules = self.rules.iter().map(|rule| size_of::<Rule>() + rule.pattern.capacity());
        let sitemaps = self.sitemaps.iter().map(|url| size_of::<String>() + url.capacity());
        size_of::<Robots>() + rules.chain(sitemaps).sum::<usize>()
    }

    /// Whether `path_and_query`, which begins with a slash, may be fetched: the longest rule that matches decides,
    /// and of two as long the one that allows.
    pub fn allows(&self, path_and_query: &str) -> Verdict<'_> {
        let path = normal_path(path_and_query);
        // The file that forbids cannot itself be forbidden.
        if path == "/robots.txt" {
            return Verdict { allowed: true, rule: None };
        }
        let rule = self
            .rules
            .iter()
            .filter(|rule| matches(&rule.pattern, &path))
            .reduce(|best, rule| if rank(rule) > rank(best) { rule } else { best });
        Verdict { allowed: rule.is_none_or(|rule| rule.allow), rule }
    }

    /// The pause the file asks for between requests. As a number it can be anything: the pace has a cap of its own.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay_s.and_then(|delay| Duration::try_from_secs_f64(delay).ok())
    }

    /// The sitemaps the file names, whomever it speaks to.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// The rules that are for us, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// The first of equal rules decides as all of them do. A file may repeat one line fifty thousand times.
fn drop_repeated(rules: &mut Vec<Rule>) {
    let mut seen = HashSet::with_capacity(rules.len());
    let is_first: Vec<bool> =
        rules.iter().map(|rule| seen.insert((rule.allow, rule.pattern.as_str()))).collect();
    let mut is_first = is_first.into_iter();
    rules.retain(|_| is_first.next().unwrap_or(true));
    rules.shrink_to_fit();
}

#[derive(Default)]
struct Group {
    present: bool,
    rules: Vec<Rule>,
    crawl_delay_s: Option<f64>,
}

fn rank(rule: &Rule) -> (usize, bool) {
    (rule.pattern.len(), rule.allow)
}

/// The name by which a crawler is spoken to: letters, `_` and `-` at the beginning.
fn token(agent: &str) -> &str {
    let end = agent.find(|c: char| !c.is_ascii_alphabetic() && !matches!(c, '_' | '-'));
    &agent[..end.unwrap_or(agent.len())]
}

/// `*`, alone or with something behind a blank.
fn is_anyone(agent: &str) -> bool {
    agent.strip_prefix('*').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}
