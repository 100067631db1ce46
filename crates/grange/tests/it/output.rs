//! Standard output that nobody reads, or that cannot be written: acts go on, and exit codes stay true.

use std::fs::File;

use crate::archive_bed::{single, source};
use crate::harness::{Ended, Grange, run, run_unread};

/// Stores these files and leaves one replica without the copy of the first, so that commands find problems.
fn with_a_missing_copy(names: &[&str]) -> Grange {
    let grange = single();
    let files: Vec<_> = names.iter().map(|name| source(&grange, name, 3000)).collect();
    let args: Vec<_> = ["store"].into_iter().chain(files.iter().map(|file| file.to_str().unwrap())).collect();
    grange.run(&args).ok();
    std::fs::remove_file(grange.data().join("replicas/one/filedir").join(names[0])).unwrap();
    grange.run(&["audit", "run", "--wait"]).fails(5, &[]);
    grange
}

fn stored(grange: &Grange) -> usize {
    grange.run(&["files", "ls", "--json"]).ok().json().as_array().unwrap().len()
}

/// A device that takes nothing.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[track_caller]
fn says_once_that_the_output_failed(ended: &Ended) {
    assert_eq!(ended.stderr.matches("cannot write to standard output").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("No space left") && !ended.stderr.contains("panicked"), "{ended:?}");
}

#[test]
fn a_closed_pipe_and_a_full_disk_end_no_store() {
    let grange = single();
    let names: Vec<_> = (0..12).map(|number| format!("{number}.txt")).collect();
    let files: Vec<_> = names.iter().map(|name| source(&grange, name, 2000)).collect();
    let store = |part: &[std::path::PathBuf]| -> Vec<String> {
        let files = part.iter().map(|file| file.display().to_string());
        ["store".to_owned()].into_iter().chain(files).collect()
    };
    let args = store(&files[..6]);
    let ended = grange.run_unread(&args.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    assert_eq!((ended.stderr.as_str(), stored(&grange)), ("", 6));
    let args = store(&files[6..]);
    let ended = grange.run_into(full(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    says_once_that_the_output_failed(&ended);
    assert_eq!((ended.code, stored(&grange)), (1, 12), "{ended:?}");
}

#[test]
fn exit_codes_do_not_depend_on_who_reads_the_output() {
    let grange = with_a_missing_copy(&["a.txt", "b.txt"]);
    for (args, code) in [
        (&["findings"][..], 5),
        (&["findings", "--json"], 5),
        (&["audit", "run", "--wait"], 5),
        (&["files", "ls"], 0),
        (&["files", "ls", "--json"], 0),
        (&["audit", "verify-log"], 0),
        (&["settings", "example"], 0),
        (&["completions", "bash"], 0),
        (&["man"], 0),
        (&["get", "none.txt", "-"], 3),
        (&["repair", "--all"], 0),
    ] {
        assert_eq!(grange.run(args).code, code, "{args:?}");
        let ended = grange.run_unread(args);
        assert_eq!(ended.code, code, "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains("Broken pipe") && !ended.stderr.contains("panicked"), "{ended:?}");
        let ended = grange.run_into(full(), args);
        assert_eq!(ended.code, if code == 0 { 1 } else { code }, "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
    // An act whose only trace is what it did.
    grange.run_unread(&["repair", "--all", "--yes"]).ok();
    assert_eq!(grange.run(&["findings"]).ok().stdout, "Nothing needs a person.\n");
}

#[test]
fn a_restore_that_nobody_reads_rebuilds_and_audits() {
    let grange = single();
    for name in ["known.txt", "later.txt"] {
        grange.run(&["store", source(&grange, name, 3000).to_str().unwrap()]).ok();
        if name == "known.txt" {
            let backup = grange.path("before.db");
            grange.run(&["db", "backup", backup.to_str().unwrap()]).ok();
        }
    }
    let (backup, data) = (grange.path("before.db"), grange.data());
    let ended = bare_restore(&grange, backup.to_str().unwrap(), data.to_str().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(stored(&grange), 2, "the file after the backup was entered again");
    let checks = grange.run(&["audit", "status", "--json"]).ok().json();
    assert_eq!(checks.as_array().unwrap().len(), 3, "every replica was checked: {checks}");
}

fn bare_restore(grange: &Grange, backup: &str, data: &str) -> Ended {
    run_unread(&grange.path(""), &["restore", backup, "--to", data])
}

#[test]
fn a_listing_that_nobody_reads_ends_with_a_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let warc = crate::replay::warc(folder.path());
    let warc = warc.to_str().unwrap();
    for args in [&["warc", "ls", warc][..], &["warc", "ls", "--json", warc], &["cdx", "index", warc]] {
        run(folder.path(), args).ok();
        let ended = run_unread(folder.path(), args);
        assert_eq!((ended.code, ended.stderr.as_str()), (141, ""), "{args:?}: {ended:?}");
    }
    // More than any buffer holds: the list ends in its midst.
    for first in [&["warc", "ls"][..], &["warc", "ls", "--json"], &["cdx", "index"]] {
        let args: Vec<_> = first.iter().copied().chain(std::iter::repeat_n(warc, 2000)).collect();
        let ended = run_unread(folder.path(), &args);
        assert_eq!((ended.code, ended.stderr.as_str()), (141, ""), "{first:?}: {ended:?}");
    }
    let ended = run_unread(folder.path(), &["warc", "check", warc]);
    assert_eq!(ended.code, 0, "a judgement reads everything: {ended:?}");
}

#[test]
fn a_file_that_cannot_be_stored_leaves_the_others_alone() {
    let grange = single();
    let [first, last] = ["a.txt", "c.txt"].map(|name| source(&grange, name, 2000).display().to_string());
    let ended = grange.run(&["store", &first, "nofile", "neither", &last]);
    assert!(ended.code == 1 && ended.stdout.contains("c.txt: proven"), "{ended:?}");
    assert!(ended.stderr.contains("nofile") && ended.stderr.contains("neither"), "{ended:?}");
    assert_eq!(stored(&grange), 2);
    let ended = grange.run(&["--json", "store", "nofile", &last]);
    let outcomes = ended.json();
    assert_eq!(
        (ended.code, &outcomes[0]["stored"], &outcomes[1]["stored"]),
        (1, &false.into(), &true.into())
    );
    assert!(outcomes[0]["error"].as_str().unwrap().contains("nofile"), "{outcomes}");
    let warc = crate::replay::warc(&grange.path(""));
    let ended = grange.run(&["warc", "ls", "nofile", warc.to_str().unwrap()]);
    assert!(ended.code == 1 && ended.stderr.contains("nofile"), "{ended:?}");
    assert!(ended.stdout.contains("http://example.org/"), "{ended:?}");
}

#[test]
fn a_restore_refuses_a_data_folder_that_it_would_ignore() {
    let grange = single();
    let backup = grange.path("a.db");
    grange.run(&["db", "backup", backup.to_str().unwrap()]).ok();
    let ended = grange.run(&["restore", backup.to_str().unwrap(), "--to", "elsewhere"]);
    ended.fails(2, &["leave out --data", "elsewhere"]);
    assert!(!grange.path("elsewhere").exists());
}
