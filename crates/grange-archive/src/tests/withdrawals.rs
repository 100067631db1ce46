//! What can be taken back, and what is performed once however many ask for it.

use std::sync::atomic::Ordering;

use grange_base::worker::Step;
use grange_base::{Shutdown, Trigger};
use grange_db::{Begun, IfStored, NewRepair, REPAIR_WORK};
use grange_model::{Actor, AuditKind, LogEvent, RepairKind, RepairState};
use grange_testkit::until;

use super::bed::{Bed, anna, bert, content, file, named};
use crate::remove::again;
use crate::{Second, Store};

/// A corrupt copy on `one`, and the repair that waits for a second person.
async fn waiting() -> (Bed, grange_model::RepairId) {
    let bed = Bed::new().await;
    bed.fill(1).await;
    bed.damage("one", &file(0), |bytes| bytes[0] ^= 1);
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    assert_eq!(report.waiting, 1, "{report:?}");
    (bed, report.copies[0].repair.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repair_that_many_confirm_at_once_is_performed_once() {
    let (bed, id) = waiting().await;
    let confirmers = (0..6).map(|n| {
        let archive = bed.archive.clone();
        let actor = Actor::new(format!("person{n}"), "web");
        tokio::spawn(async move { archive.confirm_repair(id, &actor).await.unwrap() })
    });
    for confirmer in confirmers.collect::<Vec<_>>() {
        let row = confirmer.await.unwrap();
        assert_eq!((row.state, row.last_error), (RepairState::Done, None));
    }
    assert_eq!((bed.one.removals.load(Ordering::SeqCst), bed.attic("one")), (1, 1));
    assert_eq!(bed.events(LogEvent::Repaired).await, 1);
    assert_eq!(std::fs::read(bed.path("one", &file(0))).unwrap(), content(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_whose_node_was_killed_after_the_confirmation_is_performed_by_a_worker() {
    let (bed, id) = waiting().await;
    bed.archive.db().repairs().confirm(id, &bert()).await.unwrap();
    assert_eq!(bed.attic("one"), 0);
    bed.work().await;
    let row = bed.archive.db().repairs().get(id).await.unwrap();
    assert_eq!((row.state, bed.attic("one")), (RepairState::Done, 1));
    assert_eq!(bed.got(&file(0)).await, content(0));
}

/// Somebody else is at work on its file for as long as the test lasts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_store_waits_for_a_repair_and_a_repair_does_not_hold_up_a_stop() {
    let (bed, id) = waiting().await;
    let repairs = bed.archive.db().repairs();
    repairs.confirm(id, &bert()).await.unwrap();
    let long = std::time::Duration::from_secs(3600);
    let status = bed.archive.file(&named(&file(0))).await.unwrap();
    let begun = bed.archive.db().files().begin(again(&status), "another node", long, IfStored::Verify).await;
    assert!(matches!(begun.unwrap(), Begun::Claimed(..)));
    assert_eq!(
        bed.archive.store_step(&Shutdown::never()).await.unwrap(),
        Step::Idle,
        "the repair is not the stores' business"
    );
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store("late", b"late").await.stored);
    bed.two.down.store(false, Ordering::SeqCst);
    let (stop, archive) = (Trigger::new(), bed.archive.clone());
    let listener = stop.listener();
    let worker = tokio::spawn(async move { archive.repair_step(&listener).await.unwrap() });
    let under_way = async || bed.archive.db().work().counts(REPAIR_WORK).await.unwrap().claimed == 1;
    until("the repair is under way", under_way).await;
    assert_eq!(bed.archive.store_step(&Shutdown::never()).await.unwrap(), Step::More);
    assert!(bed.archive.file(&named("late")).await.unwrap().proven());
    stop.pull();
    assert_eq!(worker.await.unwrap(), Step::More);
    let (row, _) = repairs.claim("another node", long).await.unwrap().expect("it was given back");
    assert_eq!((row.id, row.state), (id, RepairState::Confirmed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawn_repair_changes_nothing_and_can_be_asked_for_again() {
    let (bed, id) = waiting().await;
    let row = bed.archive.withdraw_repair(id, &anna()).await.unwrap();
    assert_eq!(row.state, RepairState::Withdrawn);
    let late = bed.archive.confirm_repair(id, &bert()).await.unwrap();
    assert_eq!((late.state, bed.attic("one")), (RepairState::Withdrawn, 0));
    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    let again = report.copies[0].repair.unwrap();
    assert!(again != id && report.waiting == 1, "{report:?}");
    assert_eq!(bed.archive.confirm_repair(again, &bert()).await.unwrap().state, RepairState::Done);
    let over = bed.archive.withdraw_repair(again, &anna()).await.unwrap_err();
    assert_eq!(over.code(), "archive-repair-not-waiting");
    assert!(over.to_string().contains("is done"), "{over}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_deposit_that_no_replica_has_is_withdrawn_and_other_bytes_take_its_name() {
    let bed = Bed::new().await;
    for gate in bed.gates.values() {
        gate.down.store(true, Ordering::SeqCst);
    }
    assert!(!bed.store("a", b"first").await.stored);
    let other = bed.source("a", b"second, and longer");
    let store = Store::new(named("a"), "anna");
    let refused = bed.archive.store(&other, &store).await.unwrap_err();
    assert_eq!(refused.code(), "archive-other-deposit");
    assert!(refused.to_string().contains("grange files withdraw a"), "{refused}");
    // A replica that does not answer may have taken the bytes.
    let refused = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap_err();
    assert!(refused.to_string().contains("cannot be asked"), "{refused}");
    for gate in bed.gates.values() {
        gate.down.store(false, Ordering::SeqCst);
    }
    let withdrawn = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap();
    assert_eq!(withdrawn.file.size, 5);
    assert_eq!(bed.archive.status(&named("a")).await.unwrap(), None);
    bed.work().await;
    assert!(bed.archive.store(&other, &store).await.unwrap().stored);
    assert_eq!(bed.got("a").await, b"second, and longer");
    for row in bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap() {
        assert_eq!((row.found.ok, row.found.extra), (1, 0), "{row:?}");
    }
    assert!(bed.archive.verify_log().await.unwrap().ok);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_that_some_replica_has_or_that_was_acknowledged_is_not_withdrawn() {
    let bed = Bed::new().await;
    bed.two.down.store(true, Ordering::SeqCst);
    assert!(!bed.store("a", b"first").await.stored);
    bed.two.down.store(false, Ordering::SeqCst);
    let refused = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap_err();
    assert!(refused.to_string().contains("replica one has its bytes"), "{refused}");
    bed.work().await;
    assert!(bed.archive.status(&named("a")).await.unwrap().unwrap().proven(), "it went on by itself");
    // Every copy is lost: what was acknowledged once keeps its name.
    for replica in ["one", "two"] {
        std::fs::remove_file(bed.path(replica, "a")).unwrap();
    }
    bed.archive.audit_all(AuditKind::List, &anna()).await.unwrap();
    let refused = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap_err();
    assert_eq!(refused.code(), "archive-not-withdrawable");
    let other = bed.source("a", b"second");
    let refused = bed.archive.store(&other, &Store::new(named("a"), "anna")).await.unwrap_err();
    assert_eq!(refused.code(), "archive-other-bytes");
}

/// The row does not know it: the answer of a replica was lost when its node was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_whose_bytes_lie_on_a_replica_behind_the_rows_is_not_withdrawn() {
    let bed = Bed::new().await;
    for gate in bed.gates.values() {
        gate.down.store(true, Ordering::SeqCst);
    }
    assert!(!bed.store("a", b"first").await.stored);
    std::fs::write(bed.path("one", "a"), b"first").unwrap();
    for gate in bed.gates.values() {
        gate.down.store(false, Ordering::SeqCst);
    }
    let refused = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap_err();
    assert!(refused.to_string().contains("replica one has its bytes"), "{refused}");
    bed.work().await;
    assert_eq!(bed.got("a").await, b"first");
}

/// A repair under way keeps the rows, as a kill at that moment would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawal_that_stops_before_the_rows_are_deleted_costs_no_replica_its_line() {
    let bed = Bed::new().await;
    for gate in bed.gates.values() {
        gate.down.store(true, Ordering::SeqCst);
    }
    assert!(!bed.store("a", b"first").await.stored);
    for gate in bed.gates.values() {
        gate.down.store(false, Ordering::SeqCst);
    }
    let status = bed.archive.status(&named("a")).await.unwrap().unwrap();
    let repair = NewRepair {
        file_id: status.file.id,
        replica_id: bed.archive.replica("one").unwrap().row.id,
        kind: RepairKind::Missing,
        bad_checksum: None,
        new_checksum: None,
        confirmed_by: Some("not needed".to_owned()),
    };
    bed.archive.db().repairs().ask(repair, &anna()).await.unwrap();
    let stopped = bed.archive.withdraw_deposit(&named("a"), &anna()).await.unwrap_err();
    assert!(stopped.to_string().contains("a repair under way"), "{stopped}");
    bed.work().await;
    assert!(bed.archive.status(&named("a")).await.unwrap().unwrap().proven(), "it went on by itself");
    for row in bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap() {
        assert_eq!((row.found.ok, row.found.missing), (1, 0), "{row:?}");
    }
}
