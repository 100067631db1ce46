//! Where long bodies are rewritten: on threads that may compute, a few at a time, for as long as somebody waits.
//!
//! Rewriting is computing. On the threads that answer requests it would hold up everybody else's, and nothing could end it
//! but its own end.

use std::sync::Arc;

use bytes::Bytes;
use grange_base::{Shutdown, Size};
use tokio::sync::Semaphore;

use crate::capture::BodyError;
use crate::rewrite::Transform;
use crate::rewrite::work::{self, Demand};
use crate::settings::Settings;

/// Rewrites bodies, as many at a time as there are cores. Cloning shares it.
#[derive(Clone, Debug)]
pub struct RewritePool {
    /// More at a time would take turns and all be late.
    pub(super) permits: Arc<Semaphore>,
    /// For one body, in bytes examined.
    pub(super) budget: u64,
    pub(super) shutdown: Shutdown,
}

impl Default for RewritePool {
    fn default() -> Self {
        Self::new(Settings::default().rewrite_budget, Shutdown::never())
    }
}

/// A piece of a body, or its end, or both.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) piece: Bytes,
    pub(super) is_last: bool,
}

/// The rewriting of one body, between its steps.
#[derive(Debug)]
pub(super) struct Task {
    transform: Box<dyn Transform + Send>,
    left: u64,
    /// The budget is used up.
    over: bool,
}

/// What came of a step.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) out: Vec<u8>,
    /// `None` behind the last step.
    pub(super) task: Option<Task>,
    /// In this step the rewriter gave up.
    pub(super) gave_up: bool,
}

impl RewritePool {
    /// `budget`: as the setting `replay.rewrite_budget`. On `shutdown` long work is broken off.
    pub fn new(budget: Size, shutdown: Shutdown) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { permits: Arc::new(Semaphore::new(cores)), budget: budget.0, shutdown }
    }

    pub(super) const fn budget(&self) -> Size {
        Size(self.budget)
    }

    pub(super) fn task(&self, transform: Box<dyn Transform + Send>) -> Task {
        Task { transform, left: self.budget, over: false }
    }

    pub(super) fn demand(&self) -> Demand {
        Demand::new(self.shutdown.clone())
    }

    /// Takes a step on a thread for it. Dropped before its end, it leaves the work to the `demand`, which ends it.
    pub(super) async fn run(self, task: Task, step: Step, demand: Demand) -> Result<Done, BodyError> {
        let permits = Arc::clone(&self.permits);
        let permit = self.shutdown.or(permits.acquire_owned()).await;
        let Some(Ok(permit)) = permit else { return Err(BodyError::Stopping) };
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            task.take(step, demand)
        });
        match work.await {
            Ok(done) if done.gave_up && self.shutdown.requested() => Err(BodyError::Stopping),
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(BodyError::Stopping),
            },
        }
    }
}

impl Task {
    /// Bytes that a step of this length has to walk over.
    pub(super) fn bytes(&self, step: &Step) -> usize {
        self.transform.held() + step.piece.len()
    }

    /// Takes a step on this thread.
    pub(super) fn take(self, step: Step, demand: Demand) -> Done {
        let Self { mut transform, left, over } = self;
        let mut out = Vec::with_capacity(step.piece.len() + step.piece.len() / 4 + 4096);
        let (transform, used) = work::within(if over { 0 } else { left }, demand, || {
            transform.push(&step.piece, &mut out);
            if !step.is_last {
                return Some(transform);
            }
            transform.finish(&mut out);
            None
        });
        let left = left.saturating_sub(used.bytes);
        let task = transform.map(|transform| Task { transform, left, over: used.over });
        Done { out, task, gave_up: used.over && !over }
    }
}
