//! Every damage in the book: the good records around it are read, and it has a name.

mod common;

use common::{
    Seen, arc, arc_page, filedesc, gzip, header, join, page, read, record, record_of_length, skippable, uri,
    zstd,
};
use warc::Reader;

/// Checks the pages read and the kinds of problems, both as words, and tells all cases that differ.
fn check_all(cases: &[(&str, Vec<u8>, &str, &str)]) {
    let mut wrong = String::new();
    for (name, bytes, pages, kinds) in cases {
        let Seen {
            pages: got_pages,
            kinds: got_kinds,
        } = read(Reader::from_bytes(&bytes[..]).unwrap());
        let got = (got_pages.join(" "), got_kinds.join(" "));
        if (got.0.as_str(), got.1.as_str()) != (*pages, *kinds) {
            wrong += &format!(
                "{name}:\n  expected {pages:?} {kinds:?}\n  got      {:?} {:?}\n",
                got.0, got.1
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = memchr_find(bytes, from.as_bytes());
    join(&[&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]])
}

fn memchr_find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
        .expect("the text to replace")
}

#[test]
fn containers() {
    let [a, b, c] = [1, 2, 3].map(record);
    let [ga, gb, gc] = [&a, &b, &c].map(|plain| gzip(plain));
    let split = a.len() - 60;
    let mut bad_crc = gb.clone();
    let crc = bad_crc.len() - 8;
    bad_crc[crc] ^= 1;
    let mut corrupt = gb.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 12].fill(0xff);
    let cut = &gb[..gb.len() - 20];
    let dictionary =
        b"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response".repeat(4);
    let [za, zb] = [&a, &b].map(|plain| zstd(plain, &[]));
    let [da, db] = [&a, &b].map(|plain| zstd(plain, &dictionary));
    let mut bad_zstd = za.clone();
    let last = bad_zstd.len() - 1;
    bad_zstd[last] ^= 1;
    let extra = {
        // The member again, with an extra field "sl" and a name.
        let mut header = ga[..10].to_vec();
        header[3] = 4 | 8;
        join(&[&header, &[12, 0, b's', b'l', 8, 0], &[7; 8], b"name\0", &ga[10..]])
    };
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("plain", join(&[&a, &b, &c]), "1 2 3", ""),
        ("gzip", join(&[&ga, &gb, &gc]), "1 2 3", ""),
        ("extra field", join(&[&extra, &gb]), "1 2", ""),
        (
            "whole file in one member",
            gzip(&join(&[&a, &b, &c])),
            "1 2 3",
            "several-records-in-member",
        ),
        (
            "two records in a member",
            join(&[&gzip(&join(&[&a, &b])), &gc]),
            "1 2 3",
            "several-records-in-member",
        ),
        (
            "a record over two members",
            join(&[&gzip(&a[..split]), &gzip(&a[split..]), &gb]),
            "1 2",
            "record-spans-members",
        ),
        (
            "a header over two members",
            join(&[&gzip(&a[..50]), &gzip(&a[50..]), &gb]),
            "1 2",
            "record-spans-members",
        ),
        (
            "an empty member first",
            join(&[&gzip(b""), &ga, &gb]),
            "1 2",
            "empty-member",
        ),
        (
            "empty members between",
            join(&[&ga, &gzip(b""), &gzip(b""), &gb]),
            "1 2",
            "empty-member empty-member",
        ),
        (
            "junk between",
            join(&[&ga, b"JUNKJUNK", &gb]),
            "1 2",
            "junk-between-members",
        ),
        (
            "junk that looks like a member",
            join(&[&ga, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 9, 9, 9], &gb]),
            "1 2",
            "corrupt-data",
        ),
        (
            "junk first",
            join(&[b"\0\x01garbage", &ga, &gb]),
            "1 2",
            "junk-between-members",
        ),
        (
            "zeros between",
            join(&[&ga, &[0; 5000], &gb]),
            "1 2",
            "zero-padding",
        ),
        (
            "zeros at the end",
            join(&[&ga, &gb, &[0; 1024]]),
            "1 2",
            "zero-padding",
        ),
        (
            "junk at the end",
            join(&[&ga, b"xyz"]),
            "1",
            "junk-between-members",
        ),
        (
            "half a magic at the end",
            join(&[&ga, &[0x1f, 0x8b]]),
            "1",
            "truncated-member",
        ),
        (
            "wrong checksum",
            join(&[&ga, &bad_crc, &gc]),
            "1 2 3",
            "bad-checksum",
        ),
        (
            "corrupt in the middle",
            join(&[&ga, &corrupt, &gc]),
            "1 example.or 3",
            "corrupt-data unterminated-header http-no-head",
        ),
        (
            "cut, others follow",
            join(&[&ga, cut, &gc]),
            "1 2 3",
            "bad-checksum",
        ),
        ("cut at the end", join(&[&ga, cut]), "1 2", "truncated-member"),
        (
            "plain text after members",
            join(&[&ga, b"not a member at all"]),
            "1",
            "junk-between-members",
        ),
        ("zstd", join(&[&za, &zb]), "1 2", ""),
        (
            "zstd, all in one frame",
            zstd(&join(&[&a, &b]), &[]),
            "1 2",
            "several-records-in-member",
        ),
        (
            "zstd with other skippable frames",
            join(&[&skippable(0, b"x"), &za, &skippable(7, &[1; 99]), &zb]),
            "1 2",
            "",
        ),
        (
            "zstd with dictionary",
            join(&[&skippable(13, &dictionary), &da, &db]),
            "1 2",
            "",
        ),
        (
            "zstd with packed dictionary",
            join(&[&skippable(13, &zstd(&dictionary, &[])), &da, &db]),
            "1 2",
            "",
        ),
        (
            "zstd with junk between",
            join(&[&za, b"JUNK", &zb]),
            "1 2",
            "junk-between-members",
        ),
        (
            "zstd with a wrong checksum",
            join(&[&bad_zstd, &zb]),
            "1 2",
            "bad-checksum",
        ),
        (
            "zstd cut",
            join(&[&za, &zb[..zb.len() - 9]]),
            "1",
            "truncated-member",
        ),
        (
            "lz4",
            vec![0x04, 0x22, 0x4d, 0x18, 0x40, 0x40],
            "",
            "unsupported-container",
        ),
        ("nothing", Vec::new(), "", "not-an-archive"),
        (
            "a sentence",
            b"This is no archive.\n".to_vec(),
            "",
            "not-an-archive",
        ),
        ("an empty member alone", gzip(b""), "", "empty-member"),
        (
            "a packed sentence",
            gzip(b"This is no archive.\n"),
            "",
            "not-an-archive",
        ),
    ];
    check_all(cases);
}

