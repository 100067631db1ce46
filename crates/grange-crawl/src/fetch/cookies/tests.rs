use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn jar(from: &str, values: &[&str]) -> CookieJar {
    let jar = CookieJar::default();
    jar.store(&url(from), values.iter().map(|value| value.as_bytes()), now());
    jar
}

#[test]
fn cookies_go_where_they_belong() {
    // Set by, with; asked at; sent.
    let cases: &[(&str, &str, &str, Option<&str>)] = &[
        ("http://a.example/", "x=1", "http://a.example/", Some("x=1")),
        ("http://a.example/", " x = 1 ; foo", "http://a.example/deep/er", Some("x=1")),
        ("http://a.example/", "x=\"1 2\"", "http://a.example/", Some("x=\"1 2\"")),
        ("http://a.example/", "x=", "http://a.example/", Some("x=")),
        ("http://a.example/", "nameless", "http://a.example/", None),
        ("http://a.example/", "=1", "http://a.example/", None),
        ("http://a.example/", "x=1\x01", "http://a.example/", None),
        // Hosts.
        ("http://a.example/", "x=1", "http://b.a.example/", None),
        ("http://a.example/", "x=1; Domain=a.example", "http://b.a.example/", Some("x=1")),
        ("http://a.example/", "x=1; Domain=.A.Example", "http://b.a.example/", Some("x=1")),
        ("http://b.a.example/", "x=1; Domain=a.example", "http://a.example/", Some("x=1")),
        ("http://b.a.example/", "x=1; Domain=a.example", "http://ca.example/", None),
        ("http://a.example/", "x=1; Domain=b.example", "http://b.example/", None),
        ("http://a.example/", "x=1; Domain=b.a.example", "http://b.a.example/", None),
        ("http://a.example/", "x=1; Domain=", "http://a.example/", Some("x=1")),
        // Public suffixes.
        ("http://a.co.uk/", "x=1; Domain=co.uk", "http://b.co.uk/", None),
        ("http://a.github.io/", "x=1; Domain=github.io", "http://b.github.io/", None),
        ("http://github.io/", "x=1; Domain=github.io", "http://github.io/", Some("x=1")),
        ("http://github.io/", "x=1; Domain=github.io", "http://b.github.io/", None),
        // Addresses.
        ("http://127.0.0.1/", "x=1", "http://127.0.0.1:8080/", Some("x=1")),
        ("http://127.0.0.1/", "x=1; Domain=127.0.0.1", "http://127.0.0.1/", Some("x=1")),
        ("http://127.0.0.1/", "x=1; Domain=0.0.1", "http://127.0.0.1/", None),
        ("http://[::1]/", "x=1", "http://[::1]/", Some("x=1")),
        // Paths.
        ("http://a.example/d/e", "x=1", "http://a.example/d/f", Some("x=1")),
        ("http://a.example/d/e", "x=1", "http://a.example/f", None),
        ("http://a.example/d/e", "x=1; Path=/", "http://a.example/f", Some("x=1")),
        ("http://a.example/", "x=1; Path=/d", "http://a.example/d", Some("x=1")),
        ("http://a.example/", "x=1; Path=/d", "http://a.example/d/e", Some("x=1")),
        ("http://a.example/", "x=1; Path=/d", "http://a.example/dd", None),
        ("http://a.example/d/e", "x=1; Path=relative", "http://a.example/d/", Some("x=1")),
        // Secure.
        ("https://a.example/", "x=1; Secure", "https://a.example/", Some("x=1")),
        ("https://a.example/", "x=1; Secure", "http://a.example/", None),
        ("http://a.example/", "x=1; Secure", "https://a.example/", None),
        ("https://a.example/", "x=1; HttpOnly; SameSite=Strict", "http://a.example/", Some("x=1")),
        // Times.
        ("http://a.example/", "x=1; Expires=Mon, 16 Nov 2026 11:59:59 GMT", "http://a.example/", None),
        ("http://a.example/", "x=1; Expires=Mon, 16 Nov 2026 12:00:01 GMT", "http://a.example/", Some("x=1")),
        ("http://a.example/", "x=1; Expires=whenever", "http://a.example/", Some("x=1")),
        ("http://a.example/", "x=1; Max-Age=0", "http://a.example/", None),
        ("http://a.example/", "x=1; Max-Age=-5", "http://a.example/", None),
        ("http://a.example/", "x=1; Max-Age=99999999999999999999", "http://a.example/", Some("x=1")),
        (
            "http://a.example/",
            "x=1; Max-Age=60; Expires=Mon, 16 Nov 2020 11:00:00 GMT",
            "http://a.example/",
            Some("x=1"),
        ),
        ("http://a.example/", "x=1; Max-Age=soon", "http://a.example/", Some("x=1")),
    ];
    for (from, value, to, sent) in cases {
        assert_eq!(jar(from, &[value]).header(&url(to), now()).as_deref(), *sent, "{from} {value} {to}");
    }
}

