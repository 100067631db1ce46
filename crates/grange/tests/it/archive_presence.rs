//! Replicas that are not there, checks that are in nobody's way, and settings that cannot work; through the command line.

use std::path::Path;

use grange_testkit::until;
use serde_json::Value;

use crate::archive_bed::{single, single_with, source};
use crate::harness::Grange;

fn store(grange: &Grange, name: &str, bytes: usize) -> i32 {
    let file = source(grange, name, bytes);
    grange.run(&["store", file.to_str().unwrap()]).code
}

fn proven(grange: &Grange, name: &str) -> bool {
    let file: Value = grange.run(&["files", "show", name, "--json"]).ok().json();
    file["holdings"].as_array().unwrap().iter().all(|one| one["state"] == "upload_completed")
}

fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unmounted_replica_is_away_until_it_is_mounted_or_adopted() {
    let grange = single();
    for n in 0..3 {
        assert_eq!(store(&grange, &format!("{n}.warc"), 1000), 0);
    }
    let (folder, aside) = (grange.data().join("replicas/two"), grange.path("unmounted"));
    rename(&folder, &aside);
    std::fs::create_dir(&folder).unwrap();
    let node = grange.up();
    grange.run(&["audit", "run"]).ok();
    let mut status = String::new();
    until("the check says why it waits", async || {
        status = grange.run(&["audit", "status"]).ok().stdout;
        status.contains("two checksum waits: the replica two is away")
    })
    .await;
    let shown = grange.run(&["replicas", "ls"]).ok().stdout;
    assert!(shown.contains("two is away") && shown.contains("grange replicas adopt two"), "{shown}");
    grange.run(&["repair", "--all", "--yes"]).fails(5, &[]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is made below the mount point");
    // Mounted again while the node runs: the check goes on by itself.
    std::fs::remove_dir_all(&folder).unwrap();
    rename(&aside, &folder);
    until("the replica is back", async || !grange.run(&["replicas", "ls"]).ok().stdout.contains("is away"))
        .await;
    until("the checks are done", async || {
        let checks: Value = grange.run(&["audit", "status", "--json"]).ok().json();
        checks.as_array().unwrap().iter().all(|check| check["state"] == "done" && check["ok"] == 3)
    })
    .await;
    node.stop();
    // Emptied on purpose.
    std::fs::remove_dir_all(&folder).unwrap();
    let shown = grange.run(&["replicas", "ls"]).ok().stdout;
    assert!(shown.contains("two is away"), "{shown}");
    let adopted = grange.run(&["replicas", "adopt", "two"]).ok().stdout;
    assert!(adopted.contains("replicas/two is marked as replica two"), "{adopted}");
    let counts = grange.run(&["audit", "run", "--wait", "--json"]).fails(5, &[]).json();
    assert_eq!(counts["missing"], 3);
    grange.run(&["repair", "--all", "--yes"]).ok();
    assert_eq!(grange.run(&["audit", "run", "--wait", "--json"]).ok().json()["ok"], 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_healed_while_a_check_reads_and_a_stop_does_not_wait_for_it() {
    // So slow that the check lasts until it is stopped.
    let grange = single_with(&["archive.check_bytes_per_second=1KB"]);
    for n in 0..3 {
        assert_eq!(store(&grange, &format!("{n}.warc"), 300_000), 0);
    }
    let node = grange.up();
    grange.run(&["audit", "run"]).ok();
    // A replica that takes nothing for a while.
    let (temp, aside) = (grange.data().join("replicas/two/tempdir"), grange.path("aside"));
    rename(&temp, &aside);
    assert_eq!(store(&grange, "late.warc", 1000), 5);
    rename(&aside, &temp);
    until("the copy is healed", async || proven(&grange, "late.warc")).await;
    let checks: Value = grange.run(&["audit", "status", "--json"]).ok().json();
    assert!(checks.as_array().unwrap().iter().any(|check| check["state"] == "running"), "{checks}");
    assert_eq!(node.stop(), 0);
    let log = std::fs::read_to_string(grange.data().with_extension("log")).unwrap();
    assert!(!log.contains("did not stop in time"), "{log}");
}

#[test]
fn settings_that_cannot_work_are_refused_by_the_check_and_by_the_start() {
    for (set, words) in [
        ("archive.check_page=0", "archive.check_page: with 0 files per question"),
        ("archive.lease=0s", "archive.lease: a lease of 0s"),
        ("archive.check_hours=[3, 3]", "archive.check_hours: no hour of the day"),
        ("archive.challenge_files=0", "archive.challenge_files: a challenge of 0 files"),
    ] {
        let grange = Grange::with(&[set]);
        for command in [&["settings", "check"][..], &["up"], &["files", "ls"]] {
            grange.run(command).fails(2, &[words]);
        }
    }
}
