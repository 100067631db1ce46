//! Keys against what the other canonicalizers gave.

use urlkey::{Dialect, Keyer};

#[path = "../../../skipped.rs"]
mod skipped;

const CASES: &str = include_str!("../cases/keys.tsv");
const SHARED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/warc-samples/surt-differential.tsv");

fn key(url: &[u8], dialect: Dialect) -> String {
    let mut out = String::new();
    Keyer::new(dialect).key_bytes_into(url, &mut out);
    out
}

#[test]
fn every_case_has_the_key_that_its_row_states() {
    let mut wrong = Vec::new();
    let rows = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    for line in rows {
        let columns: Vec<Vec<u8>> = line.split('\t').map(unescape).collect();
        let [url, standard, ia, outback, why @ ..] = columns.as_slice() else { panic!("columns of {line}") };
        let mut check = |dialect: Dialect, want: &[u8]| {
            let want = if want == b"=" { standard } else { want };
            let got = key(url, dialect);
            if want != b"?" && got != String::from_utf8_lossy(want) {
                wrong.push(format!("{line}\n    {} gives {got}", dialect.name()));
            }
        };
        check(Dialect::Standard, standard);
        check(Dialect::Ia, ia);
        check(Dialect::Outback, outback);
        assert_eq!(ia != b"=", !why.is_empty(), "a row that leaves ia says why, and only that: {line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_measured_differences_holds() {
    let Ok(table) = std::fs::read_to_string(SHARED) else {
        // tests/cases/keys.tsv covers the same behaviour.
        return skipped::note_skipped(SHARED);
    };
    let mut wrong = Vec::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [url, pywb, _commons, outback, _equal] = columns[..] else { panic!("columns of {line}") };
        for (dialect, want) in [(Dialect::Standard, pywb), (Dialect::Ia, pywb), (Dialect::Outback, outback)] {
            let got = key(url.as_bytes(), dialect);
            if got != want {
                wrong.push(format!("{url} {}: {got}, not {want}", dialect.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keys_are_appended_and_buffers_are_used_again() {
    let mut keyer = Keyer::new(Dialect::Standard);
    let mut out = String::from("before ");
    keyer.key_into("http://example.com/a", &mut out);
    keyer.key_into("http://b%C3%BCcher.example/%41", &mut out);
    assert_eq!(out, "before com,example)/aexample,xn--bcher-kva)/a");
}

#[test]
fn canonical_urls() {
    for (url, want) in [
        ("HTTP://WWW.Example.com:80/A/?b&a#c", "http://example.com/a?a&b"),
        ("https://example.com:8443", "https://example.com:8443/"),
        ("http://[2001:DB8::1]:81/x", "http://[2001:db8::1]:81/x"),
        ("dns:www.example.com", "dns:www.example.com"),
        ("example.com/x", "http://example.com/x"),
        ("http://straße.example/", "http://strasse.example/"),
    ] {
        assert_eq!(urlkey::canonical(url), want, "{url}");
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (escape, after) = rest[at + 1..].split_at(1);
        let hex = |len: usize| u32::from_str_radix(&after[..len], 16).unwrap();
        rest = match escape {
            "x" => {
                out.push(hex(2) as u8);
                &after[2..]
            }
            "u" => {
                out.extend(char::from_u32(hex(4)).unwrap().to_string().bytes());
                &after[4..]
            }
            other => {
                out.push(match other {
                    "t" => b'\t',
                    "n" => b'\n',
                    "r" => b'\r',
                    _ => b'\\',
                });
                after
            }
        };
    }
    out.extend_from_slice(rest.as_bytes());
    out
}
