//! The cookies of a crawl over restarts: written to the frontier as soon as a server sets them.
//!
//! `cookies.txt` in the folder of a crawl is the jar of a crawl that does not run: written at its end, and taken in,
//! instead of what the frontier has, when it is resumed. A person may change it in between.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use url::Url;

use super::changes::{self, CrawlChanges};
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
            *written = Written { domains: HashMap::new(), is_partial: true };
        }
        let (mut marks, mut obsolete) = (Vec::new(), Vec::new());
        for (domain, text) in fetcher.cookies().of_domains_of(url) {
            let Some(text) = text else {
                if written.domains.remove(&domain).is_some() || written.is_partial {
                    obsolete.push(changes::cookies_name(&domain));
                }
                continue;
            };
            let hash = blake3::hash(text.as_bytes());
            if written.domains.insert(domain.clone(), hash) != Some(hash) {
                marks.push(changes::cookies(&domain, &text));
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
    let known = KeptCookies(Mutex::new(Written { domains: HashMap::new(), is_partial: true }));
    if !file.exists() {
        for text in kept.cookies.values() {
            fetcher.cookies().add_text(text, now);
        }
        return Ok(known);
    }
    fetcher.cookies().load(file, now)?;
    let marks: Vec<_> =
        fetcher.cookies().by_domain().iter().map(|(domain, text)| changes::cookies(domain, text)).collect();
    let obsolete: Vec<_> = kept.cookies.keys().map(|domain| changes::cookies_name(domain)).collect();
    frontier.put_marks(&marks, &obsolete)?;
    // From now on the frontier knows better.
    std::fs::remove_file(file)?;
    Ok(known)
}
