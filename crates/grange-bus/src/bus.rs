//! The port: what every backend does, and nothing it may do beyond.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::channel::Channel;
use crate::error::Error;
use crate::subscription::Subscription;
use crate::wire::Message;

/// Whether messages can travel just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Connected,
    /// The connection was lost at this time and is being made again. Until then nothing is heard and publishing
    /// fails at once; work goes on by the workers' intervals.
    Reconnecting {
        since: Timestamp,
    },
}

/// Carries messages. Held as `Arc<dyn Bus>`; dropping the last handle ends its subscriptions.
#[async_trait]
pub trait Bus: Debug + Send + Sync {
    /// After `Ok` the message was handed to the server (or, in one process, to the listeners). That is no promise
    /// that anyone hears it: a queue without a listener keeps nothing.
    ///
    /// Returns within `bus.publish_timeout`, at once while disconnected. The error is counted and may be ignored:
    /// the row that the message speaks of is already written.
    async fn publish(&self, channel: &Channel, message: &Message) -> Result<(), Error>;

    /// After `Ok` every message published on the channel from now on is heard, from whatever process, as long as
    /// the connection holds. While disconnected the subscription starts when the connection is back.
    ///
    /// A listener on a queue takes its share whether or not it has time for it. Who cannot take work for long
    /// drops its subscription meanwhile, so that the hint goes to another.
    async fn subscribe(&self, channel: &Channel) -> Result<Subscription, Error>;

    /// The state now and every later one.
    fn states(&self) -> watch::Receiver<State>;

    /// Where this bus runs, for logs and the status page; passwords are left out.
    fn place(&self) -> &str;

    fn state(&self) -> State {
        *self.states().borrow()
    }
}