#[test]
fn later_cookies_replace_earlier_ones_and_expiry_removes_them() {
    let jar = jar("http://a.example/", &["x=1", "y=2; Path=/d", "x=3", "z=4"]);
    assert_eq!(jar.header(&url("http://a.example/d"), now()).as_deref(), Some("y=2; x=3; z=4"));
    jar.store(&url("http://a.example/"), [&b"x=; Max-Age=0"[..], b"z=; Max-Age=0"].into_iter(), now());
    assert_eq!(jar.header(&url("http://a.example/"), now()), None);
    assert_eq!(jar.len(), 1);
    let short = CookieJar::default();
    short.store(&url("http://a.example/"), [&b"x=1; Max-Age=60"[..]].into_iter(), now());
    let later = now().checked_add(jiff::SignedDuration::from_secs(61)).unwrap();
    assert!(short.header(&url("http://a.example/"), now()).is_some());
    assert_eq!(short.header(&url("http://a.example/"), later), None);
}

#[test]
fn a_server_cannot_fill_the_jar() {
    let values: Vec<String> = (0..200).map(|n| format!("n{n}=v")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let jar = jar("http://a.example/", &values);
    assert_eq!(jar.len(), PER_DOMAIN_MAX);
    let header = jar.header(&url("http://a.example/"), now()).unwrap();
    assert!(header.starts_with("n150=v;") && header.ends_with("n199=v"), "the oldest went: {header}");
    let long = format!("x={}", "v".repeat(COOKIE_BYTES_MAX));
    jar.store(&url("http://b.example/"), std::iter::once(long.as_bytes()), now());
    assert_eq!(jar.header(&url("http://b.example/"), now()), None);
    for n in 0..10 {
        let value = format!("big{n}={}", "v".repeat(3000));
        jar.store(&url("http://c.example/"), std::iter::once(value.as_bytes()), now());
    }
    assert!(jar.header(&url("http://c.example/"), now()).unwrap().len() <= HEADER_BYTES_MAX);
}

#[test]
fn a_full_jar_forgets_the_domain_that_was_used_least_recently() {
    let jar = CookieJar::default();
    let host = |n: usize| url(&format!("http://h{n}.example/"));
    let set = |n: usize| jar.store(&host(n), std::iter::once(&b"a=b"[..]), now());
    for n in 0..DOMAINS_MAX {
        set(n);
    }
    // The first is still used, by a request to a host below it.
    jar.store(&host(0), std::iter::once(&b"c=d; Domain=h0.example"[..]), now());
    assert!(jar.header(&url("http://www.h0.example/"), now()).is_some());
    for n in DOMAINS_MAX..DOMAINS_MAX + 10 {
        set(n);
        assert!(jar.header(&host(n), now()).is_some(), "a new domain has its cookies");
    }
    assert!(jar.header(&host(0), now()).is_some());
    for n in 1..=10 {
        assert!(jar.header(&host(n), now()).is_none(), "{n} made room");
    }
    assert!(jar.header(&host(11), now()).is_some());
    assert_eq!(jar.len(), DOMAINS_MAX + 1);
    // A domain whose last cookie is deleted leaves nothing behind.
    jar.store(&host(11), std::iter::once(&b"a=; Max-Age=0"[..]), now());
    let jar = jar.lock();
    assert_eq!((jar.domains.len(), jar.by_use.len()), (DOMAINS_MAX - 1, DOMAINS_MAX - 1));
}

#[test]
fn cookies_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cookies.txt");
    let saved = jar(
        "https://a.example/d/e",
        &["session=1; HttpOnly", "long=2; Domain=a.example; Path=/; Secure; Max-Age=1000"],
    );
    saved.save(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("#HttpOnly_a.example\tFALSE\t/d\tFALSE\t0\tsession\t1\n"), "{text}");
    assert!(text.contains(".a.example\tTRUE\t/\tTRUE\t1794831400\tlong\t2\n"), "{text}");
    let loaded = CookieJar::default();
    assert_eq!(loaded.load(&path, now()).unwrap(), 2);
    for at in ["https://a.example/d/", "http://a.example/d/", "https://b.a.example/"] {
        assert_eq!(loaded.header(&url(at), now()), saved.header(&url(at), now()), "{at}");
    }
    std::fs::write(&path, "# comment\n\nnonsense\na.example\tFALSE\t/\tFALSE\t0.5\tx\ty\tz\n").unwrap();
    assert_eq!(CookieJar::default().load(&path, now()).unwrap(), 1);
    assert!(CookieJar::default().load(&folder.path().join("missing"), now()).is_err());
}
