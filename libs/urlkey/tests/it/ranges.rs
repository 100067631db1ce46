//! Search ranges and what falls into them.

use urlkey::{Dialect, MatchType, search_range};

#[test]
fn ranges_by_match_type() {
    use MatchType::{Domain, Exact, Host, Prefix};
    for (url, kind, start, end) in [
        ("http://www.example.com/a?b", Exact, "com,example)/a?b", "com,example)/a?b!"),
        ("http://example.com/", Exact, "com,example)/", "com,example)/!"),
        ("http://example.com/a", Prefix, "com,example)/a", "com,example)/b"),
        ("http://example.com/a/", Prefix, "com,example)/a/", "com,example)/a0"),
        ("http://example.com/a?", Prefix, "com,example)/a?", "com,example)/a@"),
        ("http://example.com/a?b=1", Prefix, "com,example)/a?b=1", "com,example)/a?b=2"),
        ("http://example.com/a*", Prefix, "com,example)/a", "com,example)/b"),
        ("http://example.com/", Prefix, "com,example)/", "com,example)0"),
        ("http://example.com/z~", Prefix, "com,example)/z~", "com,example)/z\u{7f}"),
        ("example.com", Host, "com,example)/", "com,example*"),
        ("http://example.com/some/page", Host, "com,example)/", "com,example*"),
        ("example.com", Domain, "com,example)/", "com,example-"),
        ("*.example.com", Domain, "com,example)/", "com,example-"),
        ("com", Domain, "com)/", "com-"),
        ("http://localhost/a", Domain, "localhost)/", "localhost-"),
        ("http://example.com:8080/", Host, "com,example:8080)/", "com,example:8080*"),
        ("192.0.2.1", Host, "1,2,0,192)/", "1,2,0,192*"),
    ] {
        let range = search_range(url, kind, Dialect::Standard);
        assert_eq!((range.start.as_str(), range.end.as_str()), (start, end), "{url} {kind:?}");
    }
}

#[test]
fn lines_in_and_out_of_a_range() {
    use MatchType::{Domain, Exact, Host, Prefix};
    for (url, kind, line, inside) in [
        ("example.com/a", Exact, "com,example)/a 2026", true),
        ("example.com/a", Exact, "com,example)/ab 2026", false),
        ("example.com/a", Exact, "com,example)/a/b 2026", false),
        ("example.com/a", Prefix, "com,example)/ab 2026", true),
        ("example.com", Host, "com,example)/ab 2026", true),
        ("example.com", Host, "com,example,www)/ab 2026", false),
        ("example.com", Domain, "com,example,www)/ab 2026", true),
        ("example.com", Domain, "com,example-site)/ab 2026", false),
        ("example.com", Domain, "com,example2)/ab 2026", false),
        ("com", Domain, "com,example)/ab 2026", true),
        ("com", Domain, "community,x)/ 2026", false),
        ("com", Domain, "com)/ab 2026", true),
        ("http://intranet/", Domain, "intranet)/ab 2026", true),
        ("http://intranet/", Domain, "intranet,www)/ab 2026", true),
        ("http://intranet/", Domain, "intranet2)/ab 2026", false),
    ] {
        assert_eq!(
            search_range(url, kind, Dialect::Standard).contains(line),
            inside,
            "{url} {kind:?} {line}"
        );
    }
}

#[test]
fn the_outback_dialect_has_its_own_hosts() {
    let range = search_range("http://192.0.2.1/x", MatchType::Host, Dialect::Outback);
    assert!(range.contains("192.0.2.1/y 2026") && !range.contains("192.0.2.10/y 2026"));
    let range = search_range("http://example.com:8080/", MatchType::Host, Dialect::Outback);
    assert_eq!(range.start, "com,example)/");
}

#[test]
fn names_of_match_types_and_dialects() {
    assert_eq!("domain".parse(), Ok(MatchType::Domain));
    assert!("range".parse::<MatchType>().is_err());
    assert_eq!("ia".parse(), Ok(Dialect::Ia));
    assert_eq!(
        "pywb".parse::<Dialect>().unwrap_err().to_string(),
        "unknown key dialect \"pywb\": expected standard, ia or outback"
    );
}
