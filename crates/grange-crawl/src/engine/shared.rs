//! What all workers of a crawl hold in common.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_base::Clock;
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, watch};
use url::Url;

use super::changes::{self, Mark, SeedOrigin};
use super::commit::{Ledger, Message};
use super::contacts::Contacts;
use super::cut_responses::CutResponses;
use super::folder::Folder;
use super::holds::is_disk_full;
use super::hosts::{Hosts, authority};
use super::kept_cookies::KeptCookies;
use super::lasting_orders::LastingOrders;
use super::login::Logins;
use super::meter::Meter;
use super::network::Network;
use super::order::OrderError;
use crate::candidate::Candidate;
use crate::fetch::{FetchError, Fetched, Fetcher, Request};
use crate::frontier::{Frontier, FrontierError};
use crate::job::{Budgets, Job, Limits, LimitsChange};
use crate::record::oracle::{DedupRules, DuplicateOracle};
use crate::record::parcel::Scratch;
use crate::record::recorder::Desk;
use crate::scope::{
    Content, Decision, LiveScope, Observation, RepeatedContent, Scope, ScopeError, ScopeLog, SessionPaths,
    ShapeContent,
};
use crate::template::Template;
use crate::virus::Scanner;

/// What a crawl is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Run,
    Pause,
    Stop,
}

/// What all workers hold in common.
pub(super) struct Shared {
    pub(super) job: Job,
    pub(super) template: Template,
    pub(super) clock: Clock,
    pub(super) frontier: Arc<Frontier>,
    pub(super) scope: LiveScope,
    pub(super) scope_log: Mutex<ScopeLog>,
    pub(super) repeated: Mutex<RepeatedContent>,
    pub(super) session_paths: Mutex<SessionPaths>,
    pub(super) fetcher: Fetcher,
    pub(super) scanner: Option<Scanner>,
    pub(super) logins: Logins,
    pub(super) hosts: Hosts,
    pub(super) contacts: Contacts,
    pub(super) oracle: Arc<dyn DuplicateOracle>,
    pub(super) dedup: DedupRules,
    pub(super) desk: Desk,
    pub(super) scratch: Scratch,
    /// The name by which robots.txt files speak to us.
    pub(super) product_token: String,
    pub(super) ledger: Ledger,
    pub(super) outbox: mpsc::Sender<Message>,
    pub(super) wish: watch::Sender<Wish>,
    pub(super) meter: Meter,
    /// As they are now; orders may change them.
    pub(super) budgets: Mutex<Budgets>,
    /// Seeds that redirects led to and that are in scope already.
    pub(super) gained_seeds: Mutex<HashSet<String>>,
    pub(super) kept_cookies: KeptCookies,
    pub(super) cut_responses: CutResponses,
    pub(super) network: Network,
    /// One permit for each delivery that is packed and not yet committed. It is taken before the ticket of a file, so
    /// that whoever keeps a chunk open can always deliver.
    pub(super) packing: Arc<Semaphore>,
    /// The lasting orders; a copy is kept outside of the folder.
    pub(super) orders: watch::Sender<Arc<LastingOrders>>,
    /// In use until nobody works on the crawl any more. The last field: it is let go of after the frontier.
    pub(super) _folder: Folder,
}

/// A fault of our own, which ends a crawl.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("cannot pack the records of a capture; check the disk, then resume")]
    Io(#[from] std::io::Error),
}

impl VisitError {
    /// Whether it passes once somebody frees space on the disk.
    pub(super) fn is_disk_full(&self) -> bool {
        match self {
            VisitError::Io(error) | VisitError::Fetch(FetchError::Scratch { source: error, .. }) => {
                is_disk_full(error)
            }
            VisitError::Fetch(_) | VisitError::Frontier(_) => false,
        }
    }
}

