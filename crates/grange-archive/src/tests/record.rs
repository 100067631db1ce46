//! What the archive itself wrote down went wrong: found by the copies that all say otherwise, put right by two.

use grange_db::{Amendment, FileStatus};
use grange_model::{AuditKind, Checksums, LogEvent, LogRecord, RepairKind, RepairState};
use serde_json::Value;

use super::bed::{Bed, anna, bert, content, file, named};
use crate::Second;

/// Changes the row of a file behind the archive's back, as a bad disk under the database would.
pub(super) async fn spoil_record(bed: &Bed, name: &str) -> (FileStatus, Checksums) {
    let status = bed.archive.status(&named(name)).await.unwrap().unwrap();
    let (_, wrong) = grange_blob::sum_path(
        &bed.source("wrong", b"what the row says now"),
        &bed.archive.settings().checksums,
    )
    .await
    .unwrap();
    let record = LogRecord {
        at: bed.archive.0.clock.now(),
        event: LogEvent::Checked,
        name: None,
        checksum: None,
        size: None,
        replica: None,
        by: "nobody".to_owned(),
        detail: Value::Null,
    };
    let was = grange_db::deciding(&status.file.checksums);
    let amendment =
        Amendment { file_id: status.file.id, was, size: status.file.size, checksums: wrong, record };
    assert!(bed.archive.db().files().amend(amendment).await.unwrap());
    (status, wrong)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_all_copies_contradict_is_put_right_by_two() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    let name = file(1);
    let (good, wrong) = spoil_record(&bed, &name).await;
    assert!(!bed.archive.verify_log().await.unwrap().ok, "the row does not say what the log says");
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let status = bed.archive.status(&named(&name)).await.unwrap().unwrap();
    assert!(status.holdings.iter().all(|one| one.verdict == grange_model::Verdict::Unknown), "{status:?}");
    assert!(!status.proven(), "no copy is what the record says");
    assert_eq!(status.file.checksums, wrong, "no check changes a record");

    let dry = bed.archive.repair_all(&anna(), |_| Second::None, true).await.unwrap();
    let told: Vec<_> = dry.copies.iter().map(|one| (one.name.to_string(), one.kind)).collect();
    assert_eq!(told, [(name.clone(), RepairKind::Record)]);
    assert_eq!(bed.archive.status(&named(&name)).await.unwrap().unwrap().file.checksums, wrong);

    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    assert_eq!((report.done, report.waiting), (0, 1));
    let waiting = bed.archive.repairs(Some(RepairState::Waiting), 9).await.unwrap();
    assert_eq!(waiting[0].bad_checksum.as_deref(), Some(grange_db::deciding(&wrong).as_str()));
    let error = bed.archive.confirm_repair(waiting[0].id, &anna()).await.unwrap_err();
    assert_eq!(error.code(), "archive-same-person");
    let done = bed.archive.confirm_repair(waiting[0].id, &bert()).await.unwrap();
    assert_eq!((done.state, done.last_error), (RepairState::Done, None));

    let after = bed.archive.status(&named(&name)).await.unwrap().unwrap();
    assert_eq!((after.file.size, after.file.checksums), (good.file.size, good.file.checksums));
    assert!(after.proven(), "{after:?}");
    assert_eq!(bed.got(&name).await, content(1));
    assert_eq!((bed.attic("one"), bed.attic("two")), (0, 0), "no copy left its place");
    assert_eq!(bed.events(LogEvent::Amended).await, 1);
    let leaves = bed.archive.db().logbook().leaves(0, 1000).await.unwrap();
    let amended = leaves.iter().find(|leaf| leaf.body.contains("\"amended\"")).unwrap();
    assert!(amended.body.contains("bert") && amended.body.contains("\"one\""), "{}", amended.body);
    let report = bed.archive.verify_log().await.unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!(bed.repair().await.copies.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_stands_unless_every_copy_read_now_contradicts_it() {
    let bed = Bed::new().await;
    bed.fill(3).await;
    let name = file(0);
    let (_, wrong) = spoil_record(&bed, &name).await;
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let failed = async |why: &str| {
        bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
        let waiting = bed.archive.repairs(Some(RepairState::Waiting), 9).await.unwrap();
        let row = bed.archive.confirm_repair(waiting[0].id, &bert()).await.unwrap();
        assert_eq!((row.kind, row.state), (RepairKind::Record, RepairState::Failed), "{why}");
        let error = row.last_error.unwrap();
        assert!(error.contains(why), "{error}");
        assert_eq!(bed.archive.status(&named(&name)).await.unwrap().unwrap().file.checksums, wrong);
    };
    // A replica that does not answer could be the one that knows better.
    bed.two.down.store(true, std::sync::atomic::Ordering::SeqCst);
    failed("it is down").await;
    bed.two.down.store(false, std::sync::atomic::Ordering::SeqCst);
    // A copy went bad since the check.
    let before = std::fs::read(bed.path("two", &name)).unwrap();
    bed.damage("two", &name, |bytes| bytes[0] ^= 1);
    failed("do not contradict it with one voice").await;
    bed.damage("two", &name, |bytes| *bytes = before);
    // A copy that is missing has no voice; two others do.
    std::fs::remove_file(bed.path("two", &name)).unwrap();
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed, report.waiting), (0, 1, 1), "no good copy yet: {report:?}");
    let waiting = bed.archive.repairs(Some(RepairState::Waiting), 9).await.unwrap();
    assert_eq!(bed.archive.confirm_repair(waiting[0].id, &bert()).await.unwrap().state, RepairState::Done);
    let report = bed.repair().await;
    assert_eq!((report.done, report.failed), (1, 0), "then the copy: {report:?}");
    assert_eq!(bed.got(&name).await, content(0));
    assert_eq!(bed.events(LogEvent::Amended).await, 1);
}
