//! A URL that may be fetched, and how we came to it.

use std::sync::Arc;

use url::Url;

use crate::hops::Hops;
use crate::link::Link;

/// A URL on its way into the frontier. It has no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub url: Url,
    /// The page that named it; none for a seed.
    pub via: Option<Arc<str>>,
    pub hops: Hops,
    /// The seed it descends from, for the source report; the same text for all that do.
    pub source: Option<Arc<str>>,
    /// To be fetched even if it was seen before (a robots.txt that grew old, an operator's wish, a redirect
    /// to the same canonical URL).
    pub force: bool,
}

impl Candidate {
    pub fn seed(url: Url) -> Candidate {
        let source = Arc::from(url.as_str());
        Candidate { url, via: None, hops: Hops::seed(), source: Some(source), force: false }
    }

    /// What `link`, found in this candidate's document, leads to. `via` is this candidate's URL, given so that
    /// all links of a page share one text.
    #[must_use]
    pub fn next(&self, link: Link, via: &Arc<str>) -> Candidate {
        Candidate {
            url: link.url,
            via: Some(Arc::clone(via)),
            hops: self.hops.and(link.hop),
            source: self.source.clone(),
            force: false,
        }
    }
}
