//! What holds for every input.

use proptest::prelude::*;
use urlkey::{Dialect, Keyer, MatchType, SurtPrefix, canonical, key, search_range};

fn key_of(url: &[u8], dialect: Dialect) -> String {
    let mut out = String::new();
    Keyer::new(dialect).key_bytes_into(url, &mut out);
    out
}

fn general_key(url: &[u8], dialect: Dialect) -> String {
    let mut out = String::new();
    Keyer::new(dialect).general_key_into(url, &mut out);
    out
}

/// URLs made of the pieces that rules turn on.
fn odd_url() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "http://",
        "https://",
        "HTTP:",
        "www.",
        "www2.",
        "example",
        "Example",
        ".com",
        ".co.uk",
        ".",
        "..",
        "/",
        "//",
        "/./",
        "/../",
        "?",
        "&",
        "=",
        "#",
        ":",
        ":80",
        ":443",
        "@",
        "%41",
        "%2e",
        "%2F",
        "%25",
        "%",
        "%e9",
        "é",
        "ß",
        "[::1]",
        "192.0.2.1",
        "3279880203",
        "a",
        "B",
        "z=1",
        "sid=",
        "jsessionid=",
        "0123456789abcdef0123456789abcdef",
        "cfid=1&cftoken=2",
        "(abcdefghijklmnopqrstuvwx)",
        ".aspx",
        " ",
        "\t",
        "\n",
        ")",
        ",",
        "(",
        "!",
        "~",
        "-",
        "_",
        "\\",
        "\u{7f}",
        "dns:",
        "urn:",
        "filedesc",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Well-formed URLs as crawls meet them.
fn plain_url() -> impl Strategy<Value = String> {
    "https?://([wW]{3}[0-9]?\\.)?[a-zA-Z][a-zA-Z0-9]{0,7}(\\.[a-z][a-z0-9-]{0,5}){1,3}(:[0-9]{1,5})?(/[A-Za-z0-9._~!$'()*+,;:@-]{0,8}){0,5}/?(\\?[A-Za-z0-9&=._+/?-]{0,30})?(#[a-z]{0,4})?"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic_and_a_standard_key_fits_into_a_line(url in prop::collection::vec(any::<u8>(), 0..200)) {
        for dialect in [Dialect::Standard, Dialect::Ia, Dialect::Outback] {
            key_of(&url, dialect);
        }
        let key = key_of(&url, Dialect::Standard);
        prop_assert!(!key.is_empty() && key.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{key:?}");
    }

    #[test]
    fn odd_urls_fit_too(url in odd_url()) {
        for dialect in [Dialect::Standard, Dialect::Ia, Dialect::Outback] {
            key_of(url.as_bytes(), dialect);
        }
        let key = key(&url);
        prop_assert!(!key.is_empty() && key.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{key:?}");
    }

    #[test]
    fn the_shortcut_gives_the_general_key(url in prop_oneof![plain_url(), odd_url()]) {
        for dialect in [Dialect::Standard, Dialect::Ia] {
            prop_assert_eq!(key_of(url.as_bytes(), dialect), general_key(url.as_bytes(), dialect));
        }
    }

    /// Not so with session ids (one of each kind is dropped per pass) and `www.` (one per pass), nor for hosts
    /// that decode to separators; `plain_url` makes none of the latter.
    #[test]
    fn canonicalising_twice_is_canonicalising_once(url in plain_url()) {
        let once = canonical(&url);
        prop_assume!(!once.contains("sid=") && !once.contains("cftoken=") && !once.contains("://www"));
        prop_assert_eq!(canonical(&once), once.clone());
        prop_assert_eq!(key(&once), key(&url));
    }

    #[test]
    fn a_key_lies_in_all_of_its_ranges(url in plain_url()) {
        let line = format!("{} 20260101000000 {{}}", key(&url));
        prop_assert!(search_range(&url, MatchType::Exact, Dialect::Standard).contains(&line), "{line}");
        // A slash that was typed at the end of a prefix asks for what lies below.
        if !url.ends_with(['/', '?']) {
            prop_assert!(search_range(&url, MatchType::Prefix, Dialect::Standard).contains(&line), "{line}");
        }
        let port = key(&url).split(')').next().unwrap_or("").contains(':');
        let host = url.split("://").nth(1).unwrap_or("").split(['/', '?', '#', ':']).next().unwrap_or("");
        if !port {
            for kind in [MatchType::Host, MatchType::Domain] {
                prop_assert!(search_range(host, kind, Dialect::Standard).contains(&line), "{kind:?} {line}");
            }
        }
    }

    #[test]
    fn keys_of_one_host_stand_together(a in "[a-z]{1,6}", b in "[a-z]{1,6}", path in "(/[a-z0-9]{1,5}){0,3}") {
        // `www.` is dropped, and then it is another host.
        prop_assume!(![&a, &b].iter().any(|label| label.starts_with("www")));
        let domain = search_range(&format!("{a}.example"), MatchType::Domain, Dialect::Standard);
        let below = key(&format!("http://{b}.{a}.example{path}"));
        let beside = key(&format!("http://{b}x{a}.example{path}"));
        prop_assert!(domain.contains(&below), "{below}");
        prop_assert!(!domain.contains(&beside), "{beside}");
    }

    #[test]
    fn a_seed_is_in_its_own_scope(url in odd_url()) {
        if let Some(prefix) = SurtPrefix::from_seed(&url)
            && let Some(surt) = urlkey::scope_surt(&url)
        {
            prop_assert!(prefix.matches(&surt), "{prefix} {surt}");
        }
        let _ = SurtPrefix::domain(&url);
        let _ = SurtPrefix::parse_line(&url);
    }

    #[test]
    fn no_name_panics_the_domain_functions(name in "\\PC{0,40}") {
        let _ = urlkey::registrable_domain(&name, urlkey::Suffixes::Icann);
        let _ = urlkey::check_domain(&name, urlkey::Suffixes::All);
        let _ = urlkey::host_to_ascii(&name);
        let _ = urlkey::host_to_unicode(&name);
    }
}

#[test]
fn hostile_lengths_cost_no_more_than_their_length() {
    let token = "(abcdefghijklmnopqrstuvwx)/";
    for url in [
        format!("http://example.com/%{}", "25".repeat(500_000)),
        format!("http://example.com/?{}", "cfid=".repeat(200_000)),
        format!("http://example.com/?{}", "cfid=1&cftoken=&".repeat(60_000)),
        format!("http://example.com/{}?.aspx", token.repeat(40_000)),
        format!("http://{}.example/", "ü日".repeat(200_000)),
        format!("http://{}example/", "a.".repeat(500_000)),
        format!("http://example.com{}", "/..".repeat(300_000)),
        "http://".repeat(100_000),
    ] {
        let start = std::time::Instant::now();
        for dialect in [Dialect::Standard, Dialect::Ia, Dialect::Outback] {
            key_of(url.as_bytes(), dialect);
        }
        // Unoptimised builds take well under a second; the quadratic ways took minutes.
        assert!(start.elapsed().as_secs() < 20, "{}", &url[..60]);
    }
}
