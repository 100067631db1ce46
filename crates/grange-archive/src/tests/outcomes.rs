//! What rows, reports and answers say after each outcome of a store or a repair, to the last field.

use std::sync::atomic::Ordering;

use grange_db::{Amendment, Holding};
use grange_model::{
    AuditKind, LogEvent, LogRecord, Presence, RepairChoice, RepairKind, RepairState, UploadState, Verdict,
};
use serde_json::Value;

use super::bed::{Bed, anna, bert, content, file, named, settings};
use super::record::spoil_record;
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
    let again = bed.store("a", b"hello").await;
    assert!(!again.stored, "{again:?}");
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
