//! SURT prefixes for scopes.

use urlkey::{SurtPrefix, SurtPrefixSet, scope_surt};

#[test]
fn seeds_imply_prefixes() {
    for (seed, want) in [
        ("http://www.example.com", Some("http://(com,example,www,")),
        ("www.example.com", Some("http://(com,example,www,")),
        ("https://www.example.com/", Some("http://(com,example,www,)/")),
        ("http://example.com/a", Some("http://(com,example,)/")),
        ("http://example.com/a/b/c.html?q=/x", Some("http://(com,example,)/a/b/")),
        ("http://example.com:8080", Some("http://(com,example,:8080)")),
        ("http://192.0.2.1", Some("http://(192.0.2.1)")),
        ("http://[2001:db8::1]/x/", Some("http://([2001:db8::1])/x/")),
        ("http://bücher.example/", Some("http://(example,xn--bcher-kva,)/")),
        ("ftp://example.com/pub/", Some("ftp://(com,example,)/pub/")),
        ("mailto:someone@example.com", None),
        ("", None),
    ] {
        assert_eq!(SurtPrefix::from_seed(seed).as_ref().map(SurtPrefix::as_str), want, "{seed}");
    }
}

#[test]
fn lines_of_a_prefix_file() {
    for (line, want) in [
        ("http://(com,example,", Some("http://(com,example,")),
        ("https://(com,example,)/Path", Some("http://(com,example,)/path")),
        ("com,example,", Some("http://(com,example,")),
        ("+http://example.com/a/", Some("http://(com,example,)/a/")),
        ("+ example.com", Some("http://(com,example,")),
        ("# a comment", None),
        ("   ", None),
    ] {
        assert_eq!(SurtPrefix::parse_line(line).as_ref().map(SurtPrefix::as_str), want, "{line}");
    }
}

#[test]
fn what_a_prefix_covers() {
    for (prefix, url, covered) in [
        ("http://(com,example,", "http://example.com/", true),
        ("http://(com,example,", "https://a.b.example.com:8443/x", true),
        ("http://(com,example,", "http://example2.com/", false),
        ("http://(com,example,)/", "http://example.com/x", true),
        ("http://(com,example,)/", "http://www.example.com/x", false),
        ("http://(com,example,)/docs/", "http://example.com/DOCS/a", true),
        ("http://(com,example,)/docs/", "http://example.com/docs", false),
    ] {
        let prefix = SurtPrefix::parse_line(prefix).unwrap();
        assert_eq!(prefix.matches_url(url), covered, "{prefix} {url}");
    }
}

#[test]
fn a_set_keeps_only_what_it_needs() {
    let lines = [
        "http://(com,example,www,)/a/",
        "http://(com,example,",
        "http://(org,example,)/x/",
        "http://(com,example,)/",
    ];
    let set: SurtPrefixSet = lines.iter().filter_map(|line| SurtPrefix::parse_line(line)).collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), ["http://(com,example,", "http://(org,example,)/x/"]);
    for (url, covered) in [
        ("http://www.example.com/b", true),
        ("http://example.org/x/y", true),
        ("http://example.org/y", false),
        ("http://example.net/", false),
        ("mailto:x@example.com", false),
    ] {
        assert_eq!(set.matches_url(url), covered, "{url}");
    }
}

#[test]
fn prefixes_for_hosts_and_domains() {
    let text = |prefix: Option<SurtPrefix>| prefix.map(|prefix| prefix.to_string());
    assert_eq!(
        text(SurtPrefix::host("http://www.example.co.uk/x")).as_deref(),
        Some("http://(uk,co,example,www,)")
    );
    assert_eq!(
        text(SurtPrefix::domain("http://www.example.co.uk/x")).as_deref(),
        Some("http://(uk,co,example,")
    );
    assert_eq!(text(SurtPrefix::domain("http://192.0.2.1/x")).as_deref(), Some("http://(192.0.2.1)"));
    assert_eq!(scope_surt("http://user@Example.com/A?B").as_deref(), Some("http://(com,example,)/a?b"));
}
