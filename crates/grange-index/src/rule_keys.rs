//! The keys that an access rule is about, from a URL as people type it.
//!
//! A rule whose keys meet nothing hides nothing, and nobody would notice: text that may mean two things is refused, with the
//! ways to write each.

use urlkey::MatchType;

use crate::key::{key, keys, with_scheme};
use crate::query::Keys;

/// Keys that an access rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleKeys {
    /// What the keys begin with.
    pub prefix: String,
    /// Only this whole key.
    pub exact: bool,
}

/// Schemes without hosts. `tel:112` is one of them, `intranet:112` a host with a port.
const WITHOUT_HOST: [&str; 14] = [
    "about",
    "data",
    "dns",
    "fax",
    "filedesc",
    "info",
    "javascript",
    "mailto",
    "metadata",
    "screenshot",
    "sms",
    "tel",
    "urn",
    "whois",
];

/// The keys that a URL and a kind of match mean, for access rules; the key of the URL itself is always among them.
///
/// As in CDX queries, `*.example.com` is a domain and `example.com/path*` a prefix; without stars and a kind, a URL is a prefix.
///
/// Several beginnings for a host (its ports stand behind a colon) and a domain (its subdomains behind a comma), because a
/// shorter one would also meet `example.company`. Several for a path that ends with a slash, too: keys lose that slash, so
/// `/private/` itself is `/private` there, and `/private/?a` is `/private?a`.
pub fn rule_keys(url: &str, matches: Option<&str>) -> Result<Vec<RuleKeys>, String> {
    let (url, kind) = without_stars(url.trim(), matches)?;
    if let Some((name, _)) = bare_name_with_port(&url) {
        return Err(format!(
            "\"{url}\" is a host with a port, or a scheme: write http://{url} for the host \"{name}\", or give the key with --surt"
        ));
    }
    let url = with_scheme(&url);
    let own = key(&url);
    if kind == MatchType::Exact {
        return Ok(vec![RuleKeys { prefix: own, exact: true }]);
    }
    let start = match keys(&url, kind) {
        Keys::Exact(key) | Keys::Range(key, _) => key,
    };
    let name = start.trim_end_matches('/').trim_end_matches([')', ',']);
    if kind == MatchType::Domain && has_port(name) {
        return Err(format!(
            "\"{url}\" names a port, and a domain covers all ports: leave the port out, or say --match host for this host and port"
        ));
    }
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

/// A URL without its stars, and the kind of match that they or `matches` say.
fn without_stars(url: &str, matches: Option<&str>) -> Result<(String, MatchType), String> {
    let asked: Option<MatchType> = matches
        .map(|kind| kind.parse().map_err(|_| format!("\"{kind}\" is not exact, prefix, host or domain")))
        .transpose()?;
    if url.is_empty() {
        return Err("the URL is empty: name one, or use --everything for a rule about everything".to_owned());
    }
    if !url.contains('*') {
        return Ok((url.to_owned(), asked.unwrap_or(MatchType::Prefix)));
    }
    let with = |kind: MatchType, url: String| match asked {
        Some(other) if other != kind => Err(format!(
            "\"{url}\" with a star means --match {}, not {}: leave one of them out",
            kind.name(),
            other.name()
        )),
        _ => Ok((url, kind)),
    };
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let after_scheme = &url[..url.len() - rest.len()];
    if let Some(name) = rest.strip_prefix("*.") {
        let host = name.trim_end_matches('/');
        if !scheme.contains('*') && !host.is_empty() && !host.contains(['*', '/', '?', '#']) {
            return with(MatchType::Domain, format!("{after_scheme}{name}"));
        }
    } else if let Some(begin) = url.strip_suffix('*') {
        let has_path = rest.contains(['/', '?']) || is_without_host(url);
        if !begin.contains('*') && has_path {
            return with(MatchType::Prefix, begin.to_owned());
        }
    }
    Err(format!(
        "\"{url}\" has a star that means nothing here: write *.example.com for a host and all below it, example.com/path* for a \
         beginning, --everything for everything, and %2A for a star in a URL"
    ))
}

fn is_without_host(url: &str) -> bool {
    url.split_once(':')
        .is_some_and(|(scheme, _)| WITHOUT_HOST.iter().any(|name| scheme.eq_ignore_ascii_case(name)))
}

/// A name without dots, a colon and digits: `intranet:8080`.
fn bare_name_with_port(url: &str) -> Option<(&str, &str)> {
    let (name, rest) = url.split_once(':')?;
    let port = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && !name.eq_ignore_ascii_case("localhost");
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_name && is_port && !is_without_host(url)).then_some((name, port))
}

