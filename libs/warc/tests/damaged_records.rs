//! Damage of record headers and lengths: the good records around it are read, and it has a name.

mod common;

use common::{check_all, gzip, header, join, page, read, record, record_of_length, replaced, uri};
use warc::Reader;

#[test]
fn headers() {
    let [a, b] = [1, 2].map(record);
    let length = page(1).len().to_string();
    let lf = String::from_utf8(a.clone()).unwrap();
    let (lf_head, lf_block) = lf.split_once("\r\n\r\n").unwrap();
    let lf =
        join(&[lf_head.replace("\r\n", "\n").as_bytes(), b"\n\n", lf_block.trim_end().as_bytes(), b"\n\n"]);
    let folded = join(&[header(1, &length, "X-Long: one\r\n two\r\n").as_bytes(), &page(1), b"\r\n\r\n"]);
    let long = "v".repeat(100 << 10);
    let long = join(&[header(1, &length, &format!("X-Long: {long}\r\n")).as_bytes(), &page(1), b"\r\n\r\n"]);
    let huge = "v".repeat(2 << 20);
    let huge = join(&[header(1, &length, &format!("X-Long: {huge}\r\n")).as_bytes(), &page(1), b"\r\n\r\n"]);
    let colon = join(&[header(1, &length, "no colon\r\n").as_bytes(), &page(1), b"\r\n\r\n"]);
    let double =
        join(&[header(1, &length, "WARC-Date: 2020-01-01T00:00:00Z\r\n").as_bytes(), &page(1), b"\r\n\r\n"]);
    let with = |from: &str, to: &str| join(&[&replaced(&a, from, to), &b]);
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("LF only", join(&[&lf, &b]), "1 2", "bare-lf"),
        ("folded", join(&[&folded, &b]), "1 2", "folded-header"),
        ("a value of 100 kB", join(&[&long, &b]), "1 2", ""),
        (
            "a header of 2 MB",
            join(&[&huge, &b]),
            "1 2",
            "header-too-long http-no-head content-length-too-short",
        ),
        ("a line without colon", join(&[&colon, &b]), "1 2", "line-without-colon"),
        ("a repeated field", join(&[&double, &b]), "1 2", "duplicate-field"),
        ("version 0.9", with("WARC/1.1", "WARC/0.9"), "1 2", ""),
        ("version 0.17", with("WARC/1.1", "WARC/0.17"), "1 2", ""),
        ("version 0.18", with("WARC/1.1", "WARC/0.18"), "1 2", ""),
        ("version 2.0", with("WARC/1.1", "WARC/2.0"), "1 2", "unknown-version"),
        ("lower case", with("WARC/1.1\r\nWARC-Type", "warc/1.1\r\nwarc-type"), "1 2", ""),
        ("no type", with("WARC-Type: response\r\n", ""), "1 2", "missing-type"),
        ("a strange type", with("WARC-Type: response", "WARC-Type: monkey"), "1 2", "unknown-type"),
        ("no id", with("WARC-Record-ID", "X-Record-ID"), "1 2", "missing-record-id"),
        ("no date", with("WARC-Date: 2026-01-02T03:04:05Z\r\n", ""), "1 2", "missing-date"),
        ("a year", with("2026-01-02T03:04:05Z", "2026"), "1 2", ""),
        ("nanoseconds", with("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789Z"), "1 2", ""),
        ("no date at all", with("2026-01-02T03:04:05Z", "yesterday"), "1 2", "bad-date"),
        ("no target", with("WARC-Target-URI", "X-Target-URI"), "? 2", "missing-target-uri"),
        ("brackets", with(&uri(1), &format!("<{}>", uri(1))), "1 2", "bracketed-target-uri"),
        ("blanks in the URI", with(&uri(1), "http://example.org/a b/1"), "1 2", "odd-target-uri"),
        (
            "no blank line",
            join(&[b"WARC/1.1\r\nWARC-Type: metadata\r\n", &b]),
            "? 2",
            "unterminated-header missing-record-id missing-date wrong-record-end",
        ),
        (
            "a continuation without number",
            with("WARC-Type: response", "WARC-Type: continuation"),
            "1 2",
            "bad-segment",
        ),
        ("garbage between", join(&[&a, b"garbage\r\nmore\r\n", &b]), "1 2", "garbage-between-records"),
        ("garbage at the end", join(&[&a, b"garbage"]), "1", "garbage-between-records"),
        ("garbage first", join(&[b"garbage\r\n", &a, &b]), "1 2", "garbage-between-records"),
    ];
    check_all(cases);
}

