//! PostgreSQL goes away and comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grange_base::telemetry::{render_metrics, start_metrics};
use grange_base::{Clock, Period, TestClock, Trigger};
use grange_testkit::{TcpFault, TestDatabase, until};
use jiff::Timestamp;
use url::Url;

use super::{Bench, hear, message, tell};
use crate::bus::{Bus, State};
use crate::channel::Channel;
use crate::open::open;
use crate::settings::Settings;
use crate::subscription::Subscription;

/// Publishes until it is heard: after an outage the first may fall into a connection that is not there any more.
async fn heard_again(publisher: &dyn Bus, channel: &Channel, subscription: &Subscription) {
    until("a message is heard again", || async {
        let _ = publisher.publish(channel, &message("back")).await;
        subscription.waiting() > 0
    })
    .await;
}

#[tokio::test]
async fn subscriptions_survive_cut_connections() {
    let Some(bench) = Bench::postgres().await else {
        return;
    };
    let (listener, publisher) = (bench.node().await, bench.node().await);
    let (queue, topic) = (bench.channels().the_sched(), bench.channels().all_nodes());
    let mut taking = listener.subscribe(&queue).await.unwrap();
    let mut hearing = listener.subscribe(&topic).await.unwrap();
    for _ in 0..2 {
        bench.database.as_ref().unwrap().cut_connections().await;
        heard_again(publisher.as_ref(), &queue, &taking).await;
        heard_again(publisher.as_ref(), &topic, &hearing).await;
        for subscription in [&mut taking, &mut hearing] {
            let waiting = subscription.waiting();
            hear(subscription, waiting).await;
        }
    }
    until("both are connected", || async {
        listener.state() == State::Connected && publisher.state() == State::Connected
    })
    .await;
}

/// A node behind a wire that can be cut, on a clock that the test moves.
struct Wired {
    wire: TcpFault,
    bus: Arc<dyn Bus>,
    hand: TestClock,
    settings: Settings,
    _trigger: Trigger,
    _database: TestDatabase,
}

/// `publish_timeout` must be long where a server is to answer on a busy machine.
async fn wired(publish_timeout: Period) -> Option<Wired> {
    let database = TestDatabase::create().await?;
    let mut url = Url::parse(&database.url).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let wire = TcpFault::before(&server).await;
    url.set_port(Some(wire.address().port())).unwrap();
    let settings = Settings {
        url: url.to_string(),
        connect_timeout: Period::from_secs(5),
        publish_timeout,
        ..Settings::default()
    };
    let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
    let trigger = Trigger::new();
    let bus = open(&settings, None, &clock, &trigger.listener()).await.unwrap();
    Some(Wired { wire, bus, hand, settings, _trigger: trigger, _database: database })
}

impl Wired {
    /// Moves the clock on until the bus is in the state wanted.
    async fn wait_for(&self, what: &str, wanted: impl Fn(State) -> bool) {
        until(what, || async {
            self.hand.advance(Duration::from_secs(1));
            wanted(self.bus.state())
        })
        .await;
    }
}

#[tokio::test]
async fn while_the_server_is_down_publishing_fails_at_once_and_listening_waits() {
    let Some(node) = wired(Period::from_secs(60)).await else { return };
    start_metrics();
    let channels = node.settings.channels().unwrap();
    let mut before = node.bus.subscribe(&channels.the_sched()).await.unwrap();
    node.wire.cut();
    node.wait_for("the loss is noticed", |state| state != State::Connected).await;
    assert!(matches!(node.bus.state(), State::Reconnecting { since } if since > Timestamp::UNIX_EPOCH));

    let start = Instant::now();
    for _ in 0..100 {
        let error = node.bus.publish(&channels.the_sched(), &message("lost")).await.unwrap_err();
        assert_eq!(error.code(), "bus-disconnected");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "a hundred hints take {:?}", start.elapsed());

    let counted = r#"grange_bus_published_total{channel="THE_SCHED",outcome="bus-disconnected"}"#;
    assert!(render_metrics().contains(counted), "{}", render_metrics());

    let mut during = node.bus.subscribe(&channels.all_nodes()).await.unwrap();
    node.wire.mend();
    node.wait_for("the connection is back", |state| state == State::Connected).await;
    tell(node.bus.as_ref(), &channels.the_sched(), ["queue".to_owned()]).await;
    tell(node.bus.as_ref(), &channels.all_nodes(), ["topic".to_owned()]).await;
    assert_eq!(hear(&mut before, 1).await, ["queue"]);
    assert_eq!(hear(&mut during, 1).await, ["topic"]);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_noticed_and_publishing_gives_up_in_time() {
    let Some(node) = wired(Period::from_millis(300)).await else { return };
    let channels = node.settings.channels().unwrap();
    let subscription = node.bus.subscribe(&channels.the_sched()).await.unwrap();
    node.wire.silence();
    let start = Instant::now();
    let error = node.bus.publish(&channels.the_sched(), &message("lost")).await.unwrap_err();
    assert_eq!(error.code(), "bus-timed-out");
    assert!(start.elapsed() < Duration::from_secs(5), "gave up after {:?}", start.elapsed());

    node.wait_for("the silence is noticed", |state| state != State::Connected).await;
    node.wire.mend();
    node.wait_for("the connection is back", |state| state == State::Connected).await;
    heard_again(node.bus.as_ref(), &channels.the_sched(), &subscription).await;
}
