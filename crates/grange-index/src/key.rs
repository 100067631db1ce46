//! Keys of URLs. Those of a job's own papers stand apart from the pages of the web.

use std::borrow::Cow;

use urlkey::{Dialect, MatchType, search_range};

use crate::query::Keys;

/// The scheme under which a job keeps its papers (`metadata://netarkivet.dk/crawl/…`).
const PAPERS: &str = "metadata:";

/// The key of a URL. Papers keep theirs as it is, scheme and all: under a key made as for pages they would turn up among the
/// pages of the host that they name.
pub fn key(url: &str) -> String {
    if is_paper(url) { url.to_ascii_lowercase() } else { urlkey::key(url) }
}

/// The key of the URL of an index line. Other programs leave the scheme out, and a host with a port looks like a scheme then.
///
/// The same holds for URLs that people type.
pub fn line_key(url: &str) -> String {
    #[cfg(test)]
    LINE_KEYS.set(LINE_KEYS.get() + 1);
    key(&with_scheme(url))
}

/// A URL whose scheme is left out gets one if its host with a port would be taken for a scheme.
pub(crate) fn with_scheme(url: &str) -> Cow<'_, str> {
    if is_host_with_port(url) { Cow::Owned(format!("http://{url}")) } else { Cow::Borrowed(url) }
}

#[cfg(test)]
thread_local! {
    /// How many keys of lines this thread has made.
    pub(crate) static LINE_KEYS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn is_host_with_port(url: &str) -> bool {
    let Some((host, rest)) = url.split_once(':') else { return false };
    let port = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = host.contains('.') || host.eq_ignore_ascii_case("localhost");
    is_host
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// The arguments by which keys show that the body of a request is in them.
const BODY_NAMES: [&str; 3] = ["__wb_method=", "__pywb_method=", "__wb_post_data="];

/// Whether a key has the body of a request in it.
pub(crate) fn has_body(key: &str) -> bool {
    BODY_NAMES.iter().any(|name| key.contains(name))
}

/// The beginning of a key that has the body of a request in it: all before the body. Arguments of the URL that sort behind it are
/// cut off as well, for nothing tells them from those of the body.
pub(crate) fn without_body(key: &str) -> Option<&str> {
    let at = BODY_NAMES.iter().filter_map(|name| key.find(name)).min()?;
    Some(key[..at].trim_end_matches(['?', '&']))
}

fn is_paper(url: &str) -> bool {
    url.get(..PAPERS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(PAPERS))
}

/// Whether a key is that of a paper.
pub(crate) fn is_paper_key(key: &[u8]) -> bool {
    key.starts_with(PAPERS.as_bytes())
}

/// The keys that a URL and a kind of match cover.
pub fn keys(url: &str, kind: MatchType) -> Keys {
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
    fn a_host_with_a_port_is_no_scheme_in_a_line() {
        for (url, expected) in [
            ("example.com:8080/x", "com,example:8080)/x"),
            ("localhost:8080/x", "localhost:8080)/x"),
            ("www.example.com:80", "com,example)/"),
            ("example.com:/x", "com,example)/x"),
            ("example.com/x", "com,example)/x"),
            ("http://example.com:8080/x", "com,example:8080)/x"),
            ("dns:example.com", "dns:example.com"),
            ("urn:text:http://example.com/", &key("urn:text:http://example.com/")),
            ("mailto:anna@example.com", &key("mailto:anna@example.com")),
            ("tel:112", &key("tel:112")),
            ("filedesc:7-1.arc", "filedesc:7-1.arc"),
            ("metadata://netarkivet.dk/crawl/a.log", "metadata://netarkivet.dk/crawl/a.log"),
        ] {
            assert_eq!(line_key(url), expected, "{url}");
        }
    }

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
