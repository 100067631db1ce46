//! Who in this process listens to what, and the handing out: to each on a topic, to one in turn on a queue.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::channel::{Channel, Kind};
use crate::meter;
use crate::subscription::{Feed, Subscription, pair};
use crate::wire::Message;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    listeners: Mutex<HashMap<Channel, Listeners>>,
}

#[derive(Debug, Default)]
struct Listeners {
    feeds: Vec<Feed>,
    /// Whose turn it is on a queue.
    turn: usize,
}

impl Registry {
    pub(crate) fn add(&self, channel: &Channel, capacity: usize) -> Subscription {
        let (feed, subscription) = pair(channel, capacity);
        let mut listeners = self.lock();
        let here = listeners.entry(channel.clone()).or_default();
        here.feeds.retain(|feed| !feed.orphaned());
        here.feeds.push(feed);
        subscription
    }

    /// Hands the message out. False when nobody here listens.
    pub(crate) fn deliver(&self, channel: &Channel, message: Message) -> bool {
        let mut listeners = self.lock();
        let Some(here) = listeners.get_mut(channel) else {
            return false;
        };
        here.feeds.retain(|feed| !feed.orphaned());
        if here.feeds.is_empty() {
            listeners.remove(channel);
            return false;
        }
        meter::received(channel);
        match channel.kind() {
            Kind::Topic => here.feeds.iter().for_each(|feed| {
                feed.push(message.clone());
            }),
            Kind::Queue => {
                here.turn = (here.turn + 1) % here.feeds.len();
                // A listener that goes in this very moment takes the message with it. It is a hint.
                here.feeds[here.turn].push(message);
            }
        }
        true
    }

    /// Whether anyone here still listens to it.
    pub(crate) fn listens(&self, channel: &Channel) -> bool {
        self.lock()
            .get(channel)
            .is_some_and(|here| here.feeds.iter().any(|feed| !feed.orphaned()))
    }

    pub(crate) fn channels(&self) -> Vec<Channel> {
        let mut listeners = self.lock();
        listeners.retain(|_, here| {
            here.feeds.retain(|feed| !feed.orphaned());
            !here.feeds.is_empty()
        });
        listeners.keys().cloned().collect()
    }

    /// Ends every subscription.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Channel, Listeners>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
