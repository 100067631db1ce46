//! Captures read out of WARC records.

use crate::query::{Keys, Next, Order, Query};
use crate::{Batch, Index, Settings, Stamp};

fn record(kind: &str, uri: &str, fields: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{}>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         WARC-Target-URI: {uri}\r\nContent-Type: application/http\r\n{fields}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        uri.len() * 100 + kind.len(),
        block.len()
    )
}

#[test]
fn a_warc_becomes_captures_that_are_found_and_its_damage_is_told() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
    let request = "POST /form HTTP/1.1\r\nHost: e.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\nq=1";
    let together = "WARC-Concurrent-To: <urn:uuid:1708>\r\n";
    let text = [
        record("response", "http://www.e.com/", "", answer),
        record("response", "http://e.com/form", "", answer),
        record("request", "http://e.com/form", together, request),
        "garbage between records\r\n".to_owned(),
        record(
            "revisit",
            "http://e.com/again",
            "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
        ),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let mut batch = Batch::new();
    let mut reader = warc::Reader::from_bytes(text.clone().into_bytes()).unwrap();
    let report = batch.add_records(&mut reader, "a.warc", Some("12")).unwrap();
    assert!(!report.problems.is_empty(), "{report:?}");
    let done = index.commit(batch).unwrap();
    assert_eq!((done.files, done.rows), (1, report.lines));
    let snapshot = index.snapshot();
    let time = Stamp::parse("20260102030405").unwrap();
    for (key, mime) in [
        ("com,e)/", "text/html"),
        ("com,e)/form?__wb_method=post&q=1", "text/html"),
        ("com,e)/again", "warc/revisit"),
    ] {
        let found = snapshot.closest(key, time).unwrap().unwrap_or_else(|| panic!("{key} is not there"));
        assert_eq!(
            (found.mime.as_deref(), found.job.as_deref(), found.file.as_str()),
            (Some(mime), Some("12"), "a.warc")
        );
        let at = found.offset.unwrap() as usize;
        assert!(text[at..].starts_with("WARC/1.1"), "{key}");
    }
    let mut again = Batch::new();
    again
        .add_records(&mut warc::Reader::from_bytes(text.into_bytes()).unwrap(), "a.warc", Some("12"))
        .unwrap();
    assert_eq!(index.commit(again).unwrap().known, ["a.warc"]);
}

#[test]
fn metadata_of_a_url_is_no_capture_of_it() {
    let of_type = |content_type: &str| format!("X: y\r\nContent-Type: {content_type}\r\n");
    let plain = |kind: &str, uri: &str, content_type: &str| {
        record(kind, uri, &of_type(content_type), "force-fetch: ")
            .replace("Content-Type: application/http\r\n", "")
    };
    let text = [
        record("response", "http://e.com/donate", "", "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n"),
        plain("metadata", "http://e.com/donate", "text/anvl"),
        plain("metadata", "HTTPS://e.com/other", "application/json"),
        plain("metadata", "metadata://crawl/reports/seeds.txt", "text/plain"),
        plain("resource", "http://e.com/file.txt", "text/plain"),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let mut batch = Batch::new();
    batch.add_records(&mut warc::Reader::from_bytes(text.into_bytes()).unwrap(), "a.warc", None).unwrap();
    assert_eq!(index.commit(batch).unwrap().rows, 3);
    let snapshot = index.snapshot();
    let time = Stamp::parse("20260102030405").unwrap();
    for (key, there) in [
        ("com,e)/donate", true),
        ("com,e)/other", false),
        ("metadata://crawl/reports/seeds.txt", true),
        ("com,e)/file.txt", true),
    ] {
        assert_eq!(snapshot.closest(key, time).unwrap().is_some(), there, "{key}");
    }
    assert_eq!(snapshot.closest("com,e)/donate", time).unwrap().unwrap().status, Some(302));
}

#[test]
fn rows_of_metadata_in_older_indexes_are_passed_over() {
    let line = |key: &str, time: &str, mime: &str, status: &str, offset: u32| {
        let url = if key.starts_with("metadata:") { key } else { "http://e.com/" };
        format!(
            "{key} {time} {{\"url\": \"{url}\", \"mime\": \"{mime}\"{status}, \"digest\": \
             \"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\", \"offset\": \"{offset}\", \"filename\": \"a.warc.gz\"}}\n"
        )
    };
    let status = ", \"status\": \"200\"";
    let lines = [
        line("com,e)/", "20200101000000", "text/html", status, 0),
        line("com,e)/", "20200101000001", "text/anvl", "", 1),
        line("com,e)/", "20200101000002", "Application/warc-fields", "", 2),
        // A server may call its answers that, and a job keeps papers of any type.
        line("com,e)/", "20200101000003", "text/anvl", status, 3),
        line("com,e)/", "20200101000004", "warc/revisit", status, 4),
        line("metadata://e.com/x", "20200101000005", "text/anvl", "", 5),
    ]
    .concat();
    let (_folder, snapshot) = super::loaded(&lines);
    for order in
        [Order::Ascending, Order::Descending, Order::Closest(Stamp::parse("20200101000001").unwrap())]
    {
        let mut offsets = Vec::new();
        let query = Query { order, ..Query::new(Keys::Exact("com,e)/".into())) };
        query
            .run(&snapshot, |view| {
                offsets.push(view.offset().unwrap());
                Ok(Next::More)
            })
            .unwrap();
        offsets.sort_unstable();
        assert_eq!(offsets, [0, 3, 4], "{order:?}");
    }
    let mut papers = 0;
    let all = Query::new(Keys::Exact("metadata://e.com/x".into()));
    all.run(&snapshot, |_| {
        papers += 1;
        Ok(Next::More)
    })
    .unwrap();
    assert_eq!(papers, 1);
    let closest = snapshot.closest("com,e)/", Stamp::parse("20200101000001").unwrap()).unwrap().unwrap();
    assert_eq!(closest.offset, Some(0));
}
