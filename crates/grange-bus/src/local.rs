//! The bus within one process: what `grange up` uses on one machine.

use async_trait::async_trait;
use tokio::sync::watch;

use crate::bus::{Bus, State};
use crate::channel::Channel;
use crate::error::Error;
use crate::meter;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::subscription::Subscription;
use crate::wire::Message;

/// Hands messages straight to the listeners. Never disconnected.
#[derive(Debug)]
pub struct Local {
    registry: Registry,
    buffer: usize,
    state: watch::Sender<State>,
}

impl Local {
    /// A bus whose listeners keep as many messages as the default settings say.
    pub fn new() -> Self {
        Self::with_buffer(Settings::default().buffer())
    }

    pub(crate) fn with_buffer(buffer: usize) -> Self {
        Self {
            registry: Registry::default(),
            buffer,
            state: watch::Sender::new(State::Connected),
        }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Bus for Local {
    async fn publish(&self, channel: &Channel, message: &Message) -> Result<(), Error> {
        // Encoded only to refuse here what a cluster would refuse.
        let outcome = message.encode().map(|_| {
            self.registry.deliver(channel, message.clone());
        });
        meter::published(channel, outcome)
    }

    async fn subscribe(&self, channel: &Channel) -> Result<Subscription, Error> {
        Ok(self.registry.add(channel, self.buffer))
    }

    fn states(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn place(&self) -> &'static str {
        "local:"
    }
}
