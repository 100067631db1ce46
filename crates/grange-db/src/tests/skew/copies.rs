//! Copies that are checked, uploaded and repaired at the same moment.

use std::time::Duration;

use grange_model::{Actor, AuditKind, RepairKind, RepairState, UploadState, Verdict};

use super::{Barrier, act};
use crate::conformance::archive::{adopted, change, claimed, name, new, seen, start, sums, three};
use crate::conformance::{Bed, LONG, anna};
use crate::{AUDIT_WORK, Begun, Confirmed, IfStored, NewRepair, Page, RepairTurn, STORE_WORK, deciding};

fn bert() -> Actor {
    Actor::new("bert", "cli")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_two_replicas_kept_at_once_are_judged_together() {
    let Some(bed) = Bed::postgres().await else { return };
    let rows = three(&bed).await;
    adopted(&bed, &rows, 1, &[]).await;
    let file = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let wrong = deciding(&sums(9));
    let mut barrier = Barrier::at(&bed, "BEFORE INSERT ON log_leaves").await;
    let (one, two) = (vec![(rows[0].id, Some(wrong.clone()))], vec![(rows[1].id, Some(wrong))]);
    let now = bed.clock.now();
    let one = barrier.hold(1, act!(bed, |db| db.audits().observe(file, now, one, "anna"))).await;
    let two = barrier.hold(2, act!(bed, |db| db.audits().observe(file, now, two, "bert"))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    let verdicts = async || -> Vec<Verdict> {
        let status = bed.db.files().get(&name("f0")).await.unwrap().unwrap();
        status.holdings.iter().map(|holding| holding.verdict).collect()
    };
    let kept = verdicts().await;
    // What the same ballots say when they are counted once more.
    bed.db.audits().vote_all().await.unwrap();
    assert_eq!(kept, verdicts().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_uploaded_after_the_list_was_made_is_not_called_missing() {
    let Some(bed) = Bed::postgres().await else { return };
    let rows = three(&bed).await;
    let (status, upload) = claimed(&bed, "f0", 0).await;
    bed.hand.advance(Duration::from_secs(1));
    let audit = bed.db.audits().start(rows[0].id, AuditKind::List, &anna()).await.unwrap();
    let check = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    let page = Page {
        audit: audit.id,
        replica_id: rows[0].id,
        replica: "one".to_owned(),
        kind: AuditKind::List,
        after: None,
        upto: None,
        seen: Vec::new(),
        asked_at: bed.clock.now(),
        by: "anna".to_owned(),
    };
    bed.hand.advance(Duration::from_secs(1));
    let mut barrier = Barrier::for_the_first_at(&bed, "BEFORE UPDATE ON replica_files").await;
    let turned = barrier.hold(1, act!(bed, |db| db.audits().turn_page(&check, page))).await;
    let changes = vec![change(rows[0].id, UploadState::UploadCompleted, 0)];
    let file = status.file.id;
    let uploaded = barrier.hold(2, act!(bed, |db| db.files().advance(&upload, file, changes))).await;
    barrier.open().await;
    turned.await.unwrap().unwrap();
    uploaded.await.unwrap().unwrap();
    let status = bed.db.files().get(&name("f0")).await.unwrap().unwrap();
    assert_eq!(status.holdings[0].state, UploadState::UploadCompleted, "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_answers_otherwise_while_its_older_answer_is_kept_stays_doubted() {
    let Some(bed) = Bed::postgres().await else { return };
    let rows = three(&bed).await;
    let (status, upload) = claimed(&bed, "f0", 0).await;
    let file = status.file.id;
    let all = rows.iter().map(|row| change(row.id, UploadState::UploadCompleted, 0)).collect();
    bed.db.files().advance(&upload, file, all).await.unwrap();
    let (page, check) = start(&bed, &rows[0], AuditKind::Checksum).await;
    bed.hand.advance(Duration::from_secs(1));
    let page = Page { seen: vec![seen("f0", Some(0))], asked_at: bed.clock.now(), ..page };
    bed.hand.advance(Duration::from_secs(1));
    let mut barrier = Barrier::for_the_first_at(&bed, "BEFORE UPDATE ON replica_files").await;
    let turned = barrier.hold(1, act!(bed, |db| db.audits().turn_page(&check, page))).await;
    let other = crate::HoldingChange {
        verdict: Verdict::Unknown,
        ..change(rows[0].id, UploadState::UploadFailed, 9)
    };
    let answered = barrier.hold(2, act!(bed, |db| db.files().advance(&upload, file, vec![other]))).await;
    barrier.open().await;
    turned.await.unwrap().unwrap();
    answered.await.unwrap().unwrap();
    let status = bed.db.files().get(&name("f0")).await.unwrap().unwrap();
    let one = &status.holdings[0];
    assert_eq!((one.state, one.verdict), (UploadState::UploadFailed, Verdict::Corrupt), "{one:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_found_equal_by_one_check_while_another_finds_a_different_one_decides_against_it() {
    let Some(bed) = Bed::postgres().await else { return };
    let rows = three(&bed).await;
    // Nobody confirms the record until the copy on `one` is found.
    adopted(&bed, &rows, 1, &[(0, 0, None), (0, 2, None)]).await;
    let (equal, first) = start(&bed, &rows[0], AuditKind::Checksum).await;
    let equal = Page { seen: vec![seen("f0", Some(0))], ..equal };
    let (other, second) = start(&bed, &rows[1], AuditKind::Checksum).await;
    let other = Page { seen: vec![seen("f0", Some(9))], ..other };
    let mut barrier = Barrier::for_the_first_at(&bed, "BEFORE UPDATE ON replica_files").await;
    let equal = barrier.hold(1, act!(bed, |db| db.audits().turn_page(&first, equal))).await;
    let other = barrier.hold(2, act!(bed, |db| db.audits().turn_page(&second, other))).await;
    barrier.open().await;
    equal.await.unwrap().unwrap();
    other.await.unwrap().unwrap();
    let status = bed.db.files().get(&name("f0")).await.unwrap().unwrap();
    let verdicts: Vec<_> = status.holdings.iter().map(|holding| holding.verdict).collect();
    assert_eq!(verdicts[..2], [Verdict::Ok, Verdict::Corrupt], "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_copy_is_lost_while_it_is_settled_stays_in_the_queue() {
    let Some(bed) = Bed::postgres().await else { return };
    let rows = three(&bed).await;
    let (status, claim) = claimed(&bed, "f0", 0).await;
    let file = status.file.id;
    let all = rows.iter().map(|row| change(row.id, UploadState::UploadCompleted, 0)).collect();
    bed.db.files().advance(&claim, file, all).await.unwrap();
    let record = crate::conformance::archive::record(grange_model::LogEvent::Stored, "f0");
    let mut barrier = Barrier::for_the_first_at(&bed, "BEFORE UPDATE ON files").await;
    let settled = barrier.hold(1, act!(bed, |db| db.files().settle(&claim, file, Some(record)))).await;
    let gone = vec![(rows[0].id, None)];
    let now = bed.clock.now();
    let lost = barrier.hold(2, act!(bed, |db| db.audits().observe(file, now, gone, "anna"))).await;
    let queued = barrier.hold(2, act!(bed, |db| db.files().requeue(&name("f0")))).await;
    barrier.open().await;
    settled.await.unwrap().unwrap();
    lost.await.unwrap().unwrap();
    queued.await.unwrap().unwrap();
    assert!(bed.db.work().find(STORE_WORK, "f0").await.unwrap().is_some());
}

async fn broken(bed: &Bed) -> NewRepair {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file_id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    NewRepair {
        file_id,
        replica_id: rows[0].id,
        kind: RepairKind::Corrupt,
        bad_checksum: None,
        new_checksum: None,
        confirmed_by: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_does_not_cross_kinds_when_both_are_asked_for_at_once() {
    let Some(bed) = Bed::postgres().await else { return };
    let corrupt = broken(&bed).await;
    let confirmed_by = Some("not needed".to_owned());
    let missing = NewRepair { kind: RepairKind::Missing, confirmed_by, ..corrupt.clone() };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.repairs().ask(corrupt, &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.repairs().ask(missing, &bert()))).await;
    barrier.open().await;
    let one = one.await.unwrap().unwrap();
    let two = two.await.unwrap().unwrap();
    assert_eq!((two.kind, two.state), (RepairKind::Missing, RepairState::Confirmed));
    assert_eq!(bed.db.repairs().get(one.id).await.unwrap().confirmed_by, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_confirmed_by_two_at_once_has_one_second_person() {
    let Some(bed) = Bed::postgres().await else { return };
    let corrupt = broken(&bed).await;
    let asked = bed.db.repairs().ask(corrupt, &Actor::new("carl", "cli")).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.repairs().confirm(asked.id, &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.repairs().confirm(asked.id, &bert()))).await;
    barrier.open().await;
    let told = |answer: Confirmed| match answer {
        Confirmed::Yes(row) | Confirmed::SamePerson(row) => row.confirmed_by,
    };
    assert_eq!(told(one.await.unwrap().unwrap()).as_deref(), Some("anna"));
    assert_eq!(told(two.await.unwrap().unwrap()).as_deref(), Some("anna"));
    let filter =
        crate::AuditFilter { act: Some("repair.confirm".to_owned()), ..crate::AuditFilter::default() };
    assert_eq!(bed.db.audit().list(&filter).await.unwrap().len(), 1, "bert confirmed nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_confirmed_by_two_at_once_is_performed_by_one() {
    let Some(bed) = Bed::postgres().await else { return };
    let corrupt = broken(&bed).await;
    let asked = bed.db.repairs().ask(corrupt, &Actor::new("carl", "cli")).await.unwrap();
    bed.db.repairs().confirm(asked.id, &anna()).await.unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER INSERT OR UPDATE ON work").await;
    let one = barrier.hold(1, act!(bed, |db| db.repairs().begin(asked.id, "one", LONG))).await;
    let two = barrier.hold(2, act!(bed, |db| db.repairs().begin(asked.id, "two", LONG))).await;
    barrier.open().await;
    assert!(matches!(one.await.unwrap().unwrap(), RepairTurn::Claimed(..)));
    assert!(matches!(two.await.unwrap().unwrap(), RepairTurn::Busy(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_that_ends_while_another_wants_to_perform_it_is_performed_once() {
    let Some(bed) = Bed::postgres().await else { return };
    let corrupt = broken(&bed).await;
    let confirmed = NewRepair { confirmed_by: Some("key".to_owned()), ..corrupt };
    let asked = bed.db.repairs().ask(confirmed, &anna()).await.unwrap();
    let turn = bed.db.repairs().begin(asked.id, "one", LONG).await.unwrap();
    let RepairTurn::Claimed(_, claim) = turn else { panic!("{turn:?}") };
    let mut barrier = Barrier::at(&bed, "BEFORE UPDATE ON repairs").await;
    let ended = barrier.hold(1, act!(bed, |db| db.repairs().end(&claim, asked.id, None, Vec::new()))).await;
    let late = barrier.hold(2, act!(bed, |db| db.repairs().begin(asked.id, "two", LONG))).await;
    barrier.open().await;
    assert_eq!(ended.await.unwrap().unwrap().state, RepairState::Done);
    assert!(
        matches!(late.await.unwrap().unwrap(), RepairTurn::NotDue(row) if row.state == RepairState::Done)
    );
    assert!(bed.db.repairs().claim("three", LONG).await.unwrap().is_none(), "nothing is left in the queue");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_that_comes_while_another_is_withdrawn_is_refused_or_taken_whole() {
    let Some(bed) = Bed::postgres().await else { return };
    three(&bed).await;
    let (_, claim) = claimed(&bed, "f0", 0).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let withdrawn = barrier.hold(1, act!(bed, |db| db.files().withdraw(&claim, &anna()))).await;
    let deposit = act!(bed, |db| db.files().begin(new("f0", 1), "other", LONG, IfStored::Verify));
    let deposit = barrier.hold(2, deposit).await;
    barrier.open().await;
    assert!(withdrawn.await.unwrap().unwrap());
    let begun = deposit.await.unwrap().unwrap();
    let Begun::Claimed(status, _) = begun else { panic!("{begun:?}") };
    assert_eq!((status.file.checksums, status.holdings.len()), (sums(1), 3));
}
