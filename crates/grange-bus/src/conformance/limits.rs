//! What does not fit, what comes too fast, and the end.

use grange_testkit::until;
use serde_json::json;

use super::{BUFFER, Bench, hear, message, tell};
use crate::channel::NAME_BYTES_MAX;
use crate::wire::MESSAGE_BYTES_MAX;

pub(super) async fn a_message_too_large_is_refused_and_the_largest_travels(bench: &Bench) {
    let node = bench.node().await;
    for channel in [bench.channels().the_repos(), bench.channels().all_replay()] {
        let mut subscription = node.subscribe(&channel).await.unwrap();
        let room = MESSAGE_BYTES_MAX - message("x").with_body(json!("")).encode().unwrap().len();
        let error =
            node.publish(&channel, &message("x").with_body(json!("y".repeat(room + 1)))).await.unwrap_err();
        assert_eq!(error.code(), "bus-too-large");
        assert_eq!(
            error.to_string(),
            "a message of 7601 bytes is too large for the bus, which carries at most 7600: put the data into a \
             row and send its id"
        );
        let largest = message("x").with_body(json!("y".repeat(room)));
        node.publish(&channel, &largest).await.unwrap();
        assert_eq!(subscription.recv().await, Some(largest));
    }
}

pub(super) async fn a_slow_listener_loses_the_oldest_and_can_tell(bench: &Bench) {
    const MORE: usize = 10;
    let (slow, publisher) = (bench.node().await, bench.node().await);
    let queue = bench.channels().harvestmon();
    let mut subscription = slow.subscribe(&queue).await.unwrap();
    tell(publisher.as_ref(), &queue, (0..BUFFER + MORE).map(|n| n.to_string())).await;
    until("all have come", || async { subscription.dropped() as usize == MORE }).await;
    let newest: Vec<String> = (MORE..BUFFER + MORE).map(|n| n.to_string()).collect();
    assert_eq!(hear(&mut subscription, BUFFER).await, newest);
}

pub(super) async fn the_longest_channel_name_works(bench: &Bench) {
    let node = bench.node().await;
    let bare = bench.channels().all_ba("x").unwrap().name().len() - 1;
    // Two topics and two queues that differ in the last letter only.
    let long = |last: &str| format!("{}{last}", "r".repeat(NAME_BYTES_MAX - bare - 1));
    let channels = bench.channels();
    let topics = [channels.all_ba(&long("a")).unwrap(), channels.all_ba(&long("b")).unwrap()];
    let queues = [channels.any_ba(&long("a")).unwrap(), channels.any_ba(&long("b")).unwrap()];
    assert_eq!(topics[0].name().len(), NAME_BYTES_MAX);
    for [one, other] in [topics, queues] {
        let mut subscription = node.subscribe(&one).await.unwrap();
        tell(node.as_ref(), &other, ["other".to_owned()]).await;
        tell(node.as_ref(), &one, ["one".to_owned()]).await;
        assert_eq!(hear(&mut subscription, 1).await, ["one"]);
    }
}

pub(super) async fn shutdown_ends_the_subscriptions(bench: &Bench) {
    let node = bench.node().await;
    let mut subscription = node.subscribe(&bench.channels().all_nodes()).await.unwrap();
    bench.trigger.pull();
    assert_eq!(subscription.recv().await, None);
    let mut late = node.subscribe(&bench.channels().all_nodes()).await.unwrap();
    assert_eq!(late.recv().await, None);
}

pub(super) async fn the_last_handle_ends_the_subscriptions(bench: &Bench) {
    let node = bench.open(&bench.settings).await;
    let mut subscription = node.subscribe(&bench.channels().the_cr("THREE").unwrap()).await.unwrap();
    drop(node);
    assert_eq!(subscription.recv().await, None);
}

pub(super) async fn nothing_waits_for_ever_after_the_end(bench: &Bench) {
    let node = bench.node().await;
    let channel = bench.channels().the_repos();
    let mut subscription = node.subscribe(&channel).await.unwrap();
    bench.trigger.pull();
    assert_eq!(subscription.recv().await, None);
    // Whether the server still takes it does not matter; that somebody waits for it would.
    let acts = async {
        let _ = node.publish(&channel, &message("late")).await;
        let _ = node.subscribe(&channel).await;
        let _ = node.state();
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), acts).await.expect("both return");
}
