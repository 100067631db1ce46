//! Damage of ARC files: the good records around it are read, and it has a name.

mod common;

use common::{arc, arc_page, check_all, filedesc, gzip, join, page, position, record};

#[test]
fn arcs() {
    let [a, b] = [1, 2].map(arc_page);
    let f = filedesc();
    let block = page(1);
    let len = block.len();
    let line = |line: &str| join(&[&f, &arc(&line.replace("LEN", &len.to_string()), &block), &b]);
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("sound", join(&[&f, &a, &b]), "test.arc 1 2", ""),
        ("sound gzip", join(&[&gzip(&f), &gzip(&a), &gzip(&b)]), "test.arc 1 2", ""),
        ("without filedesc", join(&[&a, &b]), "1 2", "arc-without-filedesc"),
        (
            "version 2",
            line("http://x/1 192.0.2.1 20260102030405 text/html 200 - - 0 x.arc LEN"),
            "test.arc 1 2",
            "",
        ),
        (
            "blanks in the URL",
            line("http://x/a b/1 192.0.2.1 20260102030405 text/html LEN"),
            "test.arc 1 2",
            "arc-extra-fields odd-target-uri",
        ),
        (
            "blanks in the MIME type",
            line("http://x/1 192.0.2.1 20260102030405 text/html; charset=x LEN"),
            "test.arc 1 2",
            "arc-extra-fields",
        ),
        (
            "no MIME type",
            line("http://x/1 192.0.2.1 20260102030405  LEN"),
            "test.arc 1 2",
            "arc-short-header",
        ),
        (
            "transposed",
            line("http://x/1 20260102030405 192.0.2.1 text/html LEN"),
            "test.arc 1 2",
            "arc-transposed-header",
        ),
        ("a date of 8 digits", line("http://x/1 192.0.2.1 20260102 text/html LEN"), "test.arc 1 2", ""),
        (
            "a date of 16 digits",
            line("http://x/1 192.0.2.1 2026010203040506 text/html LEN"),
            "test.arc 1 2",
            "bad-date",
        ),
        (
            "a date with text",
            line("http://x/1 192.0.2.1 20260102030405jpg text/html LEN"),
            "test.arc 1 2",
            "bad-date",
        ),
        ("no date", line("http://x/1 192.0.2.1 deadbeef text/html LEN"), "test.arc 1 2", "bad-date"),
        (
            "negative length",
            line("http://x/1 192.0.2.1 20260102030405 text/html -1"),
            "test.arc 1 2",
            "bad-content-length",
        ),
        (
            "no length",
            line("http://x/1 192.0.2.1 20260102030405 text/html abc"),
            "test.arc 1 2",
            "bad-content-length",
        ),
        (
            "length beyond the end",
            line("http://x/1 192.0.2.1 20260102030405 text/html 999999"),
            "test.arc 1 2",
            "content-length-too-long",
        ),
        (
            "length too short",
            line("http://x/1 192.0.2.1 20260102030405 text/html 20"),
            "test.arc 1 2",
            "http-unterminated-head http-line-without-colon content-length-too-short",
        ),
        (
            "zero length",
            join(&[&f, &arc("http://x/1 192.0.2.1 20260102030405 text/html 0", b""), &b]),
            "test.arc 1 2",
            "http-no-head",
        ),
        (
            "raw bytes in the URL",
            {
                let mut bytes = line("http://x/\x01\x02/1 192.0.2.1 20260102030405 text/html LEN");
                let at = position(&bytes, b"\x01\x02");
                bytes[at..at + 2].copy_from_slice(b"\xe9\xff");
                bytes
            },
            "test.arc 1 2",
            "odd-target-uri",
        ),
        ("ARC and WARC in one file", join(&[&gzip(&f), &gzip(&a), &gzip(&record(3))]), "test.arc 1 3", ""),
    ];
    check_all(cases);
}
