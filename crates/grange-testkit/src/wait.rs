//! Waiting for a condition instead of sleeping.

use std::future::Future;
use std::time::{Duration, Instant};

/// Long enough for a loaded two-core machine; a test that needs it all has found a hang.
const LONGEST: Duration = Duration::from_secs(60);

/// Polls until `condition` holds; fails the test after a minute, naming what never came.
pub async fn until<F>(what: &str, mut condition: impl FnMut() -> F)
where
    F: Future<Output = bool>,
{
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
