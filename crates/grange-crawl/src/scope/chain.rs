//! The chain itself.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::Offset;
use url::Url;
use urlkey::{Suffixes, registrable_domain, scope_surt_into};

use super::calendar::Calendar;
use super::hops::{TooManyHops, TooManyRedirects, Transclusion, is_prerequisite};
use super::path::{DeepPath, LongUrl, RepeatingPath};
use super::query::QueryArguments;
use super::regexes::{PatternError, PatternOrigin, RejectRegexes};
use super::rule::{Decision, Rule};
use super::scheme::Schemes;
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
    accept: Arc<AcceptSurts>,
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
        let mut accept = AcceptSurts::new(settings.kind, &settings.accept_surts);
        if settings.seeds_as_surt_prefixes {
            insert(&mut accept, settings.kind, seeds)?;
        } else if accept.is_empty() {
            return Err(ScopeError::Nothing);
        }
        let this_year = Offset::UTC.to_datetime(now).year();
        Ok(Scope {
            kind: settings.kind,
            seeds_count: settings.seeds_as_surt_prefixes,
            redirected: settings.redirected_seeds,
            accept: Arc::new(accept),
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
        if surt.get().is_some_and(|surt| self.accept.takes(surt)) {
            return Decision::by(Rule::AcceptSurt);
        }
        Decision::by(Rule::RejectAll)
    }

    /// Whether an operator rejected this URL while the crawl ran: it may have been queued before.
    pub fn is_rejected_by_order(&self, url: &Url) -> bool {
        self.regexes.takes_by_order(url)
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

    /// This scope and what more seeds stand for.
    pub fn with_seeds<S: AsRef<str>>(&self, seeds: &[S]) -> Result<Scope, ScopeError> {
        let mut scope = self.clone();
        if self.seeds_count {
            insert(Arc::make_mut(&mut scope.accept), self.kind, seeds)?;
        }
        Ok(scope)
    }

    /// This scope without what another regex matches.
    pub fn with_reject_regex(&self, pattern: &str) -> Result<Scope, ScopeError> {
        let regexes = Arc::new(self.regexes.and(pattern)?);
        Ok(Scope { regexes, ..self.clone() })
    }
}

fn insert<S: AsRef<str>>(accept: &mut AcceptSurts, kind: ScopeKind, seeds: &[S]) -> Result<(), ScopeError> {
    for seed in seeds {
        let seed = seed.as_ref();
        if !accept.insert(kind, seed) {
            return Err(ScopeError::Seed(seed.chars().take(200).collect()));
        }
    }
    Ok(())
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
