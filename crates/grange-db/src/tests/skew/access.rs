//! Access rules that two nodes keep beside the bits at once.

use grange_model::Actor;
use serde_json::json;
use sqlx::Executor as _;

use super::{Barrier, act};
use crate::conformance::{Bed, anna};
use crate::{AccessRuleState, KeptRule};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_gets_its_key_from_two_nodes_at_once_has_one() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.access_rules().add(vec![json!({ "a": 1 })], "", &anna()).await.unwrap();
    let mut barrier = Barrier::at(&bed, "BEFORE UPDATE ON access_rules").await;
    // As it was before there were keys.
    barrier.watch.execute("ALTER TABLE access_rules DISABLE TRIGGER held").await.unwrap();
    barrier.watch.execute("UPDATE access_rules SET key = NULL").await.unwrap();
    barrier.watch.execute("ALTER TABLE access_rules ENABLE TRIGGER held").await.unwrap();
    let one = barrier.hold(1, act!(bed, |db| async { db.access_rules().state().await })).await;
    let two = barrier.hold(2, act!(bed, |db| async { db.access_rules().state().await })).await;
    barrier.open().await;
    let keys = |state: AccessRuleState| state.rules.into_iter().map(|rule| rule.key).collect::<Vec<_>>();
    let one = keys(one.await.unwrap().unwrap());
    let two = keys(two.await.unwrap().unwrap());
    assert_eq!((one.len(), &one), (1, &two), "each would write a file for its own key");
    let kept = bed.db.access_rules().list().await.unwrap();
    assert_eq!(kept[0].key.as_ref(), one.first());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_rule_that_two_nodes_establish_again_at_once_is_there_once() {
    let Some(bed) = Bed::postgres().await else { return };
    let lost = KeptRule {
        key: "k1".to_owned(),
        rule: json!({ "a": 1 }),
        note: String::new(),
        created_at: bed.clock.now(),
        created_by: Actor::system().who,
    };
    let (first, second) = (vec![lost.clone()], vec![lost]);
    let mut barrier = Barrier::at(&bed, "BEFORE INSERT ON access_rules").await;
    let one = act!(bed, |db| async { db.access_rules().reestablish(first).await });
    let two = act!(bed, |db| async { db.access_rules().reestablish(second).await });
    let one = barrier.hold(1, one).await;
    let two = barrier.hold(2, two).await;
    barrier.open().await;
    let made = [one.await.unwrap().unwrap().len(), two.await.unwrap().unwrap().len()];
    assert_eq!(made.iter().sum::<usize>(), 1, "{made:?}");
    assert_eq!(bed.db.access_rules().list().await.unwrap().len(), 1);
}
