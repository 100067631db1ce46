//! What every node does on the side: say that it lives, give back the work of the dead, drop expired sessions,
//! copy the embedded database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use grange_base::worker::{Hint, Step};
use grange_base::{Chain, Clock, Shutdown, Worker, WorkerError};
use grange_db::{ClockSkew, Db, Error, NewNode, NodeHeartbeat};

use crate::health::Health;

/// How often expired leases and sessions are looked for. Claims take expired leases by themselves, so this is
/// only for those that watch the counts.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// How long a finding that is over can still be listed: a quarter, to see what comes back.
const FINDINGS_KEPT: Duration = Duration::from_hours(90 * 24);

/// Removes scratch folders that a killed process left in the spool. The node holds the data folder alone.
pub fn clear_scratch(spool: &Path) {
    for entry in std::fs::read_dir(spool).into_iter().flatten().flatten() {
        let scratch = entry.file_name().to_string_lossy().starts_with(".tmp");
        if scratch && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "a left scratch folder was not removed");
        }
    }
}

/// What a heartbeat reports.
pub struct Heart {
    pub db: Db,
    /// The node's own row, for a register that has lost it.
    pub node: NewNode,
    pub health: Health,
    /// Beyond this the clock of the machine is reported as wrong; zero never does.
    pub clock_skew_max: Duration,
    pub free_bytes: Box<dyn Fn() -> Option<u64> + Send + Sync>,
}

impl std::fmt::Debug for Heart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heart").field("node", &self.node.id).finish_non_exhaustive()
    }
}

/// Says that the node lives, and how far its clock is from the database's.
pub async fn heartbeat(
    heart: Heart,
    every: Duration,
    clock: Clock,
    shutdown: Shutdown,
) -> Result<(), WorkerError> {
    let worker = Worker { name: "heartbeat".to_owned(), interval: every, clock, shutdown, hint: Hint::new() };
    let heart = &heart;
    let wrong = &std::sync::atomic::AtomicBool::new(false);
    let lost = &std::sync::atomic::AtomicBool::new(false);
    worker
        .run(|| async move {
            let free_bytes = (heart.free_bytes)();
            if let Some(bytes) = free_bytes {
                metrics::gauge!("grange_data_free_bytes").set(bytes as f64);
            }
            if let Err(error @ Error::FileLost { .. }) = heart.db.ping().await {
                // Once: /readyz goes on showing it, and every act that changes something is refused with it.
                if !lost.swap(true, std::sync::atomic::Ordering::Relaxed) {
                    tracing::error!(error = %Chain(&error), "the database file is lost; the node is not ready and changes nothing");
                }
                return Ok(Step::Idle);
            }
            lost.store(false, std::sync::atomic::Ordering::Relaxed);
            let skew = heart.db.compare_clocks().await?;
            if let Some(skew) = skew {
                metrics::gauge!("grange_clock_ahead_seconds").set(skew.ahead.as_secs_f64());
                let reason = clock_fault(&skew, heart.clock_skew_max);
                // Once for each change: the check and the gauge go on showing it.
                if wrong.swap(reason.is_some(), std::sync::atomic::Ordering::Relaxed) != reason.is_some() {
                    if let Some(reason) = &reason {
                        tracing::warn!(reason, "the clock of this machine is wrong");
                    } else {
                        tracing::info!("the clock of this machine is right again");
                    }
                }
                heart.health.clock_is_wrong(reason);
            }
            let clock_ahead_ms = skew.map(|skew| skew.ahead.as_millis() as i64);
            beat(heart, NodeHeartbeat { free_bytes, clock_ahead_ms }).await?;
            Ok::<_, Error>(Step::Idle)
        })
        .await
}

/// One heartbeat. A node that the register does not know, because a person forgot it or the database was restored, enters
/// itself again.
async fn beat(heart: &Heart, beat: NodeHeartbeat) -> Result<(), Error> {
    match heart.db.nodes().heartbeat(heart.node.id, beat).await {
        Err(Error::NotFound { .. }) => {
            tracing::warn!(node.id = %heart.node.id, "the register of nodes did not know this node: it registers again");
            heart.db.nodes().register(heart.node.clone()).await?;
            heart.db.nodes().heartbeat(heart.node.id, beat).await
        }
        done => done,
    }
}

/// What is wrong with the machine's clock, if it is.
fn clock_fault(skew: &ClockSkew, most: Duration) -> Option<String> {
    if most.is_zero() || skew.ahead.unsigned_abs() <= most {
        return None;
    }
    let (seconds, side) = (
        skew.ahead.unsigned_abs().as_secs_f64(),
        if skew.ahead.is_negative() { "behind" } else { "ahead of" },
    );
    Some(format!(
        "this machine's clock ({}) is {seconds:.1} s {side} the database's ({}); plans go by the database's, but S3 stores \
         and certificates by this machine's: set it, or run NTP",
        skew.machine, skew.database
    ))
}

