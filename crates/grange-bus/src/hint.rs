//! From a message to a worker that wakes.

use grange_base::worker::Hint;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bus::{Bus, State};
use crate::channel::Channel;
use crate::error::Error;
use crate::subscription::Subscription;

/// Wakes a worker as long as it is held.
#[derive(Debug)]
#[must_use = "the worker is only woken while this is held"]
pub struct Waker(JoinHandle<()>);

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Has every message on the channel wake the worker that holds `hint`. What the message says does not matter: the
/// worker looks at its rows. It is also woken once after each outage, for what may have been missed.
pub async fn wake(bus: &dyn Bus, channel: &Channel, hint: &Hint) -> Result<Waker, Error> {
    let states = bus.states();
    let subscription = bus.subscribe(channel).await?;
    Ok(Waker(tokio::spawn(carry(subscription, states, hint.clone()))))
}

async fn carry(mut subscription: Subscription, mut states: watch::Receiver<State>, hint: Hint) {
    loop {
        tokio::select! {
            message = subscription.recv() => match message {
                Some(_) => hint.wake(),
                None => return,
            },
            back = reconnected(&mut states) => {
                if !back {
                    return;
                }
                hint.wake();
            }
        }
    }
}

/// True at the next change to connected, false when there is no bus any more.
async fn reconnected(states: &mut watch::Receiver<State>) -> bool {
    loop {
        if states.changed().await.is_err() {
            return false;
        }
        if *states.borrow_and_update() == State::Connected {
            return true;
        }
    }
}

#[cfg(test)]
#[path = "hint_tests.rs"]
mod tests;
