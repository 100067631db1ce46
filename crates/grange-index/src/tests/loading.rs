//! Lines loaded in bulk.

use std::io::Write as _;

use proptest::prelude::*;

use crate::{Batch, Capture, Index, Position, Settings, Stamp};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_load_in_many_runs_gives_each_capture_once(
        picks in prop::collection::vec((0u32..40, 0u32..5, 0u64..4), 1..300),
        load_bytes in 200usize..4000,
        threads in 1usize..4,
    ) {
        let line = |(page, year, offset): &(u32, u32, u64)| format!(
            "com,example)/{page} {}0101000000 {{\"url\": \"http://example.com/{page}\", \"status\": \"200\", \"offset\": \"{offset}\", \"filename\": \"f{}.warc\"}}\n",
            2000 + year, page % 3
        );
        let text: String = picks.iter().map(line).collect();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { load_bytes, load_threads: threads, block_bytes: 100, ..Settings::default() };
        let index = Index::open(folder.path(), settings).unwrap();
        let report = index.load(text.as_bytes(), Some("7")).unwrap();
        prop_assert_eq!((report.lines, report.problem_count), (picks.len() as u64, 0));
        let mut expected: Vec<String> = picks.iter().map(line).collect();
        expected.sort();
        expected.dedup();
        prop_assert_eq!(report.captures, expected.len() as u64);
        let mut found = Vec::new();
        let snapshot = index.snapshot();
        let mut rows = snapshot.ascending(Position::default(), None);
        while let Some(view) = rows.next().unwrap() {
            prop_assert_eq!(view.job(), Some("7"));
            let mut out = Vec::new();
            view.to_capture().to_entry().write_cdxj(&mut out);
            found.push(String::from_utf8(out).unwrap());
        }
        found.sort();
        prop_assert_eq!(found, expected);
        // Loading it again changes nothing, and nothing is left over in the folder.
        index.load(text.as_bytes(), Some("7")).unwrap();
        index.merge_all().unwrap();
        prop_assert_eq!(index.snapshot().stats().rows, report.captures);
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "manifest, lock, log, segment");
    }
}

#[test]
fn bad_lines_are_named_by_their_place_and_the_rest_is_loaded() {
    let text = " CDX N b a m s k r M S V g\n\
        com,example)/ 20140102030405 http://example.com/ text/html 200 AAAA - - 100 0 a.warc.gz\n\
        nonsense\n\
        com,example)/b 20140102030405 http://example.com/b text/html abc AAAA - - 100 9 a.warc.gz\n";
    let (_folder, snapshot) = super::loaded(text);
    assert_eq!(snapshot.stats().rows, 2);
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings::default()).unwrap();
    let report = index.load(text.as_bytes(), None).unwrap();
    let offsets: Vec<u64> = report.problems.iter().map(|problem| problem.offset).collect();
    assert_eq!((report.problem_count, report.captures), (2, 2), "{report:?}");
    assert_eq!(offsets, [text.find("nonsense").unwrap() as u64, text.find("com,example)/b").unwrap() as u64]);
}

#[test]
fn writes_after_a_checkpoint_do_not_appear_in_it() {
    let (live, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = Index::open(live.path(), Settings::default()).unwrap();
    let line = |host: &str| {
        format!(
            "com,{host})/ 20200101000000 {{\"url\": \"http://{host}.com/\", \"filename\": \"{host}.warc\", \"offset\": \"0\", \"length\": \"9\"}}\n"
        )
    };
    index.load(line("before").as_bytes(), None).unwrap();
    index.checkpoint(kept.path()).unwrap();
    let files = || {
        let copy = Index::open_read_only(kept.path(), Settings::default()).unwrap();
        copy.snapshot().file_names().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(), ["before.warc"]);
    // The writer appends to its log from now on.
    for entry in std::fs::read_dir(live.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "log") {
            std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"change").unwrap();
            let copy = kept.path().join(path.file_name().unwrap());
            assert!(std::fs::metadata(copy).unwrap().len() < std::fs::metadata(&path).unwrap().len());
        }
    }
    assert_eq!(files(), ["before.warc"]);
}

fn line(file: &str, offset: u32) -> String {
    format!(
        "com,example)/p{offset} 20200101000000 {{\"url\": \"http://example.com/p{offset}\", \"filename\": \"{file}\", \"offset\": \"{offset}\"}}\n"
    )
}

fn five_pages() -> Vec<Capture> {
    let page = |offset| Capture {
        surt: format!("com,example)/p{offset}"),
        time: Stamp::parse("20200101000000").unwrap(),
        offset: Some(offset),
        ..Capture::default()
    };
    (0..5).map(page).collect()
}