#[test]
fn headers() {
    let [a, b] = [1, 2].map(record);
    let length = page(1).len().to_string();
    let lf = String::from_utf8(a.clone()).unwrap();
    let (lf_head, lf_block) = lf.split_once("\r\n\r\n").unwrap();
    let lf = join(&[
        lf_head.replace("\r\n", "\n").as_bytes(),
        b"\n\n",
        lf_block.trim_end().as_bytes(),
        b"\n\n",
    ]);
    let folded = join(&[
        header(1, &length, "X-Long: one\r\n two\r\n").as_bytes(),
        &page(1),
        b"\r\n\r\n",
    ]);
    let long = "v".repeat(100 << 10);
    let long = join(&[
        header(1, &length, &format!("X-Long: {long}\r\n")).as_bytes(),
        &page(1),
        b"\r\n\r\n",
    ]);
    let huge = "v".repeat(2 << 20);
    let huge = join(&[
        header(1, &length, &format!("X-Long: {huge}\r\n")).as_bytes(),
        &page(1),
        b"\r\n\r\n",
    ]);
    let colon = join(&[
        header(1, &length, "no colon\r\n").as_bytes(),
        &page(1),
        b"\r\n\r\n",
    ]);
    let double = join(&[
        header(1, &length, "WARC-Date: 2020-01-01T00:00:00Z\r\n").as_bytes(),
        &page(1),
        b"\r\n\r\n",
    ]);
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
        (
            "a line without colon",
            join(&[&colon, &b]),
            "1 2",
            "line-without-colon",
        ),
        ("a repeated field", join(&[&double, &b]), "1 2", "duplicate-field"),
        ("version 0.9", with("WARC/1.1", "WARC/0.9"), "1 2", ""),
        ("version 0.17", with("WARC/1.1", "WARC/0.17"), "1 2", ""),
        ("version 0.18", with("WARC/1.1", "WARC/0.18"), "1 2", ""),
        (
            "version 2.0",
            with("WARC/1.1", "WARC/2.0"),
            "1 2",
            "unknown-version",
        ),
        (
            "lower case",
            with("WARC/1.1\r\nWARC-Type", "warc/1.1\r\nwarc-type"),
            "1 2",
            "",
        ),
        (
            "no type",
            with("WARC-Type: response\r\n", ""),
            "1 2",
            "missing-type",
        ),
        (
            "a strange type",
            with("WARC-Type: response", "WARC-Type: monkey"),
            "1 2",
            "unknown-type",
        ),
        (
            "no id",
            with("WARC-Record-ID", "X-Record-ID"),
            "1 2",
            "missing-record-id",
        ),
        (
            "no date",
            with("WARC-Date: 2026-01-02T03:04:05Z\r\n", ""),
            "1 2",
            "missing-date",
        ),
        ("a year", with("2026-01-02T03:04:05Z", "2026"), "1 2", ""),
        (
            "nanoseconds",
            with("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789Z"),
            "1 2",
            "",
        ),
        (
            "no date at all",
            with("2026-01-02T03:04:05Z", "yesterday"),
            "1 2",
            "bad-date",
        ),
        (
            "no target",
            with("WARC-Target-URI", "X-Target-URI"),
            "? 2",
            "missing-target-uri",
        ),
        (
            "brackets",
            with(&uri(1), &format!("<{}>", uri(1))),
            "1 2",
            "bracketed-target-uri",
        ),
        (
            "blanks in the URI",
            with(&uri(1), "http://example.org/a b/1"),
            "1 2",
            "odd-target-uri",
        ),
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
        (
            "garbage between",
            join(&[&a, b"garbage\r\nmore\r\n", &b]),
            "1 2",
            "garbage-between-records",
        ),
        (
            "garbage at the end",
            join(&[&a, b"garbage"]),
            "1",
            "garbage-between-records",
        ),
        (
            "garbage first",
            join(&[b"garbage\r\n", &a, &b]),
            "1 2",
            "garbage-between-records",
        ),
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
    let without = |bytes: &[u8]| {
        replaced(
            bytes,
            &format!("Content-Length: {real}\r\nWARC-Block"),
            "WARC-Block",
        )
    };
    let one = record(1);
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        (
            "missing",
            join(&[&without(&one), &b]),
            "1 2",
            "missing-content-length",
        ),
        (
            "missing in gzip",
            join(&[&gzip(&without(&one)), &gzip(&b)]),
            "1 2",
            "missing-content-length",
        ),
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
        (
            "beyond the end",
            of("1000000"),
            "1 2 3",
            "content-length-too-long",
        ),
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
        (
            "one too short",
            of(&(real - 1).to_string()),
            "1 2 3",
            "content-length-too-short",
        ),
        (
            "one too long",
            of(&(real + 1).to_string()),
            "1 2 3",
            "wrong-record-end",
        ),
        ("zero", of("0"), "1 2 3", "http-no-head content-length-too-short"),
        (
            "too long in gzip",
            packed("1000000"),
            "1 2",
            "content-length-too-long",
        ),
        (
            "too short in gzip",
            packed("20"),
            "1 2",
            "http-unterminated-head http-line-without-colon content-length-too-short",
        ),
        (
            "huge in gzip",
            packed("99999999999999999999"),
            "1 2",
            "bad-content-length",
        ),
        ("no line end", ends(0), "1 2", "wrong-record-end"),
        ("one line end", ends(1), "1 2", "wrong-record-end"),
        ("three line ends", ends(3), "1 2", "wrong-record-end"),
        ("nine line ends", ends(9), "1 2", "wrong-record-end"),
        (
            "cut in the block",
            join(&[&b, &one[..one.len() - 30]]),
            "2 1",
            "content-length-too-long",
        ),
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
    assert_eq!(
        (seen.pages, seen.kinds),
        (vec!["1".to_owned()], vec!["truncated-record"])
    );
}

