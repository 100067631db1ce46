//! Binary search in plain files.

use cdx::SortedFile;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Cursor;
use urlkey::{Dialect, KeyRange, MatchType, search_range};

fn found(text: &str, range: &KeyRange) -> Vec<String> {
    let mut file = SortedFile::new(Cursor::new(text.as_bytes())).unwrap();
    let lines = file.lines_in(range).unwrap();
    lines.map(|line| String::from_utf8(line.unwrap()).unwrap()).collect()
}

fn expected(text: &str, range: &KeyRange) -> Vec<String> {
    text.lines().filter(|line| range.contains(line)).map(str::to_owned).collect()
}

/// About 200 kB: several halvings before the file is read on.
fn large() -> String {
    let mut text = String::from(" CDX N b a m s k r M S V g\n");
    for host in 0..40 {
        for page in 0..40 {
            for time in 0..2 {
                let filler = "x".repeat(page * 2);
                writeln!(text, "com,host{host:02})/page{page:02} 2026010203040{time} {filler}").unwrap();
            }
        }
    }
    text
}

#[test]
fn lines_all_over_a_large_file_are_found() {
    let text = large();
    for line in text.lines().skip(1).step_by(11) {
        let key = line.split(' ').next().unwrap();
        let range = KeyRange { start: key.to_owned(), end: format!("{key}!") };
        let got = found(&text, &range);
        assert_eq!(got.len(), 2, "{key}");
        assert_eq!(got, expected(&text, &range));
    }
}

#[test]
fn ranges_by_url() {
    let text = large();
    for (url, kind, want) in [
        ("http://host07.com/page03", MatchType::Exact, 2),
        ("http://host07.com/page1", MatchType::Prefix, 20),
        ("host07.com", MatchType::Host, 80),
        ("host07.com", MatchType::Domain, 80),
        ("com", MatchType::Domain, 3200),
        ("http://host99.com/", MatchType::Domain, 0),
        ("http://a.aa/", MatchType::Domain, 0),
    ] {
        let range = search_range(url, kind, Dialect::Standard);
        assert_eq!(found(&text, &range).len(), want, "{url} {kind:?}");
    }
}

#[test]
fn odd_files() {
    let range = KeyRange { start: "b".to_owned(), end: "c".to_owned() };
    for (text, want) in [
        ("", &[][..]),
        ("\n", &[]),
        ("b 1", &["b 1"]),
        ("a\r\nb 1\r\nb 2\r\nc\r\n", &["b 1", "b 2"]),
        ("a\nb 1\nb 2", &["b 1", "b 2"]),
    ] {
        assert_eq!(found(text, &range), want, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_scan_finds(
        keys in prop::collection::vec(("[a-e]{1,4}", 0..600usize), 0..300),
        start in "[a-e]{1,3}",
        len in 0..3usize,
    ) {
        let mut lines: Vec<String> = keys.iter().map(|(key, len)| format!("{key} {}", "x".repeat(*len))).collect();
        lines.sort();
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let range = KeyRange { end: format!("{start}{}", "f".repeat(len)), start };
        prop_assert_eq!(found(&text, &range), expected(&text, &range));
    }
}
