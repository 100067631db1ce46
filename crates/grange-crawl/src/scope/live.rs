//! A scope that can be changed while the crawl runs.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::chain::{Scope, ScopeError};

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

    /// Puts what more seeds stand for into scope; all of them or, when one is no URL, none.
    pub fn add_seeds<S: AsRef<str>>(&self, seeds: &[S]) -> Result<(), ScopeError> {
        self.change(|scope| scope.with_seeds(seeds))
    }

    /// Rejects what `pattern` matches from now on. What is queued already must be decided again.
    pub fn add_reject_regex(&self, pattern: &str) -> Result<(), ScopeError> {
        self.change(|scope| scope.with_reject_regex(pattern))
    }

    /// Changes follow one another. Many expressions take a moment to compile; whoever reads goes on with the old
    /// scope meanwhile.
    fn change(&self, next: impl FnOnce(&Scope) -> Result<Scope, ScopeError>) -> Result<(), ScopeError> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(next(&self.current())?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}
