//! Replay addresses: what is asked for behind `/<collection>/`. URLs are taken as they came, query and all.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::memento::MapFormat;
use crate::rewrite::{Modifier, split_time};

/// What a path below a collection asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// `/`: where to begin; the query of the form may name a URL.
    Home { query: Option<String> },
    /// `/20200102030405mp_/URL`; no digits mean the latest.
    Capture { time: String, modifier: Modifier, url: String },
    /// `/URL`: the best capture for the time that `Accept-Datetime` names, else the latest.
    TimeGate { url: String },
    /// `/timemap/link/URL`
    TimeMap { format: MapFormat, url: String },
    /// `/*/URL`, `/2009-2015*/URL`: when it was captured. A `*` behind the URL asks for all that begin with it.
    Calendar { from: String, to: String, url: String, wide: bool },
    /// `/export/warc?url=…`: the captures of a query as a file.
    Export { format: String, query: String },
}

impl Address {
    /// Reads what follows `/<collection>/`, query included.
    pub(crate) fn parse(rest: &str) -> Option<Self> {
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        if path.is_empty() {
            return Some(Self::Home { query: query.map(ToOwned::to_owned) });
        }
        if let Some(format) = path.strip_prefix("export/") {
            let query = query.unwrap_or_default().to_owned();
            return Some(Self::Export { format: format.to_owned(), query });
        }
        if let Some(rest) = rest.strip_prefix("timemap/") {
            let (format, url) = rest.split_once('/')?;
            return Some(Self::TimeMap { format: MapFormat::parse(format)?, url: repaired(url)? });
        }
        if let Some(url) = rest.strip_prefix("timegate/") {
            return Some(Self::TimeGate { url: repaired(url)? });
        }
        if let Some((from, to, url)) = span(rest) {
            // How it is shown is no part of the URL, nor of what stands at its end.
            let url = &*without_own(url);
            let wide = url.len() > 1 && url.ends_with('*');
            let url = repaired(if wide { &url[..url.len() - 1] } else { url })?;
            return Some(Self::Calendar { from: from.to_owned(), to: to.to_owned(), url, wide });
        }
        if let Some((time, modifier, url)) = split_time(rest)
            && (!time.is_empty() || modifier != Modifier::Top)
        {
            return Some(Self::Capture { time: time.to_owned(), modifier, url: repaired(url)? });
        }
        Some(Self::TimeGate { url: repaired(rest)? })
    }
}

/// Begins the names of parameters that say how something is shown; everything else is part of the archived URL.
const OWN_PREFIX: &str = "grange-";

/// The parameters of a query that are ours.
pub(crate) fn own_parameters(query: &str) -> String {
    query.split('&').filter(|part| part.starts_with(OWN_PREFIX)).collect::<Vec<_>>().join("&")
}

fn without_own(url: &str) -> Cow<'_, str> {
    match url.split_once('?') {
        Some((path, query)) if !own_parameters(query).is_empty() => {
            let rest: Vec<&str> = query.split('&').filter(|part| !part.starts_with(OWN_PREFIX)).collect();
            Cow::Owned(if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) })
        }
        _ => Cow::Borrowed(url),
    }
}

/// Whether relative addresses lead on from here as from the URL that was meant: there must be a slash behind its host, for
/// browsers cut everything behind the last slash.
pub(super) fn leads_on(rest: &str) -> bool {
    let path = rest.split('?').next().unwrap_or_default();
    let Some((_, _, url)) = split_time(path) else { return true };
    let behind = url.split_once(':').map_or(url, |(_, behind)| behind);
    behind.trim_start_matches(['/', '\\']).contains(['/', '\\'])
}

/// `*/…`, `2009*/…`, `2009-2015*/…`: from, to, URL.
fn span(rest: &str) -> Option<(&str, &str, &str)> {
    let (times, url) = rest.split_once("*/")?;
    let (from, to) = times.split_once('-').unwrap_or((times, times));
    let digits = |text: &str| text.len() <= 14 && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(from) && digits(to)).then_some((from, to, url))
}

