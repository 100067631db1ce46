//! Repairs and deposits that are taken back, and who is one person.

use std::process::Command;

use crate::archive_bed::{lying_in, single};
use crate::harness::Grange;

/// An archive with one file whose record every copy contradicts: its correction waits for a second person.
fn contradicted() -> Grange {
    let grange = single();
    let path = grange.file("some.warc", "bytes");
    grange.run(&["store", path.to_str().unwrap()]).ok();
    let spoil = "UPDATE files SET checksum = 'sha512=' || hex(zeroblob(64)),
         checksums = json_set(checksums, '$.sha512', hex(zeroblob(64)))";
    grange_testkit::sqlite::execute(&grange.data().join("grange.db"), spoil);
    assert_eq!(grange.run(&["audit", "run", "--wait"]).code, 5);
    grange
}

#[test]
fn one_account_is_one_person_whatever_the_environment_says() {
    let grange = contradicted();
    let asked = grange.run_with(&[("USER", "anna")], &["repair", "--all", "--yes", "--json"]);
    assert_eq!(asked.code, 5, "{asked:?}");
    let id = asked.json()["copies"][0]["repair"].as_str().unwrap().to_owned();
    for environment in [[("USER", "bert"), ("LOGNAME", "bert")], [("SUDO_USER", "carl"), ("USER", "carl")]] {
        grange.run_with(&environment, &["repair", "confirm", &id]).fails(4, &["second person"]);
    }
    let node = grange.up();
    grange.run_with(&[("USER", "bert")], &["repair", "confirm", &id]).fails(4, &["second person"]);
    assert_eq!(node.stop(), 0);
    let changes = grange.run(&["changes", "--json"]).ok().json();
    let who: Vec<_> =
        changes["changes"].as_array().unwrap().iter().filter(|one| one["act"] == "repair.ask").collect();
    assert!(who.len() == 1 && who[0]["who"] != "anna", "{who:?}");
}

/// Whoever runs `unshare` chooses the user id that a process has.
#[test]
fn a_process_in_a_user_namespace_is_not_a_second_person() {
    let unshare = ["unshare", "--user", "--map-user=4242"];
    let possible = Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !possible.is_ok_and(|status| status.success()) {
        return grange_testkit::note_skipped("`unshare --user`, which this system refuses");
    }
    let grange = contradicted();
    let asked = grange.run(&["repair", "decide", "some.warc", "--keep", "copies", "--json"]);
    let id = asked.json()[0]["id"].as_str().unwrap().to_owned();
    let refused = |args: &[&str]| {
        grange.run_under(&unshare, args).fails(4, &["unidentified:uid-4242", "--token-file"]);
    };
    refused(&["repair", "confirm", &id]);
    let node = grange.up();
    refused(&["repair", "confirm", &id]);
    assert_eq!(node.stop(), 0);
    grange.run(&["repair", "withdraw", &id]).ok();
    // Nor does anybody ask there for what the same person could confirm elsewhere.
    refused(&["repair", "decide", "some.warc", "--keep", "copies"]);
    let report = grange.run_under(&unshare, &["repair", "--all", "--yes", "--json"]).json();
    assert_eq!((&report["waiting"], &report["failed"]), (&0.into(), &1.into()), "{report}");
    assert!(report["copies"][0]["error"].as_str().unwrap().contains("--token-file"), "{report}");
    // Other acts go on, under a name that is nobody's.
    grange.run_under(&unshare, &["domains", "create", "e.dk"]).ok();
    let changes = grange.run(&["changes", "--json"]).ok().json();
    let one =
        changes["changes"].as_array().unwrap().iter().find(|one| one["act"] == "domain.create").unwrap();
    assert_eq!(one["who"], "unidentified:uid-4242");
}

