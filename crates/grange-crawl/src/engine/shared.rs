//! What all workers of a crawl hold in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_base::Clock;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::commit::{Ledger, Message};
use super::hosts::Hosts;
use super::login::Logins;
use super::meter::Meter;
use crate::candidate::Candidate;
use crate::fetch::{FetchError, Fetcher};
use crate::frontier::{Frontier, FrontierError};
use crate::job::{Budgets, Job, Limits};
use crate::record::oracle::{DedupRules, DuplicateOracle};
use crate::record::parcel::Scratch;
use crate::record::recorder::Desk;
use crate::scope::{Decision, LiveScope, RepeatedContent, Scope, ScopeLog};
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
    pub(super) fetcher: Fetcher,
    pub(super) scanner: Option<Scanner>,
    pub(super) logins: Logins,
    pub(super) hosts: Hosts,
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

impl Shared {
    fn budgets(&self) -> MutexGuard<'_, Budgets> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of the whole crawl.
    pub(super) fn limits(&self) -> Limits {
        self.budgets().crawl
    }

    /// Changes the limits of a domain, or of the whole crawl.
    pub(super) fn set_limits(&self, domain: Option<String>, limits: Limits) {
        let mut budgets = self.budgets();
        match domain {
            None => budgets.crawl = limits,
            Some(domain) => {
                let other = budgets.other_domains;
                budgets.domains.entry(domain).or_insert(other).limits = limits;
            }
        }
        self.frontier.set_budgets(budgets.clone(), self.clock.now());
    }

    /// Takes what a seed redirects to as a seed, if the template says so.
    pub(super) fn follow_seed(&self, scope: &Scope, from: &Url, to: &Url) {
        if scope.takes_redirected_seed(from, to) {
            // It has a host, so it can be a seed.
            let _ = self.scope.add_seeds(&[to.as_str()]);
        }
    }

    /// Whether a page repeats what many others of its site said, so that its links lead nowhere new.
    pub(super) fn is_repetition(&self, url: &Url, digest: &[u8]) -> bool {
        self.repeated.lock().unwrap_or_else(PoisonError::into_inner).suppresses(url, digest)
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
