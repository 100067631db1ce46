//! The roles a node can play. Each is one function below that starts it; starting order is this file's order.

use std::sync::Arc;
use std::time::Duration;

use grange_app::{App, OpenArchive};
use grange_archive::Archive;
use grange_base::worker::Hint;
use grange_base::{Chain, Clock, Worker};
use grange_bus::{Announcer, Bus, Waker};
use grange_db::Db;
use grange_model::HighestNumbers;
use grange_model::harvest::HarvestKind;
use grange_model::ids::NodeId;
use grange_model::node::NodeRole;
use grange_schedule::Scheduler;

use crate::health::{self, Health};
use crate::settings::Settings;
use crate::supervise::Parts;
use crate::waiting::opened;

/// The roles this version has. Others of the design are refused by name until their code is there.
pub const AVAILABLE: &[NodeRole] = &[
    NodeRole::Bitarchive,
    NodeRole::Archiver,
    NodeRole::Scheduler,
    NodeRole::Harvester,
    NodeRole::Indexer,
    NodeRole::Replay,
    NodeRole::Oai,
    NodeRole::Swap,
    NodeRole::Admin,
];

/// A role was asked for that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error("this version of Grange does not have the role {role} yet; it has {}", names(AVAILABLE))]
    Unknown { role: NodeRole },
    #[error(
        "the role swap has no partitions: make one with `grange swap init DIR` and name it in swap.partitions"
    )]
    NoPartitions,
}

fn names(roles: &[NodeRole]) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The roles to play: what was asked for, each once, in starting order; everything when nothing was asked, SWAP only
/// where it has `partitions`.
pub fn chosen(asked: &[NodeRole], partitions: bool) -> Result<Vec<NodeRole>, RoleError> {
    if let Some(role) = asked.iter().find(|role| !AVAILABLE.contains(role)) {
        return Err(RoleError::Unknown { role: *role });
    }
    if asked.contains(&NodeRole::Swap) && !partitions {
        return Err(RoleError::NoPartitions);
    }
    let all = AVAILABLE.iter().copied().filter(|role| partitions || *role != NodeRole::Swap);
    Ok(all.filter(|role| asked.is_empty() || asked.contains(role)).collect())
}

/// How often an idle archiver looks for work that nobody hinted at.
const ARCHIVE_EVERY: Duration = Duration::from_secs(5);
/// How often the calendar of checks is looked at.
const CALENDAR_EVERY: Duration = Duration::from_secs(60);

/// Archiver: stores that are not proven yet, repairs that were confirmed, checks, and the calendar of them.
pub fn archiver(parts: &mut Parts, archive: &OpenArchive, clock: &Clock) {
    let worker = |name: &str, interval| {
        let (name, clock) = (name.to_owned(), clock.clone());
        move |shutdown, hint| Worker { name, interval, clock, shutdown, hint }
    };
    // All begin when the archive is open: a replica may be away while the node starts.
    let (files, late) = (worker("archive", ARCHIVE_EVERY), archive.clone());
    parts.start("archiver", |shutdown| async move {
        let Some(archive) = opened(&late, &shutdown).await else { return Ok(()) };
        let stop = shutdown.clone();
        files(shutdown, archive.hint().clone()).run(|| archive.store_step(&stop)).await
    });
    // A worker of their own: a repair reads whole files and waits for other work on its file, and no store waits for that.
    let (repairs, late) = (worker("repairs", ARCHIVE_EVERY), archive.clone());
    parts.start("repairs", |shutdown| async move {
        let Some(archive) = opened(&late, &shutdown).await else { return Ok(()) };
        let stop = shutdown.clone();
        repairs(shutdown, Hint::new()).run(|| archive.repair_step(&stop)).await
    });
    // A worker of their own: a check reads for hours, and no copy that is due waits for it.
    let (checks, late) = (worker("audits", ARCHIVE_EVERY), archive.clone());
    parts.start("audits", |shutdown| async move {
        let Some(archive) = opened(&late, &shutdown).await else { return Ok(()) };
        let stop = shutdown.clone();
        checks(shutdown, archive.audit_hint().clone()).run(|| archive.audit_step(&stop)).await
    });
    let (calendar, late) = (worker("calendar", CALENDAR_EVERY), archive.clone());
    parts.start("calendar", |shutdown| async move {
        let Some(archive) = opened(&late, &shutdown).await else { return Ok(()) };
        calendar(shutdown, Hint::new()).run(|| archive.tick()).await
    });
}

