//! Carries hints and events between Grange's roles: in one process, over PostgreSQL NOTIFY, or over NATS.
//!
//! What holds here:
//!
//! - **Rows are the truth, messages are hints.** A message may be lost, doubled or reordered, and the system is
//!   slower, never wrong. So nothing here is stored, acknowledged or redelivered; whoever must not miss a thing
//!   reads the row. The [`Deaf`] bus exists to prove that of the rest of Grange.
//! - **Every channel name is made in [`channels`]**, after the documents' convention, and read back by
//!   [`Channel::parse`]. No other code joins name parts.
//! - **Two kinds:** of a queue's listeners one takes each message, of a topic's listeners each gets a copy.
//! - **Nothing waits for ever.** Publishing gives up after `bus.publish_timeout`, a slow listener loses its oldest
//!   messages (counted), a broken connection is made again with back-off while subscriptions stay what they were.
//!
//! What it must never know: what a job, a file or a replica is. Bodies are opaque JSON; SQL here is only what
//! NOTIFY needs, with no table of its own.

pub mod announce;
pub mod bus;
pub mod channel;
pub mod channels;
pub mod error;
pub mod hint;
pub mod settings;
pub mod subscription;
pub mod wire;

mod address;
mod deaf;
mod local;
mod meter;
mod nats;
mod open;
mod part;
mod postgres;
mod registry;

#[cfg(test)]
mod conformance;

pub use announce::Announcer;
pub use bus::{Bus, State};
pub use channel::{Channel, Convention, Instance, Kind};
pub use channels::Channels;
pub use deaf::Deaf;
pub use error::Error;
pub use hint::{Waker, wake};
pub use local::Local;
pub use open::open;
pub use settings::Settings;
pub use subscription::Subscription;
pub use wire::Message;