/// Whether the part of a key that names a host ends with a port.
fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hides(url: &str, matches: &str, captured: &str) -> bool {
        let captured = crate::key::line_key(captured);
        rule_keys(url, (!matches.is_empty()).then_some(matches))
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
            ("hport.example:8080", "", "http://hport.example:8080/", true),
            ("hport.example:8080", "", "https://www.hport.example:8080/x?y", true),
            ("hport.example:8080", "", "http://hport.example/", false),
            ("hport.example:8080/a", "exact", "http://hport.example:8080/a", true),
            ("hport.example:8080", "host", "http://hport.example:8080/a", true),
            ("hport.example:8080", "host", "http://hport.example:8081/a", false),
            ("localhost:8080", "", "http://localhost:8080/a", true),
            ("127.0.0.1:8080", "", "http://127.0.0.1:8080/a", true),
            ("[2001:db8::1]:8080", "", "http://[2001:db8::1]:8080/a", true),
            ("hport.example", "domain", "http://a.hport.example:8080/", true),
            ("hport.example:80", "domain", "http://a.hport.example:8080/", true),
            ("*.x.example", "", "http://x.example/", true),
            ("*.x.example", "", "http://a.b.x.example/c", true),
            ("*.x.example", "", "http://ax.example/", false),
            ("http://*.y.example/", "", "https://a.y.example/b", true),
            ("http://*.y.example", "domain", "https://a.y.example/b", true),
            ("y.example/*", "", "https://y.example/b", true),
            ("y.example/*", "", "https://a.y.example/b", false),
            ("http://y.example/a?b=*", "prefix", "https://y.example/a?b=c", true),
            ("dns:*", "", "dns:y.example", true),
            ("http://y.example/a%2Ab", "exact", "https://y.example/a*b", true),
        ] {
            assert_eq!(hides(url, matches, captured), expected, "{matches} of {url}: {captured}");
        }
    }

    proptest! {
        #[test]
        fn a_rule_made_from_a_url_hides_that_url_or_is_refused(
            url in "(https?://|ftp://|urn:|dns:|metadata://|)(www\\.)?[a-zA-Z0-9.-]{0,12}(:[0-9]{0,5})?(/[a-zA-Z0-9%./;=~ é-]{0,12})*(\\?[a-zA-Z0-9&=/?%-]{0,12})?(#[a-z]{0,3})?",
            matches in prop_oneof!["", "exact", "prefix", "host", "domain"],
        ) {
            match rule_keys(&url, (!matches.is_empty()).then_some(&matches)) {
                // White space around what people type is no part of it.
                Ok(keys) => prop_assert!(hides(&url, &matches, url.trim()), "{} {keys:?}", key(&url)),
                // A port with a domain, a bare name with a port, or no URL at all; nothing else is refused.
                Err(reason) => prop_assert!(
                    url.trim().is_empty() || bare_name_with_port(url.trim()).is_some() || matches == "domain" && url.contains(':'),
                    "{url}: {reason}"
                ),
            }
        }

        #[test]
        fn a_rule_made_from_a_host_and_a_port_hides_it_with_and_without_a_scheme(
            host in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}|([0-9]{1,2}\\.){3}[0-9]{1,2}|localhost",
            port in 1_u16.., path in "(/[a-z0-9]{1,5}){0,3}/?",
            matches in prop_oneof!["", "exact", "prefix", "host"],
            scheme in prop_oneof!["", "http://", "https://"],
        ) {
            let url = format!("{host}:{port}{path}");
            prop_assert!(hides(&format!("{scheme}{url}"), &matches, &format!("http://{url}")), "{url}");
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
    fn text_that_may_mean_two_things_is_refused() {
        for (url, matches, advice) in [
            ("*.y.example", "exact", "means --match domain"),
            ("*.y.example", "prefix", "means --match domain"),
            ("y.example/a*", "exact", "means --match prefix"),
            ("y.example/a*", "domain", "means --match prefix"),
            ("*.y.example/path", "", "*.example.com"),
            ("y.example*", "", "example.com/path*"),
            ("http://y.*/", "", "*.example.com"),
            ("http://y.example/a*b", "", "%2A"),
            ("http://y.example/a*b", "exact", "%2A"),
            ("*", "", "--everything"),
            ("*.", "", "*.example.com"),
            ("", "", "--everything"),
            ("intranet:8080/x", "", "write http://intranet:8080/x"),
            ("hport.example:8080", "domain", "leave the port out"),
            ("http://127.0.0.1:8080/", "domain", "leave the port out"),
            ("y.example", "sideways", "not exact, prefix, host or domain"),
        ] {
            let error = rule_keys(url, (!matches.is_empty()).then_some(matches)).unwrap_err();
            assert!(error.contains(advice), "{url} {matches}: {error}");
        }
    }
}
