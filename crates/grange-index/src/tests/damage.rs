//! Segments and logs with bytes changed or cut off.

use std::fs;
use std::path::{Path, PathBuf};

use crate::query::{Keys, Next, Query};
use crate::{Batch, Capture, Error, Index, Settings, Stamp, log, log_v1, verify};

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

/// An index with three changes in its log, and where that is.
fn three_changes() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    // Of falling size, so that they stay three in memory too.
    for (name, rows) in [("a", 60), ("b", 20), ("c", 3)] {
        let mut batch = Batch::new();
        batch.add_file(name, None, captures(rows));
        index.commit(batch).unwrap();
    }
    drop(index);
    let path = the_log(folder.path());
    (folder, path)
}

fn the_log(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "log")).unwrap()
}

/// Flips every bit of a log: reading refuses it or loses nothing.
fn flip_every_bit(path: &Path, whole: &[u8]) {
    let expected = log::read(path).unwrap().changes;
    assert_eq!(expected.len(), 3);
    let mut bytes = whole.to_vec();
    for at in 0..whole.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            fs::write(path, &bytes).unwrap();
            if let Ok(read) = log::read(path) {
                assert_eq!(
                    read.changes, expected,
                    "bit {bit} of byte {at} was flipped and changes were lost"
                );
            }
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn a_log_with_any_bit_flipped_is_refused_or_loses_nothing() {
    let (_folder, path) = three_changes();
    flip_every_bit(&path, &fs::read(&path).unwrap());
}

#[test]
fn a_log_of_the_first_version_with_any_bit_flipped_is_refused_or_loses_nothing() {
    let (_folder, path) = three_changes();
    log_v1::write(&path, &log::read(&path).unwrap().changes);
    flip_every_bit(&path, &fs::read(&path).unwrap());
}

#[test]
fn a_log_of_the_first_version_is_read_and_continued() {
    let (folder, path) = three_changes();
    log_v1::write(&path, &log::read(&path).unwrap().changes);
    let read_only = Index::open_read_only(folder.path(), settings()).unwrap();
    assert_eq!(read_only.snapshot().stats().rows, 83);
    for more in ["d", "e"] {
        let index = Index::open(folder.path(), settings()).unwrap();
        let mut batch = Batch::new();
        batch.add_file(more, None, captures(1));
        index.commit(batch).unwrap();
    }
    let index = Index::open(folder.path(), settings()).unwrap();
    assert!(["a", "b", "c", "d", "e"].iter().all(|name| index.holds_file(name)));
    assert!(!path.exists() && !log::read(&the_log(folder.path())).unwrap().first_version);
}

#[test]
fn a_torn_end_is_cut_off_and_the_log_goes_on_behind_it() {
    let (folder, path) = three_changes();
    let whole = fs::read(&path).unwrap();
    for cut in [1, 10, 100] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let (index, warnings) = warnings_of_open(&folder);
        assert_eq!((index.holds_file("b"), index.holds_file("c")), (true, false));
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            warning.contains("cut off the torn end of an index log") && warning.contains(name),
            "{warning}"
        );
        let mut batch = Batch::new();
        batch.add_file("d", None, captures(2));
        index.commit(batch).unwrap();
        drop(index);
        let (index, warnings) = warnings_of_open(&folder);
        assert!(index.holds_file("b") && index.holds_file("d"));
        assert!(warnings.is_empty(), "a whole log gives none: {warnings:?}");
    }
}

#[test]
fn segments_and_logs_without_a_manifest_are_refused_and_kept() {
    let (folder, log) = three_changes();
    let manifest = folder.path().join("MANIFEST");
    let text = fs::read(&manifest).unwrap();
    let refused = |left: &Path| {
        fs::remove_file(&manifest).unwrap();
        let error = Index::open(folder.path(), settings()).unwrap_err();
        let name = left.file_name().unwrap().to_str().unwrap();
        assert_eq!(error.code(), "index-no-manifest");
        assert!(error.to_string().contains(name) && left.exists(), "{error}");
        fs::write(&manifest, &text).unwrap();
    };
    refused(&log);
    let index = Index::open(folder.path(), settings()).unwrap();
    index.flush().unwrap();
    drop(index);
    let text = fs::read(&manifest).unwrap();
    let segment = segment(folder.path());
    fs::remove_file(&manifest).unwrap();
    let error = Index::open(folder.path(), settings()).unwrap_err().to_string();
    assert!(error.contains("MANIFEST") && segment.exists(), "{error}");
    fs::write(&manifest, text).unwrap();
    assert!(Index::open(folder.path(), settings()).unwrap().holds_file("a"));
}

#[test]
fn a_first_start_that_was_cut_off_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(Index::open(folder.path(), settings()).unwrap());
    fs::remove_file(folder.path().join("MANIFEST")).unwrap();
    assert!(!Index::open(folder.path(), settings()).unwrap().holds_file("a"));
}

#[test]
fn nothing_is_removed_from_a_folder_whose_index_cannot_be_opened() {
    let (folder, log) = three_changes();
    let stray = folder.path().join("00000099.seg");
    fs::write(&stray, b"of a later manifest").unwrap();
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(&log, damaged).unwrap();
    assert!(matches!(Index::open(folder.path(), settings()), Err(Error::Damaged { .. })));
    assert!(stray.exists());
    fs::write(&log, whole).unwrap();
    drop(Index::open(folder.path(), settings()).unwrap());
    assert!(!stray.exists());
}

/// Opens an index and keeps the warnings that were logged meanwhile.
fn warnings_of_open(folder: &tempfile::TempDir) -> (Index, Vec<String>) {
    let warnings = Warnings::default();
    let index = tracing::subscriber::with_default(warnings.clone(), || {
        Index::open(folder.path(), settings()).unwrap()
    });
    let lines = std::mem::take(&mut *warnings.0.lock().unwrap());
    (index, lines)
}

#[derive(Debug, Clone, Default)]
struct Warnings(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, about: &tracing::Metadata<'_>) -> bool {
        *about.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            let _ = std::fmt::Write::write_fmt(&mut line, format_args!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
