//! Index requests for sets of jobs.

use std::collections::BTreeSet;

use crate::{Batch, Capture, Index, JobIndexKind, Settings, Stamp, write_job_index};

fn capture(url: &str, time: &str, mime: &str, digest: &str, offset: u64) -> Capture {
    Capture {
        surt: crate::key(url),
        time: Stamp::parse(time).unwrap(),
        url: Some(url.to_owned()),
        mime: Some(mime.to_owned()),
        status: Some(200),
        digest: Some(format!("sha1:{}", digest.repeat(32))),
        length: Some(10),
        offset: Some(offset),
        ..Capture::default()
    }
}

#[test]
fn jobs_are_told_apart_and_origins_stay_flat() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let mut batch = Batch::new();
    let first = [
        capture("http://e.com/", "20260101000000", "text/html", "A", 1),
        capture("http://e.com/i.png", "20260101000001", "image/png", "B", 2),
    ];
    let second = [
        capture("http://e.com/i.png", "20260201000001", "warc/revisit", "B", 3),
        capture("metadata://e.com/order.xml", "20260201000001", "text/xml", "C", 4),
    ];
    batch.add_file("1-a.warc", Some("1"), first);
    batch.add_file("2-a.warc", Some("2"), second);
    index.commit(batch).unwrap();
    let ask = |jobs: &[&str], kind| {
        let jobs: BTreeSet<String> = jobs.iter().map(|job| (*job).to_owned()).collect();
        let mut out = Vec::new();
        let report = write_job_index(&index.snapshot(), &jobs, kind, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), report)
    };
    let (cdx, report) = ask(&["1", "9"], JobIndexKind::Cdx);
    assert_eq!(cdx.lines().count(), 3);
    assert!(
        cdx.starts_with(" CDX N b a m s k r M S V g\ncom,e)/ 20260101000000 http://e.com/ text/html 200"),
        "{cdx}"
    );
    assert_eq!((report.captures, report.jobs["1"], report.jobs["9"]), (2, 2, 0));
    let (full, _) = ask(&["1", "2"], JobIndexKind::Full);
    assert_eq!(full.lines().count(), 3, "{full}");
    let (dedup, _) = ask(&["2"], JobIndexKind::Dedup);
    assert_eq!(dedup.lines().count(), 1);
    assert!(dedup.contains(r#""origin":"1-a.warc,2,20260101000001""#), "{dedup}");
    assert!(dedup.contains(r#""mime":"image/png""#), "{dedup}");
}
