//! Waiting for a condition instead of sleeping.

use std::time::{Duration, Instant};

/// The patience of every test that waits: long enough for a loaded two-core machine; a test that needs it all has found a hang.
pub const LONGEST: Duration = Duration::from_secs(150);

/// Between two looks: soon enough to act while a fast process is still at it.
const PAUSE: Duration = Duration::from_millis(2);

/// Polls until `condition` holds; fails the test when that takes too long, naming what never came.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} in vain for: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same where nothing is async: asks until there is an answer, and gives it.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        let asked = Instant::now();
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} in vain for: {what}");
        // A question that is work itself (a process, say) must not starve what it waits for.
        std::thread::sleep(PAUSE.max(asked.elapsed() * 2));
    }
}
