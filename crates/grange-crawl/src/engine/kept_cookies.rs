//! The cookies of a crawl over restarts: written to the frontier as soon as a server sets them, and removed from it when
//! they make room for others. Each mark begins with a number that counts writes: a jar that is filled from them takes the
//! newest last, and so has those of most use when it is full.
//!
//! `cookies.txt` in the folder of a crawl is the jar of a crawl that does not run: written at its end, and taken in,
//! instead of what the frontier has, when it is resumed. A person may change it in between.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use url::Url;

use super::changes::{self, CrawlChanges, Mark};
use crate::fetch::{FetchError, Fetcher};
use crate::frontier::{Frontier, FrontierError};

/// Domains whose last written state is remembered, 100 bytes each; beyond that it is written again.
const REMEMBERED_MAX: usize = 20_000;

/// Knows what the frontier has.
#[derive(Debug)]
pub(super) struct KeptCookies(Mutex<Written>);

#[derive(Debug)]
struct Written {
    /// A hash of the text that was written last, by domain.
    domains: HashMap<String, blake3::Hash>,
    /// Others may have been written before these.
    is_partial: bool,
    /// The number of the next mark.
    next: u64,
}

/// What the first line of a mark begins with; the number of the mark follows.
const NUMBER: &str = "# write ";

/// A mark for the cookies of a domain.
fn numbered(number: u64, domain: &str, text: &str) -> Mark {
    changes::cookies(domain, &format!("{NUMBER}{number}\n{text}"))
}

/// The number of a mark; 0 for those of an earlier version, which had none.
fn number_of(text: &str) -> u64 {
    let line = text.lines().next().and_then(|line| line.strip_prefix(NUMBER));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl KeptCookies {
    /// Writes the cookies that an answer from `url` may have changed, if they did.
    pub(super) fn keep(
        &self,
        fetcher: &Fetcher,
        frontier: &Frontier,
        url: &Url,
    ) -> Result<(), FrontierError> {
        // Held while it is written: what is written last is what is newest.
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.domains.len() >= REMEMBERED_MAX {
            *written = Written { domains: HashMap::new(), is_partial: true, ..*written };
        }
        let (mut marks, mut obsolete) = (Vec::new(), Vec::new());
        for domain in fetcher.cookies().take_evicted() {
            written.domains.remove(&domain);
            obsolete.push(changes::cookies_name(&domain));
        }
        for (domain, text) in fetcher.cookies().of_domains_of(url) {
            let Some(text) = text else {
                if written.domains.remove(&domain).is_some() || written.is_partial {
                    obsolete.push(changes::cookies_name(&domain));
                }
                continue;
            };
            let hash = blake3::hash(text.as_bytes());
            if written.domains.insert(domain.clone(), hash) != Some(hash) {
                marks.push(numbered(written.next, &domain, &text));
                written.next += 1;
            }
        }
        if marks.is_empty() && obsolete.is_empty() { Ok(()) } else { frontier.put_marks(&marks, &obsolete) }
    }
}

/// Why cookies of an earlier run cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum CookieError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Fills the jar of a crawl that is started or resumed.
pub(super) fn load(
    fetcher: &Fetcher,
    frontier: &Frontier,
    kept: &CrawlChanges,
    file: &Path,
    now: Timestamp,
) -> Result<KeptCookies, CookieError> {
    // Domains of earlier runs may be there that no answer of this run has touched yet.
    let known = |next| KeptCookies(Mutex::new(Written { domains: HashMap::new(), is_partial: true, next }));
    if !file.exists() {
        let mut texts: Vec<_> = kept.cookies.values().map(|text| (number_of(text), text)).collect();
        texts.sort_by_key(|(number, _)| *number);
        for (_, text) in &texts {
            fetcher.cookies().add_text(text, now);
        }
        // A full jar has not taken all of them, and no jar those that have expired.
        fetcher.cookies().take_evicted();
        let held: HashMap<_, _> = fetcher.cookies().by_domain().into_iter().collect();
        let gone = kept.cookies.keys().filter(|domain| !held.contains_key(*domain));
        let obsolete: Vec<_> = gone.map(|domain| changes::cookies_name(domain)).collect();
        if !obsolete.is_empty() {
            frontier.put_marks(&[], &obsolete)?;
        }
        return Ok(known(texts.last().map_or(1, |(number, _)| number.saturating_add(1))));
    }
    fetcher.cookies().load(file, now)?;
    fetcher.cookies().take_evicted();
    let held = fetcher.cookies().by_domain();
    let marks: Vec<_> =
        (1..).zip(&held).map(|(number, (domain, text))| numbered(number, domain, text)).collect();
    let obsolete: Vec<_> = kept.cookies.keys().map(|domain| changes::cookies_name(domain)).collect();
    frontier.put_marks(&marks, &obsolete)?;
    // From now on the frontier knows better.
    std::fs::remove_file(file)?;
    Ok(known(held.len() as u64 + 1))
}

#[cfg(test)]
#[path = "kept_cookies_tests.rs"]
mod tests;
