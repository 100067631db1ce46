//! Collections: the same files registered twice, and collections that go while files come.

use std::time::Duration;

use super::{Barrier, act};
use crate::conformance::{Bed, LONG, anna};
use crate::{NewCollected, Which};

fn file(path: &str) -> Vec<NewCollected> {
    vec![NewCollected { path: path.to_owned(), size: 7, modified: None, stored: false }]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_registered_twice_at_once_is_known_the_second_time() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.collections().ensure("news", &anna()).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one =
        barrier.hold(1, act!(bed, |db| db.collections().enrol("news", file("/a/x.warc"), &anna()))).await;
    let two =
        barrier.hold(2, act!(bed, |db| db.collections().enrol("news", file("/a/x.warc"), &anna()))).await;
    barrier.open().await;
    assert_eq!(one.await.unwrap().unwrap().new, 1);
    let two = two.await.unwrap().unwrap();
    assert_eq!((two.new, two.known), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_is_forgotten_with_files_that_came_last() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.collections().ensure("news", &anna()).await.unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER INSERT ON collection_files").await;
    let came =
        barrier.hold(1, act!(bed, |db| db.collections().enrol("news", file("/a/x.warc"), &anna()))).await;
    let marked = barrier.hold(2, act!(bed, |db| db.collections().remove("news", &anna()))).await;
    let gone = barrier.hold(2, act!(bed, |db| db.collections().forget("news"))).await;
    barrier.open().await;
    came.await.unwrap().unwrap();
    marked.await.unwrap().unwrap();
    gone.await.unwrap().unwrap();
    bed.db.collections().forget("news").await.unwrap();
    assert_eq!(bed.db.collections().get("news").await.unwrap_err().code(), "not-found");
    assert_eq!(bed.db.collections().files("news", None, 0, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_being_taken_out_is_not_marked_indexed() {
    let Some(bed) = Bed::postgres().await else { return };
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", file("/a/x.warc"), &anna()).await.unwrap();
    collections.keep_index("news", "one", LONG, false).await.unwrap().unwrap();
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let out = barrier.hold(1, act!(bed, |db| db.collections().roll_back("news", &Which::All, &anna()))).await;
    let came =
        barrier.hold(2, act!(bed, |db| db.collections().indexed(&claim, crate::Indexed::default()))).await;
    barrier.open().await;
    assert_eq!(out.await.unwrap().unwrap(), 1);
    assert_eq!(came.await.unwrap().unwrap_err().code(), "lease-lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_numbered_in_the_order_they_become_visible() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.collections().ensure("news", &anna()).await.unwrap();
    let mut barrier = Barrier::for_the_first_at(&bed, "AFTER INSERT ON collection_files").await;
    let one = barrier.hold(1, act!(bed, |db| db.collections().enrol("news", file("/x.warc"), &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.collections().enrol("news", file("/y.warc"), &anna()))).await;
    // Whoever serves the collection reads on from the last number it knows.
    let mut seen = bed.db.collections().files("news", None, 0, 10).await.unwrap();
    barrier.open().await;
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    let last = seen.last().map_or(0, |file| file.id);
    seen.extend(bed.db.collections().files("news", None, last, 10).await.unwrap());
    assert_eq!(seen.len(), 2, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_not_marked_indexed_while_another_node_takes_over_its_index() {
    let Some(bed) = Bed::postgres().await else { return };
    let collections = bed.db.collections();
    collections.ensure("news", &anna()).await.unwrap();
    collections.enrol("news", file("/a/x.warc"), &anna()).await.unwrap();
    collections.keep_index("news", "one", LONG, false).await.unwrap().unwrap();
    let claim = collections.claim(None, "one", LONG).await.unwrap().unwrap();
    // The lease of the index ends while the file is read.
    collections.keep_index("news", "one", Duration::ZERO, false).await.unwrap().unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER UPDATE ON index_owners").await;
    let taken =
        barrier.hold(1, act!(bed, |db| db.collections().keep_index("news", "two", LONG, false))).await;
    let came = bed.db.collections().indexed(&claim, crate::Indexed::default()).await;
    barrier.open().await;
    let lease = taken.await.unwrap().unwrap().unwrap();
    // A mark that was made before is seen by the new owner, which does not have the file.
    let row = bed.db.collections().file_named("news", "x.warc").await.unwrap().unwrap();
    match came {
        Ok(()) => assert_eq!(bed.db.collections().send_back(&lease, &[row.id]).await.unwrap(), 1),
        Err(error) => assert_eq!(error.code(), "lease-lost"),
    }
    let claim = bed.db.collections().claim(None, "two", LONG).await.unwrap().unwrap();
    assert_eq!(claim.file.id, row.id);
}
