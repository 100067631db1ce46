//! Promises in the comments of the index that no other test breaks with.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::durable::faults::{fail, seen};
use crate::{Batch, Capture, Index, Settings, Stamp};

fn settings() -> Settings {
    // One thread: what others do to the disk is not seen by this one.
    Settings { load_threads: 1, ..Settings::default() }
}

fn file(name: &str) -> Batch {
    let capture = Capture {
        surt: format!("com,example)/{name}"),
        time: Stamp::parse("20260102030405").unwrap(),
        offset: Some(1),
        ..Capture::default()
    };
    let mut batch = Batch::new();
    batch.add_file(name, None, [capture]);
    batch
}

fn names(index: &Index) -> Vec<String> {
    let mut names: Vec<_> = index.snapshot().file_names().map(ToOwned::to_owned).collect();
    names.sort();
    names
}

fn copy_of(folder: &Path) -> Vec<String> {
    names(&Index::open_read_only(folder, settings()).unwrap())
}

/// "After `Index::commit` returns, its captures survive a crash": they were synced before it returned, and a commit whose
/// sync failed is an error of which nothing is left.
#[test]
fn a_commit_returns_when_its_change_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    seen();
    index.commit(file("a")).unwrap();
    assert_eq!(seen(), ["data 00000000.log"]);
    fail(&["data"]);
    assert!(index.commit(file("b")).is_err());
    fail(&[]);
    assert!(!index.holds_file("b") && names(&index) == ["a"]);
    drop(index);
    assert_eq!(copy_of(folder.path()), ["a"]);
}

/// "A crash anywhere leaves the state before or after": what a manifest names is synced before the manifest is, that before
/// it has its name, and the name before anything is removed.
#[test]
fn a_manifest_has_its_name_after_all_that_it_names_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    seen();
    let index = Index::open(folder.path(), settings()).unwrap();
    let saved = ["file MANIFEST.tmp", "rename MANIFEST", "folder"];
    assert_eq!(seen(), [&["file 00000000.log"][..], &saved].concat());
    index.commit(file("a")).unwrap();
    seen();
    index.flush().unwrap();
    assert_eq!(seen(), [&["file 00000001.seg", "file 00000002.log"][..], &saved].concat());
    index.commit(file("b")).unwrap();
    index.flush().unwrap();
    seen();
    index.merge_all().unwrap();
    assert_eq!(seen(), [&["file 00000005.seg"][..], &saved].concat());
    index.remove_file("a").unwrap();
    assert_eq!(seen(), saved);
    let copy = folder.path().join("copy");
    index.checkpoint(&copy).unwrap();
    assert_eq!(seen(), [&["file 00000004.log"][..], &saved].concat());
    let line = b"com,example)/x 20260102030405 {\"offset\": \"1\", \"filename\": \"x.warc\"}\n";
    index.load(&line[..], Some("lines")).unwrap();
    // Its runs are made by another thread.
    let steps = seen();
    assert!(steps.ends_with(&saved.map(ToOwned::to_owned)) && steps[0].contains(".seg"), "{steps:?}");
}

/// "After a failed sync what was written counts for nothing": whatever step fails, the act fails and what was there is
/// there, in memory and for whoever opens the folder.
#[test]
fn whatever_step_fails_nothing_of_the_act_is_left() {
    let line = b"com,example)/x 20260102030405 {\"offset\": \"1\", \"filename\": \"x.warc\"}\n";
    for kind in ["file", "rename", "folder"] {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), settings()).unwrap();
        for name in ["a", "b"] {
            index.commit(file(name)).unwrap();
            index.flush().unwrap();
        }
        index.commit(file("c")).unwrap();
        for act in ["flush", "remove", "merge", "load"] {
            fail(&[kind]);
            let failed = match act {
                "flush" => index.flush().is_err(),
                "remove" => index.remove_file("a").is_err(),
                "merge" => index.merge_all().is_err(),
                _ => index.load(&line[..], None).is_err(),
            };
            fail(&[]);
            assert!(failed, "{act} went well without its {kind}");
            assert_eq!(names(&index), ["a", "b", "c"], "{act} without its {kind}");
            // A crash may leave either state; the next change settles which.
            index.commit(file("c")).unwrap();
            assert_eq!(copy_of(folder.path()), ["a", "b", "c"], "{act} without its {kind}");
        }
        index.commit(file("d")).unwrap();
        index.merge_all().unwrap();
        drop(index);
        let index = Index::open(folder.path(), settings()).unwrap();
        assert_eq!(names(&index), ["a", "b", "c", "d"]);
    }
}