/// How long a start waits for the comparison of names: an archive of millions of files takes longer, and plans jobs
/// meanwhile.
const STRAYS_WITHIN: Duration = Duration::from_secs(30);

/// Compares the names on a replica with the rows before any job is numbered: a database that was restored without
/// `grange restore` has forgotten files, and their numbers must not be given again.
pub async fn look_for_strays(archive: &Archive) {
    let archive = archive.clone();
    let look = tokio::spawn(async move {
        match archive.look_for_strays().await {
            Ok(None | Some(0)) => {}
            Ok(Some(strays)) => tracing::error!(
                strays,
                "files lie on the replicas that the database does not know: run `grange archive rebuild`"
            ),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "cannot compare the files of the replicas with the database");
            }
        }
    });
    if tokio::time::timeout(STRAYS_WITHIN, look).await.is_err() {
        tracing::warn!(
            "the files of the replicas are still being compared with the database; the node starts meanwhile"
        );
    }
}

/// How often dead harvesters are looked for: well within a lease of theirs.
const SUPERVISE_EVERY: Duration = Duration::from_secs(10);

/// Scheduler: due harvests become jobs, and jobs of dead harvesters come back. Snapshots have a worker of their own,
/// because they take longer and shall not hold up the others.
pub async fn scheduler(
    parts: &mut Parts,
    settings: &Settings,
    db: &Db,
    clock: &Clock,
    id: NodeId,
    bus: &dyn Bus,
    announcer: &Announcer,
) -> Result<Waker, grange_bus::Error> {
    let first = HighestNumbers {
        job: i64::from(settings.schedule.first_job_number) - 1,
        ..HighestNumbers::default()
    };
    // A counter that cannot be raised is no reason to plan nothing: the next start tries again.
    if let Err(error) = db.raise_numbers(first).await {
        tracing::error!(error = %Chain(&error), "cannot apply schedule.first_job_number");
    }
    let scheduler =
        Scheduler::new(db.clone(), settings.schedule.clone(), &id.to_string(), Some(announcer.clone()));
    // The channel is a queue, so one listener hears each hint and passes it on to both planners.
    let (heard, selective, snapshots) = (Hint::new(), Hint::new(), Hint::new());
    let waker = grange_bus::wake(bus, &announcer.channels().the_sched(), &heard).await?;
    let both = [selective.clone(), snapshots.clone()];
    parts.start("scheduler hints", move |shutdown| async move {
        loop {
            tokio::select! {
                () = shutdown.wait() => return Ok::<_, std::convert::Infallible>(()),
                () = heard.wait() => both.iter().for_each(Hint::wake),
            }
        }
    });
    let planners = [
        ("plan selective", HarvestKind::Selective, selective),
        ("plan snapshots", HarvestKind::Snapshot, snapshots),
    ];
    for (name, kind, hint) in planners {
        let (clock, scheduler, interval) = (clock.clone(), scheduler.clone(), settings.schedule.look_every.0);
        parts.start(name, move |shutdown| async move {
            let worker = Worker { name: name.to_owned(), interval, clock, shutdown, hint };
            worker.run(|| scheduler.plan_step(kind)).await
        });
    }
    let clock = clock.clone();
    parts.start("supervise", move |shutdown| async move {
        let (name, hint) = ("supervise".to_owned(), Hint::new());
        let worker = Worker { name, interval: SUPERVISE_EVERY, clock, shutdown, hint };
        worker.run(|| scheduler.supervise_step()).await
    });
    Ok(waker)
}

/// Admin: the pages and the JSON API.
pub fn admin(app: App, local: Arc<grange_web::LocalToken>, health: Health) -> axum::Router {
    let web = grange_web::Web { app, local: Some(local), version: crate::VERSION };
    grange_web::site(web).merge(health::public(health))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_played_once() {
        assert_eq!(chosen(&[], true).unwrap(), AVAILABLE);
        assert_eq!(chosen(&[NodeRole::Admin, NodeRole::Admin], false).unwrap(), [NodeRole::Admin]);
    }

    #[test]
    fn swap_is_played_where_it_has_partitions() {
        assert!(!chosen(&[], false).unwrap().contains(&NodeRole::Swap));
        assert!(matches!(chosen(&[NodeRole::Swap], false), Err(RoleError::NoPartitions)));
        assert_eq!(chosen(&[NodeRole::Swap], true).unwrap(), [NodeRole::Swap]);
    }
}
