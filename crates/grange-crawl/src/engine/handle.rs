//! The reins of a running crawl.

use std::sync::{Arc, Weak};

use regex::Regex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use url::Url;

use super::changes::{self, SeedOrigin};
use super::commit::Message;
use super::lasting_orders::LastingOrders;
use super::meter::Snapshot;
use super::order::{Order, OrderError};
use super::shared::{ScopeChangeError, Shared, Wish};
use crate::candidate::{Candidate, without_user_info};
use crate::frontier::QueueFilter;
use crate::record::chunk::Manifest;
use crate::scope::check_pattern;

/// The most queues or URLs listed in one answer.
const LISTED_MAX: usize = 1000;

/// The reins of a running crawl. Cheap to clone; everybody who holds one can give orders.
///
/// It does not keep the crawl: once that has ended, its folder is free however many handles are left.
#[derive(Clone)]
pub struct Handle {
    pub(super) crawl: Weak<Shared>,
    pub(super) snapshots: watch::Receiver<Snapshot>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("job", &self.snapshots.borrow().job).finish_non_exhaustive()
    }
}

impl Handle {
    /// How the crawl goes, renewed every second.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// Pictures as they are made.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// The lasting orders of people so far, in this run and in earlier ones. None once the crawl has ended.
    pub fn lasting_orders(&self) -> Option<Arc<LastingOrders>> {
        self.crawl().ok().map(|crawl| Arc::clone(&crawl.orders.borrow()))
    }

    pub fn pause(&self) {
        self.wish(Wish::Pause);
    }

    pub fn resume(&self) {
        self.wish(Wish::Run);
    }

    /// Ends the crawl in order. There is no way back but a new start with the same folder.
    pub fn stop(&self) {
        self.wish(Wish::Stop);
    }

    fn crawl(&self) -> Result<Arc<Shared>, OrderError> {
        self.crawl.upgrade().ok_or(OrderError::Ended)
    }

    fn wish(&self, wish: Wish) {
        // What has ended needs no orders.
        let Ok(crawl) = self.crawl() else { return };
        let changed = crawl.wish.send_if_modified(|now| {
            let change = *now != wish && *now != Wish::Stop;
            if change {
                *now = wish;
            }
            change
        });
        if changed {
            match wish {
                Wish::Pause => crawl.frontier.set_running(false, crawl.clock.now()),
                Wish::Run => crawl.frontier.set_running(true, crawl.clock.now()),
                Wish::Stop => {}
            }
        }
    }

    /// Closes the chunk being written. None if nothing was written since the last one.
    pub async fn rotate(&self) -> Result<Option<Manifest>, OrderError> {
        let (answer, manifest) = oneshot::channel();
        // Nobody who waits for the committer may keep the crawl meanwhile.
        let outbox = self.crawl()?.outbox.clone();
        let sent = outbox.send(Message::Rotate(answer)).await;
        drop(outbox);
        sent.map_err(|_| OrderError::Ended)?;
        manifest.await.map_err(|_| OrderError::Ended)
    }

    /// Carries out an order of `who`. Changes are written to control.log.
    pub async fn order(&self, who: &str, order: Order) -> Result<Value, OrderError> {
        let change = order.is_change();
        let text = serde_json::to_value(order.for_the_log()).unwrap_or_default();
        let result = match order {
            Order::Rotate => {
                self.rotate().await.map(|closed| serde_json::to_value(closed).unwrap_or_default())
            }
            order => {
                let crawl = self.crawl()?;
                self.carry_out(&crawl, order)
            }
        };
        if change && let Ok(crawl) = self.crawl() {
            let outcome = match &result {
                Ok(answer) => format!("done {answer}"),
                Err(error) => format!("refused {error}"),
            };
            let line = json!({
                "time": crawl.clock.now().to_string(),
                "who": who,
                "order": text,
                "outcome": outcome,
            });
            let line = format!("{line}\n").into_bytes();
            let outbox = crawl.outbox.clone();
            drop(crawl);
            let _ = outbox.send(Message::Line("control.log", line)).await;
        }
        result
    }