#[test]
fn lengths() {
    let b = record(2);
    let c = record(3);
    let real = page(1).len();
    let of = |length: &str| join(&[&record_of_length(1, length), &b, &c]);
    let ends = |count: usize| {
        let sound = record(1);
        join(&[&sound[..sound.len() - 4], &b"\r\n".repeat(count), &b])
    };
    let packed = |length: &str| join(&[&gzip(&record_of_length(1, length)), &gzip(&b)]);
    let without =
        |bytes: &[u8]| replaced(bytes, &format!("Content-Length: {real}\r\nWARC-Block"), "WARC-Block");
    let one = record(1);
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("missing", join(&[&without(&one), &b]), "1 2", "missing-content-length"),
        ("missing in gzip", join(&[&gzip(&without(&one)), &gzip(&b)]), "1 2", "missing-content-length"),
        (
            "missing in one member",
            gzip(&join(&[&without(&one), &b])),
            "1 2",
            "missing-content-length several-records-in-member",
        ),
        ("negative", of("-1"), "1 2 3", "bad-content-length"),
        ("no number", of("abc"), "1 2 3", "bad-content-length"),
        ("empty", of(""), "1 2 3", "bad-content-length"),
        ("2^63", of("9223372036854775808"), "1 2 3", "bad-content-length"),
        ("2^64", of("18446744073709551616"), "1 2 3", "bad-content-length"),
        ("beyond the end", of("1000000"), "1 2 3", "content-length-too-long"),
        (
            "over the next record",
            of(&(real + 300).to_string()),
            "1 2 3",
            "wrong-record-end content-length-too-long",
        ),
        (
            "too short",
            of("20"),
            "1 2 3",
            "http-unterminated-head http-line-without-colon content-length-too-short",
        ),
        ("one too short", of(&(real - 1).to_string()), "1 2 3", "content-length-too-short"),
        ("one too long", of(&(real + 1).to_string()), "1 2 3", "wrong-record-end"),
        ("zero", of("0"), "1 2 3", "http-no-head content-length-too-short"),
        ("too long in gzip", packed("1000000"), "1 2", "content-length-too-long"),
        (
            "too short in gzip",
            packed("20"),
            "1 2",
            "http-unterminated-head http-line-without-colon content-length-too-short",
        ),
        ("huge in gzip", packed("99999999999999999999"), "1 2", "bad-content-length"),
        ("no line end", ends(0), "1 2", "wrong-record-end"),
        ("one line end", ends(1), "1 2", "wrong-record-end"),
        ("three line ends", ends(3), "1 2", "wrong-record-end"),
        ("nine line ends", ends(9), "1 2", "wrong-record-end"),
        ("cut in the block", join(&[&b, &one[..one.len() - 30]]), "2 1", "content-length-too-long"),
        (
            "cut in the header",
            join(&[&b, &one[..60]]),
            "2 ?",
            "unterminated-header missing-date missing-target-uri http-no-head wrong-record-end",
        ),
    ];
    check_all(cases);
    // A stream has no known length: what a length swallows is lost, but it ends and says so.
    let seen = read(Reader::new(std::io::Cursor::new(of("1000000"))).unwrap());
    assert_eq!((seen.pages, seen.kinds), (vec!["1".to_owned()], vec!["truncated-record"]));
}
