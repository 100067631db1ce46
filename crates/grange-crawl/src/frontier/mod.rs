//! Every URL that was ever seen, and the queues of those still to do, on disk.
//!
//! Many workers call [`Frontier::next`]; one committer calls [`Frontier::finish`] with what they did. Nothing here
//! waits for time: [`Next::Wait`] says until when, and [`Frontier::changed`] wakes earlier.
//!
//! # Invariants
//!
//! * A URL is in its queue on disk from the batch that queued it to the batch that finished it. What is in flight is
//!   known in memory only: after a crash it is handed out again, and nothing else is.
//! * A batch is on its way to disk, out of reach of a killed process, before its call returns; [`Frontier::sync`] puts
//!   it there. Marks of the recorder stand and fall with their batch.
//! * Per queue no more are in flight than the settings say (one), and none beside a prerequisite. Order is by priority,
//!   then by hops, then by arrival.
//! * Objects done and in flight never exceed a budget. With a byte budget a domain has one URL in flight, so the record
//!   that reaches the limit is its last.
//! * Memory holds the heads of queues, never what is in them: some hundred bytes per queue, nothing per URL.

mod budget;
mod canonical;
mod control;
mod error;
mod failing;
mod finish;
mod gate;
mod import;
pub(crate) mod item;
mod key;
mod open;
mod place;
mod queue;
mod running;
mod seen;
mod settings;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod view;
mod work;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub use self::error::{FrontierError, Result};
pub use self::failing::{FailingQueue, WaitingQueues};
pub use self::import::EarlierVisit;
pub use self::place::queue_host;
pub use self::settings::{Canonical, Priorities, QueueBy, Settings};
pub use self::view::{Counts, DomainResult, Peeked, QueueCounts, QueueFilter, QueueState, QueueView};
pub use self::work::{Added, Claim, Finished, Next, Outcome, Resumed};

use self::finish::Writer;
use self::state::State;
use self::store::Store;
use crate::candidate::Candidate;
use crate::job::Budgets;

/// The frontier of one crawl. All methods may be called from any thread; the locks are held for short.
pub struct Frontier {
    settings: Settings,
    store: Store,
    /// Taken before `state`, never after it.
    writer: Mutex<Writer>,
    state: Mutex<State>,
    changed: Notify,
}

impl std::fmt::Debug for Frontier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frontier").field("folder", &self.store.folder()).finish_non_exhaustive()
    }
}

impl Frontier {
    /// Opens the frontier in `folder`, or begins one there. The running time goes on from now.
    pub fn open(
        folder: &Path,
        settings: Settings,
        budgets: Budgets,
        now: Timestamp,
    ) -> Result<(Frontier, Resumed)> {
        let now = now.as_millisecond();
        let store = Store::open(folder, settings.cache.0)?;
        let opened = open::load(&store, &settings, budgets, now)?;
        let resumed =
            Resumed { is_new: opened.is_new, counts: opened.state.counts(now), marks: opened.marks };
        let frontier = Frontier {
            settings,
            store,
            writer: Mutex::new(opened.writer),
            state: Mutex::new(opened.state),
            changed: Notify::new(),
        };
        Ok((frontier, resumed))
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues what was not seen before, and what is forced. Safe from a killed process when it returns.
    pub fn add(&self, candidates: &[Candidate], now: Timestamp) -> Result<Added> {
        self.write(&[], candidates, &[], now.as_millisecond())
    }

    /// As [`Frontier::add`], together with `marks`: all of it or nothing.
    pub fn add_with_marks(
        &self,
        candidates: &[Candidate],
        marks: &[(String, Vec<u8>)],
        now: Timestamp,
    ) -> Result<Added> {
        self.write(&[], candidates, marks, now.as_millisecond())
    }

    /// Writes `marks` alone and removes those named in `obsolete`, in one batch. Safe from a killed process when it
    /// returns.
    pub fn put_marks(&self, marks: &[(String, Vec<u8>)], obsolete: &[String]) -> Result<()> {
        let mut batch = self.store.batch();
        let new: HashSet<&str> = marks.iter().map(|(name, _)| name.as_str()).collect();
        for name in obsolete.iter().filter(|name| !new.contains(name.as_str())) {
            batch.remove(&self.store.facts, store::named(b'm', name));
        }
        for (name, value) in marks {
            batch.insert(&self.store.facts, store::named(b'm', name), value.as_slice());
        }
        self.store.commit(batch)
    }

    /// The next URL to fetch, or how long there is none. Whoever gets one and does not finish it blocks its queue.
    pub fn next(&self, now: Timestamp) -> Result<Next> {
        let mut state = self.lock_state();
        let next = state.next(&self.store, now.as_millisecond())?;
        let has_more = matches!(next, Next::Uri(_)) && state.has_ready();
        drop(state);
        if has_more {
            // One call for one worker; this one passes it on.
            self.changed.notify_one();
        }
        Ok(next)
    }

    /// Completes when something may be ready that was not. A change between [`Frontier::next`] and this call is not
    /// missed. One worker is woken at a time; its `next` wakes another if there is more.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Finishes claims and queues what was found in them, with `marks` of the recorder and the engine: all of it or
    /// nothing. Safe from a killed process when it returns.
    pub fn finish(&self, batch: &[Finished], marks: &[(String, Vec<u8>)], now: Timestamp) -> Result<Added> {
        self.write(batch, &[], marks, now.as_millisecond())
    }

    /// Makes everything finished so far safe from a dying machine.
    pub fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    /// Takes the space that the next commits need on the disk now, so that a full disk does not break the frontier.
    pub fn reserve(&self) -> std::io::Result<()> {
        self.store.reserve()
    }

    /// Where a host lives, for the limit per address.
    pub fn set_address(&self, host: &str, ip: IpAddr) {
        self.lock_state().set_address(host, ip);
    }

    /// Keeps something about a host (its robots.txt, say) over restarts.
    pub fn put_host(&self, host: &str, key: &str, value: &[u8]) -> Result<()> {
        let mut batch = self.store.batch();
        batch.insert(&self.store.facts, store::host_key(host, key), value);
        self.store.commit(batch)
    }

    pub fn get_host(&self, host: &str, key: &str) -> Result<Option<Vec<u8>>> {
        let value = self.store.facts.get(store::host_key(host, key)).map_err(self.store.failed("read"))?;
        Ok(value.map(|value| value.to_vec()))
    }

    /// What every lock guards is changed only after the disk has it, so a panic elsewhere leaves it whole.
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
