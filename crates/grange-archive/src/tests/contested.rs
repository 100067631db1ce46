//! Copies that contradict what a depositor said: never acknowledged, never called complete, never mended by a guess. Check,
//! repair and check again agree with each other, and two people can always decide.

use grange_base::Shutdown;
use grange_model::{AuditKind, RepairChoice, RepairKind, RepairState, UploadState, Verdict};

use super::bed::{Bed, anna, bert, named, settings};
use crate::{Second, Store};

const NAME: &str = "f.txt";
const ONE: &[u8] = b"AAAA\n";
const OTHER: &[u8] = b"BBBBBBBB\n";

async fn check(bed: &Bed) -> (u64, u64, u64) {
    let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let sum = |of: fn(&grange_db::AuditRow) -> u64| rows.iter().map(of).sum();
    (sum(|row| row.found.ok), sum(|row| row.found.corrupt), sum(|row| row.found.undecided))
}

fn states(status: &grange_db::FileStatus) -> Vec<(UploadState, Verdict)> {
    status.holdings.iter().map(|one| (one.state, one.verdict)).collect()
}

/// Everything a repair of all finds is what the dry run said it would find.
async fn dry_run_agrees(bed: &Bed) -> crate::RepairReport {
    let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
    let report = bed.repair().await;
    let key = |report: &crate::RepairReport| {
        let one =
            |copy: &crate::Repaired| (copy.name.clone(), copy.replica.clone(), copy.kind, copy.error.clone());
        report.copies.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(key(&dry), key(&report), "what would be repaired and what was");
    report
}

/// The database as it was before the file came in, with the replicas as they are now.
async fn restored_from_before(bed: Bed) -> Bed {
    bed.archive.db().close().await;
    let dir = bed.dir;
    for name in ["grange.db", "grange.db-wal", "grange.db-shm"] {
        let _ = std::fs::remove_file(dir.path().join(name));
    }
    Bed::on(dir, settings()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_check_turns_a_refused_store_into_a_stored_one() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    let bed = restored_from_before(bed).await;
    for round in 0..3 {
        let refused = bed.store(NAME, OTHER).await;
        assert!(!refused.stored && refused.unproven.len() == 3, "round {round}: {refused:?}");
        let (ok, _, undecided) = check(&bed).await;
        assert_eq!((ok, undecided > 0), (0, true), "round {round}");
        let status = bed.archive.status(&named(NAME)).await.unwrap().unwrap();
        for state in states(&status) {
            assert_eq!(state, (UploadState::UploadFailed, Verdict::Unknown), "round {round}: {status:?}");
        }
        assert_eq!(status.file.stored_at, None);
        // The queue tries again, as it does for a replica that was away.
        for _ in 0..3 {
            bed.archive.store_step(&Shutdown::never()).await.unwrap();
        }
        assert_eq!(dry_run_agrees(&bed).await.done, 0, "round {round}");
    }
    assert_eq!(std::fs::read(bed.path("one", NAME)).unwrap(), ONE, "nothing left its place");
    // Two people see that the copies are an older file of that name: what they say is recorded.
    let rows = bed.archive.decide(&named(NAME), RepairChoice::Copies, &anna()).await.unwrap();
    assert_eq!((rows.len(), rows[0].kind, rows[0].state), (1, RepairKind::Record, RepairState::Waiting));
    let done = bed.archive.confirm_repair(rows[0].id, &bert()).await.unwrap();
    assert_eq!((done.state, done.last_error), (RepairState::Done, None));
    assert_eq!(check(&bed).await, (3, 0, 0));
    assert_eq!(bed.got(NAME).await, ONE);
    let path = bed.source(NAME, OTHER);
    let error = bed.archive.store(&path, &Store::new(named(NAME), "anna")).await.unwrap_err();
    assert_eq!(error.code(), "archive-other-bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_wrong_bytes_on_every_replica_never_outvote_what_was_deposited() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    for replica in ["one", "two"] {
        bed.damage(replica, NAME, |bytes| *bytes = b"BBBB\n".to_vec());
    }
    for round in 0..3 {
        check(&bed).await;
        let status = bed.archive.status(&named(NAME)).await.unwrap().unwrap();
        let undecided = (UploadState::UploadFailed, Verdict::Unknown);
        let right = (UploadState::UploadCompleted, Verdict::Ok);
        // In the order of the replicas: one, three (checksums), two.
        assert_eq!(states(&status), [undecided, right, undecided], "round {round}: {status:?}");
        let again = bed.store(NAME, ONE).await;
        assert!(!again.stored && again.unproven.len() == 2, "round {round}: {again:?}");
        let report = dry_run_agrees(&bed).await;
        assert_eq!((report.done, report.failed), (0, 1), "round {round}: {report:?}");
        let error = report.copies[0].error.as_ref().unwrap();
        assert!(error.contains("grange repair decide f.txt --keep record"), "{error}");
    }
    let error = bed.archive.get(&named(NAME), &bed.dir.path().join("got")).await.unwrap_err();
    assert_eq!(error.code(), "archive-no-copy", "a wrong copy is never served");

    // The depositor brought the original again, so two people can decide for the record.
    let rows = bed.archive.decide(&named(NAME), RepairChoice::Record, &anna()).await.unwrap();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!((row.kind, row.state), (RepairKind::Corrupt, RepairState::Waiting));
        let error = bed.archive.confirm_repair(row.id, &anna()).await.unwrap_err();
        assert_eq!(error.code(), "archive-same-person");
        let done = bed.archive.confirm_repair(row.id, &bert()).await.unwrap();
        assert_eq!((done.state, done.last_error), (RepairState::Done, None));
    }
    assert_eq!(check(&bed).await, (3, 0, 0));
    assert_eq!((bed.attic("one"), bed.attic("two")), (1, 1));
    assert!(bed.store(NAME, ONE).await.stored);
    let error = bed.archive.decide(&named(NAME), RepairChoice::Record, &anna()).await.unwrap_err();
    assert_eq!(error.code(), "archive-not-undecided");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checksum_replica_that_confirms_the_record_is_corrected_when_two_decide_for_the_copies() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    for replica in ["one", "two"] {
        bed.damage(replica, NAME, |bytes| *bytes = b"BBBB\n".to_vec());
    }
    check(&bed).await;
    let rows = bed.archive.decide(&named(NAME), RepairChoice::Copies, &anna()).await.unwrap();
    let done = bed.archive.confirm_repair(rows[0].id, &bert()).await.unwrap();
    assert_eq!((done.state, done.last_error), (RepairState::Done, None));
    let report = dry_run_agrees(&bed).await;
    assert_eq!((report.done, report.failed), (1, 0), "the line of the checksum replica: {report:?}");
    assert_eq!(check(&bed).await, (3, 0, 0));
    assert_eq!(bed.got(NAME).await, b"BBBB\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_reads_back_what_is_there_now_and_a_repair_finds_what_it_found() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    bed.damage("two", NAME, |bytes| bytes[0] ^= 1);
    // No check has looked since: only the rows say that all is well.
    let again = bed.store(NAME, ONE).await;
    assert!(!again.stored, "{again:?}");
    assert_eq!(again.unproven.iter().map(|one| one.replica.as_str()).collect::<Vec<_>>(), ["two"]);
    let report = dry_run_agrees(&bed).await;
    assert_eq!((report.done, report.failed), (1, 0), "without another check: {report:?}");
    let events = bed.archive.db().logbook().size().await.unwrap();
    let third = bed.store(NAME, ONE).await;
    assert!(third.stored && third.already, "{third:?}");
    assert_eq!(bed.archive.db().logbook().size().await.unwrap(), events, "nothing new happened");
    // A copy that vanished is sent again by the depositor who brings the bytes.
    std::fs::remove_file(bed.path("one", NAME)).unwrap();
    assert!(bed.store(NAME, ONE).await.stored);
    assert_eq!(std::fs::read(bed.path("one", NAME)).unwrap(), ONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_not_called_repairable_when_no_good_one_exists() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    std::fs::remove_file(bed.path("one", NAME)).unwrap();
    bed.damage("two", NAME, |bytes| bytes[0] ^= 1);
    check(&bed).await;
    let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
    assert_eq!((dry.failed, dry.copies.len()), (2, 2), "{dry:?}");
    for copy in &dry.copies {
        assert!(copy.error.as_ref().unwrap().contains("store the original file again"), "{copy:?}");
    }
    assert_eq!(dry_run_agrees(&bed).await.done, 0);
    // The original comes back: both copies are made again from it, the wrong one by two.
    assert!(!bed.store(NAME, ONE).await.stored, "the damaged copy keeps its place");
    assert_eq!(dry_run_agrees(&bed).await.failed, 0);
    assert_eq!(check(&bed).await, (3, 0, 0));
}

/// The copy that was read first looked corrupt until the other one had said the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counts_of_audits_that_ran_together_say_what_the_findings_say() {
    let bed = Bed::new().await;
    assert!(bed.store(NAME, ONE).await.stored);
    for replica in ["one", "two"] {
        bed.damage(replica, NAME, |bytes| *bytes = b"BBBB\n".to_vec());
    }
    // The second time the rows know it already.
    for round in 0..2 {
        let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
        let counts = rows.iter().map(|row| (row.found.ok, row.found.corrupt, row.found.undecided));
        // In the order of the replicas: one, three (checksums), two.
        assert_eq!(counts.collect::<Vec<_>>(), [(0, 0, 1), (1, 0, 0), (0, 0, 1)], "round {round}");
    }
    // One is right again: what the first audit of the two called undecided is corrupt when the other has been read.
    bed.damage("two", NAME, |bytes| *bytes = ONE.to_vec());
    let rows = bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let counts = rows.iter().map(|row| (row.found.ok, row.found.corrupt, row.found.undecided));
    assert_eq!(counts.collect::<Vec<_>>(), [(0, 1, 0), (1, 0, 0), (1, 0, 0)]);
}
