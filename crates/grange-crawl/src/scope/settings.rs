//! The `[scope]` part of a template, and the traps a job brings along.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::ScopeError;
use super::regexes::check_pattern;

/// Which URLs are ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How much a seed stands for.
    pub kind: ScopeKind,

    /// Whether seeds put anything into scope at all. Without it only `accept_surts` do.
    pub seeds_as_surt_prefixes: bool,

    /// Further SURT prefixes in scope: `http://(com,example,`, `com,example,` or `+http://example.com/dir/`.
    pub accept_surts: Vec<String>,

    /// Whether what a seed redirects to counts as a seed.
    pub redirected_seeds: RedirectedSeeds,

    /// The most hops from a seed, of every kind. 0 is the seed's page alone, with its parts.
    pub max_hops: u32,

    /// The most redirects in a row, those by meta refresh included; 0 is no limit. 20 is what browsers follow. Of a
    /// robots.txt no more than 5 are followed, as RFC 9309 asks for.
    pub max_redirects: u32,

    /// How many hops from an accepted page its parts may be, redirects not counted. 2: the image of a style sheet.
    pub max_trans_hops: u32,

    /// How many of them may be guesses from scripts.
    pub max_speculative_hops: u32,

    /// SURT prefixes never in scope, written as in `accept_surts`.
    pub reject_surts: Vec<String>,

    /// Regular expressions never in scope. Each must match the whole URL. No look-around and no back-references, so
    /// that no URL can make them slow.
    pub reject_regexes: Vec<String>,

    /// How often a part of the path may stand one after the other (`/a/a/`, `/a/b/a/b/`); 0 switches the rule off.
    pub max_path_repetitions: u32,

    /// The most slashes in a path; 0 is no limit.
    pub max_path_depth: u32,

    /// The longest URL in bytes; 0 is no limit. 2083 is what browsers have long taken.
    pub max_url_length: u32,

    /// The most arguments of a query; 0 is no limit. Forms made by people stay below 30; filters that are clicked
    /// together by a crawler do not.
    pub max_query_arguments: u32,

    /// How often the same argument with the same value may stand in a query; 0 switches the rule off.
    pub max_query_repetitions: u32,

    /// Leave calendars alone that show days further than this many years ahead; 0 switches it off.
    pub calendar_years_ahead: u32,

    /// Leave calendars alone that show days further than this many years back; 0 switches it off.
    pub calendar_years_back: u32,

    /// Take no more links from a page when the same bytes came under this many other URLs of the same part of the
    /// site before: error pages that say 200, empty months, session ids. 0 switches it off.
    pub repeated_content: u32,

    /// Leave URLs alone that differ from others only in opaque parts (session ids, hashes, long numbers) when this many of
    /// those were the same page, which led to yet others; 0 switches it off. Pages count as the same if they differ in
    /// nothing but such parts. A few more are fetched; if one is new, nothing is left alone any more. 50 is more than
    /// chance, and little beside the pages of a site.
    pub max_session_repetitions: u32,

    /// The schemes that are fetched.
    pub schemes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            kind: ScopeKind::Domain,
            seeds_as_surt_prefixes: true,
            accept_surts: Vec::new(),
            redirected_seeds: RedirectedSeeds::SameDomain,
            max_hops: 20,
            max_redirects: 20,
            max_trans_hops: 2,
            max_speculative_hops: 1,
            reject_surts: Vec::new(),
            reject_regexes: Vec::new(),
            max_path_repetitions: 2,
            max_path_depth: 20,
            max_url_length: 2083,
            max_query_arguments: 30,
            max_query_repetitions: 3,
            calendar_years_ahead: 2,
            // The web is not older by much.
            calendar_years_back: 40,
            repeated_content: 5,
            max_session_repetitions: 50,
            schemes: ["http", "https", "dns"].map(str::to_owned).to_vec(),
        }
    }
}

impl Settings {
    /// Key and reason of everything that cannot be used, so that a template is refused before any crawl.
    pub fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        for (index, pattern) in self.reject_regexes.iter().enumerate() {
            if let Err(error) = check_pattern(pattern) {
                faults.push((format!("reject_regexes[{index}]"), error.to_string()));
            }
        }
        if self.schemes.is_empty() {
            let reason = "without any scheme nothing is fetched; write [\"http\", \"https\", \"dns\"]";
            faults.push(("schemes".to_owned(), reason.to_owned()));
        }
        if !self.seeds_as_surt_prefixes && self.accept_surts.is_empty() && self.kind != ScopeKind::Any {
            faults.push(("seeds_as_surt_prefixes".to_owned(), ScopeError::Nothing.to_string()));
        }
        faults
    }
}

/// How much a seed stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// Its registrable domain, with every host of it.
    #[default]
    Domain,
    /// Its host.
    Host,
    /// Its folder: everything below the last slash of its path.
    Path,
    /// Itself.
    Page,
    /// What Heritrix makes of it: its folder, or with no path at all its host and every host below it.
    Seed,
    /// Everything. Only the other rules and limits hold the crawl back.
    Any,
}

/// Whether what a seed redirects to counts as a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedirectedSeeds {
    Never,
    /// Inside its registrable domain: `example.com` that became `www.example.com`. A lapsed domain that now leads
    /// to its seller does not bring the seller's whole site in.
    #[default]
    SameDomain,
    /// Anywhere, as Heritrix does.
    Always,
}

/// The trap expressions of a job, beside those of its template. Each must match the whole URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Traps {
    /// Of every job.
    pub global: Vec<String>,
    /// Of this harvest.
    pub harvest: Vec<String>,
    /// By registrable domain. They hold for URLs of the domain and for what its seeds led to, so that it makes no
    /// difference which other domains are in the same job.
    pub domains: BTreeMap<String, Vec<String>>,
}
