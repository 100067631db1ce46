//! The listener's end: a stream with a bounded buffer. When the listener is slow the oldest message goes, because
//! the newest hint is the one worth having, and each loss is counted.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::{Stream, StreamExt};

use crate::channel::Channel;
use crate::meter;
use crate::wire::Message;

/// Messages of one channel, for one listener. Ends when the bus is closed; dropping it ends the listening.
#[must_use = "a subscription that is dropped hears nothing"]
pub struct Subscription {
    shared: Arc<Shared>,
    on_end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

/// The backend's end of a [`Subscription`]; dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    channel: Channel,
    capacity: usize,
    state: Mutex<Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    messages: VecDeque<Message>,
    dropped: u64,
    waker: Option<Waker>,
    /// No more will come.
    closed: bool,
    /// Nobody listens any more.
    orphaned: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // Every change below is complete in itself, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both ends of a buffer for at most `capacity` messages.
pub(crate) fn pair(channel: &Channel, capacity: usize) -> (Feed, Subscription) {
    let shared = Arc::new(Shared { channel: channel.clone(), capacity, state: Mutex::default() });
    (Feed { shared: Arc::clone(&shared) }, Subscription { shared, on_end: None })
}

impl Feed {
    /// Never waits. False when nobody listens any more.
    pub(crate) fn push(&self, message: Message) -> bool {
        let waker = {
            let mut buffer = self.shared.lock();
            if buffer.orphaned {
                return false;
            }
            if buffer.messages.len() >= self.shared.capacity {
                buffer.messages.pop_front();
                buffer.dropped += 1;
                meter::dropped(&self.shared.channel);
            }
            buffer.messages.push_back(message);
            buffer.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    pub(crate) fn orphaned(&self) -> bool {
        self.shared.lock().orphaned
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let waker = {
            let mut buffer = self.shared.lock();
            buffer.closed = true;
            buffer.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Subscription {
    /// The next message; `None` once the bus is closed. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Message> {
        self.next().await
    }

    /// How many messages this listener was too slow for.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// How many wait for it now.
    pub fn waiting(&self) -> usize {
        self.shared.lock().messages.len()
    }

    pub fn channel(&self) -> &Channel {
        &self.shared.channel
    }

    /// Has `act` run when the listener goes.
    pub(crate) fn on_end(mut self, act: impl FnOnce() + Send + Sync + 'static) -> Self {
        self.on_end = Some(Box::new(act));
        self
    }
}

impl Stream for Subscription {
    type Item = Message;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        let mut buffer = self.shared.lock();
        if let Some(message) = buffer.messages.pop_front() {
            return Poll::Ready(Some(message));
        }
        if buffer.closed {
            return Poll::Ready(None);
        }
        buffer.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        {
            let mut buffer = self.shared.lock();
            buffer.orphaned = true;
            buffer.messages.clear();
        }
        if let Some(act) = self.on_end.take() {
            act();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("channel", &self.shared.channel)
            .field("waiting", &self.waiting())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::channels::Channels;

    fn message(subject: &str) -> Message {
        Message::new(Timestamp::UNIX_EPOCH, "test", "hint", subject)
    }

    #[tokio::test]
    async fn the_oldest_go_first_and_are_counted() {
        let channel = Channels::new("TEST").unwrap().the_sched();
        let (feed, mut subscription) = pair(&channel, 2);
        for subject in ["a", "b", "c", "d"] {
            assert!(feed.push(message(subject)));
        }
        assert_eq!((subscription.dropped(), subscription.waiting()), (2, 2));
        drop(feed);
        let mut heard = Vec::new();
        while let Some(message) = subscription.recv().await {
            heard.push(message.subject);
        }
        assert_eq!(heard, ["c", "d"]);
    }

    #[tokio::test]
    async fn a_waiting_listener_is_woken_and_a_gone_one_noticed() {
        let channel = Channels::new("TEST").unwrap().the_sched();
        let (feed, mut subscription) = pair(&channel, 2);
        let listener = tokio::spawn(async move { subscription.recv().await.map(|m| m.subject) });
        tokio::task::yield_now().await;
        feed.push(message("a"));
        assert_eq!(listener.await.unwrap().as_deref(), Some("a"));
        assert!(feed.orphaned() && !feed.push(message("b")));
    }
}
