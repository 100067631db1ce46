//! When to try again. The policy is a pure function of the attempt; the loop around it is thin.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use crate::clock::Clock;
use crate::shutdown::Shutdown;

/// What an error says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Trying again gives the same answer.
    No,
    /// Trying again soon may help.
    Soon,
    /// The other side named a time to wait.
    After(Duration),
}

/// Exponential back-off with a bound: `first × 2^(attempt-1)`, at most `most`, at most `attempts` tries.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    pub first: Duration,
    pub most: Duration,
    /// Tries in all, the first included; 0 means for ever.
    pub attempts: u32,
}

impl RetryPolicy {
    /// For connections to services that restart: for ever, up to 30 s apart.
    pub const RECONNECT: Self =
        Self { first: Duration::from_millis(200), most: Duration::from_secs(30), attempts: 0 };

    /// The wait after `attempt` (counted from 1) failed, or `None` when that was the last one.
    pub fn wait(&self, attempt: u32, answer: Retry) -> Option<Duration> {
        if answer == Retry::No || (self.attempts != 0 && attempt >= self.attempts) {
            return None;
        }
        let doubled = self.first.saturating_mul(1_u32 << attempt.saturating_sub(1).min(31)).min(self.most);
        match answer {
            Retry::After(asked) => Some(asked.max(doubled)),
            _ => Some(doubled),
        }
    }

    /// Runs `act` until it succeeds, its error says no, the attempts are used up or shutdown is requested.
    /// Each failed try is logged with `what` was being done.
    pub async fn run<T, E, F>(
        &self,
        clock: &Clock,
        shutdown: &Shutdown,
        what: &str,
        retry: impl Fn(&E) -> Retry,
        mut act: impl FnMut() -> F,
    ) -> Result<T, E>
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let error = match act().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let Some(wait) = self.wait(attempt, retry(&error)) else { return Err(error) };
            tracing::warn!(attempt, wait_ms = wait.as_millis() as u64, %error, "{what} failed, trying again");
            if shutdown.or(clock.sleep(jittered(wait))).await.is_none() {
                return Err(error);
            }
        }
    }
}

/// Spreads waits over ±10 %, so that a fleet that failed together does not come back together.
pub fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.9 + 0.2 * rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_end() {
        let policy = RetryPolicy { first: Duration::from_secs(1), most: Duration::from_secs(5), attempts: 5 };
        let waits: Vec<_> = (1..=5).map(|n| policy.wait(n, Retry::Soon).map(|w| w.as_secs())).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(4), Some(5), None]);
        assert_eq!(policy.wait(1, Retry::No), None);
        assert_eq!(policy.wait(1, Retry::After(Duration::from_secs(9))), Some(Duration::from_secs(9)));
        assert_eq!(policy.wait(3, Retry::After(Duration::ZERO)), Some(Duration::from_secs(4)));
    }

    #[test]
    fn for_ever_never_overflows() {
        assert_eq!(RetryPolicy::RECONNECT.wait(u32::MAX, Retry::Soon), Some(Duration::from_secs(30)));
    }

    #[tokio::test]
    async fn shutdown_ends_the_waiting() {
        let (clock, _hand) = Clock::test(jiff::Timestamp::UNIX_EPOCH);
        let trigger = crate::shutdown::Trigger::new();
        trigger.pull();
        let mut tries = 0;
        let result: Result<(), &str> = RetryPolicy::RECONNECT
            .run(
                &clock,
                &trigger.listener(),
                "connecting",
                |_| Retry::Soon,
                || {
                    tries += 1;
                    async { Err("refused") }
                },
            )
            .await;
        assert_eq!((result, tries), (Err("refused"), 1));
    }
}
