//! Lines read and written.

use cdx::{Column, Entry, Legend, Line, LineProblem, parse_line};
use proptest::prelude::*;
use std::borrow::Cow;

const CDX9: &str = "com,example)/ 20260102030405 http://example.com/ text/html 200 AAAA - 512 a.warc.gz";
const CDX10: &str = "com,example)/ 20260102030405 http://example.com/ text/html 200 AAAA - - 512 a.warc.gz";
const CDX11: &str =
    "com,example)/ 20260102030405 http://example.com/ text/html 200 AAAA - AI 99 512 a.warc.gz";
const CDX14: &str = "com,example)/ 20260102030405 http://example.com/ warc/revisit - AAAA - - 99 512 a.warc.gz 9000 17 b.warc.gz";
const CDXJ: &str = r#"com,example)/ 20260102030405 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:AAAA", "length": "99", "offset": "512", "filename": "a.warc.gz"}"#;

fn entry(line: &str) -> (Entry<'_>, Vec<LineProblem>) {
    match parse_line(line.as_bytes(), None) {
        Line::Entry(entry, problems) => (entry, problems),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn every_form_is_read_and_written_back() {
    for (line, legend) in [
        (CDX9, Some(Legend::cdx9())),
        (CDX10, Some(Legend::cdx10())),
        (CDX11, Some(Legend::cdx11())),
        (CDX14, Some(Legend::cdx14())),
        (CDXJ, None),
    ] {
        let (entry, problems) = entry(line);
        assert_eq!(problems, [], "{line}");
        assert_eq!(entry.url.as_deref(), Some("http://example.com/"));
        assert_eq!((entry.offset, entry.filename.as_deref()), (Some(512), Some("a.warc.gz")));
        let mut out = Vec::new();
        match legend {
            Some(legend) => entry.write_cdx(&legend, &mut out),
            None => entry.write_cdxj(&mut out),
        }
        assert_eq!(String::from_utf8(out).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn fields_of_the_long_forms() {
    let (entry, _) = entry(CDX14);
    assert!(entry.is_revisit() && entry.status.is_none());
    let original = entry.original.unwrap();
    assert_eq!(
        (original.length, original.offset, original.filename.as_deref()),
        (Some(9000), Some(17), Some("b.warc.gz"))
    );
    assert_eq!(super::lines::entry(CDX11).0.robots.as_deref(), Some("AI"));
    assert_eq!(super::lines::entry(CDXJ).0.bare_digest(), Some("AAAA"));
}

#[test]
fn what_is_wrong_is_named_and_the_rest_is_kept() {
    use LineProblem::{
        BadJson, BadLength, BadOffset, BadStatus, BadTimestamp, TooFewColumns, TooManyColumns,
    };
    for (line, problems, url) in [
        ("k 2026 http://e.com/ a b c d", &[TooFewColumns, BadStatus][..], Some("http://e.com/")),
        (
            "k 20260102030405 http://e.com/a b c text/html 200 A - - 9 8 f",
            &[TooManyColumns],
            Some("http://e.com/a b c"),
        ),
        ("k 20260102030405 http://e.com/ t/h 2x0 A - - 9 8 f", &[BadStatus], Some("http://e.com/")),
        ("k 20260102030405 http://e.com/ t/h 200 A - - nine 8 f", &[BadLength], Some("http://e.com/")),
        ("k 20260102030405 http://e.com/ t/h 200 A - - 9 -8 f", &[BadOffset], Some("http://e.com/")),
        (r#"k 2026x {"url": "u"}"#, &[BadTimestamp], Some("u")),
        (r#"k 20260102030405 {"url": "u""#, &[BadJson], Some("u")),
        (r#"k 20260102030405 {"url": "u", "status": "-", "length": "", "offset": null}"#, &[], Some("u")),
        (
            r#"k 20260102030405 {"offset": -1, "status": "abc", "length": 1.5}"#,
            &[BadOffset, BadStatus, BadLength],
            None,
        ),
        ("k 20260102030405 {}", &[], None),
    ] {
        let (entry, got) = entry(line);
        assert_eq!(got, problems, "{line}");
        assert_eq!(entry.url.as_deref(), url, "{line}");
        assert_eq!(entry.key, "k");
    }
}

#[test]
fn lines_that_are_no_captures() {
    assert!(matches!(parse_line(b"", None), Line::Blank));
    assert!(matches!(parse_line(b" \r\n", None), Line::Blank));
    assert!(matches!(parse_line(b"!meta 0 {\"format\": \"x\"}\n", None), Line::Meta(_)));
    assert!(matches!(parse_line(b" CDX N b a m s k r V g\n", None), Line::Legend(_)));
    assert!(matches!(parse_line(b"one", None), Line::Unreadable));
    assert!(matches!(parse_line(b"no index line at all", None), Line::Unreadable));
}

#[test]
fn the_legend_decides_the_columns() {
    let wget = Legend::parse(b" CDX a b a m s k r M V g u").unwrap();
    assert_eq!(wget.columns().iter().filter(|column| **column == Column::Url).count(), 1);
    let line = b"http://example.com/ 20260102030405 http://example.com/ text/html 200 AAAA - - 512 a.warc <urn:uuid:1>";
    let Line::Entry(entry, problems) = parse_line(line, Some(&wget)) else { panic!() };
    assert_eq!((entry.key.as_ref(), entry.offset, problems.len()), ("com,example)/", Some(512), 0));
    let tabs = Legend::parse(b"\tCDX\tN\tb\ta").unwrap();
    let Line::Entry(entry, _) = parse_line(b"k\t20260102030405\thttp://e.com/a b", Some(&tabs)) else {
        panic!()
    };
    assert_eq!(entry.url.as_deref(), Some("http://e.com/a b"));
    assert_eq!(Legend::cdx11().line(), " CDX N b a m s k r M S V g");
    assert!(Legend::parse(b"xCDXxN").is_none());
}

#[test]
fn json_is_written_as_python_does() {
    let entry = Entry {
        key: Cow::Borrowed("k"),
        timestamp: Cow::Borrowed("20260102030405"),
        url: Some(Cow::Borrowed("http://e.com/\"\\ü\u{1f600}\n\u{1}\u{7f}")),
        extra: vec![
            (Cow::Borrowed("http:x"), serde_json::json!("v")),
            (Cow::Borrowed("n"), serde_json::json!([1, null])),
        ],
        request_body: Some(Cow::Borrowed("")),
        method: Some(Cow::Borrowed("POST")),
        ..Entry::default()
    };
    let mut out = Vec::new();
    entry.write_cdxj(&mut out);
    let want = concat!(
        r#"k 20260102030405 {"url": "http://e.com/\"\\\u00fc\ud83d\ude00\n\u0001"#,
        "\u{7f}",
        r#"", "http:x": "v", "n": [1,null], "requestBody": "", "method": "POST"}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(out.clone()).unwrap(), want);
    assert_eq!(parse_line(&out, None).entry(), Some(entry));
}

#[test]
fn a_column_never_holds_its_delimiter() {
    let entry = Entry {
        key: "k".into(),
        timestamp: "2026".into(),
        url: Some("http://e.com/a b\nc".into()),
        mime: Some("".into()),
        ..Entry::default()
    };
    let mut out = Vec::new();
    entry.write_cdx(&Legend::cdx9(), &mut out);
    assert_eq!(out, b"k 2026 http://e.com/a%20b%0ac - - - - - -\n");
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_named() {
    let Line::Entry(entry, problems) =
        parse_line(b"k 20260102030405 http://e.com/\xe9 t/h 200 A - - 9 8 f", None)
    else {
        panic!()
    };
    assert_eq!(entry.url.as_deref(), Some("http://e.com/\u{fffd}"));
    assert_eq!(problems, [LineProblem::NotUtf8]);
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[a-zA-Z0-9:/.é\"\\\\ -]{1,12}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(line in prop::collection::vec(any::<u8>(), 0..200), legend in prop::collection::vec(any::<u8>(), 0..20)) {
        let legend = Legend::parse(&[b" CDX ".as_slice(), &legend].concat());
        let _ = parse_line(&line, legend.as_ref());
        let _ = parse_line(&line, None);
    }

    #[test]
    fn no_near_line_panics(line in "[a-z,)/]{0,5} ?[0-9]{0,15} ?[{}\":,0-9a-z \\\\-]{0,60}") {
        let _ = parse_line(line.as_bytes(), None);
    }

    #[test]
    fn any_entry_written_as_json_is_read_back(url in text(), mime in text(), digest in text(), filename in text(),
        status in prop::option::of(0..1000u16), length in any::<Option<u64>>(), offset in any::<Option<u64>>(),
        body in text(), robots in text()) {
        let own = |text: Option<String>| text.map(Cow::Owned);
        let entry = Entry {
            key: "com,example)/".into(), timestamp: "20260102030405".into(),
            url: own(url), mime: own(mime), digest: own(digest), filename: own(filename), status, length, offset,
            request_body: own(body), robots: own(robots), ..Entry::default()
        };
        let mut line = Vec::new();
        entry.write_cdxj(&mut line);
        prop_assert!(line.is_ascii());
        prop_assert_eq!(parse_line(&line, None), Line::Entry(entry, vec![]));
    }
}