#[test]
fn arcs() {
    let [a, b] = [1, 2].map(arc_page);
    let f = filedesc();
    let block = page(1);
    let len = block.len();
    let line = |line: &str| join(&[&f, &arc(&line.replace("LEN", &len.to_string()), &block), &b]);
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("sound", join(&[&f, &a, &b]), "test.arc 1 2", ""),
        (
            "sound gzip",
            join(&[&gzip(&f), &gzip(&a), &gzip(&b)]),
            "test.arc 1 2",
            "",
        ),
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
        (
            "a date of 8 digits",
            line("http://x/1 192.0.2.1 20260102 text/html LEN"),
            "test.arc 1 2",
            "",
        ),
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
        (
            "no date",
            line("http://x/1 192.0.2.1 deadbeef text/html LEN"),
            "test.arc 1 2",
            "bad-date",
        ),
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
            join(&[
                &f,
                &arc("http://x/1 192.0.2.1 20260102030405 text/html 0", b""),
                &b,
            ]),
            "test.arc 1 2",
            "http-no-head",
        ),
        (
            "raw bytes in the URL",
            {
                let mut bytes = line("http://x/\x01\x02/1 192.0.2.1 20260102030405 text/html LEN");
                let at = memchr_find(&bytes, b"\x01\x02");
                bytes[at..at + 2].copy_from_slice(b"\xe9\xff");
                bytes
            },
            "test.arc 1 2",
            "odd-target-uri",
        ),
        (
            "ARC and WARC in one file",
            join(&[&gzip(&f), &gzip(&a), &gzip(&record(3))]),
            "test.arc 1 3",
            "",
        ),
    ];
    check_all(cases);
}
