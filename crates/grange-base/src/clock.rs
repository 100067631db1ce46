//! Time is handed in, never taken: whoever decides by the clock holds a [`Clock`].
//!
//! The system clock is for production; the test clock stands still until the test moves it, so that a
//! simulated year takes milliseconds and no test sleeps.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// A source of "now" and of waiting. Cheap to clone; clones of a test clock move together.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Test(Arc<watch::Sender<Timestamp>>),
}

/// The hand that moves a test clock.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<watch::Sender<Timestamp>>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `start` until its [`TestClock`] moves it.
    pub fn test(start: Timestamp) -> (Self, TestClock) {
        let sender = Arc::new(watch::Sender::new(start));
        (Self(Source::Test(Arc::clone(&sender))), TestClock(sender))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Test(sender) => *sender.borrow(),
        }
    }

    /// Waits until `period` has passed on this clock.
    pub async fn sleep(&self, period: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(period).await,
            Source::Test(sender) => {
                let mut receiver = sender.subscribe();
                let until = add(*receiver.borrow(), period);
                // The sender lives in `self`, so the wait can only end by reaching the time.
                let _ = receiver.wait_for(|now| *now >= until).await;
            }
        }
    }
}

impl TestClock {
    /// Moves the clock forward and wakes whoever waited for a time now past.
    pub fn advance(&self, period: Duration) {
        self.0.send_modify(|now| *now = add(*now, period));
    }

    /// Sets the clock, also backwards: machines do that too.
    pub fn set(&self, now: Timestamp) {
        self.0.send_replace(now);
    }

    /// How many sleeps are waiting on this clock now: a test can advance once the code under test is asleep.
    pub fn sleepers(&self) -> usize {
        self.0.receiver_count()
    }
}

fn add(from: Timestamp, period: Duration) -> Timestamp {
    from.checked_add(period).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let (clock, hand) = Clock::test(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(60)).await }
        });
        while hand.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        hand.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        hand.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now().as_second(), 60);
    }

    #[test]
    fn the_end_of_time_is_reached_and_not_passed() {
        let (clock, hand) = Clock::test(Timestamp::MAX);
        hand.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
