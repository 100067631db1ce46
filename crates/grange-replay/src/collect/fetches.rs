//! Copies of indexes that are fetched for a takeover, beside the other work of a node: a large one takes hours.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grange_db::IndexLease;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use super::feeder::FeedError;

/// Copies fetched at once: a node that takes over hundreds of indexes neither opens hundreds of connections nor gets all of
/// them ready only at the very end.
const AT_ONCE: usize = 4;

/// The fetches under way, by collection. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct IndexFetches {
    all: Arc<Mutex<HashMap<String, IndexFetch>>>,
    turns: Arc<Semaphore>,
}

impl Default for IndexFetches {
    fn default() -> Self {
        Self { all: Arc::default(), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

#[derive(Debug)]
struct IndexFetch {
    lease: IndexLease,
    task: JoinHandle<Result<(), FeedError>>,
}

impl IndexFetches {
    /// Waits until fewer than the most are fetched. It counts until it is dropped.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    pub(super) fn are_under_way(&self) -> bool {
        !self.all().is_empty()
    }

    /// Whether the copy is still being fetched under this lease.
    pub(super) fn is_running(&self, lease: &IndexLease) -> bool {
        let all = self.all();
        all.get(&lease.collection).is_some_and(|fetch| fetch.lease == *lease && !fetch.task.is_finished())
    }

    /// The fetch under this lease. One under another lease ends.
    pub(super) fn take(&self, lease: &IndexLease) -> Option<JoinHandle<Result<(), FeedError>>> {
        let fetch = self.all().remove(&lease.collection)?;
        if fetch.lease == *lease {
            return Some(fetch.task);
        }
        fetch.task.abort();
        None
    }

    pub(super) fn put(&self, lease: &IndexLease, task: JoinHandle<Result<(), FeedError>>) {
        self.all().insert(lease.collection.clone(), IndexFetch { lease: lease.clone(), task });
    }

    /// Ends the fetch for a collection.
    pub(super) fn end(&self, collection: &str) {
        if let Some(fetch) = self.all().remove(collection) {
            fetch.task.abort();
        }
    }

    /// Ends those for collections that are not listed any more.
    pub(super) fn retain(&self, is_listed: impl Fn(&str) -> bool) {
        self.all().retain(|name, fetch| {
            let listed = is_listed(name);
            if !listed {
                fetch.task.abort();
            }
            listed
        });
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, IndexFetch>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
