//! Checks of replicas that several want, or that end just as one is wanted.

use grange_model::{Actor, AuditKind, AuditState, ReplicaKind};

use super::{Barrier, act};
use crate::Declared;
use crate::conformance::{Bed, anna};

async fn replica(bed: &Bed) -> i64 {
    let wanted = vec![("one".parse().unwrap(), ReplicaKind::Bitarchive)];
    match bed.db.replicas().declare(wanted).await.unwrap() {
        Declared::Replicas(rows) => rows[0].id,
        Declared::Undeclared(rows) => panic!("{rows:?}"),
    }
}

fn bert() -> Actor {
    Actor::new("bert", "cli")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_who_want_a_check_at_once_get_the_same() {
    let Some(bed) = Bed::postgres().await else { return };
    let replica = replica(&bed).await;
    let scheduled = bed.db.audits().start(replica, AuditKind::List, &Actor::system()).await.unwrap();
    // Both have found the scheduled one, and are about to end it.
    let mut barrier = Barrier::at(&bed, "BEFORE UPDATE ON audits").await;
    let one = barrier.hold(1, act!(bed, |db| db.audits().start(replica, AuditKind::List, &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.audits().start(replica, AuditKind::List, &bert()))).await;
    barrier.open().await;
    let (one, two) = (one.await.unwrap().unwrap(), two.await.unwrap().unwrap());
    assert_eq!((one.id, one.state), (two.id, AuditState::Running));
    assert_ne!(one.id, scheduled.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_wanted_while_another_ends_is_started() {
    let Some(bed) = Bed::postgres().await else { return };
    let replica = replica(&bed).await;
    let ending = bed.db.audits().start(replica, AuditKind::List, &bert()).await.unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER INSERT ON audits").await;
    let wanted = barrier.hold(1, act!(bed, |db| db.audits().start(replica, AuditKind::List, &anna()))).await;
    bed.db.audits().cancel(ending.id, &bert()).await.unwrap();
    barrier.open().await;
    let started = wanted.await.unwrap().unwrap();
    assert_eq!((started.state, started.asked_by.as_str()), (AuditState::Running, "anna"));
    assert_ne!(started.id, ending.id);
}
