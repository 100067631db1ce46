//! Waiting for backends: a node whose database, bus or store is away starts, says so, and goes on when it is there.

use std::future::Future;
use std::time::Duration;

use grange_app::OpenArchive;
use grange_base::retry::jittered;
use grange_base::{Chain, Retry, RetryPolicy, Shutdown};

use crate::health::Health;
use crate::node::StartError;

/// Between two tries: an outage of hours is noticed to be over within seconds, and nobody is flooded meanwhile.
const TRIES: RetryPolicy =
    RetryPolicy { first: Duration::from_millis(200), most: Duration::from_secs(5), attempts: 0 };

/// A store that has not answered for this long is away, for now. Its own client tries several times.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Calls `open` until it succeeds. Errors that nothing but a person can end come back at once.
pub(crate) async fn until_there<T, F>(
    backend: &'static str,
    health: &Health,
    stop: &Shutdown,
    mut open: impl FnMut() -> F,
) -> Result<T, StartError>
where
    F: Future<Output = Result<T, StartError>>,
{
    let mut tries: u32 = 0;
    loop {
        let error = match stop.or(open()).await.ok_or(StartError::Stopped)? {
            Ok(there) => {
                health.waits_for(backend, None);
                if tries > 0 {
                    tracing::info!(backend, tries, "the node waited, and goes on");
                }
                return Ok(there);
            }
            Err(error) => error,
        };
        tries += 1;
        let Some(wait) = TRIES.wait(tries, error.retry()) else { return Err(error) };
        let reason = Chain(&error).to_string();
        // More and more seldom: an outage of a day is some fifteen lines.
        if tries.is_power_of_two() {
            tracing::warn!(backend, reason, tries, "the node waits for a backend and is not ready");
        }
        health.waits_for(backend, Some(reason));
        stop.or(tokio::time::sleep(jittered(wait))).await.ok_or(StartError::Stopped)?;
    }
}

/// Opens the archive, or finds out that it must be waited for: then [`keep_opening`] does.
pub(crate) async fn try_archive(archive: &OpenArchive, health: &Health) -> Result<bool, StartError> {
    let reason = match tokio::time::timeout(ANSWER_WITHIN, archive.archive()).await {
        Ok(Ok(_)) => return Ok(true),
        Ok(Err(error)) if error.retry() == Retry::No => return Err(error.into()),
        Ok(Err(error)) => Chain(&error).to_string(),
        Err(_) => format!("a replica has not answered for {} s", ANSWER_WITHIN.as_secs()),
    };
    tracing::warn!(reason, "the archive cannot be opened yet; the node is not ready");
    health.waits_for("archive", Some(reason));
    Ok(false)
}

/// Opens the archive in the background. Meanwhile everything that needs it waits or is refused with the reason.
pub(crate) async fn keep_opening(
    archive: OpenArchive,
    health: Health,
    shutdown: Shutdown,
    archiver: bool,
) -> Result<(), StartError> {
    let open = || async { archive.archive().await.map(|_| ()).map_err(StartError::from) };
    match until_there("archive", &health, &shutdown, open).await {
        Ok(()) => {
            if archiver && let Some(archive) = archive.opened() {
                crate::roles::look_for_strays(archive).await;
            }
            // A part of the node lives as long as the node.
            shutdown.wait().await;
        }
        Err(StartError::Stopped) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The archive once it is open; `None` when the node stops before. The first one that asks opens it for all.
pub(crate) async fn opened(archive: &OpenArchive, shutdown: &Shutdown) -> Option<grange_archive::Archive> {
    let mut tries = 0;
    loop {
        if let Ok(archive) = shutdown.or(archive.archive()).await? {
            return Some(archive.clone());
        }
        tries += 1;
        let wait = TRIES.wait(tries, Retry::Soon).unwrap_or(TRIES.most);
        shutdown.or(tokio::time::sleep(jittered(wait))).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use grange_base::Trigger;

    use super::*;

    fn away() -> StartError {
        let error = grange_blob::Error::Refused {
            place: "s3://b/".to_owned(),
            doing: "list".to_owned(),
            status: 503,
            reason: "SlowDown".to_owned(),
        };
        StartError::Archive(error.into())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_away_is_waited_for_and_the_reason_is_shown_meanwhile() {
        let (health, tries) = (Health::default(), AtomicU32::new(0));
        let seen = health.clone();
        let open = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                0..3 => Err(away()),
                _ => Ok(seen.waiting()),
            }
        };
        let seen = until_there("archive", &health, &Shutdown::never(), open).await.unwrap().unwrap();
        assert!(seen.starts_with("archive: ") && seen.contains("SlowDown"), "{seen}");
        assert_eq!((tries.load(Ordering::Relaxed), health.waiting()), (4, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_setting_is_not_waited_for_and_a_stop_ends_the_waiting() {
        let health = Health::default();
        let wrong = || async { Err::<(), _>(StartError::UserHeader("?".to_owned())) };
        let error = until_there("archive", &health, &Shutdown::never(), wrong).await.unwrap_err();
        assert!(matches!(error, StartError::UserHeader(_)));
        let trigger = Trigger::new();
        let stop = trigger.listener();
        let waiting = until_there("archive", &health, &stop, || async { Err::<(), _>(away()) });
        let (ended, ()) = tokio::join!(waiting, async { trigger.pull() });
        assert!(matches!(ended, Err(StartError::Stopped)));
    }
}
