//! Syncs that fail, and the state on disk and in memory afterwards.

use std::path::Path;

use crate::durable::faults::fail;
use crate::{Batch, Capture, Index, Settings, Stamp};

fn settings() -> Settings {
    Settings { head_bytes: 1 << 20, ..Settings::default() }
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

/// The files that a process finds in the folder after a crash.
fn on_disk(folder: &Path) -> Vec<String> {
    let copy = Index::open_read_only(folder, settings()).unwrap();
    let snapshot = copy.snapshot();
    let mut names: Vec<_> = snapshot.whole_files().map(ToOwned::to_owned).collect();
    names.sort();
    names
}

#[test]
fn what_is_committed_after_a_folder_that_was_not_synced_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    index.commit(file("a")).unwrap();
    // The manifest of the new log has its name, and the sync of that name fails.
    fail(&["folder"]);
    assert!(index.flush().is_err());
    // Nothing is committed while it is not known which manifest the disk has.
    assert!(index.commit(file("b")).is_err());
    assert!(!index.holds_file("b"));
    fail(&[]);
    index.commit(file("c")).unwrap();
    assert_eq!(on_disk(folder.path()), ["a", "c"]);
    index.flush().unwrap();
    index.commit(file("d")).unwrap();
    drop(index);
    assert_eq!(on_disk(folder.path()), ["a", "c", "d"]);
    let index = Index::open(folder.path(), settings()).unwrap();
    assert!(["a", "c", "d"].iter().all(|name| index.holds_file(name)) && !index.holds_file("b"));
}

#[test]
fn a_removal_that_failed_does_not_take_effect_later() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    index.commit(file("a")).unwrap();
    index.flush().unwrap();
    fail(&["folder"]);
    assert!(index.remove_file("a").is_err());
    fail(&[]);
    assert!(index.holds_file("a"));
    index.commit(file("b")).unwrap();
    drop(index);
    assert_eq!(on_disk(folder.path()), ["a", "b"]);
}

#[test]
fn a_load_or_a_merge_that_failed_changes_nothing() {
    let line = b"com,example)/x 20260102030405 {\"offset\": \"1\", \"filename\": \"x.warc\"}\n";
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), settings()).unwrap();
    for name in ["a", "b"] {
        index.commit(file(name)).unwrap();
        index.flush().unwrap();
    }
    fail(&["folder"]);
    assert!(index.merge_all().is_err());
    assert!(index.load(&line[..], Some("lines")).is_err());
    fail(&[]);
    assert!(!index.snapshot().holds_job("lines"));
    index.commit(file("c")).unwrap();
    drop(index);
    assert_eq!(on_disk(folder.path()), ["a", "b", "c"]);
    let index = Index::open(folder.path(), settings()).unwrap();
    index.load(&line[..], Some("lines")).unwrap();
    index.merge_all().unwrap();
    assert!(index.snapshot().holds_job("lines"));
}

#[test]
fn a_commit_whose_change_is_on_disk_does_not_fail_when_the_head_cannot_be_written_out() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), Settings { head_bytes: 0, ..settings() }).unwrap();
    fail(&["folder"]);
    index.commit(file("a")).unwrap();
    assert!(index.holds_file("a"));
    fail(&[]);
    index.commit(file("b")).unwrap();
    drop(index);
    assert_eq!(on_disk(folder.path()), ["a", "b"]);
}
