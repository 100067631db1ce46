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

/// Every act that writes files, at every step that can fail: nothing of it is seen or stays behind, and afterwards it and
/// every other act succeed in the same process.
#[test]
fn an_act_that_failed_at_any_step_can_be_done_again() {
    type Act = fn(&Index, &Path) -> crate::Result<()>;
    let acts: [(&str, Act); 6] = [
        ("flush", |index, _| index.flush()),
        ("merge", |index, _| index.merge_all()),
        ("load", |index, _| {
            let line = b"com,example)/x 20260102030405 {\"offset\": \"1\", \"filename\": \"x.warc\"}\n";
            index.load(&line[..], Some("lines")).map(drop)
        }),
        ("checkpoint", |index, other| index.checkpoint(other).map(drop)),
        ("remove a file", |index, _| index.remove_file("b").map(drop)),
        ("commit", |index, _| index.commit(file("d")).map(drop)),
    ];
    let mut failed = Vec::new();
    for (name, act) in acts {
        for step in ["file", ".seg", ".log", "file MANIFEST.tmp", "rename", "folder", "data"] {
            for has_head in [true, false] {
                let [folder, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
                let kept = other.path().join("kept");
                let index = Index::open(folder.path(), settings()).unwrap();
                for name in ["a", "b", "c"] {
                    index.commit(file(name)).unwrap();
                    if name != "c" || !has_head {
                        index.flush().unwrap();
                    }
                }
                let case = format!("{name}, {step}, {has_head}");
                fail(&[step]);
                let done = act(&index, &kept);
                fail(&[]);
                if done.is_err() {
                    failed.push(case.clone());
                    assert!(["a", "b", "c"].iter().all(|name| index.holds_file(name)), "{case}");
                    assert!(!index.holds_file("d"), "{case}");
                    // The disk may have either manifest when only the sync of its name failed.
                    if step != "folder" {
                        assert_eq!(on_disk(folder.path()), ["a", "b", "c"], "{case}");
                    }
                    assert!(!index.snapshot().holds_job("lines"), "{case}");
                    assert!(!kept.join("MANIFEST").exists(), "{case}");
                }
                let again = || -> crate::Result<()> {
                    if done.is_err() {
                        act(&index, &kept)?;
                    }
                    index.flush()?;
                    assert!(index.remove_file("a")?, "{case}");
                    index.commit(file("e")).map(drop)?;
                    index.checkpoint(other.path().join("another"))?;
                    index.merge_all()
                };
                assert_eq!(again().map_err(|error| format!("{error:?}")), Ok(()), "{case}");
                let names = on_disk(folder.path());
                assert!(!names.contains(&"a".to_owned()) && names.contains(&"e".to_owned()), "{case}");
                assert_eq!(on_disk(&other.path().join("another")), names, "{case}");
                let mut left = files_of(folder.path());
                left.retain(|name| !["LOCK", "MANIFEST"].contains(&name.as_str()));
                assert_eq!(left.len(), 2, "one segment and one log after {case}: {left:?}");
            }
        }
    }
    for expected in [
        "flush, .seg, true",
        "flush, .log, true",
        "flush, rename, true",
        "merge, .seg, false",
        "merge, folder, false",
        "load, .seg, false",
        "load, .log, true",
        "load, file MANIFEST.tmp, false",
        "checkpoint, .seg, true",
        "checkpoint, .log, false",
        "checkpoint, folder, false",
        "remove a file, file, true",
        "remove a file, rename, false",
        "commit, data, false",
    ] {
        assert!(failed.iter().any(|case| case == expected), "{expected} did not fail: {failed:?}");
    }
}

fn files_of(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The segments of a checkpoint are links to those of the index: writing over them would cut both off.
#[test]
fn a_checkpoint_over_another_is_refused_and_harms_neither() {
    let [folder, kept] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let index = Index::open(folder.path(), settings()).unwrap();
    index.commit(file("a")).unwrap();
    index.checkpoint(kept.path()).unwrap();
    assert!(index.checkpoint(kept.path()).is_err());
    drop(index);
    for path in [folder.path(), kept.path()] {
        assert_eq!(on_disk(path), ["a"]);
        let is_segment = |name: &&String| Path::new(name).extension().is_some_and(|end| end == "seg");
        for name in files_of(path).iter().filter(is_segment) {
            assert_eq!(crate::verify(path.join(name)).unwrap().problem_count, 0);
        }
    }
}
