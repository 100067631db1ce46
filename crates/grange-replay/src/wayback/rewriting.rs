//! A body on its way through a rewriter.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::rewrite_pool::{Done, RewritePool, Step, Task};
use crate::capture::{Body, BodyError};
use crate::rewrite::Transform;
use crate::rewrite::work::Demand;

/// Up to this much is rewritten where it is: about a millisecond, while a thread for it takes a while to wake. It is a piece
/// of a long body, and as much again of what was held back.
const INLINE_BYTES_MAX: usize = 128 << 10;

/// Sends `body` through `transform`. What is at hand is rewritten before the answer begins, so that it has a length.
pub(super) async fn rewritten(
    body: Body,
    transform: Box<dyn Transform + Send>,
    pool: &RewritePool,
    url: &str,
) -> Result<axum::body::Body, BodyError> {
    let client = Waiting { demand: pool.demand(), pool: pool.clone(), url: url.to_owned() };
    let task = pool.task(transform);
    let Body::Whole(piece) = body else {
        return Ok(axum::body::Body::new(Rewriting { body, state: State::Idle(task), client }));
    };
    let step = Step { piece, is_last: true };
    let done = match client.at_once(task, step) {
        Ok(done) => done,
        Err((task, step)) => client.run(task, step).await?,
    };
    client.report(&done);
    Ok(done.out.into())
}

/// The client that waits for a body. When it leaves, nobody rewrites on.
struct Waiting {
    demand: Demand,
    pool: RewritePool,
    /// Of the capture.
    url: String,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.demand.abandon();
    }
}

impl Waiting {
    /// Takes a small step on this thread; gives back one that is too long for it.
    fn at_once(&self, task: Task, step: Step) -> Result<Done, (Task, Step)> {
        if task.bytes(&step) > INLINE_BYTES_MAX {
            return Err((task, step));
        }
        Ok(task.take(step, self.demand.clone()))
    }

    fn run(&self, task: Task, step: Step) -> impl Future<Output = Result<Done, BodyError>> + Send + use<> {
        self.pool.clone().run(task, step, self.demand.clone())
    }

    fn report(&self, done: &Done) {
        if done.gave_up && !self.demand.is_gone() {
            tracing::warn!(
                url = self.url,
                budget = %self.pool.budget(),
                "rewriting of a body exceeded replay.rewrite_budget or its memory; the rest is served unrewritten"
            );
        }
    }
}

/// A long body, rewritten piece by piece.
struct Rewriting {
    body: Body,
    state: State,
    client: Waiting,
}

enum State {
    /// Waits for the next piece.
    Idle(Task),
    Working(Pin<Box<dyn Future<Output = Result<Done, BodyError>> + Send>>),
    Over,
}

impl Rewriting {
    /// What a step gave, and in which state it leaves the body.
    fn settle(&mut self, done: Done) -> Option<Bytes> {
        self.client.report(&done);
        self.state = done.task.map_or(State::Over, State::Idle);
        Some(done.out.into()).filter(|out: &Bytes| !out.is_empty())
    }

    /// The next step, if a piece is there.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Result<Step, BodyError>> {
        loop {
            let frame = ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), context)).transpose()?;
            match frame.map(Frame::into_data) {
                Some(Ok(piece)) => return Poll::Ready(Ok(Step { piece, is_last: false })),
                Some(Err(_)) => {}
                None => return Poll::Ready(Ok(Step { piece: Bytes::new(), is_last: true })),
            }
        }
    }
}

impl http_body::Body for Rewriting {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            // After an error the body is over.
            let out = match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Working(mut work) => match work.as_mut().poll(context) {
                    Poll::Pending => {
                        self.state = State::Working(work);
                        return Poll::Pending;
                    }
                    Poll::Ready(done) => self.settle(done?),
                },
                State::Idle(task) => match self.poll_step(context) {
                    Poll::Pending => {
                        self.state = State::Idle(task);
                        return Poll::Pending;
                    }
                    Poll::Ready(step) => match self.client.at_once(task, step?) {
                        Ok(done) => self.settle(done),
                        Err((task, step)) => {
                            self.state = State::Working(Box::pin(self.client.run(task, step)));
                            None
                        }
                    },
                },
            };
            if let Some(out) = out {
                return Poll::Ready(Some(Ok(Frame::data(out))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
#[path = "rewriting_tests.rs"]
mod tests;
