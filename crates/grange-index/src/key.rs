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

/// The key of the URL of an index line. Other programs leave the scheme out, and a host with a port looks like a scheme then.
pub(crate) fn line_key(url: &str) -> String {
    #[cfg(test)]
    LINE_KEYS.set(LINE_KEYS.get() + 1);
    if is_host_with_port(url) { key(&format!("http://{url}")) } else { key(url) }
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
        && !port.is_empty()
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

/// Keys that an access rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleKeys {
    /// What the keys begin with.
    pub prefix: String,
    /// Only this whole key.
    pub exact: bool,
}

/// The keys that a URL and a kind of match mean, for access rules; the key of the URL itself is always among them.
///
/// Several beginnings for a host (its ports stand behind a colon) and a domain (its subdomains behind a comma), because a
/// shorter one would also meet `example.company`. Several for a path that ends with a slash, too: keys lose that slash, so
/// `/private/` itself is `/private` there, and `/private/?a` is `/private?a`.
pub fn rule_keys(url: &str, matches: &str) -> Result<Vec<RuleKeys>, String> {
    let kind: MatchType =
        matches.parse().map_err(|_| format!("\"{matches}\" is not exact, prefix, host or domain"))?;
    if kind == MatchType::Exact {
        return Ok(vec![RuleKeys { prefix: key(url), exact: true }]);
    }
    let url = url.trim_end_matches('*').trim_start_matches("*.");
    let own = key(url);
    let start = match keys(url, kind) {
        Keys::Exact(key) | Keys::Range(key, _) => key,
    };
    let name = start.trim_end_matches('/').trim_end_matches([')', ',']);
    let mut prefixes = match kind {
        MatchType::Host => vec![format!("{name})"), format!("{name}:")],
        MatchType::Domain => vec![format!("{name})"), format!("{name}:"), format!("{name},")],
        _ => vec![start.clone()],
    };
    if kind == MatchType::Prefix && start.ends_with('/') && !own.ends_with('/') {
        prefixes.push(format!("{own}?"));
    }
    let mut found: Vec<RuleKeys> =
        prefixes.into_iter().map(|prefix| RuleKeys { prefix, exact: false }).collect();
    if !found.iter().any(|keys| own.starts_with(&keys.prefix)) {
        found.push(RuleKeys { prefix: own, exact: true });
    }
    Ok(found)
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
    use proptest::prelude::*;

    use super::*;

    fn hides(url: &str, matches: &str, captured: &str) -> bool {
        let captured = key(captured);
        rule_keys(url, matches)
            .unwrap()
            .iter()
            .any(|keys| if keys.exact { captured == keys.prefix } else { captured.starts_with(&keys.prefix) })
    }

    #[test]
    fn a_rule_is_about_what_its_url_says() {
        for (url, matches, captured, expected) in [
            ("http://example.com/private/", "prefix", "http://example.com/private/", true),
            ("http://example.com/private/", "prefix", "https://www.example.com/private", true),
            ("http://example.com/private/", "prefix", "http://example.com/private/x", true),
            ("http://example.com/private/", "prefix", "http://example.com/private/?q=1", true),
            ("http://example.com/private/", "prefix", "http://example.com/private-not", false),
            ("http://example.com/private?", "prefix", "http://example.com/private?a=1", true),
            ("http://example.com/private?", "prefix", "http://example.com/private?", true),
            ("http://example.com/private", "prefix", "http://example.com/private-too", true),
            ("http://example.com", "prefix", "http://example.com/", true),
            ("http://example.com/", "prefix", "http://example.com/?a=1", true),
            ("http://example.com/a*", "prefix", "http://example.com/ab", true),
            ("example.com", "host", "http://example.com:8080/", true),
            ("example.com", "host", "http://a.example.com/", false),
            ("*.example.com", "domain", "http://a.example.com/", true),
            ("example.com", "domain", "http://example.company/", false),
            ("http://127.0.0.1/", "host", "http://127.0.0.1:80/", true),
            ("http://localhost/", "domain", "http://localhost/x", true),
            ("dns:example.com", "host", "dns:example.com", true),
            ("urn:text:http://example.com/", "prefix", "urn:text:http://example.com/", true),
            ("metadata://e.com/crawl/", "host", "metadata://e.com/crawl/", true),
            ("http://example.com/private/", "exact", "http://example.com/private", true),
            ("http://example.com/private/", "exact", "http://example.com/private/x", false),
        ] {
            assert_eq!(hides(url, matches, captured), expected, "{matches} of {url}: {captured}");
        }
    }

    proptest! {
        #[test]
        fn a_rule_made_from_a_url_always_hides_that_url(
            url in "(https?://|ftp://|urn:|dns:|metadata://|)(www\\.)?[a-zA-Z0-9.-]{0,12}(:[0-9]{0,5})?(/[a-zA-Z0-9%./;=~ é-]{0,12})*(\\?[a-zA-Z0-9&=/?%-]{0,12})?(#[a-z]{0,3})?",
            matches in prop_oneof!["exact", "prefix", "host", "domain"],
        ) {
            prop_assert!(hides(&url, &matches, &url), "{} {:?}", key(&url), rule_keys(&url, &matches));
        }

        #[test]
        fn a_prefix_rule_hides_what_is_below(
            path in "(/[a-z0-9]{1,5}){0,3}/|(/[a-z0-9]{1,5}){1,3}", below in "[a-z0-9/]{0,5}(\\?[a-z0-9=&]{0,8})?",
        ) {
            let url = format!("http://example.com{path}");
            prop_assert!(hides(&url, "prefix", &format!("{url}{below}")), "{url} {below}");
        }
    }

    #[test]
    fn a_host_with_a_port_is_no_scheme_in_a_line() {
        for (url, expected) in [
            ("example.com:8080/x", "com,example:8080)/x"),
            ("localhost:8080/x", "localhost:8080)/x"),
            ("www.example.com:80", "com,example)/"),
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
