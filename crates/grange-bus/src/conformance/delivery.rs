//! Who hears what.

use std::collections::HashMap;

use grange_testkit::until;
use serde_json::json;

use super::{Bench, hear, message, tell};
use crate::channels::Channels;
use crate::subscription::Subscription;

pub(super) async fn each_message_of_a_queue_is_taken_by_exactly_one_listener(bench: &Bench) {
    const LISTENERS: usize = 4;
    const MESSAGES: usize = 200;
    let (queue, topic) = (bench.channels().the_sched(), bench.channels().all_nodes());
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let node = bench.node().await;
        let taking = node.subscribe(&queue).await.unwrap();
        let ending = node.subscribe(&topic).await.unwrap();
        listeners.push((node, taking, ending));
    }
    let publisher = bench.node().await;
    tell(publisher.as_ref(), &queue, (0..MESSAGES).map(|n| n.to_string())).await;
    until("all are taken", || async {
        listeners.iter().map(|(_, taking, _)| taking.waiting()).sum::<usize>() >= MESSAGES
    })
    .await;
    // Said after everything else: who heard this has heard all before it, so nothing is still on its way.
    tell(publisher.as_ref(), &topic, ["end".to_owned()]).await;
    let mut times_taken: HashMap<String, usize> = HashMap::new();
    let mut shares = Vec::new();
    for (_, taking, ending) in &mut listeners {
        hear(ending, 1).await;
        let share = taking.waiting();
        shares.push(share);
        for subject in hear(taking, share).await {
            *times_taken.entry(subject).or_default() += 1;
        }
    }
    assert_eq!(times_taken.len(), MESSAGES, "none is lost");
    assert!(times_taken.values().all(|times| *times == 1), "none is doubled: {times_taken:?}");
    // 200 draws out of 4 that miss one of them: 4 × 0.75^200, about 1e-24.
    assert!(shares.iter().all(|share| *share > 0), "each listener has a share: {shares:?}");
}

pub(super) async fn each_listener_of_a_topic_gets_a_copy(bench: &Bench) {
    let topic = bench.channels().all_ba("TWO").unwrap();
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let node = bench.node().await;
        let subscription = node.subscribe(&topic).await.unwrap();
        listeners.push((node, subscription));
    }
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    tell(bench.node().await.as_ref(), &topic, expected.clone()).await;
    for (_, subscription) in &mut listeners {
        assert_eq!(hear(subscription, 50).await, expected, "one sender is heard in its order");
        assert_eq!((subscription.waiting(), subscription.dropped()), (0, 0));
    }
}

pub(super) async fn what_arrives_is_what_was_sent(bench: &Bench) {
    let (one, other) = (bench.node().await, bench.node().await);
    let mut subscription = one.subscribe(&bench.channels().the_repos()).await.unwrap();
    let sent = message("file/æøå \"quoted\" \\ \u{0}\n")
        .with_body(json!({ "bytes": 1_u64 << 40, "list": [null, "€"] }));
    other.publish(&bench.channels().the_repos(), &sent).await.unwrap();
    assert_eq!(subscription.recv().await, Some(sent));
}

pub(super) async fn channels_and_environments_do_not_hear_each_other(bench: &Bench) {
    let node = bench.node().await;
    let here = bench.channels();
    let elsewhere = Channels::new("ELSEWHERE").unwrap();
    let listened = [
        here.the_bamon("ONE").unwrap(),
        here.any_ba("ONE").unwrap(),
        here.all_ba("ONE").unwrap(),
        here.job_partial("FOCUSED").unwrap(),
    ];
    let others = [
        here.the_bamon("TWO").unwrap(),
        here.any_ba("TWO").unwrap(),
        here.all_ba("TWO").unwrap(),
        here.job_snapshot("FOCUSED").unwrap(),
        here.job_partial("OTHER").unwrap(),
        elsewhere.the_bamon("ONE").unwrap(),
        elsewhere.all_ba("ONE").unwrap(),
    ];
    let mut subscriptions = Vec::new();
    for channel in &listened {
        subscriptions.push(node.subscribe(channel).await.unwrap());
    }
    let publisher = bench.node().await;
    for channel in &others {
        tell(publisher.as_ref(), channel, ["not for you".to_owned()]).await;
    }
    for (channel, subscription) in listened.iter().zip(&mut subscriptions) {
        tell(publisher.as_ref(), channel, [channel.to_string()]).await;
        assert_eq!(hear(subscription, 1).await, [channel.to_string()]);
    }
    assert!(subscriptions.iter().all(|subscription| subscription.waiting() == 0));
}

