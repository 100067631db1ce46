//! The sender's end, as a role holds it: it says what happened and never fails, because what it says is a hint.

use std::sync::Arc;
use std::time::Duration;

use grange_base::{Chain, Clock, Retry, RetryPolicy};
use serde_json::json;

use crate::bus::Bus;
use crate::channel::Channel;
use crate::channels::Channels;
use crate::wire::Message;

/// The kind of the events on the channel ERROR.
pub const GIVEN_UP: &str = "given-up";

/// Bytes of a reason in an event. Enough for a whole error chain; the row keeps the rest.
const REASON_BYTES_MAX: usize = 2_000;

/// Bytes of the name of what failed. Ours are ids of a few dozen; foreign URLs can be long.
const WHAT_BYTES_MAX: usize = 500;

/// Cheap to clone; every role has one that carries its own name.
#[derive(Clone, Debug)]
pub struct Announcer {
    bus: Arc<dyn Bus>,
    channels: Channels,
    clock: Clock,
    from: Arc<str>,
}

impl Announcer {
    /// `from` names node and role: `node1/scheduler`.
    pub fn new(bus: Arc<dyn Bus>, channels: Channels, clock: Clock, from: &str) -> Self {
        Self { bus, channels, clock, from: from.into() }
    }

    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    pub fn bus(&self) -> &dyn Bus {
        self.bus.as_ref()
    }

    /// Tells the channel that something happened to `subject`. Call it after the row is written.
    pub async fn hint(&self, channel: &Channel, kind: &str, subject: &str) {
        self.announce(channel, Message::new(self.clock.now(), &*self.from, kind, subject)).await;
    }

    /// Tells with details, for events that a page shows as they come.
    pub async fn event(&self, channel: &Channel, kind: &str, subject: &str, body: serde_json::Value) {
        self.announce(channel, Message::new(self.clock.now(), &*self.from, kind, subject).with_body(body))
            .await;
    }

    /// Says on the channel ERROR that work on `what` was given up, and why.
    pub async fn report_error(&self, what: &str, reason: &str) {
        tracing::error!(what, reason, "given up");
        let body = json!({ "reason": shortened(reason, REASON_BYTES_MAX) });
        self.event(&self.channels.error(), GIVEN_UP, &shortened(what, WHAT_BYTES_MAX), body).await;
    }

    /// For handlers that failed: how long to wait before the next try, or `None` when that was the last, and then
    /// the failure has been reported. `failures` is what the caller counted on the row, this one included, so that
    /// the count survives a crash and is right however often a message came.
    pub async fn failed(
        &self,
        policy: &RetryPolicy,
        failures: u32,
        retry: Retry,
        what: &str,
        reason: &str,
    ) -> Option<Duration> {
        let wait = policy.wait(failures, retry);
        if wait.is_none() {
            self.report_error(what, reason).await;
        }
        wait
    }

    async fn announce(&self, channel: &Channel, message: Message) {
        if let Err(error) = self.bus.publish(channel, &message).await {
            // Counted by the bus, which also says aloud when it is disconnected; here only for the curious.
            tracing::debug!(%channel, kind = message.kind, error = %Chain(&error), "hint not sent");
        }
    }
}

/// At most so many bytes, and without control characters, which grow sixfold in JSON: so both limits together always
/// fit into a message.
fn shortened(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use grange_base::Clock;
    use jiff::Timestamp;

    use super::*;
    use crate::local::Local;

    fn announcer() -> Announcer {
        let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
        Announcer::new(Arc::new(Local::new()), Channels::new("TEST").unwrap(), clock, "node1/archiver")
    }

    #[tokio::test]
    async fn the_last_failure_is_reported_with_its_reason_and_the_ones_before_are_not() {
        let announcer = announcer();
        let mut errors = announcer.bus().subscribe(&announcer.channels().error()).await.unwrap();
        let policy = RetryPolicy { first: Duration::from_secs(1), most: Duration::from_secs(8), attempts: 3 };
        let mut waits = Vec::new();
        for failures in 1..=3 {
            waits.push(
                announcer.failed(&policy, failures, Retry::Soon, "file/7", "replica TWO is full").await,
            );
        }
        assert_eq!(waits, [Some(Duration::from_secs(1)), Some(Duration::from_secs(2)), None]);
        assert_eq!(errors.waiting(), 1);
        let event = errors.recv().await.unwrap();
        assert_eq!((event.kind.as_str(), event.subject.as_str()), (GIVEN_UP, "file/7"));
        assert_eq!((event.from.as_str(), event.at), ("node1/archiver", Timestamp::UNIX_EPOCH));
        assert_eq!(event.body, json!({ "reason": "replica TWO is full" }));
    }

    /// The worst text: every byte of it doubles or more in JSON.
    #[tokio::test]
    async fn a_reason_of_any_length_still_travels() {
        let announcer = announcer();
        let mut errors = announcer.bus().subscribe(&announcer.channels().error()).await.unwrap();
        for reason in ["ø".repeat(100_000), "\"".repeat(100_000), "\u{1}".repeat(100_000)] {
            announcer.report_error(&"\"".repeat(9_000), &reason).await;
            assert!(!errors.recv().await.unwrap().body["reason"].as_str().unwrap().is_empty());
        }
    }
}
