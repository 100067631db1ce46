//! The bus within one process: what `grange up` uses on one machine.

use std::sync::Arc;

use async_trait::async_trait;
use grange_base::{Shutdown, Trigger};
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
    registry: Arc<Registry>,
    buffer: usize,
    state: watch::Sender<State>,
    /// Ends the task that waits for the shutdown.
    end: Trigger,
}

impl Local {
    /// A bus that lives as long as it is held, with the buffer of the default settings.
    pub fn new() -> Self {
        Self {
            registry: Arc::default(),
            buffer: Settings::default().buffer(),
            state: watch::Sender::new(State::Connected),
            end: Trigger::new(),
        }
    }

    /// A bus whose subscriptions also end with `shutdown`, as they do on a bus with a server.
    pub(crate) fn until(shutdown: &Shutdown, buffer: usize) -> Self {
        let mut bus = Self::new();
        bus.buffer = buffer;
        bus.end = Trigger::below(shutdown);
        let (registry, ended) = (Arc::clone(&bus.registry), bus.end.listener());
        tokio::spawn(async move {
            ended.wait().await;
            registry.close();
        });
        bus
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.end.pull();
        self.registry.close();
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
