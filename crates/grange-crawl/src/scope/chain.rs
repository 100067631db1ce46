//! The chain itself.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::Offset;
use url::Url;
use urlkey::{Suffixes, SurtPrefix, registrable_domain, scope_surt, scope_surt_into};

use super::calendar::Calendar;
use super::hops::{TooManyHops, TooManyRedirects, Transclusion, is_prerequisite};
use super::path::{DeepPath, LongUrl, RepeatingPath};
use super::query::QueryArguments;
use super::regexes::{PatternError, PatternOrigin, RejectRegexes};
use super::rule::{Decision, Rule};
use super::scheme::Schemes;
use super::seed_layers::SeedLayers;
use super::settings::{RedirectedSeeds, ScopeKind, Settings, Traps};
use super::surts::{AcceptSurts, RejectSurts};
use crate::candidate::Candidate;

/// What stands in the way of a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("the seed {0:?} is not a URL with a host; write http://example.com/ or https://example.com/")]
    Seed(String),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error("nothing is in scope: seeds_as_surt_prefixes is off and accept_surts is empty")]
    Nothing,
}

/// Memory that is used again from one decision to the next.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    surt: String,
}

/// Which URLs are ours. It never changes; [`super::LiveScope`] exchanges one for another. A copy costs little.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    seeds_count: bool,
    redirected: RedirectedSeeds,
    seeds: SeedLayers,
    listed: Arc<[String]>,
    hops: TooManyHops,
    transclusion: Transclusion,
    reject: Arc<RejectSurts>,
    regexes: Arc<RejectRegexes>,
    repeating: RepeatingPath,
    deep: DeepPath,
    long: LongUrl,
    query: QueryArguments,
    calendar: Calendar,
    schemes: Arc<Schemes>,
    redirects: TooManyRedirects,
}

impl Scope {
    /// The scope of a job that starts at `now` from these seeds.
    pub fn new<S: AsRef<str>>(
        settings: &Settings,
        seeds: &[S],
        traps: &Traps,
        now: Timestamp,
    ) -> Result<Scope, ScopeError> {
        let listed = AcceptSurts::new(settings.kind, &settings.accept_surts);
        if !settings.seeds_as_surt_prefixes && listed.is_empty() {
            return Err(ScopeError::Nothing);
        }
        let count_as = settings.seeds_as_surt_prefixes.then_some(settings.kind);
        let this_year = Offset::UTC.to_datetime(now).year();
        Ok(Scope {
            kind: settings.kind,
            seeds_count: settings.seeds_as_surt_prefixes,
            redirected: settings.redirected_seeds,
            seeds: SeedLayers::new(listed, seeds, count_as)?,
            listed: settings.accept_surts.as_slice().into(),
            hops: TooManyHops(settings.max_hops),
            transclusion: Transclusion {
                max_trans_hops: settings.max_trans_hops,
                max_speculative_hops: settings.max_speculative_hops,
            },
            reject: Arc::new(RejectSurts::new(&settings.reject_surts)),
            regexes: Arc::new(RejectRegexes::new(&settings.reject_regexes, traps)?),
            repeating: RepeatingPath(settings.max_path_repetitions),
            deep: DeepPath(settings.max_path_depth),
            long: LongUrl(settings.max_url_length),
            query: QueryArguments {
                max_arguments: settings.max_query_arguments,
                max_repetitions: settings.max_query_repetitions,
            },
            calendar: Calendar::new(this_year, settings.calendar_years_ahead, settings.calendar_years_back),
            schemes: Arc::new(Schemes::new(&settings.schemes)),
            redirects: TooManyRedirects(settings.max_redirects),
        })
    }