pub(super) async fn a_listener_that_went_takes_nothing(bench: &Bench) {
    let (one, other) = (bench.node().await, bench.node().await);
    let queue = bench.channels().index_server();
    let gone = one.subscribe(&queue).await.unwrap();
    let stays = other.subscribe(&queue).await.unwrap();
    drop(gone);
    let came = || stays.waiting() as u64 + stays.dropped();
    // Going takes a moment to reach a server. It has when a long run of messages all come here.
    until("the server knows who went", || async {
        let before = came();
        tell(other.as_ref(), &queue, (0..32).map(|n| n.to_string())).await;
        // Behind the others on the same way, so that they have had the time to come.
        let mut echo = other.subscribe(&bench.channels().all_nodes()).await.unwrap();
        tell(other.as_ref(), &bench.channels().all_nodes(), ["echo".to_owned()]).await;
        hear(&mut echo, 1).await;
        came() - before == 32
    })
    .await;
}

pub(super) async fn a_queue_without_listeners_keeps_nothing(bench: &Bench) {
    let node = bench.node().await;
    let queue = bench.channels().any_oai();
    tell(node.as_ref(), &queue, ["early".to_owned()]).await;
    let mut subscription = node.subscribe(&queue).await.unwrap();
    tell(node.as_ref(), &queue, ["in time".to_owned()]).await;
    assert_eq!(hear(&mut subscription, 1).await, ["in time"]);
}

pub(super) async fn several_listeners_in_one_process_count_each_for_themselves(bench: &Bench) {
    let node = bench.node().await;
    let (queue, topic) = (bench.channels().any_swap(), bench.channels().all_admin());
    let takers = [node.subscribe(&queue).await.unwrap(), node.subscribe(&queue).await.unwrap()];
    let mut hearers = [node.subscribe(&topic).await.unwrap(), node.subscribe(&topic).await.unwrap()];
    tell(node.as_ref(), &queue, (0..40).map(|n| n.to_string())).await;
    tell(node.as_ref(), &topic, ["end".to_owned()]).await;
    for hearer in &mut hearers {
        assert_eq!(hear(hearer, 1).await, ["end"]);
        assert_eq!(hearer.waiting(), 0);
    }
    until("all are taken once", || async { takers.iter().map(Subscription::waiting).sum::<usize>() == 40 })
        .await;
    assert!(takers.iter().all(|taker| taker.waiting() > 0));
}

/// From another node, as soon as the subscription was answered and not some time later.
pub(super) async fn what_is_published_after_subscribing_is_heard_from_the_first_message_on(bench: &Bench) {
    let (listener, publisher) = (bench.node().await, bench.node().await);
    for round in 0..20 {
        let name = format!("R{round}");
        for channel in [bench.channels().any_ba(&name).unwrap(), bench.channels().all_ba(&name).unwrap()] {
            let mut subscription = listener.subscribe(&channel).await.unwrap();
            tell(publisher.as_ref(), &channel, ["first".to_owned(), "second".to_owned()]).await;
            assert_eq!(hear(&mut subscription, 2).await, ["first", "second"], "{channel}");
        }
    }
}

/// Listeners wait beside other things, and give the wait up whenever one of those comes first.
pub(super) async fn a_wait_that_is_given_up_loses_no_message(bench: &Bench) {
    const MESSAGES: usize = 50;
    let (listener, publisher) = (bench.node().await, bench.node().await);
    let topic = bench.channels().all_replay();
    let mut subscription = listener.subscribe(&topic).await.unwrap();
    let expected: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    let telling = async {
        for subject in expected.clone() {
            tell(publisher.as_ref(), &topic, [subject]).await;
            // Within one process nothing else makes the sender pause.
            tokio::task::yield_now().await;
        }
    };
    let hearing = async {
        let (mut heard, mut given_up) = (Vec::new(), 0);
        while heard.len() < MESSAGES {
            tokio::select! {
                biased;
                message = subscription.recv() => heard.push(message.expect("the bus is open").subject),
                () = tokio::task::yield_now() => given_up += 1,
            }
        }
        (heard, given_up)
    };
    let ((), (heard, given_up)) = tokio::join!(telling, hearing);
    assert_eq!(heard, expected);
    assert!(given_up > 0, "no wait was given up");
}
