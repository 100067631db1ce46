//! Keys of URLs. Those of a job's own papers stand apart from the pages of the web.

use urlkey::{Dialect, MatchType, search_range};

use crate::query::Keys;

/// The scheme under which a job keeps its papers (`metadata://netarkivet.dk/crawl/…`).
const PAPERS: &str = "metadata:";

/// The key of a URL. Papers keep theirs as it is, scheme and all: under a key made as for pages they would turn up among the
/// pages of the host that they name.
pub fn key(url: &str) -> String {
    if is_paper(url) { url.to_ascii_lowercase() } else { urlkey::key(url) }
}

fn is_paper(url: &str) -> bool {
    url.get(..PAPERS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(PAPERS))
}

/// Whether a key is that of a paper.
pub(crate) fn is_paper_key(key: &[u8]) -> bool {
    key.starts_with(PAPERS.as_bytes())
}

/// What the keys of a match begin with, for access rules: several beginnings for a host (its ports stand behind a colon) and a
/// domain (its subdomains behind a comma), because a shorter one would also meet `example.company`.
pub fn rule_prefixes(url: &str, matches: &str) -> Result<Vec<String>, String> {
    let kind: MatchType =
        matches.parse().map_err(|_| format!("\"{matches}\" is not exact, prefix, host or domain"))?;
    let start = match keys(url.trim_end_matches('*').trim_start_matches("*."), kind) {
        Keys::Exact(key) => return Ok(vec![key]),
        Keys::Range(start, _) => start,
    };
    let ends: &[char] = match kind {
        MatchType::Host => &[')', ':'],
        MatchType::Domain => &[')', ':', ','],
        _ => return Ok(vec![start]),
    };
    let name = start.trim_end_matches('/').trim_end_matches([')', ',']);
    Ok(ends.iter().map(|end| format!("{name}{end}")).collect())
}

/// The keys that a URL and a kind of match cover.
pub(crate) fn keys(url: &str, kind: MatchType) -> Keys {
    if kind == MatchType::Exact {
        return Keys::Exact(key(url));
    }
    if is_paper(url) {
        let start = key(url.trim_end_matches('*'));
        // Keys are text: nothing that begins with it sorts behind this.
        let end = format!("{start}\u{10ffff}");
        return Keys::Range(start, Some(end));
    }
    let range = search_range(url, kind, Dialect::Standard);
    Keys::Range(range.start, Some(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_are_not_among_pages() {
        let paper = key("METADATA://netarkivet.dk/crawl/setup/order.xml?jobid=7");
        assert_eq!(paper, "metadata://netarkivet.dk/crawl/setup/order.xml?jobid=7");
        let covers = |keys: Keys| match keys {
            Keys::Exact(one) => one == paper,
            Keys::Range(start, end) => start <= paper && end.is_none_or(|end| paper < end),
        };
        assert!(!covers(keys("netarkivet.dk", MatchType::Domain)));
        assert!(!covers(keys("http://netarkivet.dk/crawl/", MatchType::Prefix)));
        assert!(covers(keys("metadata://netarkivet.dk/crawl/*", MatchType::Prefix)));
        assert!(covers(keys("metadata://netarkivet.dk/crawl/setup/order.xml?jobid=7", MatchType::Exact)));
    }
}