/// Gives back the work of dead claimers and drops sessions whose time has passed.
pub async fn sweep(db: Db, clock: Clock, shutdown: Shutdown, wake: Hint) -> Result<(), WorkerError> {
    let worker = Worker { name: "sweep".to_owned(), interval: SWEEP_EVERY, clock, shutdown, hint: wake };
    let db = &db;
    worker
        .run(|| async move {
            let expired = db.work().expire().await?;
            if expired > 0 {
                tracing::info!(expired, "work of dead claimers is free again");
            }
            db.sessions().expire().await?;
            db.findings().forget(FINDINGS_KEPT).await?;
            Ok::<_, Error>(Step::Idle)
        })
        .await
}

/// Copies the SQLite database at its interval and keeps the newest few copies.
pub async fn back_up(
    db: Db,
    folder: PathBuf,
    every: Duration,
    keep: usize,
    clock: Clock,
    shutdown: Shutdown,
) -> Result<(), WorkerError> {
    // The first copy is due one interval after the newest one there is, whatever restarts happened meanwhile.
    let worker = Worker {
        name: "backup".to_owned(),
        interval: every.min(Duration::from_secs(600)),
        clock: clock.clone(),
        shutdown,
        hint: Hint::new(),
    };
    let (db, folder, clock) = (&db, &folder, &clock);
    worker
        .run(|| async move {
            if grange_db::backup_due(folder, every, clock.now())? {
                let path = db.backup_into(folder).await?;
                tracing::info!(path = %path.display(), "database copied");
                grange_db::prune_backups(folder, keep)?;
            }
            Ok::<_, Error>(Step::Idle)
        })
        .await
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    #[test]
    fn scratch_folders_of_killed_processes_go_and_other_things_stay() {
        let spool = tempfile::tempdir().unwrap();
        std::fs::create_dir(spool.path().join(".tmpAb12")).unwrap();
        std::fs::write(spool.path().join(".tmpAb12/1-metadata-1.warc.gz"), b"bytes").unwrap();
        std::fs::write(spool.path().join("0190"), b"an upload").unwrap();
        clear_scratch(spool.path());
        let left: Vec<_> =
            std::fs::read_dir(spool.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["0190"]);
        clear_scratch(&spool.path().join("absent"));
    }

    #[tokio::test]
    async fn a_node_that_was_forgotten_while_it_runs_is_in_the_register_again() {
        let dir = tempfile::tempdir().unwrap();
        let (settings, clock) = (grange_db::Settings::default(), Clock::system());
        Db::migrate(&settings, dir.path(), &clock).await.unwrap();
        let db = Db::open(&settings, dir.path(), clock).await.unwrap();
        let node = NewNode {
            id: grange_model::ids::NodeId::new(),
            name: "a".to_owned(),
            host: "a".to_owned(),
            roles: Vec::new(),
            version: "1".to_owned(),
            addresses: std::collections::BTreeMap::new(),
            free_bytes: None,
        };
        let heart = Heart {
            db: db.clone(),
            node: node.clone(),
            health: Health::default(),
            clock_skew_max: Duration::ZERO,
            free_bytes: Box::new(|| None),
        };
        assert!(db.nodes().get(node.id).await.unwrap().is_none());
        let report = NodeHeartbeat { free_bytes: Some(7), clock_ahead_ms: None };
        beat(&heart, report).await.unwrap();
        let row = db.nodes().get(node.id).await.unwrap().unwrap();
        assert_eq!((row.name.as_str(), row.free_bytes), ("a", Some(7)));
        beat(&heart, report).await.unwrap();
        assert_eq!(db.nodes().get(node.id).await.unwrap().unwrap().started_at, row.started_at);
    }

    #[test]
    fn a_clock_that_differs_by_more_than_is_allowed_is_told_with_both_times() {
        let database = Timestamp::from_second(1_000_000).unwrap();
        let skew = |seconds| {
            let ahead = SignedDuration::from_secs(seconds);
            ClockSkew { ahead, machine: database + ahead, database }
        };
        let most = Duration::from_secs(5);
        for (seconds, expected) in
            [(0, None), (5, None), (-5, None), (6, Some("6.0 s ahead of")), (-3600, Some("3600.0 s behind"))]
        {
            let said = clock_fault(&skew(seconds), most);
            assert_eq!(said.is_some(), expected.is_some(), "{seconds}: {said:?}");
            for (said, expected) in said.iter().zip(expected) {
                assert!(said.contains(expected) && said.contains("1970-01-12T13:46:40Z"), "{said}");
            }
        }
        assert_eq!(clock_fault(&skew(3600), Duration::ZERO), None);
    }
}
