//! Templates that people keep while nodes bring the shipped ones up to date.

use super::{Barrier, act};
use crate::conformance::harvest_bed::name;
use crate::conformance::{Bed, anna};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_kept_by_a_person_is_not_replaced_by_a_shipped_one() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.templates().ship(vec![(name("t"), "old".to_owned())]).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let kept = barrier.hold(1, act!(bed, |db| db.templates().put(&name("t"), "mine", "", &anna()))).await;
    let shipped =
        barrier.hold(2, act!(bed, |db| db.templates().ship(vec![(name("t"), "new".to_owned())]))).await;
    barrier.open().await;
    kept.await.unwrap().unwrap();
    shipped.await.unwrap().unwrap();
    let newest = bed.db.templates().get(&name("t"), None).await.unwrap().unwrap();
    assert_eq!((newest.text.as_str(), newest.version), ("mine", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_taken_out_of_use_is_not_put_back_by_a_shipped_text() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.templates().ship(vec![(name("t"), "old".to_owned())]).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let out = barrier.hold(1, act!(bed, |db| db.templates().set_active(&name("t"), false, &anna()))).await;
    let shipped =
        barrier.hold(2, act!(bed, |db| db.templates().ship(vec![(name("t"), "new".to_owned())]))).await;
    barrier.open().await;
    out.await.unwrap().unwrap();
    shipped.await.unwrap().unwrap();
    let newest = bed.db.templates().get(&name("t"), None).await.unwrap().unwrap();
    assert_eq!((newest.active, newest.text.as_str()), (false, "old"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_text_kept_twice_at_once_is_one_version() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.templates().put(&name("t"), "one", "", &anna()).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.templates().put(&name("t"), "two", "", &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.templates().put(&name("t"), "two", "", &anna()))).await;
    barrier.open().await;
    let versions = (one.await.unwrap().unwrap().version, two.await.unwrap().unwrap().version);
    assert_eq!(versions, (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_start_together_ship_a_template_once() {
    let Some(bed) = Bed::postgres().await else { return };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let shipped = || vec![(name("t"), "text".to_owned())];
    let one = barrier.hold(1, act!(bed, |db| db.templates().ship(shipped()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.templates().ship(shipped()))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    assert_eq!(bed.db.templates().get(&name("t"), None).await.unwrap().unwrap().version, 1);
}
