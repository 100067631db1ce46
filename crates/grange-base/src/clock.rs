//! Time is handed in, never taken: whoever decides by the clock holds a [`Clock`].
//!
//! The system clock is for production; the test clock stands still until the test moves it, so that a
//! simulated year takes milliseconds and no test sleeps. Nodes that share a database read its time instead of the
//! machine's (see [`Clock::following`]): several machines, one clock.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A source of "now" and of waiting. Cheap to clone; clones of a test clock move together.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Shifted(SignedDuration),
    Following(Arc<RwLock<Anchor>>),
    Test(Arc<watch::Sender<Timestamp>>),
}

/// A moment on this machine's monotonic clock, which nobody sets, and the leading clock's time at that moment.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Instant,
    time: Timestamp,
}

impl Anchor {
    fn now(self, at: Instant) -> Timestamp {
        match at.checked_duration_since(self.at) {
            Some(passed) => add(self.time, passed),
            None => self.time,
        }
    }
}

/// The hand that keeps a following clock at the time of its leader.
#[derive(Clone, Debug)]
pub struct LeadingTime(Arc<RwLock<Anchor>>);

impl LeadingTime {
    /// The leader showed `time` at the moment `at`, give or take `uncertainty`. Differences that the measurement
    /// itself may have made are left alone, so that time does not jitter.
    pub fn measured(&self, at: Instant, time: Timestamp, uncertainty: Duration) {
        let mut anchor = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if anchor.now(at).duration_since(time).unsigned_abs() > uncertainty {
            *anchor = Anchor { at, time };
        }
    }
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

    /// The machine's clock, wrong by `by`: for tests of machines whose clocks differ.
    pub fn shifted(by: SignedDuration) -> Self {
        Self(Source::Shifted(by))
    }

    /// A clock that shows the time of another one from `time` on, which it shows now. `None` for a test clock, which
    /// nobody but its test moves.
    pub fn following(&self, time: Timestamp) -> Option<(Self, LeadingTime)> {
        if let Source::Test(_) = self.0 {
            return None;
        }
        let anchor = Arc::new(RwLock::new(Anchor { at: Instant::now(), time }));
        Some((Self(Source::Following(Arc::clone(&anchor))), LeadingTime(anchor)))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Shifted(by) => Timestamp::now().checked_add(*by).unwrap_or(Timestamp::MAX),
            Source::Following(anchor) => {
                anchor.read().unwrap_or_else(PoisonError::into_inner).now(Instant::now())
            }
            Source::Test(sender) => *sender.borrow(),
        }
    }

    /// Waits until `period` has passed on this clock.
    pub async fn sleep(&self, period: Duration) {
        match &self.0 {
            Source::System | Source::Shifted(_) | Source::Following(_) => tokio::time::sleep(period).await,
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
    fn a_following_clock_shows_its_leaders_time_and_ignores_what_a_measurement_may_be_wrong_by() {
        let hour = SignedDuration::from_hours(1);
        let ahead = Clock::shifted(hour);
        let machine = Timestamp::now();
        assert!(ahead.now().duration_since(machine) >= hour);
        let leader = Timestamp::from_second(1_000_000).unwrap();
        let (clock, hand) = ahead.following(leader).unwrap();
        let shown = clock.now();
        assert!(shown >= leader && shown.duration_since(leader) < hour, "{shown}");
        let uncertainty = Duration::from_secs(60);
        hand.measured(Instant::now(), leader - Duration::from_secs(30), uncertainty);
        assert!(clock.now() >= shown, "half a minute is within the uncertainty");
        hand.measured(Instant::now(), leader + Duration::from_hours(9), uncertainty);
        assert!(clock.now() >= leader + Duration::from_hours(9));
        let (test, _) = Clock::test(leader);
        assert!(test.following(leader).is_none());
    }

    #[test]
    fn the_end_of_time_is_reached_and_not_passed() {
        let (clock, hand) = Clock::test(Timestamp::MAX);
        hand.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
