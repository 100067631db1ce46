//! Files that an act was at work on when it ended early: nobody waits for a lease to end. The clock stands still in these
//! tests, so no lease does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use grange_base::worker::Step;
use grange_base::{Clock, Shutdown, TestClock, Trigger};
use grange_db::{NewRepair, STORE_WORK, State};
use grange_model::{AuditKind, RepairId, RepairKind, RepairState};
use grange_testkit::until;
use tempfile::TempDir;

use super::bed::{Bed, anna, bert, content, file, named, parts, settings};
use crate::{Archive, Second};

async fn standing_still() -> (Bed, Clock, TestClock) {
    let (clock, hand) = Clock::test("2026-01-01T12:00:00Z".parse().unwrap());
    (Bed::at(TempDir::new().unwrap(), settings(), clock.clone()).await, clock, hand)
}

/// A bad copy on `one`, and its repair, which two people agreed on and nobody performs.
async fn agreed(bed: &Bed, hand: &TestClock, kind: RepairKind) -> RepairId {
    bed.fill(1).await;
    // A check says nothing of what changes while it runs.
    hand.advance(Duration::from_secs(1));
    if kind == RepairKind::Missing {
        std::fs::remove_file(bed.path("one", &file(0))).unwrap();
    } else {
        bed.damage("one", &file(0), |bytes| bytes[0] ^= 1);
    }
    bed.archive.audit_all(AuditKind::Checksum, &anna()).await.unwrap();
    let status = bed.archive.file(&named(&file(0))).await.unwrap();
    let one = status.holdings.iter().find(|holding| holding.replica.as_str() == "one").unwrap();
    let confirmed_by = Some("bert".to_owned());
    let (file_id, replica_id, bad_checksum) = (status.file.id, one.replica_id, one.checksum.clone());
    let new = NewRepair { file_id, replica_id, kind, bad_checksum, new_checksum: None, confirmed_by };
    let row = bed.archive.db().repairs().ask(new, &anna()).await.unwrap();
    assert_eq!(row.state, RepairState::Confirmed);
    row.id
}

async fn work_on_the_file(bed: &Bed) -> Option<State> {
    bed.archive.db().work().find(STORE_WORK, &file(0)).await.unwrap().map(|work| work.state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_that_a_stopping_node_gives_back_in_the_middle_of_an_upload_is_completed_by_another() {
    for kind in [RepairKind::Missing, RepairKind::Corrupt] {
        let (bed, clock, hand) = standing_still().await;
        let id = agreed(&bed, &hand, kind).await;
        let db = bed.archive.db().clone();
        bed.one.stuck_puts.store(true, Ordering::SeqCst);
        let before = bed.one.puts.load(Ordering::SeqCst);
        let (stop, archive) = (Trigger::new(), bed.archive.clone());
        let listener = stop.listener();
        let worker = tokio::spawn(async move { archive.repair_step(&listener).await.unwrap() });
        let sent = || bed.one.puts.load(Ordering::SeqCst) > before;
        until("the copy is sent", async || sent() || worker.is_finished()).await;
        let row = db.repairs().get(id).await.unwrap();
        assert!(sent(), "{row:?}, {:?}", bed.archive.file(&named(&file(0))).await);
        stop.pull();
        assert_eq!(worker.await.unwrap(), Step::More);
        assert_eq!(work_on_the_file(&bed).await, Some(State::Ready), "{kind}: nobody holds the file");

        let parts = parts(bed.dir.path(), db.clone(), &clock, settings()).await;
        let other = Archive::open(parts).await.unwrap();
        let never = Shutdown::never();
        let worker = tokio::spawn(async move { other.repair_step(&never).await.unwrap() });
        let done = async || db.repairs().get(id).await.unwrap().state == RepairState::Done;
        until("the other node completes the repair", done).await;
        assert_eq!(worker.await.unwrap(), Step::More);
        assert_eq!(std::fs::read(bed.path("one", &file(0))).unwrap(), content(0));
        assert!(bed.archive.file(&named(&file(0))).await.unwrap().proven(), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_that_fails_leaves_its_file_to_others() {
    let (bed, _, hand) = standing_still().await;
    let id = agreed(&bed, &hand, RepairKind::Corrupt).await;
    bed.one.keeps_all.store(true, Ordering::SeqCst);
    assert_eq!(bed.archive.repair_step(&Shutdown::never()).await.unwrap(), Step::More);
    let row = bed.archive.db().repairs().get(id).await.unwrap();
    assert_eq!(row.state, RepairState::Failed);
    assert_eq!(bed.one.removals.load(Ordering::SeqCst), 1);
    assert_eq!(work_on_the_file(&bed).await, Some(State::Ready));
    // So the next repair need not wait for it either.
    bed.one.keeps_all.store(false, Ordering::SeqCst);
    let report = bed.archive.repair_all(&anna(), |_| Second::None, false).await.unwrap();
    let next = report.copies[0].repair.unwrap();
    let archive = bed.archive.clone();
    let confirmed = tokio::spawn(async move { archive.confirm_repair(next, &bert()).await.unwrap() });
    until("the next repair ends", async || confirmed.is_finished()).await;
    assert_eq!(confirmed.await.unwrap().state, RepairState::Done);
    assert_eq!(std::fs::read(bed.path("one", &file(0))).unwrap(), content(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_that_fails_leaves_its_file_to_others() {
    let (bed, _, hand) = standing_still().await;
    agreed(&bed, &hand, RepairKind::Corrupt).await;
    bed.one.keeps_all.store(true, Ordering::SeqCst);
    let status = bed.archive.file(&named(&file(0))).await.unwrap();
    let one = status.holdings.iter().find(|holding| holding.replica.as_str() == "one").unwrap();
    let bad = one.checksum.as_ref().unwrap().parse().unwrap();
    let second = Second::Credential(bed.archive.credential("one").unwrap());
    bed.archive.correct("one", &named(&file(0)), &bad, &second, &anna()).await.unwrap_err();
    assert_eq!(bed.one.removals.load(Ordering::SeqCst), 1);
    assert_eq!(work_on_the_file(&bed).await, Some(State::Ready));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_a_stopping_node_gives_back_is_completed_by_another() {
    let (bed, clock, _hand) = standing_still().await;
    bed.one.down.store(true, Ordering::SeqCst);
    assert!(!bed.store(&file(0), &content(0)).await.stored);
    bed.one.down.store(false, Ordering::SeqCst);
    bed.one.stuck_puts.store(true, Ordering::SeqCst);
    let before = bed.one.puts.load(Ordering::SeqCst);
    let (stop, archive) = (Trigger::new(), bed.archive.clone());
    let listener = stop.listener();
    let worker = tokio::spawn(async move { archive.store_step(&listener).await.unwrap() });
    until("the copy is sent", async || bed.one.puts.load(Ordering::SeqCst) > before).await;
    stop.pull();
    assert_eq!(worker.await.unwrap(), Step::More);
    assert_eq!(work_on_the_file(&bed).await, Some(State::Ready));
    let parts = parts(bed.dir.path(), bed.archive.db().clone(), &clock, settings()).await;
    let other = Archive::open(parts).await.unwrap();
    assert_eq!(other.store_step(&Shutdown::never()).await.unwrap(), Step::More);
    assert!(bed.archive.file(&named(&file(0))).await.unwrap().proven());
}