/// Why the scope was not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScopeChangeError {
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl Shared {
    fn budgets(&self) -> MutexGuard<'_, Budgets> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of the whole crawl.
    pub(super) fn limits(&self) -> Limits {
        self.budgets().crawl
    }

    /// Changes limits of a domain, or of the whole crawl.
    pub(super) fn set_limits(
        &self,
        domain: Option<String>,
        change: LimitsChange,
    ) -> Result<(), FrontierError> {
        let mut budgets = self.budgets();
        let mut changed = budgets.clone();
        match domain {
            None => changed.crawl = change.applied_to(changed.crawl),
            Some(domain) => {
                let other = changed.other_domains;
                let budget = changed.domains.entry(domain).or_insert(other);
                budget.limits = change.applied_to(budget.limits);
            }
        }
        self.keep_order(&[changes::limits(&self.job.budgets, &changed)])?;
        budgets.clone_from(&changed);
        self.frontier.set_budgets(changed, self.clock.now());
        Ok(())
    }

    /// Keeps what an order changed over restarts, and shows it to those who watch the crawl.
    pub(super) fn keep_order(&self, marks: &[Mark]) -> Result<(), FrontierError> {
        self.frontier.put_marks(marks, &[])?;
        self.orders.send_modify(|orders| {
            let orders = Arc::make_mut(orders);
            for (name, value) in marks {
                orders.add(name, value);
            }
        });
        Ok(())
    }

    /// Puts what more seeds stand for into scope, all of them or none, and keeps that over restarts.
    pub(super) fn add_seeds(&self, urls: &[String], origin: SeedOrigin) -> Result<(), ScopeChangeError> {
        let marks: Vec<_> = urls.iter().map(|url| changes::seed(url, origin)).collect();
        self.scope.change(|scope| {
            let next = scope.with_seeds(urls)?;
            self.keep_order(&marks)?;
            Ok(next)
        })
    }

    /// Allows the private addresses of ordered seeds, and keeps that over restarts.
    pub(super) fn allow_ordered(&self, endpoints: &[SocketAddr]) -> Result<(), OrderError> {
        let endpoints: Vec<_> =
            endpoints.iter().copied().filter(|endpoint| !self.fetcher.allows(*endpoint)).collect();
        let Some(first) = endpoints.first() else { return Ok(()) };
        if !self.template.fetch.allow_ordered_endpoints {
            return Err(OrderError::Bad(format!(
                "cannot add seeds at the private address {first}: only the operator can allow it \
                 (harvest.network.allow_networks)"
            )));
        }
        let marks: Vec<_> = endpoints.iter().map(changes::endpoint).collect();
        self.frontier.put_marks(&marks, &[]).map_err(|error| OrderError::Failed(error.to_string()))?;
        self.fetcher.allow(&endpoints);
        Ok(())
    }

    /// Rejects what `pattern` matches from now on, and keeps that over restarts.
    pub(super) fn reject(&self, pattern: &str) -> Result<(), ScopeChangeError> {
        self.scope.change(|scope| {
            let next = scope.with_reject_regex(pattern)?;
            self.keep_order(&[changes::reject(pattern)])?;
            Ok(next)
        })
    }

    /// Takes what a seed redirects to as a seed, if the template says so.
    pub(super) fn follow_seed(&self, scope: &Scope, from: &Url, to: &Url) -> Result<(), FrontierError> {
        if !scope.takes_redirected_seed(from, to) {
            return Ok(());
        }
        let mut gained = self.gained_seeds.lock().unwrap_or_else(PoisonError::into_inner);
        if gained.contains(to.as_str()) {
            return Ok(());
        }
        match self.add_seeds(&[to.to_string()], SeedOrigin::Redirect) {
            Err(ScopeChangeError::Frontier(error)) => return Err(error),
            // It has a host, so it can be a seed.
            Ok(()) | Err(ScopeChangeError::Scope(_)) => {}
        }
        gained.insert(to.to_string());
        Ok(())
    }

    /// Fetches, and keeps the cookies that come with the answer over restarts.
    pub(super) async fn fetch(&self, request: &Request) -> Result<Fetched, VisitError> {
        let fetched = self.fetcher.fetch(request).await?;
        let sets = fetched.http.as_ref().is_some_and(|head| head.get("Set-Cookie").is_some());
        if sets && self.template.fetch.cookies {
            self.kept_cookies.keep(&self.fetcher, &self.frontier, &request.url)?;
        }
        Ok(fetched)
    }

    /// Lets hosts be tried again that could not be reached: all, or those of one queue. Returns how many queues waited.
    pub(super) fn revive(&self, queue: Option<&str>, now: Timestamp) -> Result<u64, FrontierError> {
        self.hosts.revive(now);
        self.contacts.forget_failures();
        self.frontier.revive(queue, now)
    }

    /// Whether all that a queue holds is for servers that fail, while another of its servers answers.
    pub(super) fn has_answered_in_part(&self, queue: &str) -> Result<bool, FrontierError> {
        let failing = self.contacts.failing(queue);
        if !failing.iter().all(|server| self.contacts.answers_elsewhere(queue, server)) || failing.is_empty()
        {
            return Ok(false);
        }
        let is_other = |url: &str| Url::parse(url).is_ok_and(|url| !failing.contains(&*authority(&url)));
        Ok(self.frontier.any_in_queue(queue, &is_other)? == Some(false))
    }

    /// Whether a URL is one of the sites that are crawled, or a part that their pages embed.
    pub(super) fn is_own(&self, host: &str) -> bool {
        self.scope.current().is_own_host(host)
    }

    /// Whether a page repeats what many others of its site said, so that its links lead nowhere new.
    pub(super) fn is_repetition(&self, url: &Url, digest: &[u8]) -> bool {
        self.repeated.lock().unwrap_or_else(PoisonError::into_inner).suppresses(url, digest)
    }

    /// Notes what came under a URL, if that has a session id.
    pub(super) fn observe_session_path(&self, url: &Url, content: Content<'_>) -> Observation {
        if self.template.scope.max_session_repetitions == 0 {
            return Observation::default();
        }
        // The lock is for all workers; the work is done before.
        let Some(seen) = ShapeContent::of(url, content) else { return Observation::default() };
        self.session_paths.lock().unwrap_or_else(PoisonError::into_inner).observe(seen)
    }

    /// Whether a URL is one more session of a page that was fetched often enough, and what to keep of that.
    pub(super) fn leaves_session_alone(&self, url: &Url) -> (bool, Option<Mark>) {
        let mut paths = self.session_paths.lock().unwrap_or_else(PoisonError::into_inner);
        let (left_alone, record) = paths.leaves_alone(url);
        (left_alone, record.map(|(hash, record)| changes::shape(hash, &record)))
    }

    /// Takes note of a URL that goes back to its queue because the network is away.
    pub(super) fn put_session_back(&self, url: &Url) {
        self.session_paths.lock().unwrap_or_else(PoisonError::into_inner).put_back(url);
    }

    /// Notes why a candidate is not ours.
    pub(super) fn note_rejected(
        &self,
        scope: &Scope,
        decision: Decision,
        candidate: &Candidate,
        lines: &mut Vec<u8>,
    ) {
        let mut log = self.scope_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.note(self.clock.now(), scope, decision, candidate, lines);
    }
}
