//! The one loop that all background work runs in.
//!
//! A worker takes one step at a time. It steps again at once while there is more to do, else sleeps until a hint
//! or its interval, whichever comes first: hints make it fast, the interval makes it right. A failing step is
//! logged and backs off; a panicking step ends the loop with an error, and whoever supervises stops the process,
//! because state that a panic left behind is not to be worked with.

use std::any::Any;
use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tracing::Instrument;

use crate::clock::Clock;
use crate::retry::{Retry, RetryPolicy, jittered};
use crate::shutdown::Shutdown;

/// What one step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done and there may be more: step again at once.
    More,
    /// Nothing to do now.
    Idle,
}

/// Wakes a worker before its interval ends. Hints given while it works are remembered as one.
#[derive(Clone, Debug, Default)]
pub struct Hint(Arc<Notify>);

impl Hint {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits for the next [`Hint::wake`], or returns at once if one came since the last wait.
    pub async fn wait(&self) {
        self.0.notified().await;
    }
}

/// A worker that ended other than by shutdown.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(
        "worker {worker} panicked: {message}; the process stops so that nothing goes on from broken state"
    )]
    Panicked { worker: String, message: String },
}

/// A named loop with its rhythm.
#[derive(Debug)]
pub struct Worker {
    pub name: String,
    /// The longest sleep between steps when no hint comes; jittered by ±10 %.
    pub interval: Duration,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub hint: Hint,
}

/// After failures: 1 s, 2 s, … up to a minute, for ever. Long enough to spare a service that restarts,
/// short enough that nobody waits for Grange afterwards.
const BACK_OFF: RetryPolicy =
    RetryPolicy { first: Duration::from_secs(1), most: Duration::from_secs(60), attempts: 0 };

impl Worker {
    /// Runs until shutdown (`Ok`) or a panic in a step. Shutdown is looked at between steps, so a step is never
    /// torn apart; long steps watch the shutdown themselves.
    pub async fn run<E, F>(self, mut step: impl FnMut() -> F) -> Result<(), WorkerError>
    where
        E: Display,
        F: Future<Output = Result<Step, E>>,
    {
        let span = tracing::info_span!("worker", name = %self.name);
        async {
            let mut failures = 0;
            while !self.shutdown.requested() {
                let outcome = AssertUnwindSafe(async { step().await }).catch_unwind().await;
                let wait = match outcome {
                    Ok(Ok(Step::More)) => {
                        failures = 0;
                        // Without this a worker that always finds more would never let its neighbours run.
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Ok(Ok(Step::Idle)) => {
                        failures = 0;
                        self.interval
                    }
                    Ok(Err(error)) => {
                        failures += 1;
                        let wait = BACK_OFF.wait(failures, Retry::Soon).unwrap_or(BACK_OFF.most);
                        tracing::error!(failures, retry_in_s = wait.as_secs(), %error, "step failed");
                        metrics::counter!("grange_worker_failures_total", "worker" => self.name.clone())
                            .increment(1);
                        wait
                    }
                    Err(panic) => {
                        let message = panic_message(panic.as_ref());
                        tracing::error!(%message, "worker panicked");
                        return Err(WorkerError::Panicked { worker: self.name.clone(), message });
                    }
                };
                self.sleep(wait, failures == 0).await;
            }
            Ok(())
        }
        .instrument(span)
        .await
    }

    /// A hint cuts an idle sleep short, but not a back-off: hints keep coming while a service is down.
    async fn sleep(&self, wait: Duration, hints: bool) {
        let hinted = async {
            if hints {
                self.hint.wait().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.shutdown.wait() => {}
            () = hinted => {}
            () = self.clock.sleep(jittered(wait)) => {}
        }
    }
}

/// The text a panic was raised with, where it has one.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::shutdown::Trigger;

    struct Bench {
        worker: Worker,
        hand: crate::clock::TestClock,
        hint: Hint,
        trigger: Trigger,
        steps: Arc<AtomicU32>,
    }

    fn bench() -> Bench {
        let (clock, hand) = Clock::test(jiff::Timestamp::UNIX_EPOCH);
        let trigger = Trigger::new();
        let hint = Hint::new();
        let worker = Worker {
            name: "test".into(),
            interval: Duration::from_secs(60),
            clock,
            shutdown: trigger.listener(),
            hint: hint.clone(),
        };
        Bench { worker, hand, hint, trigger, steps: Arc::default() }
    }

    async fn until(condition: impl Fn() -> bool) {
        while !condition() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_deaf_worker_still_steps_by_its_interval() {
        let Bench { worker, hand, trigger, steps, .. } = bench();
        let counted = Arc::clone(&steps);
        let run = tokio::spawn(worker.run(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, String>(Step::Idle) }
        }));
        until(|| steps.load(Ordering::SeqCst) == 1 && hand.sleepers() == 1).await;
        hand.advance(Duration::from_secs(67));
        until(|| steps.load(Ordering::SeqCst) == 2).await;
        trigger.pull();
        run.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_hint_wakes_it_without_the_clock_moving() {
        let Bench { worker, hint, trigger, steps, .. } = bench();
        let counted = Arc::clone(&steps);
        let run = tokio::spawn(worker.run(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, String>(Step::Idle) }
        }));
        until(|| steps.load(Ordering::SeqCst) == 1).await;
        hint.wake();
        until(|| steps.load(Ordering::SeqCst) == 2).await;
        trigger.pull();
        run.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn hints_do_not_shorten_a_back_off() {
        let Bench { worker, hand, hint, trigger, steps } = bench();
        let counted = Arc::clone(&steps);
        let run = tokio::spawn(worker.run(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            hint.wake();
            async { Err::<Step, _>("service is down") }
        }));
        until(|| hand.sleepers() == 1).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!(steps.load(Ordering::SeqCst), 1);
        hand.advance(Duration::from_millis(1200));
        until(|| steps.load(Ordering::SeqCst) == 2).await;
        trigger.pull();
        run.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_panic_ends_the_loop_with_its_message() {
        let Bench { worker, .. } = bench();
        let error = worker
            .run(|| async {
                assert!(std::env::args().count() > 1_000_000, "index out of reach");
                Ok::<_, String>(Step::Idle)
            })
            .await
            .unwrap_err();
        assert!(error.to_string().contains("worker test panicked: index out of reach"));
    }
}
