//! Pages that come again and again under other addresses: error pages that say 200, empty months of a calendar,
//! session ids. No probe is sent; the answers themselves tell.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use url::Url;

use super::shape::{is_token, pieces};

/// How many (place, content) pairs are remembered in each of two generations; 24 bytes each. A loop shows up within
/// thousands of pages, so what was long ago may be forgotten.
const REMEMBERED_MAX: usize = 1 << 16;

/// Counts under how many addresses of one part of a site the same content came.
#[derive(Debug)]
pub struct RepeatedContent {
    limit: u32,
    remembered: usize,
    hasher: RandomState,
    young: HashMap<u64, u32>,
    old: HashMap<u64, u32>,
}

impl RepeatedContent {
    /// Suppresses from the answer after `limit` equal ones; never with 0.
    pub fn new(limit: u32) -> RepeatedContent {
        RepeatedContent::remembering(REMEMBERED_MAX, limit)
    }

    fn remembering(remembered: usize, limit: u32) -> RepeatedContent {
        let (young, old) = (HashMap::new(), HashMap::new());
        RepeatedContent { limit, remembered, hasher: RandomState::new(), young, old }
    }

    /// Notes a page and says whether its links are to be left alone. The page itself is kept; its log line says
    /// [`RepeatedContent::ANNOTATION`].
    pub fn suppresses(&mut self, url: &Url, digest: &[u8]) -> bool {
        if self.limit == 0 {
            return false;
        }
        let key = self.hasher.hash_one((url.host_str(), place(url), digest));
        if self.young.len() >= self.remembered && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.get(&key).copied().unwrap_or(0);
        let count = self.young.entry(key).or_insert(before);
        *count = count.saturating_add(1);
        *count > self.limit
    }

    /// What the log says of such a page; Heritrix's word.
    pub const ANNOTATION: &'static str = "trapSuppressExtractor";
}

/// The part of the site: the first segment of the path when others follow it. Long session ids in that place are all one
/// part: their pages are the same. Shorter ones may be sections (`/section1/`), whose pages look alike and lead to others.
fn place(url: &Url) -> &str {
    let path = url.path().trim_start_matches('/');
    let first = path.split_once('/').map_or("", |(first, _)| first);
    if pieces(first).any(|piece| piece.is_word && is_token(piece.text)) { "*" } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("http://h.example{path}")).unwrap()
    }

    #[test]
    fn the_same_page_under_many_addresses_is_a_trap() {
        let mut repeated = RepeatedContent::new(3);
        for month in 1..=3 {
            assert!(!repeated.suppresses(&url(&format!("/cal/2026/{month}")), b"empty"));
        }
        assert!(repeated.suppresses(&url("/cal/2026/4"), b"empty"));
        // Other content, another part of the site and another host are counted apart.
        assert!(!repeated.suppresses(&url("/cal/2026/5"), b"full"));
        assert!(!repeated.suppresses(&url("/news/1"), b"empty"));
        assert!(!repeated.suppresses(&Url::parse("http://i.example/cal/2026/4").unwrap(), b"empty"));
        assert!(repeated.suppresses(&url("/cal/2027/1"), b"empty"));
    }

    #[test]
    fn pages_of_the_root_are_one_part() {
        let mut repeated = RepeatedContent::new(1);
        assert!(!repeated.suppresses(&url("/?s=1"), b"x"));
        assert!(repeated.suppresses(&url("/a?s=2"), b"x"));
    }

    #[test]
    fn pages_below_session_ids_are_one_part() {
        let mut repeated = RepeatedContent::new(2);
        assert!(!repeated.suppresses(&url("/8f3a9c2177be21aa/about"), b"x"));
        assert!(!repeated.suppresses(&url("/(S(lit3py55t21z5v55vlm25s55))/about"), b"x"));
        assert!(repeated.suppresses(&url("/77be21aa8f3a9c21/about"), b"x"));
        assert!(!repeated.suppresses(&url("/section1/about"), b"x"));
        assert!(!repeated.suppresses(&url("/section2/about"), b"x"));
        assert!(!repeated.suppresses(&url("/section3/about"), b"x"));
        assert!(!repeated.suppresses(&url("/news/about"), b"x"));
    }

    #[test]
    fn zero_switches_it_off() {
        let mut repeated = RepeatedContent::new(0);
        assert!((0..100).all(|n| !repeated.suppresses(&url(&format!("/{n}")), b"x")));
    }

    #[test]
    fn memory_is_bounded_and_recent_loops_are_still_seen() {
        let mut repeated = RepeatedContent::remembering(100, 2);
        for n in 0..300_u64 {
            repeated.suppresses(&url("/a/b"), &n.to_be_bytes());
        }
        assert!(repeated.young.len() <= 100 && repeated.old.len() <= 100);
        assert!(!repeated.suppresses(&url("/a/b"), b"x"));
        for n in 0..100_u64 {
            repeated.suppresses(&url("/c/b"), &n.to_be_bytes());
        }
        assert!(!repeated.suppresses(&url("/a/b"), b"x"));
        assert!(repeated.suppresses(&url("/a/c"), b"x"));
    }
}
