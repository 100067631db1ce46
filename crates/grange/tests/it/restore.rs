//! An older database under a newer archive: what it forgot is named, entered and listed, and no number is given twice.

use grange_testkit::web::Profile;
use serde_json::Value;

use crate::archive_bed::{audit, single, single_with, source};
use crate::harness::Grange;
use crate::harvest_bed::{QUICK, Site, job_with, nothing_left};

fn store(grange: &Grange, name: &str) {
    grange.run(&["store", source(grange, name, 2_000).to_str().unwrap()]).ok();
}

fn backup(grange: &Grange) -> String {
    let path = grange.path("backup.db").display().to_string();
    grange.run(&["db", "backup", &path]).ok();
    path
}

fn without_database(grange: &Grange) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(grange.data().join(format!("grange.db{end}")));
    }
}

/// As an operator does who has not heard of `grange restore`.
fn put_back_by_hand(grange: &Grange, backup: &str) {
    without_database(grange);
    std::fs::copy(backup, grange.data().join("grange.db")).unwrap();
}

#[test]
fn files_that_the_database_does_not_know_are_named_until_they_are_entered() {
    let grange = single();
    store(&grange, "known.warc.gz");
    let backup = backup(&grange);
    store(&grange, "forgotten.warc.gz");
    assert_eq!(audit(&grange), [6, 0, 0, 0, 0]);
    put_back_by_hand(&grange, &backup);
    let ended = grange.run(&["audit", "run", "--wait"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    for replica in ["one", "two", "three"] {
        assert!(ended.stdout.contains(&format!("forgotten.warc.gz on {replica}")), "{}", ended.stdout);
    }
    let status = grange.run(&["audit", "status"]);
    assert_eq!(status.code, 5, "{status:?}");
    assert!(status.stdout.contains("3 stray copies"), "{}", status.stdout);
    grange.run(&["archive", "rebuild"]).ok();
    assert_eq!(audit(&grange), [6, 0, 0, 0, 0]);
    grange.run(&["audit", "status"]).ok();
}

#[test]
fn a_backup_of_an_archive_that_was_never_started_replaces_no_other() {
    let (grange, other) = (single(), single());
    store(&grange, "known.warc.gz");
    other.run(&["domains", "create", "other.dk"]).ok();
    let (backup, data) = (backup(&other), grange.data().display().to_string());
    grange.run(&["restore", &backup, "--to", &data]).fails(1, &["never started", "choose a backup"]);
    assert_eq!(audit(&grange), [3, 0, 0, 0, 0]);
}

#[test]
fn a_restore_is_one_command_and_lists_what_came_back_alive() {
    let grange = single();
    store(&grange, "known.warc.gz");
    grange.run(&["users", "add", "anna", "--role", "admin"]).ok();
    grange.run(&["users", "add", "berta", "--role", "curator"]).ok();
    grange.run(&["users", "token", "anna", "--for", "scripts"]).ok();
    grange.run(&["access", "add", "--block", "old", "--url", "http://old.example.com/"]).ok();
    let backup = backup(&grange);
    // After the backup: a file, a token revoked, a password changed, a user disabled, one rule removed and one added.
    store(&grange, "forgotten.warc.gz");
    let tokens = grange.run(&["users", "tokens", "anna", "--json"]).ok().json();
    grange.run(&["users", "revoke", tokens[0]["id"].as_str().unwrap()]).ok();
    grange.run(&["users", "passwd", "anna"]).ok();
    grange.run(&["users", "disable", "berta"]).ok();
    grange.run(&["users", "add", "carl", "--role", "viewer"]).ok();
    grange.run(&["access", "rm", "1"]).ok();
    grange.run(&["access", "add", "--block", "court", "--url", "http://secret.example.com/"]).ok();

    let data = grange.data().display().to_string();
    let restored = grange.run(&["restore", &backup, "--to", &data]);
    assert_eq!(restored.code, 5, "{restored:?}");
    for line in [
        "2 files found on the replicas, 1 entered",
        "of anna (scripts): revoked at",
        "user anna: an older password works again",
        "user berta: disabled in the replaced database, enabled now",
        "user carl: lost",
        "lost, and in force again from its copy beside the bits",
        "removed before, and in force again",
    ] {
        assert!(restored.stdout.contains(line), "{line}:\n{}", restored.stdout);
    }
    let replaced = std::fs::read_dir(grange.data()).unwrap().flatten();
    let replaced = replaced.filter(|entry| entry.file_name().to_string_lossy().contains(".replaced-"));
    let databases = replaced.filter(|entry| entry.file_name().to_string_lossy().ends_with('Z'));
    assert_eq!(databases.count(), 1, "the database that was there is kept");
    let dest = grange.path("back");
    grange.run(&["get", "forgotten.warc.gz", dest.to_str().unwrap()]).ok();
    let tokens = grange.run(&["users", "tokens", "anna", "--json"]).ok().json();
    assert!(tokens[0]["revoked_at"].is_string(), "what was revoked stays revoked: {tokens}");
    let hidden = grange.run(&["access", "test", "http://secret.example.com/x"]).ok().stdout;
    assert!(hidden.contains("court"), "a takedown survives: {hidden}");
    assert_eq!(audit(&grange), [6, 0, 0, 0, 0]);
    grange.run(&["audit", "verify-log"]).ok();
    let changes = grange.run(&["changes", "--json"]).ok().stdout;
    assert!(changes.contains("database.restore") && changes.contains("access.reestablish"), "{changes}");
}

#[test]
fn a_database_restored_with_other_tools_ends_its_sessions_and_lists_who_comes_in() {
    let grange = single();
    store(&grange, "known.warc.gz");
    grange.run(&["users", "add", "anna", "--role", "admin"]).ok();
    grange.run(&["users", "token", "anna", "--for", "scripts"]).ok();
    let backup = backup(&grange);
    let tokens = grange.run(&["users", "tokens", "anna", "--json"]).ok().json();
    let token = tokens[0]["id"].as_str().unwrap();
    grange.run(&["users", "revoke", token]).ok();
    put_back_by_hand(&grange, &backup);
    let node = grange.up();
    grange.run(&["db", "restored"]).fails(2, &["stop all nodes"]);
    assert_eq!(node.stop(), 0);
    let listed = grange.run(&["db", "restored"]);
    assert_eq!(listed.code, 5, "{listed:?}");
    for line in
        [format!("grange users revoke {token}"), "user anna: the password of the backup works".to_owned()]
    {
        assert!(listed.stdout.contains(&line), "{line}:\n{}", listed.stdout);
    }
    let changes = grange.run(&["changes", "--json"]).ok().stdout;
    assert!(changes.contains("database.restore"), "{changes}");
}

#[test]
fn a_restore_that_brings_nothing_back_to_life_ends_well_and_a_wrong_one_changes_nothing() {
    let grange = single();
    store(&grange, "known.warc.gz");
    let backup = backup(&grange);
    store(&grange, "forgotten.warc.gz");
    let data = grange.data().display().to_string();
    let no_database = grange.file("notes.txt", "not a database").display().to_string();
    grange.run(&["restore", &no_database, "--to", &data]).fails(1, &["notes.txt"]);
    grange.run(&["restore", "/nowhere/backup.db", "--to", &data]).fails(1, &["/nowhere/backup.db"]);
    let itself = grange.data().join("grange.db").display().to_string();
    grange.run(&["restore", &itself, "--to", &data]).fails(1, &["cannot restore"]);
    let node = grange.up();
    grange.run(&["restore", &backup, "--to", &data]).fails(1, &["stop it first"]);
    assert_eq!(node.stop(), 0);
    assert_eq!(grange.run(&["files", "ls", "--json"]).ok().json().as_array().unwrap().len(), 2);
    let restored = grange.run(&["restore", &backup, "--to", &data, "--json"]).json();
    assert_eq!(restored["rebuilt"]["entered"], 1, "{restored}");
    assert_eq!(restored["restored"]["came_back"]["tokens"], Value::Array(vec![]), "{restored}");
    assert_eq!(restored["strays"]["count"], 0, "{restored}");
}

#[test]
fn takedowns_survive_a_rebuild_without_any_database() {
    let grange = single();
    store(&grange, "known.warc.gz");
    grange.run(&["access", "add", "--block", "court", "--url", "http://secret.example.com/"]).ok();
    without_database(&grange);
    grange.run(&["init"]).ok();
    let rebuilt = grange.run(&["archive", "rebuild", "--json"]).ok().json();
    assert_eq!(rebuilt["access_rules"]["reestablished"].as_array().unwrap().len(), 1, "{rebuilt}");
    let hidden = grange.run(&["access", "test", "http://secret.example.com/x"]).ok().stdout;
    assert!(hidden.contains("court"), "{hidden}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_is_never_numbered_like_one_that_the_archive_knows_and_the_database_forgot() {
    let site = Site::serve(1, 3, Profile::Plain).await;
    let grange = single_with(&QUICK);
    grange.crawls_at(site.server.addr());
    let node = grange.up();
    site.define(&grange, "news", "0s");
    let backup = backup(&grange);
    grange.run(&["harvests", "activate", "news"]).ok();
    let first = job_with(&grange, "news", "done")["id"].as_i64().unwrap();
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);

    put_back_by_hand(&grange, &backup);
    let node = grange.up();
    grange.run(&["harvests", "activate", "news"]).ok();
    let second = job_with(&grange, "news", "done")["id"].as_i64().unwrap();
    assert!(second > first, "{second} after {first}");
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);

    without_database(&grange);
    grange.run(&["init"]).ok();
    grange.run(&["archive", "rebuild"]).ok();
    let node = grange.up();
    site.harvest(&grange, "news", "0s");
    let third = job_with(&grange, "news", "done")["id"].as_i64().unwrap();
    assert!(third > second, "{third} after {second}");
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);
    let [_, missing, corrupt, undecided, extra] = audit(&grange);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_that_waits_in_an_older_database_does_not_clash_with_its_own_metadata_file() {
    let site = Site::serve(1, 3, Profile::Plain).await;
    // Planned, and crawled by nobody: the backup knows the job as new.
    let grange = single_with(&[&QUICK[..], &["harvest.min_space_left=999999GiB"]].concat());
    grange.crawls_at(site.server.addr());
    let node = grange.up();
    site.harvest(&grange, "news", "0s");
    let first = job_with(&grange, "news", "new")["id"].clone();
    let backup = backup(&grange);
    assert_eq!(node.stop(), 0);
    let grange = grange.set_again(&QUICK);
    let node = grange.up();
    assert_eq!(job_with(&grange, "news", "done")["id"], first);
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);

    put_back_by_hand(&grange, &backup);
    let node = grange.up();
    assert_eq!(job_with(&grange, "news", "done")["id"], first);
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);
    let filedir = grange.data().join("replicas/one/filedir");
    for attempt in [1, 2] {
        assert!(filedir.join(format!("{first}-metadata-{attempt}.warc.gz")).exists(), "{attempt}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_archive_that_is_taken_over_keeps_its_numbers() {
    let site = Site::serve(1, 3, Profile::Plain).await;
    let grange = single_with(&[&QUICK[..], &["schedule.first_job_number=7"]].concat());
    grange.crawls_at(site.server.addr());
    for replica in ["one", "two"] {
        let filedir = grange.data().join(format!("replicas/{replica}/filedir"));
        std::fs::create_dir_all(&filedir).unwrap();
        std::fs::write(filedir.join("1-metadata-1.warc.gz"), "of another archive").unwrap();
        std::fs::write(filedir.join("12-metadata-1.warc.gz"), "of another archive").unwrap();
    }
    grange.run(&["archive", "rebuild"]).ok();
    store(&grange, "15-metadata-1.warc.gz");
    let node = grange.up();
    site.harvest(&grange, "news", "0s");
    assert_eq!(job_with(&grange, "news", "done")["id"], 16);
    nothing_left(&grange);
    assert_eq!(node.stop(), 0);
}