#[test]
fn a_repair_that_waits_is_withdrawn_once_and_leaves_everything_as_it_is() {
    let grange = contradicted();
    let asked = grange.run(&["repair", "decide", "some.warc", "--keep", "copies", "--json"]);
    assert_eq!(asked.code, 5, "{asked:?}");
    let id = asked.json()[0]["id"].as_str().unwrap().to_owned();
    let withdrawn = grange.run(&["repair", "withdraw", &id, "--json"]).ok().json();
    assert_eq!((&withdrawn["state"], &withdrawn["kind"]), (&"withdrawn".into(), &"record".into()));
    grange.run(&["repair", "confirm", &id]).fails(4, &["second person"]);
    assert!(grange.run(&["repair", "ls"]).ok().stdout.contains("withdrawn"));
    grange.run(&["repair", "withdraw", "none"]).fails(3, &["there is no repair"]);
    let changes = grange.run(&["changes", "--json"]).ok().json();
    let acts: Vec<_> = changes["changes"].as_array().unwrap().iter().map(|one| one["act"].clone()).collect();
    assert!(acts.contains(&"repair.withdraw".into()), "{acts:?}");
    let again = grange.run(&["repair", "decide", "some.warc", "--keep", "copies"]);
    assert!(again.code == 5 && again.stdout.contains("repair confirm"), "{again:?}");
    let help = grange.run(&["repair", "decide", "--help"]).ok().stdout;
    for word in ["every copy with bytes", "checksum replicas have no vote", "is then corrupt"] {
        assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(word), "{help}");
    }
}

#[test]
fn a_deposit_that_reached_no_replica_gives_its_name_back() {
    let grange = single();
    grange.run(&["files", "ls"]).ok();
    let (replicas, aside) = (grange.data().join("replicas"), grange.path("unmounted"));
    std::fs::rename(&replicas, &aside).unwrap();
    let first = grange.file("a.warc", "first");
    let stored = grange.run(&["store", first.to_str().unwrap()]);
    assert!(stored.code == 5 && stored.stdout.contains("is away"), "{stored:?}");
    assert!(!replicas.join("one").exists(), "nothing is made in the place of a replica that is away");
    let second = grange.file("a.warc", "second");
    grange.run(&["store", second.to_str().unwrap()]).fails(4, &["grange files withdraw a.warc"]);
    grange.run(&["files", "withdraw", "a.warc"]).fails(4, &["cannot be asked"]);
    let _ = std::fs::remove_dir_all(&replicas);
    std::fs::rename(&aside, &replicas).unwrap();
    let withdrawn = grange.run(&["files", "withdraw", "a.warc", "--json"]).ok().json();
    assert_eq!((withdrawn["name"].as_str(), withdrawn["size"].as_u64()), (Some("a.warc"), Some(5)));
    grange.run(&["store", second.to_str().unwrap()]).ok();
    grange.run(&["files", "withdraw", "a.warc"]).fails(4, &["was stored on every replica"]);
    assert_eq!(lying_in(&replicas.join("one/filedir")), ["a.warc"]);
    grange.run(&["audit", "run", "--wait"]).ok();
    grange.run(&["files", "withdraw", "none"]).fails(3, &["there is no file"]);
}

#[test]
fn a_challenge_counts_files_and_says_where_it_cannot_be_done() {
    let grange = single();
    for name in ["a.warc", "b.warc"] {
        let path = grange.file(name, name);
        grange.run(&["store", path.to_str().unwrap()]).ok();
    }
    let counted = grange.run(&["audit", "run", "--kind", "challenge", "--wait", "--json"]).ok().json();
    assert!(counted["files"].as_u64() >= Some(2) && counted["files"] == counted["ok"], "{counted}");
    let named = ["audit", "run", "--kind", "challenge", "--replica", "three", "--wait"];
    grange.run(&named).fails(4, &["keeps no bytes"]);
    let path = grange.data().join("replicas/one/filedir/b.warc");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "B.warc").unwrap();
    let found = grange.run(&["audit", "run", "--kind", "challenge", "--wait", "--json"]);
    assert_eq!((found.code, found.json()["corrupt"].as_u64()), (5, Some(1)), "{found:?}");
}

#[test]
fn files_in_subfolders_are_named_by_an_audit() {
    let grange = single();
    grange.run(&["files", "ls"]).ok();
    let folder = grange.data().join("replicas/two/filedir/2019");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("old.warc.gz"), "old").unwrap();
    let found = grange.run(&["audit", "run", "--wait"]);
    assert_eq!(found.code, 5, "{found:?}");
    assert!(found.stdout.contains("2019/old.warc.gz on two (3B)"), "{found:?}");
    assert!(found.stdout.contains("move the others there"), "{found:?}");
    std::fs::remove_dir_all(&folder).unwrap();
    grange.run(&["audit", "run", "--wait"]).ok();
}
