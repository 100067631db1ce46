//! Rule 6: regular expressions that match the whole URL.
//!
//! Expressions come from trap lists written for Java. What both understand means the same here; what needs
//! backtracking (look-around, back-references, possessive repetition) is refused with the reason, because one such
//! expression and one hostile URL would stop a crawl.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use url::Url;

use super::settings::Traps;
use crate::report::host_of;

/// Where an expression was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternOrigin {
    Template,
    GlobalTraps,
    HarvestTraps,
    /// It holds for URLs of this domain and for what its seeds led to.
    DomainTraps(Box<str>),
    /// Added while the crawl ran.
    Operator,
}

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the expression {pattern:?} cannot be used: {reason}")]
pub struct PatternError {
    pub pattern: String,
    pub reason: String,
}

/// One expression may compile to this many bytes: ordinary ones need a few thousand.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// All of them together. National trap lists have some thousand expressions.
const SET_BYTES_MAX: usize = 256 << 20;
/// Memory for remembered states, for each thread that decides.
const CACHE_BYTES_MAX: usize = 16 << 20;

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: Box<str>,
    pub(super) origin: PatternOrigin,
}

/// All expressions, asked at once.
#[derive(Clone, Debug)]
pub(super) struct RejectRegexes {
    patterns: Vec<Pattern>,
    /// Shared, so that a copy with other seeds costs nothing.
    set: Arc<RegexSet>,
}

impl RejectRegexes {
    pub(super) fn new(template: &[String], traps: &Traps) -> Result<RejectRegexes, PatternError> {
        let mut patterns = Vec::new();
        let mut add = |texts: &[String], origin: &PatternOrigin| {
            // Lists have empty lines and comments; both are no expressions.
            let texts = texts.iter().map(|text| text.trim());
            for text in texts.filter(|text| !text.is_empty() && !text.starts_with('#')) {
                patterns.push(Pattern { text: text.into(), origin: origin.clone() });
            }
        };
        add(template, &PatternOrigin::Template);
        add(&traps.global, &PatternOrigin::GlobalTraps);
        add(&traps.harvest, &PatternOrigin::HarvestTraps);
        for (domain, texts) in &traps.domains {
            let domain = domain.trim().trim_end_matches('.').to_ascii_lowercase();
            add(texts, &PatternOrigin::DomainTraps(domain.into()));
        }
        Self::compile(patterns)
    }

    /// These and one more.
    pub(super) fn and(&self, text: &str) -> Result<RejectRegexes, PatternError> {
        let mut patterns = self.patterns.clone();
        patterns.push(Pattern { text: text.trim().into(), origin: PatternOrigin::Operator });
        Self::compile(patterns)
    }