fn keys(index: &Index) -> Vec<String> {
    let snapshot = index.snapshot();
    let mut rows = snapshot.ascending(Position::default(), None);
    let mut found = Vec::new();
    while let Some(view) = rows.next().unwrap() {
        found.push(view.surt().into_owned());
    }
    found
}

#[test]
fn a_file_that_lines_name_still_comes_as_a_file() {
    for posted in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), Settings::default()).unwrap();
        if posted {
            let mut batch = Batch::new();
            batch.add(&Capture { file: "a.warc.gz".to_owned(), ..five_pages().remove(0) });
            index.commit(batch).unwrap();
        } else {
            index.load(line("a.warc.gz", 0).as_bytes(), Some("lines of a.cdxj")).unwrap();
        }
        assert!(!index.holds_file("a.warc.gz"), "posted: {posted}");
        let file = || {
            let mut batch = Batch::new();
            batch.add_file("a.warc.gz", None, five_pages());
            batch
        };
        let done = index.commit(file()).unwrap();
        assert_eq!((done.files, done.known.len()), (1, 0), "posted: {posted}");
        assert_eq!(keys(&index).len(), 5);
        // Segments keep it too, through a flush, a merge and a restart.
        for round in 0..3 {
            assert!(index.holds_file("a.warc.gz"), "round {round}");
            assert_eq!(index.commit(file()).unwrap().known, ["a.warc.gz"]);
            if round == 0 { index.flush().unwrap() } else { index.merge_all().unwrap() }
        }
        drop(index);
        let index = Index::open(folder.path(), Settings::default()).unwrap();
        assert_eq!(index.commit(file()).unwrap().known, ["a.warc.gz"]);
        assert_eq!(keys(&index).len(), 5);
    }
}

#[test]
fn lines_that_are_taken_out_leave_what_files_told() {
    for lines_last in [false, true] {
        for merged in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let index = Index::open(folder.path(), Settings::default()).unwrap();
            let load = || drop(index.load(line("a.warc.gz", 0).as_bytes(), Some("lines of a.cdxj")).unwrap());
            if !lines_last {
                load();
            }
            let mut batch = Batch::new();
            batch.add_file("a.warc.gz", None, five_pages());
            index.commit(batch).unwrap();
            if lines_last {
                load();
            }
            if merged {
                index.merge_all().unwrap();
            }
            index.remove_lines("lines of a.cdxj").unwrap();
            assert_eq!(keys(&index).len(), 5, "lines last: {lines_last}, merged: {merged}");
            index.merge_all().unwrap();
            assert_eq!(keys(&index).len(), 5, "lines last: {lines_last}, merged: {merged}");
        }
    }
}

#[test]
fn lines_are_listed_under_the_key_of_their_url_and_body() {
    for (key, url, more, expected) in [
        ("com,example,www)/x", "http://www.example.com/x", "", "com,example)/x"),
        ("com,example)/X", "http://example.com/X", "", "com,example)/x"),
        ("com,example:8080)/x", "example.com:8080/x", "", "com,example:8080)/x"),
        ("com,example,www)/x", "www.example.com:80/x", "", "com,example)/x"),
        ("com,example,www)/x", "www.example.com/x", "", "com,example)/x"),
        ("com,example)/", "dns:example.com", "", "dns:example.com"),
        ("netarkivet)/a.log", "metadata://netarkivet.dk/a.log", "", "metadata://netarkivet.dk/a.log"),
        ("a)/", "filedesc://7-1.arc", "", "filedesc://7-1.arc"),
        // A request that got something has no body.
        ("com,example,www)/x", "http://www.example.com/x", ", \"method\": \"GET\"", "com,example)/x"),
        ("com,example)/x?a=1", "http://example.com/x", ", \"method\": \"POST\"", "com,example)/x?a=1"),
        (
            "com,example)/x?__wb_method=post&a=1",
            "http://example.com/x",
            "",
            "com,example)/x?__wb_method=post&a=1",
        ),
        (
            "com,example)/x?__pywb_method=post&a=1",
            "http://example.com/x",
            "",
            "com,example)/x?__pywb_method=post&a=1",
        ),
        ("com,example)/x?a=1&b=2", "http://example.com/x", "", "com,example)/x?a=1&b=2"),
        ("com,example)/x?a=1&b=2", "http://example.com/x?a=1", "", "com,example)/x?a=1&b=2"),
        (
            "com,example)/x?jsessionid=0123456789abcdef0123456789abcdef",
            "http://example.com/x?jsessionid=0123456789ABCDEF0123456789ABCDEF",
            "",
            "com,example)/x",
        ),
    ] {
        let line = format!(
            "{key} 20200101000000 {{\"url\": \"{url}\", \"filename\": \"a.warc.gz\", \"offset\": \"0\"{more}}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), Settings::default()).unwrap();
        index.load(line.as_bytes(), None).unwrap();
        assert_eq!(keys(&index), [expected], "{line}");
    }
}