/// The URL that was meant. Servers in between join slashes, people leave the scheme out, forms encode all of it.
pub(crate) fn repaired(text: &str) -> Option<String> {
    let text = match text.get(..10).map(str::to_ascii_lowercase) {
        Some(start) if start.starts_with("http%3a") || start.starts_with("https%3a") => {
            percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
        }
        _ => Cow::Borrowed(text),
    };
    // A space or a control character would end the line of a header that names the URL.
    let mut url = String::with_capacity(text.len() + 8);
    let text = text.trim();
    let rest = match scheme(text) {
        Some(("http" | "https", rest)) => {
            let lower = text[..text.len() - rest.len()].trim_end_matches('/').to_ascii_lowercase();
            url.push_str(&lower);
            url.push_str("//");
            rest.trim_start_matches(['/', '\\'])
        }
        Some(_) => text,
        None => {
            url.push_str("http://");
            text.trim_start_matches(['/', '\\'])
        }
    };
    if rest.is_empty() {
        return None;
    }
    for letter in rest.chars() {
        match letter {
            ' ' => url.push_str("%20"),
            '#' => url.push_str("%23"),
            '"' => url.push_str("%22"),
            '<' => url.push_str("%3C"),
            '>' => url.push_str("%3E"),
            letter if letter.is_control() => {}
            letter => url.push(letter),
        }
    }
    // `http://example.org` and `http://example.org?x` have the path `/`.
    if let Some(start) = url.find("://").map(|at| at + 3) {
        match url[start..].find(['/', '?']) {
            None => url.push('/'),
            Some(at) if url.as_bytes()[start + at] == b'?' => url.insert(start + at, '/'),
            Some(_) => {}
        }
    }
    Some(url)
}

