//! Orderly ends. A [`Trigger`] is pulled once; every [`Shutdown`] made from it hears it.

use std::future::Future;

use tokio_util::sync::CancellationToken;

/// The listening side: cheap to clone, handed to whoever runs until told to stop.
#[derive(Clone, Debug)]
pub struct Shutdown(CancellationToken);

/// The pulling side.
#[derive(Clone, Debug, Default)]
pub struct Trigger(CancellationToken);

impl Trigger {
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells everyone to stop. Pulling twice is pulling once.
    pub fn pull(&self) {
        self.0.cancel();
    }

    pub fn pulled(&self) -> bool {
        self.0.is_cancelled()
    }

    pub fn listener(&self) -> Shutdown {
        Shutdown(self.0.clone())
    }

    /// A trigger below a listener: stops on its own or with everything above it.
    pub fn below(above: &Shutdown) -> Self {
        Self(above.0.child_token())
    }
}

impl Shutdown {
    /// A shutdown that never comes, for tools that run to their own end.
    pub fn never() -> Self {
        Self(CancellationToken::new())
    }

    pub fn requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when shutdown is requested, at once if it was before.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }

    /// Runs `work` to its end, or gives `None` if shutdown comes first (the work is dropped at its await point).
    pub async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.run_until_cancelled(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_stops_alone_but_a_parent_stops_all() {
        let parent = Trigger::new();
        let child = Trigger::below(&parent.listener());
        let other = Trigger::below(&parent.listener());
        child.pull();
        assert!(child.pulled() && !parent.pulled() && !other.pulled());
        parent.pull();
        assert!(other.pulled());
        assert_eq!(other.listener().or(std::future::pending::<()>()).await, None);
    }
}
