//! Registrable domains, validity and IDN.

use urlkey::{
    DomainError, Suffixes, check_domain, host_to_ascii, host_to_unicode, is_known_suffix, public_suffix,
    registrable_domain,
};

#[test]
fn domains_by_all_suffixes_and_by_registries_only() {
    for (host, all, icann) in [
        ("www.example.com", Some("example.com"), Some("example.com")),
        ("example.com.", Some("example.com"), Some("example.com")),
        ("WWW.Example.COM", Some("Example.COM"), Some("Example.COM")),
        ("a.b.example.co.uk", Some("example.co.uk"), Some("example.co.uk")),
        ("co.uk", None, None),
        ("com", None, None),
        // A wildcard rule, *.ck, and its exception, !www.ck.
        ("a.b.c.ck", Some("b.c.ck"), Some("b.c.ck")),
        ("b.ck", None, None),
        ("a.www.ck", Some("www.ck"), Some("www.ck")),
        // The same in *.kawasaki.jp and !city.kawasaki.jp.
        ("x.y.z.kawasaki.jp", Some("y.z.kawasaki.jp"), Some("y.z.kawasaki.jp")),
        ("a.city.kawasaki.jp", Some("city.kawasaki.jp"), Some("city.kawasaki.jp")),
        // Private suffixes.
        ("alice.github.io", Some("alice.github.io"), Some("github.io")),
        ("github.io", None, Some("github.io")),
        ("a.b.blogspot.com", Some("b.blogspot.com"), Some("blogspot.com")),
        // Unknown top-level domains are suffixes by themselves.
        ("a.b.unlisted", Some("b.unlisted"), Some("b.unlisted")),
        ("localhost", None, None),
        // IDN in both spellings.
        ("www.bücher.example.公司.cn", Some("example.公司.cn"), Some("example.公司.cn")),
        ("www.example.xn--55qx5d.cn", Some("example.xn--55qx5d.cn"), Some("example.xn--55qx5d.cn")),
        // Addresses and nonsense.
        ("192.0.2.1", None, None),
        ("[2001:db8::1]", None, None),
        ("", None, None),
        (".", None, None),
        ("a..com", None, None),
    ] {
        assert_eq!(registrable_domain(host, Suffixes::All), all, "all: {host}");
        assert_eq!(registrable_domain(host, Suffixes::Icann), icann, "icann: {host}");
    }
}

#[test]
fn suffixes() {
    assert_eq!(public_suffix("www.example.co.uk", Suffixes::All), Some("co.uk"));
    assert_eq!(public_suffix("alice.github.io", Suffixes::All), Some("github.io"));
    assert_eq!(public_suffix("alice.github.io", Suffixes::Icann), Some("io"));
    assert!(is_known_suffix("example.com") && !is_known_suffix("example.unlisted"));
}

#[test]
fn what_is_a_domain() {
    use DomainError::{BadLabel, Empty, IsSuffix, NotRegistrable, TooLong, UnknownSuffix};
    let long_label = "a".repeat(64) + ".com";
    let long_name = "a.".repeat(130) + "com";
    for (name, want) in [
        ("example.com", Ok(())),
        ("Example.COM.", Ok(())),
        ("bücher.de", Ok(())),
        ("192.0.2.1", Ok(())),
        ("2001:db8::1", Ok(())),
        ("www.example.com", Err(NotRegistrable)),
        ("co.uk", Err(IsSuffix)),
        ("example.unlisted", Err(UnknownSuffix)),
        ("localhost", Err(UnknownSuffix)),
        ("", Err(Empty)),
        (".", Err(Empty)),
        ("a..com", Err(BadLabel)),
        ("-a.com", Err(BadLabel)),
        ("a_b.com", Err(BadLabel)),
        ("http://example.com", Err(BadLabel)),
        (&long_label, Err(BadLabel)),
        (&long_name, Err(TooLong)),
    ] {
        assert_eq!(check_domain(name, Suffixes::All), want, "{name}");
    }
}

#[test]
fn idn_both_ways() {
    for (unicode, ascii) in [
        ("bücher.example", "xn--bcher-kva.example"),
        ("日本語.jp", "xn--wgv71a119e.jp"),
        ("faß.de", "xn--fa-hia.de"),
    ] {
        assert_eq!(host_to_ascii(unicode).as_deref(), Some(ascii));
        assert_eq!(host_to_unicode(ascii), unicode);
    }
    assert_eq!(host_to_unicode("xn--a.example"), "xn--a.example");
    assert_eq!(host_to_ascii("a\u{fffd}b"), None);
}
