//! A scope that can be changed while the crawl runs.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::chain::Scope;

/// The scope as it is now. Whoever decides takes [`LiveScope::current`] once for a page, so that all its links are
/// judged alike.
#[derive(Debug)]
pub struct LiveScope {
    current: RwLock<Arc<Scope>>,
    /// Held by whoever makes the next one, so that no change is lost.
    changing: Mutex<()>,
}

impl LiveScope {
    pub fn new(scope: Scope) -> LiveScope {
        LiveScope { current: RwLock::new(Arc::new(scope)), changing: Mutex::new(()) }
    }

    pub fn current(&self) -> Arc<Scope> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Exchanges the scope for the one that `next` makes of it, unless that fails. Changes follow one another. Many
    /// expressions take a moment to compile; readers meanwhile get the old scope.
    pub fn change<E>(&self, next: impl FnOnce(&Scope) -> Result<Scope, E>) -> Result<(), E> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(next(&self.current())?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}
