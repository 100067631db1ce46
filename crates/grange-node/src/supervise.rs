//! What runs, in the order it was started. Stopping goes in reverse, each part within what is left of the deadline;
//! a part that ends by itself or panics brings the whole node down, loudly.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use grange_base::worker::panic_message;
use grange_base::{Shutdown, Trigger};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

/// A part of the node ended when it should have gone on.
#[derive(Debug, thiserror::Error)]
#[error("{part} stopped working: {reason}")]
pub struct Failure {
    pub part: String,
    pub reason: String,
}

/// The running parts of a node.
#[derive(Debug)]
pub struct Parts {
    running: Vec<Part>,
    failures: mpsc::UnboundedReceiver<Failure>,
    failed: mpsc::UnboundedSender<Failure>,
}

#[derive(Debug)]
struct Part {
    name: String,
    trigger: Trigger,
    task: JoinHandle<()>,
}

impl Default for Parts {
    fn default() -> Self {
        let (failed, failures) = mpsc::unbounded_channel();
        Self { running: Vec::new(), failures, failed }
    }
}

impl Parts {
    /// Starts a part. It gets a shutdown of its own and is expected to run until that is requested.
    pub fn start<F, E>(&mut self, name: &str, part: impl FnOnce(Shutdown) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display,
    {
        let trigger = Trigger::new();
        let shutdown = trigger.listener();
        let work = AssertUnwindSafe(part(shutdown.clone())).catch_unwind();
        let (failed, part) = (self.failed.clone(), name.to_owned());
        let guarded = async move {
            let reason = match work.await {
                Ok(Ok(())) if shutdown.requested() => return,
                Ok(Ok(())) => "it ended by itself".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("it panicked: {}", panic_message(panic.as_ref())),
            };
            tracing::error!(part, reason, "a part of the node failed; the node stops");
            // Nobody listens once the node is stopping anyway.
            let _ = failed.send(Failure { part, reason });
        };
        let task = tokio::spawn(guarded.instrument(tracing::info_span!("part", name)));
        self.running.push(Part { name: name.to_owned(), trigger, task });
    }

    /// Waits for the first part that fails.
    pub async fn failure(&mut self) -> Failure {
        match self.failures.recv().await {
            Some(failure) => failure,
            // Cannot happen while `self.failed` lives.
            None => std::future::pending().await,
        }
    }

    /// Stops everything, last started first, within the deadline; gives the names of parts that had to be cut off.
    /// Each part may take an equal share of the time that is left, so that a stuck one does not starve the others.
    pub async fn stop(mut self, deadline: Duration) -> Vec<String> {
        let end = Instant::now() + deadline;
        let mut cut_off = Vec::new();
        while let Some(mut part) = self.running.pop() {
            tracing::debug!(part = part.name, "stopping");
            part.trigger.pull();
            let left = end.saturating_duration_since(Instant::now());
            let share = left / (self.running.len() as u32 + 1);
            if tokio::time::timeout(share, &mut part.task).await.is_err() {
                part.task.abort();
                tracing::warn!(part = part.name, "did not stop in time and was cut off");
                cut_off.push(part.name);
            }
        }
        cut_off
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn parts_stop_in_reverse_and_the_stuck_one_is_cut_off() {
        let ended: Arc<Mutex<Vec<&str>>> = Arc::default();
        let mut parts = Parts::default();
        for name in ["first", "second"] {
            let ended = Arc::clone(&ended);
            parts.start(name, |shutdown| async move {
                shutdown.wait().await;
                ended.lock().unwrap().push(name);
                Ok::<_, String>(())
            });
        }
        parts.start("stuck", |_| std::future::pending::<Result<(), String>>());
        assert_eq!(parts.stop(Duration::from_secs(1)).await, ["stuck"]);
        assert_eq!(*ended.lock().unwrap(), ["second", "first"]);
    }

    #[tokio::test]
    async fn each_way_to_fail_is_told() {
        let mut parts = Parts::default();
        parts.start("quits", |_| async { Ok::<_, String>(()) });
        assert_eq!(parts.failure().await.to_string(), "quits stopped working: it ended by itself");
        parts.start("errs", |_| async { Err::<(), _>("disk full") });
        assert_eq!(parts.failure().await.to_string(), "errs stopped working: disk full");
        parts.start("panics", |_| async {
            assert_eq!(1, 2, "oh");
            Ok::<_, String>(())
        });
        let failure = parts.failure().await.to_string();
        assert!(
            failure.starts_with("panics stopped working: it panicked: ") && failure.contains("oh"),
            "{failure}"
        );
    }
}
