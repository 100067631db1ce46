//! What is kept of where replicas are located, and of checks that wait for one.

use grange_model::{Actor, AuditKind, AuditState, ReplicaKind};

use super::{Bed, LONG, anna, on_both_engines};
use crate::{AUDIT_WORK, AuditFilter, Declared, ReplicaRow, State};

on_both_engines! {
    an_archive_has_one_id_and_keeps_it,
    a_database_that_was_restored_or_made_again_may_lack_replicas_until_all_were_read,
    the_places_of_a_replica_are_added_to_and_replaced_only_by_a_person,
    a_check_that_waits_says_why_and_comes_back,
    what_a_person_asked_for_is_checked_first,
}

async fn two(bed: &Bed) -> Vec<ReplicaRow> {
    let names = ["one", "two"].map(|name| (name.parse().unwrap(), ReplicaKind::Bitarchive));
    let Declared::Replicas(rows) = bed.db.replicas().declare(names.to_vec()).await.unwrap() else { panic!() };
    rows
}

async fn an_archive_has_one_id_and_keeps_it(bed: &Bed) {
    let places = bed.db.places();
    assert_eq!(places.archive_id().await.unwrap(), None);
    let other = bed.again().await;
    let other = other.places();
    let (one, two) = tokio::join!(places.identify("a", false), other.identify("b", false));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one == two && ["a", "b"].contains(&one.as_str()), "{one} {two}");
    assert_eq!(places.identify("c", true).await.unwrap(), one);
    assert_eq!(places.archive_id().await.unwrap(), Some(one));
    assert!(!places.recovery_pending().await.unwrap());
}

async fn a_database_that_was_restored_or_made_again_may_lack_replicas_until_all_were_read(bed: &Bed) {
    let places = bed.db.places();
    assert!(!places.recovery_pending().await.unwrap(), "there is no archive yet");
    places.identify("a", true).await.unwrap();
    assert!(places.recovery_pending().await.unwrap());
    places.end_recovery().await.unwrap();
    assert!(!places.recovery_pending().await.unwrap());
    bed.db.settle_restored("backup", Vec::new(), &anna()).await.unwrap();
    assert!(places.recovery_pending().await.unwrap());
}

async fn the_places_of_a_replica_are_added_to_and_replaced_only_by_a_person(bed: &Bed) {
    let rows = two(bed).await;
    let places = bed.db.places();
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    places.enter(rows[0].id, list(&["/b", "/a"])).await.unwrap();
    places.enter(rows[0].id, list(&["/a", "/c"])).await.unwrap();
    assert_eq!(places.known(rows[0].id).await.unwrap(), list(&["/a", "/b", "/c"]));
    assert_eq!(places.known(rows[1].id).await.unwrap(), list(&[]));
    places.adopt(rows[0].id, list(&["/d"]), &anna()).await.unwrap();
    assert_eq!(places.known(rows[0].id).await.unwrap(), list(&["/d"]));
    let told = bed.db.audit().list(&AuditFilter::default()).await.unwrap();
    assert_eq!((told[0].act.as_str(), told[0].subject.as_str()), ("replica.adopt", "replica:one"));
    assert_eq!(places.adopt(99, list(&[]), &anna()).await.unwrap_err().code(), "not-found");
    for reason in [Some("its marker is gone"), Some("nul \0"), None] {
        places.set_away(rows[1].id, reason).await.unwrap();
        let kept = bed.db.replicas().list().await.unwrap();
        let shown = reason.map(|reason| reason.replace('\0', "\u{fffd}"));
        assert_eq!((kept[0].away.clone(), kept[1].away.clone()), (None, shown));
    }
}

async fn a_check_that_waits_says_why_and_comes_back(bed: &Bed) {
    let rows = two(bed).await;
    let check = bed.db.audits().start(rows[0].id, AuditKind::List, &anna()).await.unwrap();
    let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    bed.db.audits().rest(&claim, check.id, "one is away", LONG).await.unwrap();
    let row = bed.db.audits().get(check.id).await.unwrap().unwrap();
    assert_eq!((row.state, row.last_error.as_deref()), (AuditState::Running, Some("one is away")));
    assert_eq!(row.updated_at, check.updated_at, "it has not got on");
    let work = bed.db.work().find(AUDIT_WORK, &check.id.to_string()).await.unwrap().unwrap();
    assert_eq!((work.state, work.last_error.as_deref()), (State::Ready, Some("one is away")));
    assert!(work.not_before.unwrap() > bed.lease_now());
    // Whoever lost it has nothing more to say.
    let late = bed.db.audits().rest(&claim, check.id, "too late", LONG).await.unwrap_err();
    assert_eq!(late.code(), "lease-lost");
    let row = bed.db.audits().get(check.id).await.unwrap().unwrap();
    assert_eq!(row.last_error.as_deref(), Some("one is away"));
}

async fn what_a_person_asked_for_is_checked_first(bed: &Bed) {
    let rows = two(bed).await;
    let calendar = bed.db.audits().start(rows[0].id, AuditKind::Checksum, &Actor::system()).await.unwrap();
    let asked = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &anna()).await.unwrap();
    for expected in [asked.id, calendar.id] {
        let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
        assert_eq!(claim.key, expected.to_string());
    }
}