    /// Carries out what nobody has to wait for.
    fn carry_out(&self, crawl: &Shared, order: Order) -> Result<Value, OrderError> {
        let now = crawl.clock.now();
        let failed = |error: crate::frontier::FrontierError| OrderError::Failed(error.to_string());
        Ok(match order {
            Order::Status => serde_json::to_value(self.snapshot()).unwrap_or_default(),
            Order::Pause => {
                self.pause();
                json!({})
            }
            Order::Resume => {
                self.resume();
                json!({})
            }
            Order::Stop => {
                self.stop();
                json!({})
            }
            // It is waited for.
            Order::Rotate => json!(null),
            Order::AddSeeds { urls, endpoints } => {
                let candidates = seeds(&urls)?;
                crawl.allow_ordered(&endpoints)?;
                crawl.add_seeds(&urls, SeedOrigin::Order).map_err(refused)?;
                crawl.logins.add_seeds(urls.iter().map(String::as_str));
                let added = crawl.frontier.add(&candidates, now).map_err(failed)?;
                let mut statistics = crawl.ledger.statistics();
                for url in &urls {
                    statistics.add_seed(url);
                }
                json!({"queued": added.queued, "seen_before": added.seen_before})
            }
            Order::Reject { regex } => {
                let pattern = whole(&regex)?;
                crawl.reject(&regex).map_err(refused)?;
                let dropped = crawl.frontier.reject(None, &|url| pattern.is_match(url), now);
                json!({"dropped": dropped.map_err(failed)?})
            }
            Order::Delete { regex } => {
                let pattern = whole(&regex)?;
                let dropped = crawl.frontier.reject(None, &|url| pattern.is_match(url), now);
                json!({"dropped": dropped.map_err(failed)?})
            }
            Order::DeleteQueue { queue } => {
                json!({"dropped": crawl.frontier.delete(&queue, now).map_err(failed)?})
            }
            Order::SetLimits { domain, limits } => {
                crawl.set_limits(domain, limits).map_err(failed)?;
                json!({})
            }
            Order::SetPace { factor } => {
                if !factor.is_finite() || factor < 0.0 {
                    return Err(OrderError::Bad(format!("{factor} is no factor; write 0 or more")));
                }
                crawl.keep_order(&[changes::pace(factor)]).map_err(failed)?;
                crawl.frontier.set_pace_factor(factor);
                json!({})
            }
            Order::Revive { queue } => {
                json!({"revived": crawl.revive(queue.as_deref(), now).map_err(failed)?})
            }
            Order::Queues { after, limit } => {
                let filter = QueueFilter { after, ..QueueFilter::default() };
                let queues = crawl.frontier.queues(&filter, limit.min(LISTED_MAX)).map_err(failed)?;
                serde_json::to_value(queues).unwrap_or_default()
            }
            Order::Peek { queue, limit } => {
                let peeked = crawl.frontier.peek(&queue, limit.min(LISTED_MAX), None).map_err(failed)?;
                let rows = peeked.into_iter().map(|row| {
                    json!({
                        "url": row.url,
                        "via": row.via,
                        "hops": row.hops.to_string(),
                        "tries": row.tries,
                    })
                });
                rows.collect()
            }
        })
    }
}

fn refused(error: ScopeChangeError) -> OrderError {
    match error {
        ScopeChangeError::Scope(error) => OrderError::Bad(error.to_string()),
        ScopeChangeError::Frontier(error) => OrderError::Failed(error.to_string()),
    }
}

fn seeds(urls: &[String]) -> Result<Vec<Candidate>, OrderError> {
    let parse = |url: &String| match Url::parse(url) {
        Ok(url) if url.has_host() => Ok(Candidate::seed(url)),
        _ => {
            // The reason is written to control.log.
            let url = without_user_info(url);
            Err(OrderError::Bad(format!("{url:?} is not a URL with a host; write http://example.org/")))
        }
    };
    urls.iter().map(parse).collect()
}

/// A pattern that must match the whole URL, as reject patterns do.
pub(super) fn whole(pattern: &str) -> Result<Regex, OrderError> {
    check_pattern(pattern).map_err(|error| OrderError::Bad(error.to_string()))?;
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| OrderError::Bad(error.to_string()))
}
