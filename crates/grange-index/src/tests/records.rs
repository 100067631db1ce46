//! Captures read out of WARC records.

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
