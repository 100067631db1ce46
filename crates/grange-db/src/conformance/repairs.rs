//! What repairs promise: two people agree, one node performs, and one that waits can be withdrawn.

use grange_model::{Actor, LogEvent, RepairKind, RepairState};

use super::archive::{adopted, name, record, three};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{AuditFilter, Confirmed, NewRepair, RepairTurn};

on_both_engines! {
    a_repair_wants_a_second_person,
    a_repair_that_waits_can_be_withdrawn_and_no_other,
    of_many_who_want_to_perform_a_repair_one_gets_it,
    a_repair_that_is_superseded_is_not_performed,
    a_repair_that_waits_is_listed_however_many_came_after_it,
    a_decision_supersedes_the_requests_on_other_copies_that_contradict_it,
}

/// A repair of a corrupt copy of f0 on the first replica, not asked for yet.
async fn corrupt_copy(bed: &Bed) -> NewRepair {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file_id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    NewRepair {
        file_id,
        replica_id: rows[0].id,
        kind: RepairKind::Corrupt,
        bad_checksum: Some("md5=00".to_owned()),
        new_checksum: None,
        confirmed_by: None,
    }
}

async fn a_repair_wants_a_second_person(bed: &Bed) {
    let new = corrupt_copy(bed).await;
    let repairs = bed.db.repairs();
    let row = repairs.ask(new.clone(), &anna()).await.unwrap();
    assert_eq!((row.state, row.asked_by.as_str()), (RepairState::Waiting, "anna"));
    assert_eq!(
        repairs.ask(new.clone(), &Actor::new("bert", "web")).await.unwrap().id,
        row.id,
        "one at a time"
    );
    assert!(matches!(repairs.confirm(row.id, &anna()).await.unwrap(), Confirmed::SamePerson(_)));
    let Confirmed::Yes(row) = repairs.confirm(row.id, &Actor::new("bert", "web")).await.unwrap() else {
        panic!()
    };
    assert_eq!((row.state, row.confirmed_by.as_deref()), (RepairState::Confirmed, Some("bert")));
    let RepairTurn::Claimed(_, claim) = repairs.begin(row.id, "me", LONG).await.unwrap() else { panic!() };
    assert!(matches!(repairs.begin(row.id, "other", LONG).await.unwrap(), RepairTurn::Busy(_)));
    let row = repairs.end(&claim, row.id, None, vec![record(LogEvent::Repaired, "f0")]).await.unwrap();
    assert_eq!(row.state, RepairState::Done);
    assert!(matches!(repairs.begin(row.id, "other", LONG).await.unwrap(), RepairTurn::NotDue(_)));
    let late = repairs.end(&claim, row.id, Some("late".to_owned()), Vec::new()).await.unwrap_err();
    assert_eq!((late.code(), bed.db.logbook().size().await.unwrap()), ("lease-lost", 1));
    assert_eq!(repairs.list(Some(RepairState::Waiting), 9).await.unwrap(), []);
    assert_eq!(repairs.list(None, 9).await.unwrap(), std::slice::from_ref(&row));
    let second =
        repairs.ask(NewRepair { confirmed_by: Some("key".to_owned()), ..new }, &anna()).await.unwrap();
    assert!(second.id != row.id && second.state == RepairState::Confirmed);
    assert_eq!(bed.db.logbook().size().await.unwrap(), 1);
    // Nobody has begun with it: whoever looks for such repairs gets it, once.
    let (found, _) = repairs.claim("me", LONG).await.unwrap().unwrap();
    assert_eq!(found.id, second.id);
    assert!(repairs.claim("other", LONG).await.unwrap().is_none());
}

