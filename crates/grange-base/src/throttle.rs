//! A bound on bytes (or things) per second: a token bucket that many tasks may share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;

/// Lets at most `per_second` units pass per second on average, with bursts of one second's worth.
#[derive(Clone, Debug)]
pub struct Throttle {
    clock: Clock,
    /// `None` when nothing is held back.
    bucket: Option<Arc<Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    per_second: f64,
    state: Mutex<Level>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// May be negative: whoever took more than there was waits until it is paid back.
    tokens: f64,
    at: Timestamp,
}

impl Throttle {
    /// 0 per second means: no limit.
    pub fn per_second(units: u64, clock: Clock) -> Self {
        let at = clock.now();
        let bucket = (units > 0).then(|| {
            let per_second = units as f64;
            Arc::new(Bucket { per_second, state: Mutex::new(Level { tokens: per_second, at }) })
        });
        Self { clock, bucket }
    }

    pub fn unlimited() -> Self {
        Self { clock: Clock::system(), bucket: None }
    }

    /// Waits until `units` may pass. Units are booked at once, so a single large take is slow, never refused.
    pub async fn take(&self, units: u64) {
        let Some(bucket) = &self.bucket else { return };
        let wait = {
            // Plain arithmetic happens under this lock, which cannot panic.
            let mut level = bucket.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (next, wait) = drained(*level, bucket.per_second, units as f64, self.clock.now());
            *level = next;
            wait
        };
        if wait > Duration::ZERO {
            self.clock.sleep(wait).await;
        }
    }
}

/// The level after taking `units` at `now`, and how long the taker waits. A clock that runs backwards adds nothing.
fn drained(level: Level, per_second: f64, units: f64, now: Timestamp) -> (Level, Duration) {
    let passed = now.duration_since(level.at).as_secs_f64().max(0.0);
    let tokens = (level.tokens + passed * per_second).min(per_second) - units;
    let wait = if tokens < 0.0 { Duration::from_secs_f64(-tokens / per_second) } else { Duration::ZERO };
    (Level { tokens, at: now.max(level.at) }, wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_wait_in_proportion_to_what_they_took() {
        let zero = Timestamp::UNIX_EPOCH;
        let level = Level { tokens: 100.0, at: zero };
        let (level, wait) = drained(level, 100.0, 100.0, zero);
        assert_eq!(wait, Duration::ZERO);
        let (level, wait) = drained(level, 100.0, 250.0, zero);
        assert_eq!(wait, Duration::from_millis(2500));
        let later = zero + Duration::from_secs(10);
        let (level, wait) = drained(level, 100.0, 50.0, later);
        assert_eq!((wait, level.tokens), (Duration::ZERO, 50.0));
        let (level, _) = drained(level, 100.0, 0.0, zero);
        assert_eq!((level.tokens, level.at), (50.0, later));
    }

    #[tokio::test]
    async fn no_limit_never_waits() {
        Throttle::unlimited().take(u64::MAX).await;
        let (clock, _hand) = Clock::test(Timestamp::UNIX_EPOCH);
        Throttle::per_second(0, clock).take(u64::MAX).await;
    }
}
