//! Segments and logs with bytes changed or cut off.

use std::fs;
use std::path::{Path, PathBuf};

use crate::query::{Keys, Next, Query};
use crate::{Batch, Capture, Error, Index, Settings, Stamp, verify};

fn captures(count: u64) -> Vec<Capture> {
    let capture = |n: u64| {
        let url = format!("http://example.com/{:04}/page-{n}", n % 700);
        Capture {
            surt: urlkey::key(&url),
            time: Stamp::parse(format!("2014010203{:02}{:02}", n / 60 % 60, n % 60)).unwrap(),
            url: Some(url),
            mime: Some("text/html".to_owned()),
            status: Some(200),
            digest: Some(format!("sha1:{}", ["ABCDEFGH", "QRSTUVWX"][n as usize % 2].repeat(4))),
            length: Some(n),
            offset: Some(n * 100),
            ..Capture::default()
        }
    };
    (0..count).map(capture).collect()
}

fn settings() -> Settings {
    Settings { block_bytes: 200, ..Settings::default() }
}

fn segment(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|end| end == "seg")).unwrap()
}

#[test]
fn a_changed_byte_is_found_wherever_it_is_and_other_blocks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    let mut batch = Batch::new();
    batch.add_file("a.warc.gz", None, captures(3000));
    index.commit(batch).unwrap();
    index.flush().unwrap();
    drop(index);
    let path = segment(folder.path());
    let whole = fs::read(&path).unwrap();
    assert_eq!(verify(&path).unwrap().problem_count, 0);
    let (mut refused, mut partial) = (0, 0);
    for at in (0..whole.len()).step_by(97).chain(whole.len() - 170..whole.len()) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        match verify(&path) {
            Err(_) => refused += 1,
            Ok(report) => assert_ne!(report.problem_count, 0, "byte {at} changed and nobody noticed"),
        }
        let Ok(index) = Index::open_read_only(folder.path(), settings()) else { continue };
        let mut rows = 0;
        let query = Query::new(Keys::Range(String::new(), None));
        let answered = query
            .run(&index.snapshot(), |_| {
                rows += 1;
                Ok(Next::More)
            })
            .unwrap();
        if answered.damaged_count > 0 {
            partial += 1;
            assert!(rows < 3000);
            let Error::Damaged { path: named, offset, .. } = &answered.damaged[0] else {
                panic!("{answered:?}")
            };
            assert_eq!(named, &path);
            assert!(*offset <= at as u64, "damage at {at} was named at {offset}");
            // A damaged part of the index takes its 128 blocks along, a damaged block only itself.
            assert!(
                rows > 2900 || rows > 1000 && !(12..2000).contains(&at),
                "{rows} rows with byte {at} changed"
            );
        } else {
            assert_eq!(rows, 3000, "byte {at}");
        }
        let _ = index.snapshot().digest("sha1:ABCDEFGHABCDEFGHABCDEFGHABCDEFGH");
    }
    assert!(refused > 100 && partial > 100, "{refused} {partial}");
}

#[test]
fn a_segment_that_is_cut_short_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    let mut batch = Batch::new();
    batch.add_file("a.warc.gz", None, captures(500));
    index.commit(batch).unwrap();
    index.flush().unwrap();
    drop(index);
    let path = segment(folder.path());
    let whole = fs::read(&path).unwrap();
    for len in (0..whole.len()).step_by(211) {
        fs::write(&path, &whole[..len]).unwrap();
        let error = Index::open_read_only(folder.path(), settings()).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn merging_does_not_lose_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    for name in ["a", "b"] {
        let mut batch = Batch::new();
        batch.add_file(name, None, captures(500));
        index.commit(batch).unwrap();
        index.flush().unwrap();
    }
    drop(index);
    let path = segment(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    assert!(matches!(index.merge_all(), Err(Error::Damaged { .. })));
    assert!(path.exists());
    assert_eq!(index.snapshot().stats().segments, 2);
}

#[test]
fn a_log_with_a_torn_end_opens_and_one_damaged_inside_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    for name in ["a", "b", "c"] {
        let mut batch = Batch::new();
        batch.add_file(name, None, captures(20));
        index.commit(batch).unwrap();
    }
    drop(index);
    let log = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let whole = fs::read(&log).unwrap();
    for cut in [1, 10, 100] {
        fs::write(&log, &whole[..whole.len() - cut]).unwrap();
        let index = Index::open(folder.path(), settings()).unwrap();
        assert_eq!((index.holds_file("b"), index.holds_file("c")), (true, false));
        drop(index);
    }
    let mut changed = whole.clone();
    changed[40] ^= 1;
    fs::write(&log, &changed).unwrap();
    assert!(matches!(Index::open(folder.path(), settings()), Err(Error::Damaged { .. })));
}
