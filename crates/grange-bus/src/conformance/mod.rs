//! One suite for every backend. A case is a sentence about the port; the macro below runs each on all of them.

use std::future::{Ready, ready};
use std::sync::Arc;

use grange_base::{Clock, Trigger};
use grange_testkit::TestDatabase;
use jiff::Timestamp;

use crate::bus::Bus;
use crate::channel::Channel;
use crate::channels::Channels;
use crate::open::open;
use crate::settings::Settings;
use crate::subscription::Subscription;
use crate::wire::Message;

mod delivery;
mod limits;
mod nats_outage;
mod postgres_outage;
mod start;

/// Small, so that a slow listener is quickly found out; the cases that are not about it stay below.
const BUFFER: usize = 256;

/// A server, or none, and an environment that no other test has.
struct Bench {
    settings: Settings,
    database: Option<TestDatabase>,
    /// In one process there is one bus, so every "node" gets this one.
    only: Option<Arc<dyn Bus>>,
    trigger: Trigger,
}

impl Bench {
    fn with_url(url: &str) -> Self {
        let environment = format!("T{}", uuid::Uuid::new_v4().simple());
        let settings =
            Settings { url: url.to_owned(), environment, buffer_messages: BUFFER, ..Settings::default() };
        Self { settings, database: None, only: None, trigger: Trigger::new() }
    }

    async fn local() -> Option<Self> {
        let mut bench = Self::with_url("local:");
        bench.only = Some(bench.node().await);
        Some(bench)
    }

    async fn postgres() -> Option<Self> {
        let database = TestDatabase::create().await?;
        Some(Self { database: Some(database), ..Self::with_url("postgres:") })
    }

    fn nats() -> Ready<Option<Self>> {
        ready(grange_testkit::nats::shared_url().map(|url| Self::with_url(&url)))
    }

    /// A bus as one more node of the installation would open it.
    async fn node(&self) -> Arc<dyn Bus> {
        match &self.only {
            Some(bus) => Arc::clone(bus),
            None => self.open(&self.settings).await,
        }
    }

    async fn open(&self, settings: &Settings) -> Arc<dyn Bus> {
        let database_url = self.database.as_ref().map(|database| database.url.as_str());
        open(settings, database_url, &Clock::system(), &self.trigger.listener()).await.unwrap()
    }

    fn channels(&self) -> Channels {
        self.settings.channels().unwrap()
    }
}

fn message(subject: impl Into<String>) -> Message {
    Message::new(Timestamp::UNIX_EPOCH, "test", "hint", subject)
}

/// Publishes each as a message with that subject.
async fn tell(bus: &dyn Bus, channel: &Channel, subjects: impl IntoIterator<Item = String>) {
    for subject in subjects {
        bus.publish(channel, &message(subject)).await.unwrap();
    }
}

/// Waits for so many messages and gives their subjects.
async fn hear(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut subjects = Vec::new();
    for _ in 0..count {
        let next = tokio::time::timeout(std::time::Duration::from_mins(1), subscription.recv());
        let message = next.await.expect("a message comes within a minute").expect("the bus is open");
        subjects.push(message.subject);
    }
    subjects
}

macro_rules! on_every_backend {
    ($($file:ident { $($case:ident)* })*) => {
        on_every_backend! { @ local $($file { $($case)* })* }
        on_every_backend! { @ postgres $($file { $($case)* })* }
        on_every_backend! { @ nats $($file { $($case)* })* }
    };
    (@ $backend:ident $($file:ident { $($case:ident)* })*) => {
        mod $backend {
            $($(
                #[tokio::test]
                async fn $case() {
                    if let Some(bench) = super::Bench::$backend().await {
                        super::$file::$case(&bench).await;
                    }
                }
            )*)*
        }
    };
}

on_every_backend! {
    delivery {
        each_message_of_a_queue_is_taken_by_exactly_one_listener
        each_listener_of_a_topic_gets_a_copy
        what_arrives_is_what_was_sent
        channels_and_environments_do_not_hear_each_other
        a_listener_that_went_takes_nothing
        a_queue_without_listeners_keeps_nothing
        several_listeners_in_one_process_count_each_for_themselves
        what_is_published_after_subscribing_is_heard_from_the_first_message_on
        a_wait_that_is_given_up_loses_no_message
    }
    limits {
        a_message_too_large_is_refused_and_the_largest_travels
        a_slow_listener_loses_the_oldest_and_can_tell
        the_longest_channel_name_works
        shutdown_ends_the_subscriptions
        the_last_handle_ends_the_subscriptions
        nothing_waits_for_ever_after_the_end
    }
}