    fn compile(patterns: Vec<Pattern>) -> Result<RejectRegexes, PatternError> {
        let whole = patterns.iter().map(|pattern| anchored(&pattern.text)).collect::<Result<Vec<_>, _>>()?;
        let set = RegexSetBuilder::new(&whole)
            .size_limit(SET_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .build()
            .map_err(|error| PatternError {
                pattern: format!("all {} together", whole.len()),
                reason: plain(&error),
            })?;
        Ok(RejectRegexes { patterns, set: Arc::new(set) })
    }

    pub(super) fn pattern(&self, index: u32) -> Option<&Pattern> {
        self.patterns.get(index as usize)
    }

    /// The first expression that rejects this URL.
    pub(super) fn takes(&self, url: &Url, source: Option<&str>) -> Option<u32> {
        if self.patterns.is_empty() || !self.set.is_match(url.as_str().as_bytes()) {
            return None;
        }
        let matches = self.set.matches(url.as_str().as_bytes());
        let holds = |index: &usize| match &self.patterns[*index].origin {
            PatternOrigin::DomainTraps(domain) => {
                let below = |host: &str| is_below(host, domain);
                url.host_str().is_some_and(below) || source.is_some_and(|seed| below(&host_of(seed)))
            }
            _ => true,
        };
        matches.iter().find(holds).map(|index| index as u32)
    }

    /// Whether an expression added while the crawl ran rejects this URL.
    pub(super) fn takes_by_order(&self, url: &Url) -> bool {
        let is_order = |index: usize| self.patterns[index].origin == PatternOrigin::Operator;
        // They stand at the end.
        let has_orders = self.patterns.last().is_some_and(|last| last.origin == PatternOrigin::Operator);
        has_orders && self.set.matches(url.as_str().as_bytes()).iter().any(is_order)
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Says whether an expression can be used in a trap list, and if not, why.
pub fn check_pattern(pattern: &str) -> Result<(), PatternError> {
    anchored(pattern.trim()).map(|_| ())
}

/// The expression made to match whole URLs.
fn anchored(pattern: &str) -> Result<String, PatternError> {
    let refuse = |reason: String| Err(PatternError { pattern: pattern.chars().take(200).collect(), reason });
    if is_possessive(pattern) {
        return refuse(
            "possessive repetition (`*+`, `++`, `?+`) is not supported; leave the second sign out".into(),
        );
    }
    // Alone first: parentheses that do not balance might happen to close ours.
    if let Err(error @ regex::Error::Syntax(_)) = compile_one(pattern) {
        return refuse(plain(&error));
    }
    // URLs are ASCII, and so is Java's idea of \d and \w; bytes are also the faster way. An expression that names
    // other letters needs the wider idea.
    let narrow = format!(r"\A(?-u:{pattern})\z");
    if compile_one(&narrow).is_ok() {
        return Ok(narrow);
    }
    let wide = format!(r"\A(?:{pattern})\z");
    match compile_one(&wide) {
        Ok(_) => Ok(wide),
        Err(error) => refuse(plain(&error)),
    }
}

fn compile_one(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build()
}

/// A plus after a repetition: Java then never gives back, here it would mean something else.
fn is_possessive(pattern: &str) -> bool {
    let (mut escaped, mut class, mut repetition) = (false, 0_u32, false);
    for c in pattern.chars() {
        if escaped {
            (escaped, repetition) = (false, false);
            continue;
        }
        match c {
            '\\' => (escaped, repetition) = (true, false),
            '[' => (class, repetition) = (class + 1, false),
            ']' => (class, repetition) = (class.saturating_sub(1), false),
            _ if class > 0 => {}
            '+' if repetition => return true,
            '*' | '+' | '?' | '}' => repetition = true,
            _ => repetition = false,
        }
    }
    false
}

/// The reason alone, without the drawing of where it is.
fn plain(error: &regex::Error) -> String {
    let text = match error {
        regex::Error::CompiledTooBig(limit) => {
            return format!("it needs more than {limit} bytes of memory; use smaller repetition counts");
        }
        other => other.to_string(),
    };
    text.rsplit_once("error: ").map_or(text.as_str(), |(_, reason)| reason).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn one(pattern: &str) -> RejectRegexes {
        RejectRegexes::new(&[pattern.to_owned()], &Traps::default()).unwrap()
    }

    #[test]
    fn the_whole_url_must_match() {
        for (pattern, url, takes) in [
            ("calendar", "http://e.dk/calendar", false),
            (".*calendar.*", "http://e.dk/calendar", true),
            ("http://e\\.dk/", "http://e.dk/", true),
            ("http://e\\.dk/", "http://e.dk/a", false),
            ("^.*sort=.*$", "http://e.dk/?sort=1", true),
            ("http://a/|.*b", "http://e.dk/b", true),
            ("http://a/|.*b", "http://a/c", false),
            ("(?i).*CALENDAR.*", "http://e.dk/calendar", true),
            (r".*\?.*&amp;.*\/x-y\_z.*", "http://e.dk/?a&amp;/x-y_z", true),
            (r".*[^/]{3,5}/\d{4}", "http://e.dk/abc/2026", true),
            (".*æ.*", "http://e.dk/", false),
            (".*[æø].*", "http://e.dk/", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(one(pattern).takes(&url, None).is_some(), takes, "{pattern} {url}");
        }
    }

    #[test]
    fn what_needs_backtracking_is_refused_with_the_reason() {
        for (pattern, reason) in [
            (".*(?!x).*", "look-around"),
            (".*(?<=x).*", "look-around"),
            (r".*/(.*?/)\1{2,}.*", "backreferences"),
            (".*+x", "possessive"),
            ("a++", "possessive"),
            ("(a", "unclosed group"),
            ("a)(b", "unopened group"),
            ("a{9999999}", ""),
            ("((a{1000}){1000}){10}", "memory"),
            ("[z-a]", "range"),
        ] {
            let error = RejectRegexes::new(&[pattern.to_owned()], &Traps::default()).unwrap_err();
            assert_eq!(error.pattern, pattern);
            assert!(error.reason.contains(reason), "{pattern}: {}", error.reason);
            assert!(!error.reason.contains('\n'));
            assert!(check_pattern(pattern).is_err());
        }
        for fine in [r"a\++b", "[+*]+", "a+?b*?", r"\?+", "a{2}?"] {
            assert_eq!(check_pattern(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn the_traps_of_a_domain_hold_for_it_and_its_seeds() {
        let traps = Traps {
            global: vec![String::new(), "# comment".to_owned(), ".*global.*".to_owned()],
            harvest: vec![".*harvest.*".to_owned()],
            domains: BTreeMap::from([("E.dk".to_owned(), vec![".*own.*".to_owned()])]),
        };
        let regexes = RejectRegexes::new(&[], &traps).unwrap();
        let takes = |url: &str, source: Option<&str>| {
            let index = regexes.takes(&Url::parse(url).unwrap(), source)?;
            regexes.pattern(index).map(|pattern| pattern.origin.clone())
        };
        assert_eq!(takes("http://x.dk/global", None), Some(PatternOrigin::GlobalTraps));
        assert_eq!(takes("http://x.dk/harvest", None), Some(PatternOrigin::HarvestTraps));
        assert_eq!(takes("http://www.e.dk/own", None), Some(PatternOrigin::DomainTraps("e.dk".into())));
        assert_eq!(
            takes("http://x.dk/own", Some("http://e.dk/")),
            Some(PatternOrigin::DomainTraps("e.dk".into()))
        );
        assert_eq!(takes("http://x.dk/own", Some("http://x.dk/")), None);
        assert_eq!(takes("http://xe.dk/own", None), None);
    }

    #[test]
    fn one_more_is_added_to_a_copy() {
        let before = one(".*a.*");
        let after = before.and(".*b.*").unwrap();
        let url = Url::parse("http://c.dk/b").unwrap();
        assert_eq!((before.takes(&url, None), after.takes(&url, None)), (None, Some(1)));
        assert!(before.and("(").is_err());
    }

    proptest! {
        #[test]
        fn no_expression_makes_it_panic(pattern in "\\PC{0,30}") {
            let _ = check_pattern(&pattern);
        }
    }
}
