//! What rows, reports and answers say after each outcome of a store or a repair, to the last field.

use std::sync::atomic::Ordering;
use std::time::Duration;

use grange_base::Shutdown;
use grange_db::{Amendment, Begun, Holding, HoldingChange, IfStored};
use grange_model::{
    Actor, AuditKind, LogEvent, LogRecord, Presence, RepairChoice, RepairKind, RepairState, UploadState,
    Verdict,
};
use serde_json::Value;

use super::bed::{Bed, anna, bert, content, file, named, settings};
use super::record::spoil_record;
use crate::remove::again;
use crate::{Second, Settings};

async fn holding(bed: &Bed, name: &str, replica: &str) -> Holding {
    let status = bed.archive.status(&named(name)).await.unwrap().unwrap();
    status.holdings.into_iter().find(|one| one.replica.as_str() == replica).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_had_to_send_a_copy_again_is_not_called_a_repetition() {
    let bed = Bed::new().await;
    assert!(bed.store("a", b"hello").await.stored);
    std::fs::remove_file(bed.path("two", "a")).unwrap();
    bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    let again = bed.store("a", b"hello").await;
    assert!(again.stored && !again.already, "{again:?}");
    assert!(bed.store("a", b"hello").await.already);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_answers_well_has_no_error_in_its_row_any_more() {
    let bed = Bed::new().await;
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store("a", b"hello").await.stored);
    assert!(holding(&bed, "a", "two").await.last_error.unwrap().contains("it is down"));
    bed.two.down.store(false, Ordering::SeqCst);
    bed.work().await;
    for replica in ["one", "two", "three"] {
        let row = holding(&bed, "a", replica).await;
        assert_eq!((row.state, row.last_error), (UploadState::UploadCompleted, None), "{replica}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_vanished_and_cannot_be_sent_again_is_recorded_as_missing() {
    let bed = Bed::new().await;
    assert!(bed.store("a", b"hello").await.stored);
    std::fs::remove_file(bed.path("two", "a")).unwrap();
    bed.two.full.store(true, Ordering::SeqCst);
    let before = bed.two.puts.load(Ordering::SeqCst);
    let again = bed.store("a", b"hello").await;
    assert!(!again.stored, "{again:?}");
    // A full replica is not offered the same bytes from the next source.
    assert_eq!(bed.two.puts.load(Ordering::SeqCst) - before, 1);
    let row = holding(&bed, "a", "two").await;
    assert_eq!(row.state, UploadState::UploadFailed);
    assert_eq!((row.presence, row.verdict, row.checksum), (Presence::Missing, Verdict::Unknown, None));
    assert!(row.last_error.unwrap().contains("no room"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_shrinks_after_it_was_read_back_is_not_acknowledged() {
    let bed = Bed::new().await;
    bed.two.cuts.store(1, Ordering::SeqCst);
    let stored = bed.store("a", b"hello").await;
    assert!(!stored.stored, "{stored:?}");
    assert_eq!(stored.unproven.iter().map(|one| one.replica.as_str()).collect::<Vec<_>>(), ["two"]);
    assert!(stored.unproven[0].reason.contains("other bytes"), "{stored:?}");
    // The other one was read back while it was written, and not read a second time.
    assert_eq!(bed.one.checksums.load(Ordering::SeqCst), 0);
    assert_eq!(bed.two.checksums.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_copy_is_sent_once_more_although_the_settings_allow_no_retry() {
    let bed = Bed::with(Settings { upload_retries: 0, ..settings() }).await;
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store("a", b"hello").await.stored);
    assert_eq!(holding(&bed, "a", "two").await.state, UploadState::UploadFailed);
    bed.two.down.store(false, Ordering::SeqCst);
    bed.work().await;
    assert_eq!(holding(&bed, "a", "two").await.state, UploadState::UploadCompleted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_of_all_shows_what_people_asked_for_and_asks_for_nothing_else() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    for n in [0, 2] {
        spoil_record(&bed, &file(n)).await;
    }
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    // One waits for a correction of its record, the other one for its copies to be replaced.
    let record = bed.archive.decide(&named(&file(0)), RepairChoice::Copies, &anna()).await.unwrap();
    let copies = bed.archive.decide(&named(&file(2)), RepairChoice::Record, &anna()).await.unwrap();
    let asked = bed.archive.repairs(None, 99).await.unwrap().len();
    for dry_run in [true, false] {
        let report = bed.archive.repair_all(&anna(), |_| Second::None, dry_run).await.unwrap();
        assert_eq!((report.done, report.failed), (0, 0), "{report:?}");
        assert_eq!(report.waiting, if dry_run { 0 } else { 2 }, "{report:?}");
        let shown: Vec<_> =
            report.copies.iter().map(|one| (one.name.to_string(), one.kind, one.repair)).collect();
        assert_eq!(shown[0], (file(0), RepairKind::Record, Some(record[0].id)));
        assert_eq!((&shown[1].0, shown[1].1), (&file(2), RepairKind::Corrupt));
        assert!(copies.iter().any(|row| Some(row.id) == shown[1].2), "{shown:?}");
        assert_eq!(shown.len(), 2);
    }
    assert_eq!(bed.archive.repairs(None, 99).await.unwrap().len(), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_a_killed_node_had_corrected_ends_its_repair_well() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let name = file(0);
    let (good, wrong) = spoil_record(&bed, &name).await;
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let rows = bed.archive.decide(&named(&name), RepairChoice::Copies, &anna()).await.unwrap();
    let db = bed.archive.db();
    db.repairs().confirm(rows[0].id, &bert()).await.unwrap();
    // Its node corrects the record and is killed before it can end the repair.
    let record = LogRecord {
        at: bed.archive.0.clock.now(),
        event: LogEvent::Amended,
        name: Some(name.clone()),
        checksum: None,
        size: None,
        replica: None,
        by: "anna".to_owned(),
        detail: Value::Null,
    };
    let (was, checksums) = (grange_db::deciding(&wrong), good.file.checksums);
    let amendment = Amendment { file_id: good.file.id, was, size: good.file.size, checksums, record };
    assert!(db.files().amend(amendment).await.unwrap());
    bed.archive.recheck(&named(&name), "anna").await.unwrap();
    bed.work().await;
    let row = db.repairs().get(rows[0].id).await.unwrap();
    assert_eq!((row.state, row.last_error), (RepairState::Done, None));
    assert_eq!(bed.events(LogEvent::Amended).await, 1, "the record was not corrected twice");
    assert_eq!(bed.got(&name).await, content(0));
}

/// Changes rows of copies as a crash or an older database may leave them, and puts the file back into the queue.
async fn leave_rows(bed: &Bed, name: &str, change: impl Fn(&Holding) -> (UploadState, Presence, Verdict)) {
    let (db, status) = (bed.archive.db(), bed.archive.status(&named(name)).await.unwrap().unwrap());
    let lease = Duration::from_secs(60);
    let begun = db.files().begin(again(&status), "killed", lease, IfStored::Verify).await.unwrap();
    let Begun::Claimed(_, claim) = begun else { panic!("{begun:?}") };
    let recorded = grange_db::deciding(&status.file.checksums);
    let changes = status.holdings.iter().map(|holding| {
        let (state, presence, verdict) = change(holding);
        HoldingChange {
            replica_id: holding.replica_id,
            state,
            presence,
            verdict,
            checksum: (verdict == Verdict::Ok).then(|| recorded.clone()),
            attempts: 0,
            last_error: None,
            asked_at: None,
        }
    });
    db.files().advance(&claim, status.file.id, changes.collect()).await.unwrap();
    db.work().fail(&claim, "killed", Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_sent_and_not_asked_yet_is_the_source_of_the_others_in_the_same_step() {
    let bed = Bed::new().await;
    bed.fill(1).await;
    let name = file(0);
    std::fs::remove_file(bed.path("one", &name)).unwrap();
    std::fs::remove_file(bed.dir.path().join("incoming").join(&name)).unwrap();
    leave_rows(&bed, &name, |holding| match holding.replica.as_str() {
        "two" => (UploadState::DataUploaded, Presence::Unknown, Verdict::Unknown),
        _ => (UploadState::Unknown, Presence::Unknown, Verdict::Unknown),
    })
    .await;
    bed.archive.store_step(&Shutdown::never()).await.unwrap();
    let status = bed.archive.status(&named(&name)).await.unwrap().unwrap();
    assert!(status.proven(), "{status:?}");
    assert_eq!(std::fs::read(bed.path("one", &name)).unwrap(), content(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_complete_copy_with_a_good_verdict_counts_as_a_source() {
    for (state, verdict, repairable) in [
        (UploadState::UploadCompleted, Verdict::Ok, true),
        (UploadState::UploadCompleted, Verdict::Unknown, false),
    ] {
        let bed = Bed::new().await;
        bed.fill(1).await;
        let name = file(0);
        std::fs::remove_file(bed.dir.path().join("incoming").join(&name)).unwrap();
        leave_rows(&bed, &name, |holding| match holding.replica.as_str() {
            "one" => (UploadState::UploadFailed, Presence::Missing, Verdict::Unknown),
            "two" => (state, Presence::Ok, verdict),
            _ => (UploadState::UploadCompleted, Presence::Ok, Verdict::Ok),
        })
        .await;
        let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
        let of_one: Vec<_> =
            dry.copies.iter().filter(|copy| copy.replica == "one").map(|copy| copy.error.is_none()).collect();
        assert_eq!(of_one, [repairable], "{state:?} {verdict:?}: {dry:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_check_makes_only_the_copies_again_that_its_own_replica_misses() {
    let bed = Bed::with(Settings { repair_missing: true, ..settings() }).await;
    bed.fill(3).await;
    std::fs::remove_file(bed.path("two", &file(1))).unwrap();
    bed.two.full.store(true, Ordering::SeqCst);
    for replica in ["two", "one"] {
        let started = bed.archive.start_audit(replica, AuditKind::List, &Actor::system()).await.unwrap();
        bed.archive.wait_audit(started.id).await.unwrap();
    }
    let rows = bed.archive.repairs(None, 99).await.unwrap();
    let asked: Vec<_> = rows.iter().map(|row| (row.name.to_string(), row.replica.to_string())).collect();
    assert!(!asked.is_empty() && asked.iter().all(|one| *one == (file(1), "two".to_owned())), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_leaves_the_spool_when_a_replica_has_its_bytes_although_a_checksum_is_not_kept() {
    let bed = Bed::new().await;
    // The journal of the checksum replica cannot be written: a folder is in its place.
    let journal = bed.dir.path().join("replicas/three/checksums.journal");
    let _ = std::fs::remove_file(&journal);
    std::fs::create_dir_all(&journal).unwrap();
    let store = crate::Store::new(named("a"), "anna");
    let outcome = bed.archive.store_reader(&b"from a stream"[..], &store).await.unwrap();
    assert_eq!(outcome.unproven.iter().map(|one| one.replica.as_str()).collect::<Vec<_>>(), ["three"]);
    assert_eq!(std::fs::read_dir(bed.dir.path().join("spool")).unwrap().count(), 0);
}
