//! Work that is offered while its last round is deleted.

use std::time::Duration;

use serde_json::json;

use super::{Barrier, act};
use crate::conformance::{Bed, LONG};
use crate::{Offer, State};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_offered_while_its_last_round_is_deleted_is_new() {
    let Some(bed) = Bed::postgres().await else { return };
    let offer = || Offer::new("job", "a", json!(1));
    bed.db.work().offer(offer()).await.unwrap();
    let claim = bed.db.work().claim("job", "me", LONG).await.unwrap().unwrap();
    bed.db.work().finish(&claim).await.unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER INSERT ON work").await;
    let offered = barrier.hold(1, act!(bed, |db| db.work().offer(offer()))).await;
    assert_eq!(bed.db.work().prune("job", Duration::ZERO).await.unwrap(), 1);
    barrier.open().await;
    let offered = offered.await.unwrap().unwrap();
    assert_eq!((offered.new, offered.state), (true, State::Ready));
    assert_eq!(bed.db.work().counts("job").await.unwrap().ready, 1);
}