/// "Readers work on snapshots and never wait for the writer."
#[test]
fn a_snapshot_is_had_while_the_writer_works() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    index.commit(file("a")).unwrap();
    let writing = index.inner.lock();
    let (send, receive) = channel();
    let reader = index.clone();
    let thread = std::thread::spawn(move || send.send(reader.snapshot().stats().files));
    // Far longer than it takes; a reader that waits for the writer never answers.
    assert_eq!(receive.recv_timeout(Duration::from_secs(20)), Ok(1));
    drop(writing);
    thread.join().unwrap().unwrap();
}

/// Lines, and then an error.
struct Broken(&'static [u8]);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.0.read(buffer)
    }
}

/// "They appear together when all is read; after an error none has."
#[test]
fn lines_of_an_input_that_breaks_off_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let small = Settings { load_bytes: 64, ..settings() };
    let index = Index::open(folder.path(), small).unwrap();
    index.commit(file("a")).unwrap();
    let lines = b"com,example)/x 20260102030405 {\"offset\": \"1\", \"filename\": \"x.warc\"}\n\
        com,example)/y 20260102030405 {\"offset\": \"1\", \"filename\": \"y.warc\"}\n\
        com,example)/z 20260102030405 {\"offset\": \"1\", \"filename\": \"z.warc\"}\n";
    assert!(index.load(BufReader::with_capacity(16, Broken(lines)), None).is_err());
    assert_eq!(names(&index), ["a"]);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 3, "manifest, lock and log: no run stays");
    assert_eq!(index.load(&lines[..], None).unwrap().captures, 3);
}

/// "Merging does not take anything from a checkpoint later", and what is taken out later stays in it.
#[test]
fn a_checkpoint_keeps_what_it_has() {
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = Index::open(folder.path(), settings()).unwrap();
    for name in ["a", "b"] {
        index.commit(file(name)).unwrap();
        index.flush().unwrap();
    }
    // Changes that are only in the head are part of it.
    index.commit(file("c")).unwrap();
    index.checkpoint(kept.path()).unwrap();
    index.remove_file("a").unwrap();
    index.commit(file("d")).unwrap();
    index.merge_all().unwrap();
    assert_eq!(names(&index), ["b", "c", "d"]);
    assert_eq!(copy_of(kept.path()), ["a", "b", "c"]);
    // It can be written to as any other.
    let copy = Index::open(kept.path(), settings()).unwrap();
    copy.commit(file("e")).unwrap();
    assert_eq!(names(&copy), ["a", "b", "c", "e"]);
    assert_eq!(names(&index), ["b", "c", "d"]);
}

/// "Looks at the folder again": a reader sees what was committed, taken out and merged since, and nothing before it looks.
#[test]
fn a_reader_of_the_folder_sees_changes_when_it_looks_again() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    index.commit(file("a")).unwrap();
    let reader = Index::open_read_only(folder.path(), settings()).unwrap();
    type Change = fn(&Index);
    let changes: [(Change, &[&str]); 4] = [
        (|index| drop(index.commit(file("b")).unwrap()), &["a", "b"]),
        (|index| index.flush().unwrap(), &["a", "b"]),
        (|index| assert!(index.remove_file("a").unwrap()), &["b"]),
        (|index| index.merge_all().unwrap(), &["b"]),
    ];
    for (change, expected) in changes {
        let before = names(&reader);
        change(&index);
        assert_eq!(names(&reader), before);
        reader.refresh().unwrap();
        assert_eq!(names(&reader), expected);
    }
    assert!(reader.commit(file("c")).is_err(), "it only reads");
}
