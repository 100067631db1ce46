//! Hands URLs out to workers, and knows when the crawl is over.

use std::sync::Arc;
use std::time::Duration;

use grange_base::Chain;
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::commit::{Delivery, Message};
use super::holds::Hold;
use super::shared::{Shared, VisitError, Wish};
use super::stragglers;
use super::visit::{unfetched, visit};
use crate::frontier::{self, Claim, Finished, Next, Outcome};
use crate::job::StopReason;
use crate::politeness::Visit;
use crate::record::recorder::Ready;
use crate::status::FetchStatus;

/// The annotation of a URL whose response found no space at any try.
const NO_SPACE: &str = "noDiskSpace";

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing was left to do.
    Finished,
    /// URLs are left, but their hosts could not be reached. A resume tries them again.
    Unreachable,
    /// A limit of the whole crawl was reached.
    Limit(StopReason),
    /// Somebody ordered it.
    Stopped,
}

pub(super) type Workers = JoinSet<Result<u32, VisitError>>;

/// Runs until nothing is left that can be fetched, a limit is reached or a stop is ordered. Workers have ended when it returns;
/// after a stop or the end of the time those that took too long were cut off, and their URLs stay queued.
///
/// If it ends otherwise, `workers` are still at work: they hold the crawl, and are to be waited for.
pub(super) async fn dispatch(crawl: &Arc<Shared>, workers: &mut Workers) -> Result<End, VisitError> {
    let mut free: Vec<u32> = (0..crawl.template.engine.workers.max(1)).rev().collect();
    let mut wish = crawl.wish.subscribe();
    let mut holds = crawl.ledger.holds.watch();
    // While no host can be reached, one URL and some servers are tried from time to time.
    let mut probe_at = crawl.clock.now();
    let end = loop {
        while let Some(ended) = workers.try_join_next() {
            free.push(worker_of(ended)?);
        }
        let now_wished = *wish.borrow_and_update();
        let reasons = holds.borrow_and_update().clone();
        if now_wished == Wish::Stop {
            break End::Stopped;
        }
        let now = crawl.clock.now();
        let probes = reasons.has_only(Hold::Outage);
        let is_held = reasons.first().is_some();
        let may_ask =
            now_wished == Wish::Run && !free.is_empty() && (!is_held || (probes && workers.is_empty()));
        let mut until = None;
        if probes && may_ask && now < probe_at {
            until = Some(probe_at);
        } else if may_ask {
            match crawl.frontier.next(now)? {
                Next::Uri(claim) => {
                    let Some(number) = free.pop() else { continue };
                    probe_at = now.saturating_add(retry_delay(crawl)).unwrap_or(now);
                    let crawl = Arc::clone(crawl);
                    if probes {
                        workers.spawn(probe(crawl, Some(claim), number));
                    } else {
                        workers.spawn(work(crawl, *claim, number));
                    }
                    continue;
                }
                // Also while every queue waits: a server that responded before may respond again.
                Next::Wait(_) | Next::Idle if probes => {
                    let Some(number) = free.pop() else { continue };
                    probe_at = now.saturating_add(retry_delay(crawl)).unwrap_or(now);
                    workers.spawn(probe(Arc::clone(crawl), None, number));
                    continue;
                }
                Next::Wait(time) => {
                    until = Some(time);
                    if workers.is_empty() && !is_held {
                        let waiting = crawl.frontier.waiting_queues();
                        match stragglers::ends_at(crawl, &waiting) {
                            Some(at) if at <= now => {
                                stragglers::end(crawl, &waiting, now)?;
                                continue;
                            }
                            Some(at) => until = Some(at.min(time)),
                            None => {}
                        }
                    }
                }
                Next::Idle => {}
                Next::Limit(reason) if workers.is_empty() => break End::Limit(reason),
                Next::Empty if workers.is_empty() => {
                    let given_up = crawl.frontier.unreachable(now);
                    break if given_up > 0 { End::Unreachable } else { End::Finished };
                }
                Next::Limit(_) | Next::Empty => {}
            }
        }
        let time_ends = crawl.frontier.time_ends(now);
        until = [until, time_ends].into_iter().flatten().min();
        if time_ends.is_some_and(|end| end <= now) && !workers.is_empty() {
            // Nobody waits for workers when the time is over: a server may take as long as it likes.
            break End::Limit(StopReason::TimeLimit);
        }
        if is_held || now_wished == Wish::Pause {
            // A limit ends the crawl also while nothing is handed out. Nobody waits for workers when the time is over:
            // they may be waiting for the disk.
            if let Some(reason) =
                limit_while_held(crawl.frontier.limit_reached(now), time_ends, now, workers.is_empty())
            {
                break End::Limit(reason);
            }
        }
        let wait = until.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
        tokio::select! {
            () = crawl.frontier.changed() => {}
            Some(ended) = workers.join_next() => free.push(worker_of(ended)?),
            // The senders live as long as the crawl.
            _ = wish.changed() => {}
            _ = holds.changed() => {}
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

/// The limit that ends a crawl that hands out nothing. `reached` is the first limit that is reached, which may be one
/// of objects or size although the time is over too.
fn limit_while_held(
    reached: Option<StopReason>,
    time_ends: Option<Timestamp>,
    now: Timestamp,
    has_no_workers: bool,
) -> Option<StopReason> {
    let is_late = reached == Some(StopReason::TimeLimit) || time_ends.is_some_and(|end| end <= now);
    match reached {
        Some(reason) if has_no_workers => Some(reason),
        _ => is_late.then_some(StopReason::TimeLimit),
    }
}

/// How often a URL is tried while no host can be reached, and how long a host must fail before it is given up.
pub(super) fn retry_delay(crawl: &Shared) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(crawl.template.frontier.retry_delay.0).unwrap_or(jiff::SignedDuration::MAX)
}

/// Sees whether the network is back. Servers come first: a URL that fails while it is away goes back to its queue.
async fn probe(crawl: Arc<Shared>, claim: Option<Box<Claim>>, number: u32) -> Result<u32, VisitError> {
    crawl.probe_network().await?;
    match claim {
        Some(claim) => work(crawl, *claim, number).await,
        None => Ok(number),
    }
}

async fn work(crawl: Arc<Shared>, claim: Claim, number: u32) -> Result<u32, VisitError> {
    crawl.meter.begin();
    let delivery = visit(&crawl, claim, number).await;
    crawl.meter.end();
    let delivery = match delivery {
        Ok(delivery) => delivery,
        Err((claim, error)) if error.is_disk_full() => {
            let reason = format!("cannot write to the scratch folder of the crawl: {}", Chain(&error));
            if crawl.ledger.holds.set(Hold::Scratch, reason) {
                tracing::error!(%error, "no space for the scratch folder; paused until there is some");
            }
            found_no_space(&crawl, *claim, number)
        }
        Err((_, error)) => return Err(error),
    };
    // A committer that is gone has its own reason, which ends the crawl.
    let _ = crawl.outbox.send(Message::Delivery(Box::new(delivery))).await;
    Ok(number)
}

/// A URL whose response found no space. It counts as a try: a response may be too long for the disk however often it is
/// fetched, and the space that it takes comes back as soon as it is given up.
fn found_no_space(crawl: &Shared, claim: Claim, worker: u32) -> Delivery {
    let outcome = without_space(&crawl.template.frontier, claim.tries);
    let given_up = matches!(outcome, Outcome::Done(_));
    let line = given_up
        .then(|| unfetched(crawl.clock.now(), &claim.candidate, worker, FetchStatus::RUNTIME, NO_SPACE));
    Delivery {
        captures: line.map(|line| Ready { records: None, line, extracted: None }).into_iter().collect(),
        finished: Finished { claim, outcome, discovered: Vec::new() },
        lines: Vec::new(),
        marks: Vec::new(),
        permit: None,
    }
}

/// What becomes of a URL that was tried so often before and whose response found no space.
fn without_space(settings: &frontier::Settings, tries: u32) -> Outcome {
    let visit = Visit::new(FetchStatus::RUNTIME, 0, Duration::ZERO);
    if tries < settings.max_retries {
        Outcome::Retry { visit, after: settings.retry_delay.0 }
    } else {
        Outcome::Done(visit)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_finds_no_space_is_tried_as_often_as_any_failure() {
        let settings = frontier::Settings { max_retries: 2, ..frontier::Settings::default() };
        for (tries, again) in [(0, true), (1, true), (2, false), (u32::MAX, false)] {
            match without_space(&settings, tries) {
                Outcome::Retry { visit, after } => {
                    assert!(again, "{tries}");
                    assert_eq!((visit.status, after), (FetchStatus::RUNTIME, settings.retry_delay.0));
                }
                outcome => assert!(!again && matches!(outcome, Outcome::Done(_)), "{tries} {outcome:?}"),
            }
        }
    }

    #[test]
    fn the_time_ends_a_crawl_that_is_held_whatever_other_limit_is_reached() {
        use StopReason::{ObjectLimit, SizeLimit, TimeLimit};
        let now = Timestamp::UNIX_EPOCH;
        let (past, later) = (now - Duration::from_secs(1), now + Duration::from_secs(1));
        for (reached, time_ends, has_no_workers, ends_with) in [
            (None, None, true, None),
            (None, Some(later), false, None),
            (Some(TimeLimit), None, false, Some(TimeLimit)),
            (Some(TimeLimit), Some(now), false, Some(TimeLimit)),
            // Workers may yet deliver: the limit waits for them, unless the time is over.
            (Some(ObjectLimit), None, false, None),
            (Some(ObjectLimit), Some(later), false, None),
            (Some(ObjectLimit), Some(now), false, Some(TimeLimit)),
            (Some(SizeLimit), Some(past), false, Some(TimeLimit)),
            (Some(ObjectLimit), Some(past), true, Some(ObjectLimit)),
            (Some(SizeLimit), None, true, Some(SizeLimit)),
        ] {
            let end = limit_while_held(reached, time_ends, now, has_no_workers);
            assert_eq!(end, ends_with, "{reached:?} {time_ends:?} {has_no_workers}");
        }
    }
}
