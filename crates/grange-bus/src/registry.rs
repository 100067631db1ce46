//! Who in this process listens to what, and the handing out: to each on a topic, to one in turn on a queue.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::channel::{Channel, Kind};
use crate::meter;
use crate::subscription::{Feed, Subscription, pair};
use crate::wire::Message;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    listeners: HashMap<Channel, Listeners>,
    closed: bool,
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
        let mut inner = self.lock();
        // After the end the feed is dropped here, and the subscription has ended before it began.
        if !inner.closed {
            let here = inner.listeners.entry(channel.clone()).or_default();
            here.feeds.retain(|feed| !feed.orphaned());
            here.feeds.push(feed);
        }
        subscription
    }

    /// Hands the message out. False when nobody here listens.
    pub(crate) fn deliver(&self, channel: &Channel, message: Message) -> bool {
        let listeners = &mut self.lock().listeners;
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
        self.lock().listeners.get(channel).is_some_and(|here| here.feeds.iter().any(|feed| !feed.orphaned()))
    }

    pub(crate) fn channels(&self) -> Vec<Channel> {
        let listeners = &mut self.lock().listeners;
        listeners.retain(|_, here| {
            here.feeds.retain(|feed| !feed.orphaned());
            !here.feeds.is_empty()
        });
        listeners.keys().cloned().collect()
    }

    /// Ends every subscription, present and to come.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.listeners.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
