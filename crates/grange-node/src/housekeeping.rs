//! What every node does on the side: say that it lives, give back the work of the dead, drop expired sessions,
//! copy the embedded database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use grange_base::worker::{Hint, Step};
use grange_base::{Clock, Shutdown, Worker, WorkerError};
use grange_db::{Db, Error};
use grange_model::ids::NodeId;

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

/// Says that the node lives.
pub async fn heartbeat(
    db: Db,
    node: NodeId,
    every: Duration,
    clock: Clock,
    shutdown: Shutdown,
    free_bytes: impl Fn() -> Option<u64> + Send,
) -> Result<(), WorkerError> {
    let worker = Worker { name: "heartbeat".to_owned(), interval: every, clock, shutdown, hint: Hint::new() };
    let free_bytes = &free_bytes;
    let db = &db;
    worker
        .run(|| async move {
            let free = free_bytes();
            if let Some(bytes) = free {
                metrics::gauge!("grange_data_free_bytes").set(bytes as f64);
            }
            db.nodes().heartbeat(node, free).await?;
            Ok::<_, Error>(Step::Idle)
        })
        .await
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
}
