//! What stays behind and what is said: the spool, the keys of the log, and the findings that reads and audits open.

use std::sync::atomic::Ordering::SeqCst;

use grange_base::Clock;
use grange_db::KeyVouch;
use grange_model::{AuditKind, FindingKind, LogEvent};
use grange_testkit::sqlite;
use tempfile::TempDir;

use super::bed::{Bed, anna, content, database, file, named, parts, settings};
use crate::spool::SpoolFile;
use crate::{Archive, Store, check_proof};

async fn open(bed: &Bed) -> Vec<String> {
    let found = bed.archive.db().findings().list(false, 100).await.unwrap();
    let mut shown: Vec<_> = found.iter().map(|one| format!("{} {}", one.kind, one.subject)).collect();
    shown.sort();
    shown
}

async fn look(bed: &Bed) {
    bed.archive.db().findings().look(std::time::Duration::MAX).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_does_not_grow_with_the_readers_of_a_copy_that_is_gone() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    std::fs::remove_file(bed.path("one", &file(0))).unwrap();
    bed.damage("one", &file(1), |bytes| bytes[3] ^= 1);
    for _ in 0..20 {
        assert_eq!(bed.got(&file(0)).await, content(0));
        assert_eq!(bed.got(&file(1)).await, content(1));
        assert_eq!(bed.archive.read_at(&named(&file(0)), 0, 10).await.unwrap().as_ref(), &content(0)[..10]);
        bed.archive.open_file(&named(&file(1))).await.unwrap();
    }
    assert_eq!(bed.events(LogEvent::Unservable).await, 2, "one for each copy");
    assert_eq!(
        open(&bed).await,
        ["unservable-copy file-0000.warc.gz on one", "unservable-copy file-0001.warc.gz on one"]
    );
    // The audit says what it is, and the repair ends it.
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    look(&bed).await;
    assert_eq!(
        open(&bed).await,
        ["corrupt-copy file-0001.warc.gz on one", "missing-copy file-0000.warc.gz on one"]
    );
    bed.repair().await;
    look(&bed).await;
    assert_eq!(open(&bed).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_does_not_answer_readers_adds_nothing_to_the_log() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let before = bed.archive.db().logbook().size().await.unwrap();
    bed.one.down.store(true, SeqCst);
    for _ in 0..5 {
        assert_eq!(bed.got(&file(0)).await, content(0));
    }
    assert_eq!(bed.archive.db().logbook().size().await.unwrap(), before);
    bed.archive.probe_replicas().await;
    bed.archive.probe_replicas().await;
    look(&bed).await;
    assert_eq!(open(&bed).await, ["replica-away replica one"]);
    bed.one.down.store(false, SeqCst);
    bed.archive.probe_replicas().await;
    look(&bed).await;
    assert_eq!(open(&bed).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_an_audit_judged_has_one_finding_however_many_read_it_afterwards() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    for replica in ["one", "two"] {
        bed.damage(replica, &file(0), |bytes| bytes[3] ^= 1);
        std::fs::remove_file(bed.path(replica, &file(1))).unwrap();
    }
    let read = async || {
        for number in 0..2 {
            bed.archive.open_file(&named(&file(number))).await.unwrap_err();
            bed.archive.read_at(&named(&file(number)), 0, 10).await.ok();
        }
    };
    read().await;
    assert_eq!(open(&bed).await.len(), 4, "{:?}", open(&bed).await);
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    look(&bed).await;
    let expected = [
        "missing-copy file-0001.warc.gz on one",
        "missing-copy file-0001.warc.gz on two",
        "undecided-copy file-0000.warc.gz on one",
        "undecided-copy file-0000.warc.gz on two",
    ];
    assert_eq!(open(&bed).await, expected);
    read().await;
    look(&bed).await;
    assert_eq!(open(&bed).await, expected);
    assert_eq!(bed.events(LogEvent::Unservable).await, 4, "the readers before the audit");
}

fn spooled(bed: &Bed) -> usize {
    std::fs::read_dir(bed.dir.path().join("spool")).map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_of_killed_processes_leave_the_spool_and_living_ones_stay() {
    let bed = Bed::new().await;
    let folder = bed.dir.path().join("spool");
    let killed = SpoolFile::create(&folder).unwrap();
    std::fs::write(&killed.path, vec![7; 10_000]).unwrap();
    drop(killed);
    let living = SpoolFile::create(&folder).unwrap();
    std::fs::write(folder.join("somebody-else's"), b"notes").unwrap();
    assert_eq!(bed.archive.sweep_spool().await.unwrap(), 1);
    assert!(living.path.exists() && folder.join("somebody-else's").exists());
    drop(living);
    // The next start sweeps as well.
    let Bed { dir, archive, .. } = bed;
    archive.db().close().await;
    drop(archive);
    let bed = Bed::on(dir, settings()).await;
    assert_eq!(spooled(&bed), 1, "only what is not ours");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_kept_for_the_next_try_stay_until_it_succeeds_and_go_then() {
    let bed = Bed::new().await;
    bed.one.down.store(true, SeqCst);
    bed.two.down.store(true, SeqCst);
    let store = Store::new(named("late"), "anna");
    let outcome = bed.archive.store_reader(&b"late bytes"[..], &store).await.unwrap();
    assert!(!outcome.stored);
    assert_eq!(bed.archive.sweep_spool().await.unwrap(), 0, "all there is of the file");
    assert_eq!(spooled(&bed), 1);
    bed.one.down.store(false, SeqCst);
    bed.two.down.store(false, SeqCst);
    bed.work().await;
    assert_eq!(bed.got("late").await, b"late bytes");
    assert_eq!(spooled(&bed), 0);
}

/// A second node on the same database: its own data folder and key.
async fn second_node(bed: &Bed, token: &str) -> (TempDir, Archive) {
    let clock = Clock::system();
    let db = database(bed.dir.path(), &clock).await;
    let mut parts = parts(bed.dir.path(), db, &clock, settings()).await;
    let dir = TempDir::new().unwrap();
    (parts.data_dir, parts.node) = (dir.path().to_owned(), "node2".to_owned());
    parts.node_token = Some(token.to_owned());
    (dir, Archive::open(parts).await.unwrap())
}

const TOKEN: &str = "the token that the nodes of this test share";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_that_one_node_signed_is_verified_on_every_other() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    bed.archive.checkpoint().await.unwrap();
    bed.archive.write_witness().await.unwrap();
    let (_dir, second) = second_node(&bed, TOKEN).await;
    bed.store("later", b"later").await;
    second.checkpoint().await.unwrap();
    for archive in [&bed.archive, &second] {
        let report = archive.verify_log().await.unwrap();
        assert!(report.ok, "{:?}", report.problems);
        assert_eq!(report.checkpoints, 2);
    }
    // A row that somebody wrote into the database does not make a key known.
    let (_dir, forger) = second_node(&bed, "a token that the other nodes do not know").await;
    bed.store("last", b"last").await;
    forger.checkpoint().await.unwrap();
    let report = bed.archive.verify_log().await.unwrap();
    assert_eq!(report.problem_count, 1, "{:?}", report.problems);
    assert!(
        report.problems[0].contains("neither the node token nor a known key vouches"),
        "{:?}",
        report.problems
    );
    assert_eq!(open(&bed).await, ["failed-log-verification the log of events"]);
    let path = bed.dir.path().join("grange.db");
    let forged = "DELETE FROM log_checkpoints WHERE size = 4; DELETE FROM log_keys";
    tokio::task::spawn_blocking(move || sqlite::execute(&path, forged)).await.unwrap();
    let report = bed.archive.verify_log().await.unwrap();
    assert_eq!(report.problem_count, 1, "the second node's key is known no more: {:?}", report.problems);
    assert!(report.problems[0].contains("which no node announced"), "{:?}", report.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_is_vouched_for_by_the_old_one_also_to_third_parties() {
    let bed = Bed::new().await;
    bed.fill(2).await;
    let first = bed.archive.checkpoint().await.unwrap();
    let (_dir, second) = second_node(&bed, TOKEN).await;
    bed.archive.vouch_for_others().await.unwrap();
    let new = bed.archive.rotate_log_key(&anna()).await.unwrap();
    assert_ne!(new.public_key, first.public_key);
    bed.store("later", b"later").await;
    let later = bed.archive.checkpoint().await.unwrap();
    assert_eq!(later.public_key, new.public_key);
    bed.archive.write_witness().await.unwrap();
    for archive in [&bed.archive, &second] {
        let report = archive.verify_log().await.unwrap();
        assert!(report.ok, "{:?}", report.problems);
    }
    // Somebody who wrote down the first key years ago, and never heard of the others.
    let proof = bed.archive.prove(&named(&file(0))).await.unwrap();
    check_proof(&proof, Some(&first.public_key), None).unwrap();
    let by_second = second.prove(&named(&file(0))).await.unwrap();
    check_proof(&by_second, Some(&first.public_key), None).unwrap();
    let mut cut = proof.clone();
    cut.vouches.clear();
    assert!(check_proof(&cut, Some(&first.public_key), None).is_err());
    let mut forged = proof;
    forged.vouches[0].node = "another".to_owned();
    assert!(check_proof(&forged, Some(&first.public_key), None).is_err());
    // The rows are lost; the witnesses carry the signatures.
    let path = bed.dir.path().join("grange.db");
    let lost = "DELETE FROM log_keys; DELETE FROM log_key_vouches";
    tokio::task::spawn_blocking(move || sqlite::execute(&path, lost)).await.unwrap();
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.ok, "{:?}", report.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_that_was_cut_short_ends_at_the_next_start() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let old = bed.archive.checkpoint().await.unwrap().public_key;
    let secrets = bed.dir.path().join("secrets");
    let again = async |dir: TempDir, archive: Archive| {
        archive.db().close().await;
        drop(archive);
        Bed::on(dir, settings()).await
    };
    // Killed before the rows: the new key is nobody's.
    let next = crate::keys::KeyFile::new(secrets.join("log.key")).create_next().unwrap();
    let Bed { dir, archive, .. } = bed;
    let bed = again(dir, archive).await;
    assert_eq!(bed.archive.key().public_key(), old);
    assert!(!secrets.join("log.key.next").exists());
    // Killed between the rows and the file.
    let next_again = crate::keys::KeyFile::new(secrets.join("log.key")).create_next().unwrap();
    assert_ne!(next_again.public_key(), next.public_key());
    bed.archive.db().logbook().announce_key(&next_again.public_key(), "node1", None).await.unwrap();
    let Bed { dir, archive, .. } = bed;
    let bed = again(dir, archive).await;
    assert_eq!(bed.archive.key().public_key(), next_again.public_key());
    assert!(!secrets.join("log.key.next").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vouch_written_into_the_rows_by_somebody_without_a_key_is_worth_nothing() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let own = bed.archive.key().public_key();
    let (_dir, forger) = second_node(&bed, "a token that the other nodes do not know").await;
    let forged = KeyVouch { by_key: own, at: jiff::Timestamp::now(), signature: "00".repeat(64) };
    bed.archive.db().logbook().vouch(&forger.key().public_key(), forged).await.unwrap();
    forger.checkpoint().await.unwrap();
    assert_eq!(bed.archive.verify_log().await.unwrap().problem_count, 1);
    assert_eq!(open(&bed).await, [format!("{} the log of events", FindingKind::FailedLogVerification)]);
}