/// The scheme of a URL in lower case and what follows its colon. `example.org:80` has none: a port follows.
fn scheme(text: &str) -> Option<(&'static str, &str)> {
    const KNOWN: &[&str] = &[
        "http",
        "https",
        "ftp",
        "dns",
        "urn",
        "whois",
        "metadata",
        "screenshot",
        "thumbnail",
        "text",
        "file",
        "rtsp",
    ];
    let (scheme, rest) = text.split_once(':')?;
    let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
    Some((known, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_and_programs_write_them() {
        let capture = |time: &str, modifier, url: &str| Address::Capture {
            time: time.into(),
            modifier,
            url: url.into(),
        };
        let gate = |url: &str| Address::TimeGate { url: url.into() };
        let calendar = |from: &str, to: &str, url: &str, wide| Address::Calendar {
            from: from.into(),
            to: to.into(),
            url: url.into(),
            wide,
        };
        let cases = [
            ("", Some(Address::Home { query: None })),
            ("?url=x", Some(Address::Home { query: Some("url=x".into()) })),
            (
                "20200102030405mp_/http://e.org/a?b=c&d=%20",
                Some(capture("20200102030405", Modifier::Main, "http://e.org/a?b=c&d=%20")),
            ),
            ("2020/http:/e.org", Some(capture("2020", Modifier::Top, "http://e.org/"))),
            ("2020id_/https:///e.org/x", Some(capture("2020", Modifier::Raw, "https://e.org/x"))),
            ("2020js_/e.org/x.js?", Some(capture("2020", Modifier::Script, "http://e.org/x.js?"))),
            ("mp_/HTTP://E.org/", Some(capture("", Modifier::Main, "http://E.org/"))),
            ("2020im_///e.org/a", Some(capture("2020", Modifier::Image, "http://e.org/a"))),
            ("2020/http%3A%2F%2Fe.org%2Fa%3Fb", Some(capture("2020", Modifier::Top, "http://e.org/a?b"))),
            ("2020/urn:isbn:1", Some(capture("2020", Modifier::Top, "urn:isbn:1"))),
            ("2020/e.org:8080/x", Some(capture("2020", Modifier::Top, "http://e.org:8080/x"))),
            ("http://e.org/2020mp_/http://f.org/", Some(gate("http://e.org/2020mp_/http://f.org/"))),
            ("e.org", Some(gate("http://e.org/"))),
            ("e.org?q", Some(gate("http://e.org/?q"))),
            ("timegate/http://e.org/", Some(gate("http://e.org/"))),
            (
                "timemap/link/http://e.org/",
                Some(Address::TimeMap { format: MapFormat::Link, url: "http://e.org/".into() }),
            ),
            ("timemap/xyz/http://e.org/", None),
            ("*/http://e.org/", Some(calendar("", "", "http://e.org/", false))),
            ("*/http://e.org/*", Some(calendar("", "", "http://e.org/", true))),
            ("*/http://e.org/*?grange-after=org,e)/x", Some(calendar("", "", "http://e.org/", true))),
            ("2009-2015*/e.org/*?grange-after=x", Some(calendar("2009", "2015", "http://e.org/", true))),
            ("*/http://e.org/?a=1*&grange-after=x", Some(calendar("", "", "http://e.org/?a=1", true))),
            ("*/http://e.org/?a=1&grange-view=list", Some(calendar("", "", "http://e.org/?a=1", false))),
            ("*/http://e.org/*?a=1", Some(calendar("", "", "http://e.org/*?a=1", false))),
            ("*/http%3A%2F%2Fe.org%2F*?grange-after=x", Some(calendar("", "", "http://e.org/", true))),
            ("2009-2015*/e.org/a*b", Some(calendar("2009", "2015", "http://e.org/a*b", false))),
            ("20200102*/e.org/", Some(calendar("20200102", "20200102", "http://e.org/", false))),
            ("http://e.org/x*/y", Some(gate("http://e.org/x*/y"))),
            ("2020mp_/", None),
            ("2020mp_/http://", None),
            (
                "2020mp_/http://e.org/a#b\r\nX: y",
                Some(capture("2020", Modifier::Main, "http://e.org/a%23bX:%20y")),
            ),
        ];
        for (rest, expected) in cases {
            assert_eq!(Address::parse(rest), expected, "{rest}");
        }
    }

    #[test]
    fn an_address_leads_on_if_its_url_has_a_path() {
        for (rest, leads) in [
            ("2020mp_/http://e.org/", true),
            ("2020mp_/http://e.org/a?b", true),
            ("2020/e.org/", true),
            ("2020mp_/http:/e.org/a", true),
            ("2020mp_/http://e.org", false),
            ("2020mp_/http://e.org?a/b", false),
            ("2020mp_/e.org", false),
            ("2020/http%3A%2F%2Fe.org%2Fa", false),
        ] {
            assert_eq!(leads_on(rest), leads, "{rest}");
        }
    }

    #[test]
    fn our_parameters_are_not_part_of_the_url() {
        for (url, without, own) in [
            ("http://e.org/?a=1&grange-year=2020", "http://e.org/?a=1", "grange-year=2020"),
            ("http://e.org/?grange-view=list", "http://e.org/", "grange-view=list"),
            (
                "http://e.org/?grange-view=list&a=1&grange-skip=5",
                "http://e.org/?a=1",
                "grange-view=list&grange-skip=5",
            ),
            ("http://e.org/?a=1", "http://e.org/?a=1", ""),
            ("http://e.org/grange-year", "http://e.org/grange-year", ""),
        ] {
            assert_eq!(without_own(url), without);
            assert_eq!(own_parameters(url.split_once('?').map_or("", |(_, query)| query)), own);
        }
    }

    proptest::proptest! {
        #[test]
        fn an_address_that_was_repaired_leads_on(rest in "(https?(://|%3A%2F%2F|:/))?[a-c.]{1,4}(:80)?([/?%2F\\\\][a-c/?]{0,4})?") {
            if let Some(url) = repaired(&rest) {
                let again = format!("2020mp_/{url}");
                proptest::prop_assert!(leads_on(&again), "{}", again);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(rest in "(\\PC|[0-9*/:?%a-f_-]){0,60}") {
            if let Some(Address::Capture { url, .. } | Address::TimeGate { url }) = Address::parse(&rest) {
                proptest::prop_assert!(!url.contains(['\r', '\n', ' ', '"', '<', '>']));
                let again = repaired(&url);
                proptest::prop_assert_eq!(again.as_deref(), Some(url.as_str()));
            }
        }
    }
}
