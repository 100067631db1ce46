//! Schedulers on machines whose clocks are wrong: the database's clock decides what is due.

use grange_base::Clock;
use grange_base::worker::Step;
use grange_db::{Db, HarvestChange};
use grange_model::Actor;
use grange_model::harvest::HarvestKind;
use grange_testkit::TestDatabase;
use jiff::{SignedDuration, Timestamp};

use super::{Bed, name};
use crate::{Scheduler, Settings};

/// The scheduler of a machine whose clock is ahead by that many hours.
async fn scheduler_ahead(bed: &Bed, hours: i64) -> Scheduler {
    let wrong = Clock::shifted(SignedDuration::from_hours(hours));
    let db = Db::open(&bed.settings, bed.dir.path(), wrong).await.unwrap();
    Scheduler::new(db, Settings::default(), "wrong", None)
}

async fn due_at(bed: &Bed, at: Timestamp) {
    let change = HarvestChange { next_at: Some(at), ..HarvestChange::default() };
    bed.db.harvests().change(&name("h"), change, None, &Actor::system()).await.unwrap();
}

#[tokio::test]
async fn a_scheduler_whose_clock_is_ahead_plans_nothing_before_the_database_says_it_is_due() {
    let Some(server) = TestDatabase::create().await else { return };
    let bed = Bed::new(Some(server)).await;
    bed.selective("h", "daily", &["a.dk"]).await;
    due_at(&bed, Timestamp::now() + SignedDuration::from_hours(2)).await;
    let ahead = scheduler_ahead(&bed, 3).await;
    assert_eq!(ahead.plan_step(HarvestKind::Selective).await.unwrap(), Step::Idle);
    // One whose clock is behind plans what is due.
    due_at(&bed, Timestamp::now() - SignedDuration::from_mins(2)).await;
    let behind = scheduler_ahead(&bed, -3).await;
    assert_eq!(behind.plan_step(HarvestKind::Selective).await.unwrap(), Step::More);
}

#[tokio::test]
async fn the_next_run_is_counted_from_the_databases_time() {
    let Some(server) = TestDatabase::create().await else { return };
    let bed = Bed::new(Some(server)).await;
    bed.selective("h", "daily", &["a.dk"]).await;
    let due = Timestamp::now() - SignedDuration::from_mins(5);
    due_at(&bed, due).await;
    // Ten days ahead: by that clock nine runs would have been missed.
    let ahead = scheduler_ahead(&bed, 240).await;
    assert_eq!(ahead.plan_step(HarvestKind::Selective).await.unwrap(), Step::More);
    assert_eq!(ahead.plan_step(HarvestKind::Selective).await.unwrap(), Step::Idle);
    let runs = bed.db.harvests().runs(&name("h"), 10).await.unwrap();
    assert_eq!(runs.iter().map(|run| (run.number, run.skipped)).collect::<Vec<_>>(), [(1, 0)]);
    let next = bed.db.harvests().get(&name("h")).await.unwrap().unwrap().next_at.unwrap();
    assert!(next.duration_since(due) < SignedDuration::from_hours(30), "{next} follows {due}");
}