async fn a_repair_that_waits_can_be_withdrawn_and_no_other(bed: &Bed) {
    let new = corrupt_copy(bed).await;
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

async fn of_many_who_want_to_perform_a_repair_one_gets_it(bed: &Bed) {
    let corrupt = corrupt_copy(bed).await;
    let (kind, bad_checksum) = (RepairKind::Missing, None);
    let new = NewRepair { kind, bad_checksum, confirmed_by: Some("not needed".to_owned()), ..corrupt };
    let id = bed.db.repairs().ask(new, &anna()).await.unwrap().id;
    let many = (0..8).map(|n| {
        let db = bed.db.clone();
        tokio::spawn(async move { db.repairs().begin(id, &format!("node{n}"), LONG).await.unwrap() })
    });
    let mut claims = Vec::new();
    for one in many.collect::<Vec<_>>() {
        if let RepairTurn::Claimed(_, claim) = one.await.unwrap() {
            claims.push(claim);
        }
    }
    assert_eq!(claims.len(), 1);
    bed.db.repairs().end(&claims[0], id, None, Vec::new()).await.unwrap();
}

async fn a_repair_that_is_superseded_is_not_performed(bed: &Bed) {
    let corrupt = NewRepair { confirmed_by: Some("not needed".to_owned()), ..corrupt_copy(bed).await };
    let missing = NewRepair { kind: RepairKind::Missing, bad_checksum: None, ..corrupt.clone() };
    let repairs = bed.db.repairs();
    let first = repairs.ask(corrupt, &anna()).await.unwrap();
    let second = repairs.ask(missing, &anna()).await.unwrap();
    // Its work row is still there, because only the one who claims it knows whether somebody performs it.
    let RepairTurn::NotDue(row) = repairs.begin(first.id, "me", LONG).await.unwrap() else {
        panic!("a superseded repair was claimed")
    };
    assert_eq!((row.id, row.state), (first.id, RepairState::Failed));
    let (found, _) = repairs.claim("me", LONG).await.unwrap().unwrap();
    assert_eq!(found.id, second.id);
}

async fn a_repair_that_waits_is_listed_however_many_came_after_it(bed: &Bed) {
    let waiting = corrupt_copy(bed).await;
    let rows = three(bed).await;
    let repairs = bed.db.repairs();
    let old = repairs.ask(waiting.clone(), &anna()).await.unwrap();
    for n in 0..5 {
        bed.hand.advance(SHORT);
        let (bad_checksum, confirmed_by) = (Some(format!("md5={n:02}")), Some("key".to_owned()));
        let other = NewRepair { replica_id: rows[1].id, bad_checksum, confirmed_by, ..waiting.clone() };
        let row = repairs.ask(other, &anna()).await.unwrap();
        let RepairTurn::Claimed(_, claim) = repairs.begin(row.id, "me", LONG).await.unwrap() else {
            panic!()
        };
        repairs.end(&claim, row.id, None, Vec::new()).await.unwrap();
    }
    let listed = repairs.open_first(3).await.unwrap();
    assert_eq!((listed.len(), &listed[0]), (1 + 3, &old));
    assert!(listed[1..].iter().all(|row| row.state == RepairState::Done));
    assert_eq!(repairs.waiting_for(vec![waiting.file_id]).await.unwrap(), [old]);
    assert_eq!(repairs.waiting_for(vec![waiting.file_id + 1]).await.unwrap(), []);
}

async fn a_decision_supersedes_the_requests_on_other_copies_that_contradict_it(bed: &Bed) {
    let first = corrupt_copy(bed).await;
    let rows = bed.db.replicas().list().await.unwrap();
    let others: Vec<_> = rows.iter().map(|row| row.id).filter(|id| *id != first.replica_id).collect();
    let (repairs, bert) = (bed.db.repairs(), Actor::new("bert", "web"));
    // `--keep record`: each copy that answers md5=00 is to be replaced. The third answers something else.
    let second = NewRepair { replica_id: others[0], ..first.clone() };
    let third = NewRepair { replica_id: others[1], bad_checksum: Some("md5=11".to_owned()), ..first.clone() };
    let first_row = repairs.ask(first.clone(), &anna()).await.unwrap();
    let second_row = repairs.ask(second.clone(), &anna()).await.unwrap();
    let third_row = repairs.ask(third, &anna()).await.unwrap();
    // `--keep copies`: md5=00 is to be recorded, on the word of the first copy.
    let record = NewRepair {
        kind: RepairKind::Record,
        bad_checksum: Some("md5=99".to_owned()),
        new_checksum: Some("md5=00".to_owned()),
        ..first.clone()
    };
    let record_row = repairs.ask(record.clone(), &anna()).await.unwrap();
    let state = async |row: &crate::RepairRow| repairs.get(row.id).await.unwrap().state;
    assert_eq!(state(&first_row).await, RepairState::Failed);
    assert_eq!(state(&second_row).await, RepairState::Failed);
    assert_eq!(state(&third_row).await, RepairState::Waiting, "it does not contradict the record");
    // A confirmation that comes too late changes nothing and gives the reason.
    let Confirmed::Yes(late) = repairs.confirm(second_row.id, &bert).await.unwrap() else { panic!() };
    assert!(
        late.state == RepairState::Failed && late.last_error.as_ref().unwrap().contains("superseded"),
        "{late:?}"
    );
    assert!(matches!(repairs.begin(second_row.id, "me", LONG).await.unwrap(), RepairTurn::NotDue(_)));
    // The other way round, on another copy than the one that vouches for the record.
    let again = repairs.ask(second, &anna()).await.unwrap();
    assert_eq!((state(&record_row).await, state(&again).await), (RepairState::Failed, RepairState::Waiting));
    // Two people agreed on this one.
    repairs.confirm(again.id, &bert).await.unwrap();
    assert_eq!(repairs.ask(record, &anna()).await.unwrap().state, RepairState::Waiting);
    assert_eq!(state(&again).await, RepairState::Confirmed);
}
