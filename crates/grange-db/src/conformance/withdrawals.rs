//! What can be taken back: a repair that waits, and a deposit of which no replica has the bytes.

use grange_model::{Actor, LogEvent, Presence, RepairKind, RepairState, UploadState, Verdict};

use super::archive::{adopted, change, claimed, name, new, record, sums, three};
use super::{Bed, LONG, anna, on_both_engines};
use crate::{
    AuditFilter, Begun, Confirmed, HoldingChange, IfStored, NewRepair, RepairTurn, ReplicaRow, STORE_WORK,
};

on_both_engines! {
    a_repair_that_waits_can_be_withdrawn_and_no_other,
    a_deposit_that_is_nowhere_is_withdrawn_and_its_name_is_free,
    a_deposit_of_which_a_replica_has_the_bytes_is_not_withdrawn,
}

async fn a_repair_that_waits_can_be_withdrawn_and_no_other(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file_id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let new = NewRepair {
        file_id,
        replica_id: rows[0].id,
        kind: RepairKind::Corrupt,
        bad_checksum: Some("md5=00".to_owned()),
        new_checksum: None,
        confirmed_by: None,
    };
    let (repairs, bert) = (bed.db.repairs(), Actor::new("bert", "web"));
    let row = repairs.ask(new.clone(), &anna()).await.unwrap();
    let row = repairs.withdraw(row.id, &anna()).await.unwrap();
    assert_eq!((row.state, row.last_error.as_deref()), (RepairState::Withdrawn, Some("withdrawn by anna")));
    let late = repairs.confirm(row.id, &bert).await.unwrap();
    assert!(
        matches!(late, Confirmed::Yes(row) if row.state == RepairState::Withdrawn),
        "it cannot be confirmed"
    );
    assert!(matches!(repairs.begin(row.id, "me", LONG).await.unwrap(), RepairTurn::NotDue(_)));
    let second = repairs.ask(new, &bert).await.unwrap();
    assert!(second.id != row.id && second.state == RepairState::Waiting, "it can be asked for again");
    repairs.confirm(second.id, &anna()).await.unwrap();
    let confirmed = repairs.withdraw(second.id, &anna()).await.unwrap();
    assert_eq!(confirmed.state, RepairState::Confirmed, "what is confirmed is being done");
    let filter = AuditFilter { act: Some("repair.withdraw".to_owned()), ..AuditFilter::default() };
    assert_eq!(bed.db.audit().list(&filter).await.unwrap().len(), 1);
}

async fn a_deposit_that_is_nowhere_is_withdrawn_and_its_name_is_free(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "f0", 0).await;
    let failed = |row: &ReplicaRow| HoldingChange {
        presence: Presence::Unknown,
        verdict: Verdict::Unknown,
        checksum: None,
        answered: false,
        ..change(row.id, UploadState::UploadFailed, 0)
    };
    let mut failed: Vec<_> = rows.iter().map(failed).collect();
    // The checksum replica needs no bytes to write the name down.
    failed[2] = change(rows[2].id, UploadState::UploadCompleted, 0);
    bed.db.files().advance(&claim, status.file.id, failed).await.unwrap();
    let refused = bed.db.files().begin(new("f0", 1), "other", LONG, IfStored::Verify).await.unwrap();
    assert!(matches!(refused, Begun::Refused(_)), "the first deposit has the name");
    assert!(bed.db.files().withdraw(&claim, &anna()).await.unwrap());
    assert_eq!(bed.db.files().get(&name("f0")).await.unwrap(), None);
    assert!(bed.db.work().find(STORE_WORK, "f0").await.unwrap().is_none());
    let overview = bed.db.replicas().overview().await.unwrap();
    assert!(overview.iter().all(|one| (one.failed, one.started, one.bytes) == (0, 0, 0)), "{overview:?}");
    assert_eq!(bed.db.replicas().fill_gaps().await.unwrap(), 0);
    let filter = AuditFilter { act: Some("file.withdraw".to_owned()), ..AuditFilter::default() };
    assert_eq!(bed.db.audit().list(&filter).await.unwrap()[0].subject, "file:f0");
    let late = bed.db.files().settle(&claim, status.file.id, None).await.unwrap_err();
    assert_eq!(late.code(), "lease-lost", "whoever was uploading it cannot finish");
    let begun = bed.db.files().begin(new("f0", 1), "other", LONG, IfStored::Verify).await.unwrap();
    assert!(matches!(begun, Begun::Claimed(status, _) if status.file.checksums == sums(1)));
}

async fn a_deposit_of_which_a_replica_has_the_bytes_is_not_withdrawn(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "f0", 0).await;
    let one = vec![change(rows[0].id, UploadState::UploadCompleted, 0)];
    bed.db.files().advance(&claim, status.file.id, one).await.unwrap();
    assert!(!bed.db.files().withdraw(&claim, &anna()).await.unwrap(), "one replica has it");
    let all = rows.iter().map(|row| change(row.id, UploadState::UploadCompleted, 0)).collect();
    bed.db.files().advance(&claim, status.file.id, all).await.unwrap();
    assert!(
        bed.db.files().settle(&claim, status.file.id, Some(record(LogEvent::Stored, "f0"))).await.unwrap()
    );
    let begun = bed.db.files().begin(new("f0", 0), "me", LONG, IfStored::Verify).await.unwrap();
    let Begun::Claimed(_, claim) = begun else { panic!("{begun:?}") };
    // Every copy was lost since: what was acknowledged once keeps its name.
    for row in &rows {
        bed.db.audits().observe(status.file.id, vec![(row.id, None)], "anna").await.unwrap();
    }
    assert!(!bed.db.files().withdraw(&claim, &anna()).await.unwrap());
    assert!(bed.db.files().get(&name("f0")).await.unwrap().is_some());
}
