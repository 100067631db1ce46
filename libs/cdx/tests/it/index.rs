//! Lines out of records.

use super::warcs::{member, noise, record, request, response};
use cdx::{ExtraField, Format, IndexOptions, IndexReport, Legend, Records, index, index_file};
use warc::{Reader, RecordType};

fn options() -> IndexOptions {
    IndexOptions { filename: "a.warc".to_owned(), ..IndexOptions::default() }
}

fn lines(bytes: Vec<u8>, options: &IndexOptions) -> (String, IndexReport) {
    let mut out = Vec::new();
    let report = index(&mut Reader::from_bytes(bytes).unwrap(), options, |line| {
        out.extend_from_slice(line);
        Ok(())
    })
    .unwrap();
    (String::from_utf8(out).unwrap(), report)
}

const PAGE: &str = "http://www.e.com/Page";

#[test]
fn one_line_of_every_kind() {
    let revisit = b"HTTP/1.1 304 Not Modified\r\n\r\n";
    let bytes = [
        record("warcinfo", 1, "x", "", b"software: test"),
        response(2, PAGE, "WARC-Payload-Digest: sha1:AAAA\r\n", b"hello"),
        record("revisit", 3, PAGE, "WARC-Payload-Digest: sha1:AAAA\r\n", revisit),
        record("revisit", 4, PAGE, "", b""),
        record("resource", 5, "urn:x", "", b"text"),
        record("metadata", 6, PAGE, "", b"text"),
        record("conversion", 7, PAGE, "", b"text"),
    ]
    .concat();
    let (text, report) = lines(bytes, &options());
    let got: Vec<&str> = text.lines().collect();
    let tail = r#""filename": "a.warc"}"#;
    let strip = |line: &str| {
        // Offsets and lengths are checked by reading there, below.
        let (head, rest) = line.split_once(r#", "length": "#).unwrap();
        assert!(rest.ends_with(tail), "{rest}");
        head.to_owned()
    };
    assert_eq!(
        got.iter().map(|line| strip(line)).collect::<Vec<_>>(),
        [
            r#"com,e)/page 20260102030405 {"url": "http://www.e.com/Page", "mime": "text/html", "status": "200", "digest": "sha1:AAAA""#,
            r#"com,e)/page 20260102030405 {"url": "http://www.e.com/Page", "mime": "warc/revisit", "status": "304", "digest": "sha1:AAAA""#,
            r#"com,e)/page 20260102030405 {"url": "http://www.e.com/Page", "mime": "warc/revisit""#,
            r#"urn:x 20260102030405 {"url": "urn:x", "mime": "text/plain", "digest": "sha1:G4XKBDFLGPTRYAWGKHN4QOSHJUZMM5XK""#,
            r#"com,e)/page 20260102030405 {"url": "http://www.e.com/Page", "mime": "text/plain", "digest": "sha1:G4XKBDFLGPTRYAWGKHN4QOSHJUZMM5XK""#,
        ]
    );
    assert_eq!((report.records, report.lines, report.unseekable), (7, 5, 0));
}

#[test]
fn offsets_and_lengths_cut_the_record_out() {
    let records = [response(1, PAGE, "", b"one"), response(2, PAGE, "", &noise(1, 100_000))];
    let plain = records.concat();
    let packed: Vec<u8> = records.iter().flat_map(|record| member(record)).collect();
    for (bytes, cut) in [(plain, 4), (packed, 0)] {
        let (text, _) = lines(bytes.clone(), &options());
        let mut at = 0;
        for line in text.lines() {
            let entry = cdx::parse_line(line.as_bytes(), None).entry().unwrap();
            assert_eq!(entry.offset, Some(at));
            at += entry.length.unwrap() + cut;
        }
        assert_eq!(at, bytes.len() as u64);
    }
}

#[test]
fn a_record_whose_length_lies_ends_where_the_next_one_begins() {
    let lying = String::from_utf8(response(1, PAGE, "", b"one")).unwrap();
    let length = lying.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
    let longer = format!("Content-Length: {}", length.parse::<u64>().unwrap() + 100);
    let lying = lying.replacen(&format!("Content-Length: {length}"), &longer, 1).into_bytes();
    let hidden = response(2, "http://hidden.e.com/", "", b"two");
    let bytes = [lying.as_slice(), &hidden].concat();
    for options in [options(), IndexOptions { post_append: true, ..options() }] {
        let (text, report) = lines(bytes.clone(), &options);
        let cut: Vec<_> = text
            .lines()
            .map(|line| {
                let entry = cdx::parse_line(line.as_bytes(), None).entry().unwrap();
                (entry.offset.unwrap(), entry.length.unwrap())
            })
            .collect();
        let border = lying.len() as u64;
        assert_eq!(cut, [(0, border), (border, hidden.len() as u64 - 4)], "{text}");
        assert!(!report.problems.is_empty());
    }
}

#[test]
fn a_damaged_file_gives_its_good_records() {
    let good = member(&response(1, PAGE, "", b"one"));
    let bytes = [good.as_slice(), b"rubbish between members", &good, &good[..40]].concat();
    let (text, report) = lines(bytes, &options());
    assert!(text.lines().count() >= 2, "{text}");
    assert!(!report.problems.is_empty());
}

#[test]
fn records_that_share_a_member_are_counted() {
    let bytes = member(&[response(1, PAGE, "", b"one"), response(2, PAGE, "", b"two")].concat());
    let (_, report) = lines(bytes, &options());
    assert_eq!((report.lines, report.unseekable), (2, 1));
}

#[test]
fn filters() {
    let bytes = || {
        [
            request(1, PAGE, "", "GET", "", b""),
            response(2, PAGE, "", b"x"),
            record("warcinfo", 3, "x", "", b"y"),
        ]
        .concat()
    };
    for (records, want) in [
        (Records::Captures, 1),
        (Records::All, 3),
        (Records::Only(vec![RecordType::Request]), 1),
        (Records::Only(vec![]), 0),
    ] {
        let options = IndexOptions { records: records.clone(), ..options() };
        assert_eq!(lines(bytes(), &options).1.lines, want, "{records:?}");
    }
}

#[test]
fn columns_instead_of_json() {
    let options = IndexOptions { format: Format::Cdx(Legend::cdx11()), ..options() };
    let (text, _) = lines(response(1, PAGE, "WARC-Payload-Digest: sha1:AAAA\r\n", b"x"), &options);
    assert!(
        text.starts_with("com,e)/page 20260102030405 http://www.e.com/Page text/html 200 AAAA - - "),
        "{text}"
    );
    assert!(text.ends_with(" 0 a.warc\n"), "{text}");
}

#[test]
fn requests_and_responses_pair_in_either_order() {
    let to = |id: u64| format!("WARC-Concurrent-To: <urn:uuid:{id}>\r\n");
    let digest = "WARC-Payload-Digest: sha1:AAAA\r\n";
    let post =
        |id, fields: &str| request(id, PAGE, fields, "POST", "application/json", br#"{"q": [1, true]}"#);
    let options = IndexOptions { post_append: true, ..options() };
    let keyed = "com,e)/page?__wb_method=post&q=1&q.2_=true ";
    for (name, bytes, paired) in [
        ("response first", [response(1, PAGE, digest, b"x"), post(2, &to(1))], true),
        ("request first", [post(1, ""), response(2, PAGE, &(to(1) + digest), b"x")], true),
        ("not concurrent", [post(1, ""), response(2, PAGE, digest, b"x")], false),
        ("named the other way", [post(1, &to(2)), response(2, PAGE, digest, b"x")], false),
        ("another URL", [post(1, ""), response(2, "http://e.com/other", &(to(1) + digest), b"x")], false),
    ] {
        let (text, _) = lines(bytes.concat(), &options);
        assert_eq!(text.lines().count(), 1, "{name}");
        assert_eq!(text.starts_with(keyed), paired, "{name}: {text}");
        assert_eq!(
            text.contains(r#""requestBody": "q=1&q.2_=true", "method": "POST"}"#),
            paired,
            "{name}: {text}"
        );
    }
    // The same answer again has the same key.
    let again = [record("revisit", 1, PAGE, digest, b"HTTP/1.1 200 OK\r\n\r\n"), post(2, &to(1))].concat();
    assert!(lines(again, &options).0.starts_with(keyed));
    let between = record("metadata", 3, PAGE, "Content-Type: application/warc-fields\r\n", b"");
    let apart = [post(1, ""), between, response(2, PAGE, &(to(1) + digest), b"x")].concat();
    assert!(!lines(apart, &options).0.contains("__wb_method"));
}

#[test]
fn extra_fields_come_in_the_order_asked_for() {
    let extra =
        ["req.http:referer", "http:server", "warc-record-id", "method"].map(ExtraField::parse).to_vec();
    let options = IndexOptions { extra, ..options() };
    let bytes = [
        request(1, PAGE, "", "GET", "", b""),
        response(2, PAGE, "WARC-Concurrent-To: <urn:uuid:1>\r\nWARC-Payload-Digest: sha1:AAAA\r\n", b"x"),
    ];
    let (text, _) = lines(bytes.concat(), &options);
    let want = r#""referrer": "http://r.example/", "http:server": "test", "warc-record-id": "<urn:uuid:2>", "method": "GET"}"#;
    assert!(text.trim_end().ends_with(want), "{text}");
}

/// About 14 MB of members: chunks of several threads. One record holds an archived WARC file, which does not
/// compress again, so that its members stand in the file as they are.
fn large(pairs: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let inner: Vec<u8> = (0..2_000u64)
        .flat_map(|n| member(&response(n, &format!("http://inner.example/{n}"), "", &noise(n, 8))))
        .collect();
    let inner: Vec<u8> = inner.iter().copied().cycle().take(6 << 20).collect();
    for n in 0..120u64 {
        let uri = format!("http://e.com/{n}");
        let digest = "WARC-Payload-Digest: sha1:AAAA\r\n".to_owned();
        if n == 60 {
            bytes.extend(member(&record("resource", n, "http://e.com/archived.warc.gz", &digest, &inner)));
        }
        if pairs {
            bytes.extend(member(&request(n * 2, &uri, "", "POST", "text/x", &noise(n, 40_000))));
            let to = format!("WARC-Concurrent-To: <urn:uuid:{}>\r\n", n * 2);
            bytes.extend(member(&response(n * 2 + 1, &uri, &(to + &digest), &noise(n, 40_000))));
        } else {
            bytes.extend(member(&response(n, &uri, &digest, &noise(n, 80_000))));
        }
    }
    bytes
}

#[test]
fn threads_give_the_lines_of_one_thread_in_the_same_order() {
    for pairs in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.warc.gz");
        std::fs::write(&path, large(pairs)).unwrap();
        let options = IndexOptions { post_append: pairs, record_digests: true, ..options() };
        let run = |threads: usize| {
            let mut out = Vec::new();
            let report = index_file(&path, &options, threads, |line| {
                out.extend_from_slice(line);
                Ok(())
            })
            .unwrap();
            (out, report.records, report.lines, report.kinds)
        };
        let one = run(1);
        assert_eq!((one.2, one.3.len()), (121, 0));
        for threads in [2, 3, 8] {
            let many = run(threads);
            assert!(
                many == one,
                "{threads} threads: {:?} not {:?}",
                (many.1, many.2, many.3),
                (one.1, one.2, one.3)
            );
        }
    }
}

#[test]
fn a_full_disk_stops_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.warc.gz");
    std::fs::write(&path, large(false)).unwrap();
    let mut left = 10;
    let result = index_file(&path, &options(), 4, |_| {
        left -= 1;
        if left == 0 { Err(std::io::Error::other("full")) } else { Ok(()) }
    });
    assert_eq!(result.unwrap_err().to_string(), "full");
}
