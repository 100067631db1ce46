//! A NATS server of the test's own is killed and started again.

use std::time::{Duration, Instant};

use grange_base::Period;
use grange_testkit::{NatsServer, TcpFault, until};

use super::{Bench, message};
use crate::bus::State;
use crate::settings::Settings;

#[tokio::test]
async fn subscriptions_survive_a_restart_and_publishing_meanwhile_fails_at_once() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let bench = Bench::with_url(&server.url());
    let (listener, publisher) = (bench.node().await, bench.node().await);
    let (queue, topic) = (bench.channels().the_sched(), bench.channels().all_nodes());
    let taking = listener.subscribe(&queue).await.unwrap();
    let hearing = listener.subscribe(&topic).await.unwrap();
    server.kill();
    until("both notice", || async {
        listener.state() != State::Connected && publisher.state() != State::Connected
    })
    .await;

    let start = Instant::now();
    for _ in 0..100 {
        let error = publisher.publish(&queue, &message("lost")).await.unwrap_err();
        assert_eq!(error.code(), "bus-disconnected");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "a hundred hints take {:?}", start.elapsed());
    let during = listener.subscribe(&bench.channels().all_admin()).await.unwrap();

    assert!(server.restart());
    for (channel, subscription) in
        [(&queue, &taking), (&topic, &hearing), (&bench.channels().all_admin(), &during)]
    {
        until("a message is heard again", || async {
            let _ = publisher.publish(channel, &message("back")).await;
            subscription.waiting() > 0
        })
        .await;
    }
    assert_eq!((listener.state(), publisher.state()), (State::Connected, State::Connected));
}

#[tokio::test]
async fn a_server_that_falls_silent_keeps_nobody_waiting_and_is_heard_again() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let wire = TcpFault::before(server.url().trim_start_matches("nats://")).await;
    let bench = Bench::with_url(&format!("nats://{}", wire.address()));
    let settings = Settings { publish_timeout: Period::from_millis(300), ..bench.settings.clone() };
    let (node, topic) = (bench.open(&settings).await, bench.channels().all_nodes());
    let subscription = node.subscribe(&topic).await.unwrap();
    wire.silence();
    // More than the buffers of two machines take: some of it waits for a server that reads nothing.
    let body = serde_json::json!("x".repeat(7_000));
    let publishing = async {
        for _ in 0..2_000 {
            if node.publish(&topic, &message("lost").with_body(body.clone())).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), publishing).await.expect("publishing gives up in time");
    wire.cut();
    wire.mend();
    until("a message is heard again", || async {
        let _ = node.publish(&topic, &message("back")).await;
        subscription.waiting() > 0
    })
    .await;
}
