//! Lookups that may read every capture of a URL, on threads that may compute: on those that answer requests they would hold up
//! everybody else's.

use tokio::sync::Semaphore;

/// Lookups at a time. Nobody's reading holds them up, so the next ones wait their turn.
static PERMITS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);
const LOOKUPS_MAX: usize = 16;

/// Rows read on a thread that answers requests. Some two milliseconds: nobody else on it notices.
pub(crate) const SHORT_ROWS_MAX: u64 = 2_000;

/// Runs a lookup. `None`: the server stops.
pub(crate) async fn run<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let permit = PERMITS.acquire().await.ok()?;
    let looked = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        look()
    });
    match looked.await {
        Ok(found) => Some(found),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// Takes all permits, so that a test can see what waits for them.
#[cfg(test)]
pub(crate) async fn occupied() -> tokio::sync::SemaphorePermit<'static> {
    PERMITS.acquire_many(LOOKUPS_MAX as u32).await.unwrap()
}
