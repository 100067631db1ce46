//! Withdrawing a deposit of which no replica has the bytes.

use grange_model::{LogEvent, Presence, UploadState, Verdict};

use super::archive::{change, claimed, name, new, record, sums, three};
use super::findings::{NEVER, open, unservable};
use super::{Bed, LONG, anna, on_both_engines};
use crate::{
    AuditFilter, Begun, Claim, CollectedState, FileStatus, HoldingChange, IfStored, Indexed, NewFile,
    ReplicaRow, STORE_WORK,
};

on_both_engines! {
    a_deposit_that_is_nowhere_is_withdrawn_and_its_name_is_free,
    a_deposit_of_which_a_replica_has_the_bytes_is_not_withdrawn,
    captures_of_a_withdrawn_deposit_leave_the_index_and_the_next_deposit_of_the_name_is_indexed,
    an_unservable_copy_is_over_when_its_deposit_is_withdrawn,
}

/// A copy that a replica did not take, or lost.
fn failed(row: &ReplicaRow) -> HoldingChange {
    HoldingChange {
        presence: Presence::Unknown,
        verdict: Verdict::Unknown,
        checksum: None,
        asked_at: None,
        ..change(row.id, UploadState::UploadFailed, 0)
    }
}

async fn a_deposit_that_is_nowhere_is_withdrawn_and_its_name_is_free(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "f0", 0).await;
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
        bed.db.audits().observe(status.file.id, bed.clock.now(), vec![(row.id, None)], "anna").await.unwrap();
    }
    assert!(!bed.db.files().withdraw(&claim, &anna()).await.unwrap());
    assert!(bed.db.files().get(&name("f0")).await.unwrap().is_some());
}

/// The states of all rows of the collection archive.
async fn collected(bed: &Bed) -> Vec<(String, CollectedState, u64)> {
    let files = bed.db.collections().files("archive", None, 0, 10).await.unwrap();
    files.into_iter().map(|file| (file.name, file.state, file.size)).collect()
}

/// Deposits `size` bytes under the name f0, of which the first replica takes a copy.
async fn deposit(bed: &Bed, rows: &[ReplicaRow], size: u64) -> (FileStatus, Claim) {
    let new = NewFile { size, ..new("f0", size as u8) };
    let begun = bed.db.files().begin(new, "me", LONG, IfStored::Skip).await.unwrap();
    let Begun::Claimed(status, claim) = begun else { panic!("{begun:?}") };
    let taken = vec![change(rows[0].id, UploadState::UploadCompleted, size as u8)];
    bed.db.files().advance(&claim, status.file.id, taken).await.unwrap();
    (status, claim)
}

async fn index(bed: &Bed) {
    bed.db.collections().keep_index("archive", "feeder", LONG, true).await.unwrap().unwrap();
    let claim = bed.db.collections().claim(None, "feeder", LONG).await.unwrap().unwrap();
    assert_eq!(claim.file.state, CollectedState::Waiting);
    bed.db.collections().indexed(&claim, Indexed { captures: 3, ..Indexed::default() }).await.unwrap();
}

/// The copy that was read for the index is lost, then the deposit is withdrawn.
async fn lose_and_withdraw(bed: &Bed, rows: &[ReplicaRow], (status, claim): (FileStatus, Claim)) {
    bed.db.files().advance(&claim, status.file.id, vec![failed(&rows[0])]).await.unwrap();
    assert!(bed.db.files().withdraw(&claim, &anna()).await.unwrap());
}

async fn captures_of_a_withdrawn_deposit_leave_the_index_and_the_next_deposit_of_the_name_is_indexed(
    bed: &Bed,
) {
    let (rows, name) = (three(bed).await, || "f0".to_owned());
    let first = deposit(bed, &rows, 10).await;
    index(bed).await;
    lose_and_withdraw(bed, &rows, first).await;
    assert_eq!(collected(bed).await, [(name(), CollectedState::Leaving, 10)]);
    let collections = bed.db.collections();
    let leaving = collections.claim(None, "feeder", LONG).await.unwrap().unwrap();
    collections.taken_out(&leaving).await.unwrap();
    assert_eq!(collected(bed).await, [], "there is no such file any more");
    let second = deposit(bed, &rows, 20).await;
    assert_eq!(collected(bed).await, [(name(), CollectedState::Waiting, 20)]);
    // Another deposit takes the name while a feeder reads the copy, and before the captures are out.
    let reading = collections.claim(None, "feeder", LONG).await.unwrap().unwrap();
    lose_and_withdraw(bed, &rows, second).await;
    let late = collections.indexed(&reading, Indexed::default()).await.unwrap_err();
    assert_eq!(late.code(), "lease-lost");
    let leaving = collections.claim(None, "feeder", LONG).await.unwrap().unwrap();
    deposit(bed, &rows, 30).await;
    assert_eq!(leaving.file.state, CollectedState::Leaving);
    collections.taken_out(&leaving).await.unwrap();
    assert_eq!(collected(bed).await, [(name(), CollectedState::Waiting, 30)]);
    index(bed).await;
    assert_eq!(collected(bed).await, [(name(), CollectedState::Indexed, 30)]);
}

async fn an_unservable_copy_is_over_when_its_deposit_is_withdrawn(bed: &Bed) {
    let rows = three(bed).await;
    let deposited = deposit(bed, &rows, 10).await;
    let findings = bed.db.findings();
    assert!(findings.unservable(unservable(deposited.0.file.id, "f0")).await.unwrap());
    findings.look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, ["unservable-copy f0 on two"]);
    lose_and_withdraw(bed, &rows, deposited).await;
    findings.look(NEVER).await.unwrap();
    assert_eq!(open(bed).await, Vec::<String>::new());
}
