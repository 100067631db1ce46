//! The database is older than the archive, or gone: what it forgot is found beside the bits.

use std::sync::atomic::Ordering;

use grange_model::{Algorithm, FindingKind, HighestNumbers};
use serde_json::json;
use tempfile::TempDir;

use super::bed::{Bed, anna, named, settings};
use crate::{Archive, ReplicaSettings, Settings};

const DATABASE: [&str; 3] = ["grange.db", "grange.db-wal", "grange.db-shm"];

/// Lets go of the archive and of its database.
async fn closed(bed: Bed) -> TempDir {
    bed.archive.db().close().await;
    bed.dir
}

async fn without_database(bed: Bed) -> Bed {
    let dir = closed(bed).await;
    for name in DATABASE {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    Bed::on(dir, settings()).await
}

/// The archive as it was when the copy was made, with the bits of today.
async fn with_older_database(bed: Bed, copy: &std::path::Path) -> Bed {
    let dir = closed(bed).await;
    for name in DATABASE {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    std::fs::copy(copy, dir.path().join(DATABASE[0])).unwrap();
    Bed::on(dir, settings()).await
}

/// Whether the number of a job may be given: nothing keeps the counter above it.
async fn may_be_given(archive: &Archive, job: i64) -> bool {
    archive.db().raise_numbers(HighestNumbers { job, ..HighestNumbers::default() }).await.unwrap()
}

async fn rules(archive: &Archive) -> Vec<serde_json::Value> {
    archive.db().access_rules().list().await.unwrap().into_iter().map(|row| row.rule).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_takes_all_checksums_from_one_copy_that_answers_the_winner() {
    let place = |name: &str| (name.parse().unwrap(), ReplicaSettings::default());
    let bytes_only = || Settings {
        checksums: vec![Algorithm::Sha512, Algorithm::Sha256, Algorithm::Md5],
        replicas: ["four", "one", "two"].map(place).into(),
        ..settings()
    };
    let bed = Bed::with(bytes_only()).await;
    assert!(bed.store("a.warc", b"right").await.stored);
    let before = bed.archive.status(&named("a.warc")).await.unwrap().unwrap().file;
    // The first replica that is asked holds another file under the name, and is outvoted.
    bed.damage("four", "a.warc", |bytes| *bytes = b"wrong".to_vec());
    let dir = closed(bed).await;
    for name in DATABASE {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    let bed = Bed::on(dir, bytes_only()).await;
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!((rebuilt.entered, rebuilt.incomplete), (1, 1), "{rebuilt:?}");
    let after = bed.archive.status(&named("a.warc")).await.unwrap().unwrap().file;
    assert_eq!(after.checksums, before.checksums);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takedown_survives_the_loss_of_the_database() {
    let bed = Bed::new().await;
    let db = bed.archive.db().clone();
    let (first, second, third) = (json!({ "a": 1 }), json!({ "b": 2 }), json!({ "c": 3 }));
    let made = db.access_rules().add(vec![first, second.clone()], "court", &anna()).await.unwrap();
    assert_eq!(bed.archive.keep_access_rules().await.unwrap().written, 2 * 3, "on every replica");
    db.access_rules().remove(made[0].id, &anna()).await.unwrap();
    // A replica that is away gets its copy later.
    bed.two.down.store(true, Ordering::SeqCst);
    db.access_rules().add(vec![third.clone()], "", &anna()).await.unwrap();
    assert_eq!(bed.archive.keep_access_rules().await.unwrap().away, ["two"]);
    bed.two.down.store(false, Ordering::SeqCst);
    assert_eq!(bed.archive.keep_access_rules().await.unwrap().written, 2);
    assert_eq!(bed.archive.keep_access_rules().await.unwrap().written, 0);
    assert!(bed.archive.verify_log().await.unwrap().ok);

    let bed = without_database(bed).await;
    assert_eq!(rules(&bed.archive).await, Vec::<serde_json::Value>::new());
    let report = bed.archive.rebuild("anna").await.unwrap().access_rules;
    assert_eq!(report.reestablished.len(), 2, "{report:?}");
    assert_eq!(report.reestablished[0].created_by, "anna");
    let mut now = rules(&bed.archive).await;
    now.sort_by_key(ToString::to_string);
    assert_eq!(now, [second, third]);
    let again = bed.archive.rebuild("anna").await.unwrap().access_rules;
    assert_eq!((again.reestablished.len(), again.written), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_database_learns_of_takedowns_and_removals_without_being_asked() {
    let bed = Bed::new().await;
    let copy = bed.dir.path().join("copy.db");
    let db = bed.archive.db().clone();
    let old = db.access_rules().add(vec![json!({ "old": 1 })], "", &anna()).await.unwrap();
    bed.archive.keep_access_rules().await.unwrap();
    db.backup_to(&copy).await.unwrap();
    db.access_rules().remove(old[0].id, &anna()).await.unwrap();
    db.access_rules().add(vec![json!({ "new": 2 })], "court", &anna()).await.unwrap();
    bed.archive.keep_access_rules().await.unwrap();

    let bed = with_older_database(bed, &copy).await;
    bed.archive.tick().await.unwrap();
    assert_eq!(rules(&bed.archive).await, [json!({ "old": 1 }), json!({ "new": 2 })]);
    let report = bed.archive.keep_access_rules().await.unwrap();
    assert_eq!(report.returned.len(), 1, "what was removed and came back is for a person: {report:?}");
    assert_eq!(report.returned[0].rule, json!({ "old": 1 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_files_that_an_older_database_forgot_are_not_given_again() {
    let bed = Bed::new().await;
    let copy = bed.dir.path().join("copy.db");
    bed.archive.db().backup_to(&copy).await.unwrap();
    assert!(bed.store("7-metadata-1.warc.gz", b"papers").await.stored);
    let bed = with_older_database(bed, &copy).await;
    assert_eq!(bed.archive.look_for_strays().await.unwrap(), Some(1));
    assert_eq!(bed.archive.db().strays().count().await.unwrap(), 1);
    assert!(!may_be_given(&bed.archive, 7).await);
    let rebuilt = bed.archive.rebuild("anna").await.unwrap();
    assert_eq!(rebuilt.entered, 1, "{rebuilt:?}");
    assert_eq!(bed.archive.db().strays().count().await.unwrap(), 0);

    let bed = without_database(bed).await;
    bed.archive.rebuild("anna").await.unwrap();
    assert!(!may_be_given(&bed.archive, 7).await);
    assert!(may_be_given(&bed.archive, 8).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_restored_database_is_not_called_rewritten_once_the_loss_is_acknowledged() {
    let bed = Bed::new().await;
    let copy = bed.dir.path().join("copy.db");
    bed.fill(1).await;
    bed.archive.db().backup_to(&copy).await.unwrap();
    assert!(bed.store("later", b"bytes").await.stored);
    bed.archive.write_witness().await.unwrap();
    let bed = with_older_database(bed, &copy).await;
    assert!(!bed.archive.verify_log().await.unwrap().ok, "the witnesses know a longer log");
    bed.archive.rebuild("anna").await.unwrap();
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.ok, "{report:?}");
    assert!(report.witnesses.iter().all(|one| one.of_lost_log));
}

/// Every number that becomes part of a name, not only that of jobs; and so for files that somebody laid there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_in_the_name_of_a_file_is_given_again() {
    let files = ["7-3-20260101120000123-00000-h.warc.gz", "oai-5-20260101120000-00000.warc.gz"];
    let (harvest, oai_job) = (
        HighestNumbers { harvest: 3, ..HighestNumbers::default() },
        HighestNumbers { oai_job: 5, ..HighestNumbers::default() },
    );
    let given = async |bed: &Bed| {
        let db = bed.archive.db();
        [db.raise_numbers(harvest).await.unwrap(), db.raise_numbers(oai_job).await.unwrap()]
    };
    let bed = Bed::new().await;
    let copy = bed.dir.path().join("backup.db");
    bed.archive.db().backup_to(&copy).await.unwrap();
    for name in files {
        assert!(bed.store(name, b"bytes").await.stored);
    }
    // An older database is put back by hand: the first look at the replicas counts.
    let bed = with_older_database(bed, &copy).await;
    bed.archive.look_for_strays().await.unwrap();
    assert_eq!(given(&bed).await, [false, false], "restored");
    let bed = without_database(bed).await;
    bed.archive.rebuild("anna").await.unwrap();
    assert_eq!(given(&bed).await, [false, false], "rebuilt");
    // An archive of somebody else is taken over as it lies.
    let bed = Bed::new().await;
    for replica in ["one", "two"] {
        for name in files {
            std::fs::write(bed.path(replica, name), b"bytes").unwrap();
        }
    }
    bed.archive.rebuild("anna").await.unwrap();
    assert_eq!(given(&bed).await, [false, false], "adopted");
    let unknown = HighestNumbers { harvest: 4, ..HighestNumbers::default() };
    assert!(bed.archive.db().raise_numbers(unknown).await.unwrap(), "the next one is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_access_rule_is_a_finding_until_it_is_put_right() {
    let bed = Bed::new().await;
    bed.archive.db().access_rules().add(vec![json!({ "a": 1 })], "", &anna()).await.unwrap();
    bed.archive.keep_access_rules().await.unwrap();
    let folder = bed.dir.path().join("replicas/one/filedir");
    let mut names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let rule = names.find(|path| path.to_string_lossy().contains("access-add")).unwrap();
    let whole = std::fs::read(&rule).unwrap();
    let findings = async || {
        let found = bed.archive.db().findings().list(false, 10).await.unwrap();
        found.into_iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    std::fs::remove_file(&rule).unwrap();
    std::fs::write(&rule, &whole[1..]).unwrap();
    for _ in 0..2 {
        bed.archive.keep_access_rules().await.unwrap();
        assert_eq!(findings().await, [FindingKind::DamagedAccessRule]);
    }
    // A replica that is away may hold another damaged one.
    bed.two.down.store(true, Ordering::SeqCst);
    std::fs::write(&rule, &whole).unwrap();
    bed.archive.keep_access_rules().await.unwrap();
    assert_eq!(findings().await, [FindingKind::DamagedAccessRule]);
    bed.two.down.store(false, Ordering::SeqCst);
    bed.archive.keep_access_rules().await.unwrap();
    assert_eq!(findings().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_file_beside_the_bits_holds_up_no_other() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    bed.archive.write_witness().await.unwrap();
    let folder = bed.dir.path().join("replicas/three");
    std::fs::create_dir(folder.join("grange-witness-access-add-x.json")).unwrap();
    std::fs::create_dir(folder.join("grange-witness-00000000-x.json")).unwrap();
    bed.archive.db().access_rules().add(vec![json!({ "a": 1 })], "court", &anna()).await.unwrap();
    let report = bed.archive.keep_access_rules().await.unwrap();
    assert_eq!((report.written, report.away.len()), (3, 0), "{report:?}");
    assert_eq!(report.damaged, ["grange-witness-access-add-x.json on three"]);
    let open = bed.archive.db().findings().list(false, 10).await.unwrap();
    let kinds: Vec<_> = open.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [FindingKind::DamagedAccessRule], "{open:?}");
    // The other witnesses of the replica are compared with the log, and the bad one is named.
    let log = bed.archive.verify_log().await.unwrap();
    assert_eq!(log.witnesses.iter().filter(|one| one.replica == "three").count(), 1, "{log:?}");
    assert!(log.problems.len() == 1 && log.problems[0].contains("00000000-x.json on three"), "{log:?}");
}

/// A rule from before there was a limit: one replica refuses it, and keeps those after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_cannot_be_kept_holds_up_no_later_one() {
    let bed = Bed::new().await;
    let rules = bed.archive.db().access_rules();
    let made = rules.add(vec![json!({ "a": 1 }), json!({ "b": 2 })], "", &anna()).await.unwrap();
    let mut keys: Vec<_> = made.iter().map(|row| row.key.clone().unwrap()).collect();
    keys.sort();
    let name = format!("grange-witness-access-add-{}.json", keys[0]);
    *bed.two.refused_puts.lock().unwrap() = Some(named(&name));
    let report = bed.archive.keep_access_rules().await.unwrap();
    assert_eq!((report.written, report.away), (5, vec!["two".to_owned()]));
    assert!(bed.path("two", &format!("grange-witness-access-add-{}.json", keys[1])).exists());
    assert!(!bed.path("two", &name).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_the_database_knows_are_read_once_a_day_and_not_every_minute() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let rules: Vec<_> = (0..5).map(|n| json!({ "a": n })).collect();
    bed.archive.db().access_rules().add(rules, "", &anna()).await.unwrap();
    bed.archive.keep_access_rules().await.unwrap();
    bed.archive.seal().await.unwrap();
    let reads = || bed.one.reads.load(Ordering::SeqCst) + bed.two.reads.load(Ordering::SeqCst);
    let before = reads();
    bed.archive.seal().await.unwrap();
    bed.archive.keep_changed_access_rules().await.unwrap();
    assert_eq!(reads(), before, "names say enough");
    let one = bed.archive.db().access_rules().list().await.unwrap()[0].id;
    bed.archive.db().access_rules().remove(one, &anna()).await.unwrap();
    assert_eq!(bed.archive.keep_changed_access_rules().await.unwrap().written, 3);
    bed.archive.keep_changed_access_rules().await.unwrap();
    assert_eq!(reads(), before, "what was removed is known too");
    bed.archive.keep_access_rules().await.unwrap();
    assert_eq!(reads(), before + 2 * 6);
}
