//! The bus on which nothing is ever heard, to prove that Grange needs no message to be right.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::bus::{Bus, State};
use crate::channel::Channel;
use crate::error::Error;
use crate::subscription::{Subscription, pair};
use crate::wire::Message;

/// Takes every message and loses it. Says that it is connected: the worst a bus can do.
#[derive(Debug)]
pub struct Deaf(watch::Sender<State>);

impl Deaf {
    pub fn new() -> Self {
        Self(watch::Sender::new(State::Connected))
    }
}

impl Default for Deaf {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Bus for Deaf {
    async fn publish(&self, _: &Channel, message: &Message) -> Result<(), Error> {
        message.encode().map(|_| ())
    }

    async fn subscribe(&self, channel: &Channel) -> Result<Subscription, Error> {
        let (feed, subscription) = pair(channel, 1);
        // Kept with the listener, so that the stream stays silent and does not end.
        Ok(subscription.on_end(move || drop(feed)))
    }

    fn states(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }

    fn place(&self) -> &'static str {
        "deaf:"
    }
}
