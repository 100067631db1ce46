//! Bodies in keys.

use cdx::{QUERY_CHARS_MAX, Spelling, body_query, modern_spelling, url_with_body};
use proptest::prelude::*;

#[test]
fn bodies_become_the_queries_that_cdxj_indexer_makes_of_them() {
    for (content_type, body, want) in [
        ("application/x-www-form-urlencoded", b"a=1&b=two+words&c=%C3%BC%26x", "a=1&b=two words&c=ü&x"),
        ("application/x-www-form-urlencoded; charset=UTF-8", b"q=%zz%4", "q=%zz%4"),
        ("application/x-www-form-urlencoded", b"\xff\xfe", "__wb_post_data=//4="),
        ("application/x-www-form-urlencoded", b"a=%FF", "a=�"),
        ("application/json", b"{\"a\": 1, \"b\": {\"c\": \"x y\", \"a\": [true, false, null]}, \"d\": 44.0, \"e\": [1.5, {\"f\": \"\xc3\xbc&=\"}]}", "a=1&c=x+y&a.2_=True&a.3_=False&a.4_=None&d=44.0&e=1.5&f=%C3%BC%26%3D"),
        ("application/json", b"{\"a\": {\"a\": {\"a\": 1}}, \"\": 5, \"b\": []}", "a=1"),
        ("application/json", b"[1, 2, {\"x\": 3}]", "x=3"),
        ("application/json", b"{\"a\": 1}\n{\"a\": 2}", "a=1&a.2_=2"),
        ("application/json", b"{\"a\": 1, \"a\": 2, \"b\": 3}", "a=2&b=3"),
        ("application/json", b"not json", ""),
        ("application/json", b"\"text\"", ""),
        ("application/json", b"", ""),
        ("application/json; charset=utf-8", b"{\"n\": 1e21, \"m\": 1e-7, \"k\": 12345678901234567, \"l\": -0.5, \"big\": 1e16}", "n=1e%2B21&m=1e-07&k=12345678901234567&l=-0.5&big=1e%2B16"),
        ("text/plain", b"{\"a\": \"b\"}", "a=b"),
        ("text/plain;charset=UTF-8", b"hello", "__wb_post_data=aGVsbG8="),
        ("text/plain", b"", "__wb_post_data="),
        ("multipart/form-data; boundary=XX", b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none two\r\n--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\xffz\r\n--XX--\r\n", "a=one+two&f=%00%FFz"),
        ("multipart/form-data; boundary=XX", b"--XX\r\nContent-Disposition: form-data; name=\"\xc3\xbc\"\r\n\r\nline1\r\nline2\r\n--XX\r\nContent-Disposition: form-data; name=\"e\"\r\n\r\n\r\n--XX--\r\n", "%C3%BC=line1%0D%0Aline2&e="),
        ("multipart/form-data", b"xyz", "__wb_post_data=eHl6"),
        ("application/octet-stream", b"\x00\x01\x02", "__wb_post_data=AAEC"),
        ("", b"raw", "__wb_post_data=cmF3"),
    ] as [(&str, &[u8], &str); 21] {
        let got = body_query(content_type, body, Spelling::Python);
        assert_eq!(got, want, "{content_type} {}", body.escape_ascii());
    }
}

#[test]
fn modern_values() {
    let json = br#"{"a": true, "b": false, "c": null, "d": 44.0, "e": 1e16, "f": 1e-7, "g": 1e21}"#;
    let modern = "a=true&b=false&c=null&d=44&e=10000000000000000&f=1e-7&g=1e%2B21";
    assert_eq!(body_query("application/json", json, Spelling::Modern), modern);
    // Either spelling compares equal once both are made modern, in bodies and in lower-cased keys.
    let python = body_query("application/json", json, Spelling::Python);
    assert_eq!(modern_spelling(&python), modern);
    assert_eq!(modern_spelling(modern), modern);
    assert_eq!(
        modern_spelling("com,e)/?__wb_method=post&a=none&b=44.0"),
        "com,e)/?__wb_method=post&a=null&b=44"
    );
}

#[test]
fn bodies_are_cut_by_characters() {
    let long = format!("a={}", "ü".repeat(5000));
    let query = body_query("application/x-www-form-urlencoded", long.as_bytes(), Spelling::Modern);
    assert_eq!(query.chars().count(), QUERY_CHARS_MAX);
}

#[test]
fn bodies_that_only_we_read() {
    let quoted = b"--a b\nContent-Disposition: form-data; name=x\n\nv\n--a b--";
    assert_eq!(
        body_query("multipart/form-data; boundary=\"a b\"; charset=utf-8", quoted, Spelling::Modern),
        "x=v"
    );
    let broken = b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end";
    assert!(
        body_query("multipart/form-data; boundary=XX", broken, Spelling::Modern)
            .starts_with("__wb_post_data=")
    );
}

#[test]
fn urls_take_the_body_behind_their_query() {
    assert_eq!(url_with_body("http://e.com/", "PUT", ""), "http://e.com/?__wb_method=PUT");
    assert_eq!(url_with_body("http://e.com/?a", "POST", "b=1"), "http://e.com/?a&__wb_method=POST&b=1");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_body_panics(kind in 0..6usize, body in prop::collection::vec(any::<u8>(), 0..300)) {
        let kinds = ["application/json", "text/plain", "multipart/form-data; boundary=a", "application/x-www-form-urlencoded", "multipart/x; boundary=", ""];
        let query = body_query(kinds[kind], &body, Spelling::Modern);
        prop_assert!(query.chars().count() <= QUERY_CHARS_MAX);
        let _ = modern_spelling(&query);
    }
}
