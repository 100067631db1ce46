//! What the operator can count. Labels are rows of the channel table, never machines or ids, so their number is
//! bounded.

use grange_base::Chain;
use metrics::{counter, gauge};

use crate::bus::State;
use crate::channel::Channel;
use crate::error::Error;

/// Counts the outcome of publishing and passes it on.
pub(crate) fn published(channel: &Channel, outcome: Result<(), Error>) -> Result<(), Error> {
    let word = outcome.as_ref().map_or_else(Error::code, |()| "ok");
    counter!("grange_bus_published_total", "channel" => channel.prefix(), "outcome" => word).increment(1);
    outcome
}

pub(crate) fn received(channel: &Channel) {
    counter!("grange_bus_received_total", "channel" => channel.prefix()).increment(1);
}

/// A listener was too slow.
pub(crate) fn dropped(channel: &Channel) {
    counter!("grange_bus_dropped_total", "channel" => channel.prefix()).increment(1);
}

/// Something came that is no message of ours, or of a version to come.
pub(crate) fn unreadable(place: &str, error: &Error) {
    counter!("grange_bus_unreadable_total", "reason" => error.code()).increment(1);
    tracing::warn!(bus = place, error = %Chain(error), "message skipped");
}

pub(crate) fn state(place: &str, state: State) {
    match state {
        State::Connected => {
            gauge!("grange_bus_connected").set(1.0);
            tracing::info!(bus = place, "bus connected");
        }
        State::Reconnecting { .. } => {
            gauge!("grange_bus_connected").set(0.0);
            counter!("grange_bus_disconnects_total").increment(1);
        }
    }
}