    /// Whether `candidate` is ours, and which rule says so.
    pub fn decide(&self, candidate: &Candidate, scratch: &mut Scratch) -> Decision {
        let Candidate { url, hops, source, .. } = candidate;
        // From the last rule to the first: the first that does not pass is the last that would have spoken.
        if self.redirects.takes(hops) {
            return Decision::by(Rule::TooManyRedirects);
        }
        if self.schemes.lacks(url.scheme()) {
            return Decision::by(Rule::Scheme);
        }
        if is_prerequisite(hops) {
            return Decision::by(Rule::Prerequisite);
        }
        if self.calendar.takes(url) {
            return Decision::by(Rule::Calendar);
        }
        if self.query.takes(url) {
            return Decision::by(Rule::QueryArguments);
        }
        if self.long.takes(url) {
            return Decision::by(Rule::LongUrl);
        }
        if self.deep.takes(url) {
            return Decision::by(Rule::DeepPath);
        }
        if self.repeating.takes(url) {
            return Decision::by(Rule::RepeatingPath);
        }
        if let Some(pattern) = self.regexes.takes(url, source.as_deref()) {
            return Decision { pattern: Some(pattern), ..Decision::by(Rule::RejectRegex) };
        }
        let mut surt = LazySurt { url, text: &mut scratch.surt, made: false };
        if !self.reject.is_empty() && surt.get().is_some_and(|surt| self.reject.takes(surt)) {
            return Decision::by(Rule::RejectSurt);
        }
        if self.transclusion.takes(hops) {
            return Decision::by(Rule::Transclusion);
        }
        if self.hops.takes(hops) {
            return Decision::by(Rule::TooManyHops);
        }
        if surt.get().is_some_and(|surt| self.seeds.takes(surt)) {
            return Decision::by(Rule::AcceptSurt);
        }
        Decision::by(Rule::RejectAll)
    }

    /// Whether an operator rejected this URL while the crawl ran: it may have been queued before.
    pub fn is_rejected_by_order(&self, url: &Url) -> bool {
        self.regexes.takes_by_order(url)
    }

    /// Whether a host is one that the crawl is for: it is of the domain of a seed, or a listed SURT takes some of its
    /// URLs. Other hosts are asked for parts of pages only.
    pub fn is_own_host(&self, host: &str) -> bool {
        let domain = registrable_domain(host, Suffixes::All).unwrap_or(host);
        self.kind == ScopeKind::Any
            || self.seeds.has_domain(domain)
            || self.listed.iter().any(|line| takes_some_of(line, host))
    }

    /// The text of a reject regex, and where it was given.
    pub fn pattern(&self, index: u32) -> Option<(&str, &PatternOrigin)> {
        self.regexes.pattern(index).map(|pattern| (&*pattern.text, &pattern.origin))
    }

    /// Whether `to`, to which the seed `from` redirects, is to count as a seed itself.
    pub fn takes_redirected_seed(&self, from: &Url, to: &Url) -> bool {
        fn domain(url: &Url) -> Option<&str> {
            let host = url.host_str()?;
            Some(registrable_domain(host, Suffixes::All).unwrap_or(host))
        }
        match self.redirected {
            RedirectedSeeds::Never => false,
            RedirectedSeeds::SameDomain => domain(from).is_some() && domain(from) == domain(to),
            RedirectedSeeds::Always => to.has_host(),
        }
    }

    /// This scope and what more seeds stand for. The cost does not depend on the seeds that are there.
    pub fn with_seeds<S: AsRef<str>>(&self, seeds: &[S]) -> Result<Scope, ScopeError> {
        let layers = self.seeds.with(seeds, self.seeds_count.then_some(self.kind))?;
        Ok(Scope { seeds: layers, ..self.clone() })
    }

    /// This scope without what another regex matches.
    pub fn with_reject_regex(&self, pattern: &str) -> Result<Scope, ScopeError> {
        let regexes = Arc::new(self.regexes.and(pattern)?);
        Ok(Scope { regexes, ..self.clone() })
    }
}

/// Whether a listed SURT takes URLs of the host: the host lies under it, or it under the host.
fn takes_some_of(line: &str, host: &str) -> bool {
    let (Some(prefix), Some(surt)) = (SurtPrefix::parse_line(line), scope_surt(&format!("http://{host}/")))
    else {
        return false;
    };
    let prefix = prefix.as_str();
    // Without what closes it, so that a port may follow.
    let of_host = surt.trim_end_matches(['/', ')']);
    surt.starts_with(prefix) || prefix.starts_with(of_host)
}

/// The SURT, made when the first rule asks for it.
struct LazySurt<'a> {
    url: &'a Url,
    text: &'a mut String,
    made: bool,
}

impl LazySurt<'_> {
    fn get(&mut self) -> Option<&str> {
        if !self.made {
            self.text.clear();
            scope_surt_into(self.url, self.text);
            self.made = true;
        }
        // Without a host there is none.
        (!self.text.is_empty()).then_some(self.text.as_str())
    }
}
