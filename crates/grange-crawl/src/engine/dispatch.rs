//! Hands URLs out to workers, and knows when the crawl is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::commit::Message;
use super::shared::{Shared, VisitError, Wish};
use super::visit::visit;
use crate::frontier::{Claim, Next};
use crate::job::StopReason;

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing was left to do.
    Finished,
    /// A limit of the whole crawl was reached.
    Limit(StopReason),
    /// Somebody ordered it.
    Stopped,
}

type Workers = JoinSet<Result<u32, VisitError>>;

/// Runs until nothing is left to do, a limit is reached or a stop is ordered. Workers have ended when it returns;
/// after a stop those that took too long were cut off, and their URLs stay queued.
pub(super) async fn dispatch(crawl: &Arc<Shared>) -> Result<End, VisitError> {
    let mut workers = Workers::new();
    let mut free: Vec<u32> = (0..crawl.template.engine.workers.max(1)).rev().collect();
    let mut wish = crawl.wish.subscribe();
    let mut blocked = crawl.ledger.blocked.subscribe();
    let end = loop {
        while let Some(ended) = workers.try_join_next() {
            free.push(worker_of(ended)?);
        }
        let now_wished = *wish.borrow_and_update();
        let can_write = blocked.borrow_and_update().is_none();
        if now_wished == Wish::Stop {
            break End::Stopped;
        }
        let mut until = None;
        if now_wished == Wish::Run && can_write && !free.is_empty() {
            match crawl.frontier.next(crawl.clock.now())? {
                Next::Uri(claim) => {
                    let Some(number) = free.pop() else { continue };
                    workers.spawn(work(Arc::clone(crawl), *claim, number));
                    continue;
                }
                Next::Wait(time) => until = Some(time),
                Next::Idle => {}
                Next::Limit(reason) if workers.is_empty() => break End::Limit(reason),
                Next::Empty if workers.is_empty() => break End::Finished,
                Next::Limit(_) | Next::Empty => {}
            }
        }
        let now = crawl.clock.now();
        let wait = until.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
        tokio::select! {
            () = crawl.frontier.changed(), if now_wished == Wish::Run && can_write && !free.is_empty() => {}
            Some(ended) = workers.join_next() => free.push(worker_of(ended)?),
            // The senders live as long as the crawl.
            _ = wish.changed() => {}
            _ = blocked.changed() => {}
            () = crawl.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    };
    let within = crawl.template.engine.stop_within.0;
    let orderly = async {
        while let Some(ended) = workers.join_next().await {
            worker_of(ended)?;
        }
        Ok::<(), VisitError>(())
    };
    match tokio::time::timeout(within, orderly).await {
        Ok(result) => result?,
        Err(_) => workers.shutdown().await,
    }
    Ok(end)
}

async fn work(crawl: Arc<Shared>, claim: Claim, number: u32) -> Result<u32, VisitError> {
    crawl.meter.begin();
    let delivery = visit(&crawl, claim, number).await;
    crawl.meter.end();
    // A committer that is gone has its own reason, which ends the crawl.
    let _ = crawl.outbox.send(Message::Delivery(Box::new(delivery?))).await;
    Ok(number)
}

/// The number of a worker that is free again. A panic goes on as a panic.
fn worker_of(ended: Result<Result<u32, VisitError>, tokio::task::JoinError>) -> Result<u32, VisitError> {
    match ended {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Cut off by a stop; the number is not needed any more.
            Err(_) => Ok(0),
        },
    }
}
