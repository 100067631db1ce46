//! Channels: which one is the default, and jobs that wait in one that is being deleted.

use grange_model::harvest::{Channel, ChannelKind, ChannelName, HarvestKind, JobId};

use super::{Barrier, act};
use crate::conformance::{Bed, LONG, anna};
use crate::{JobReport, NewChannel, RunPlan};

fn channel(text: &str) -> ChannelName {
    text.parse().unwrap()
}

async fn add(bed: &Bed, called: &str) {
    let new = NewChannel { name: channel(called), kind: ChannelKind::Focused, comments: String::new() };
    bed.db.channels().create(new, &anna()).await.unwrap();
}

async fn focused(bed: &Bed) -> Vec<Channel> {
    let all = bed.db.channels().list(LONG).await.unwrap();
    all.into_iter().filter(|one| one.kind == ChannelKind::Focused).collect()
}

async fn defaults(bed: &Bed) -> Vec<String> {
    focused(bed).await.into_iter().filter(|one| one.default).map(|one| one.name.to_string()).collect()
}

/// Every job that waits does so in a channel that is there.
async fn assert_served(bed: &Bed) {
    let all = focused(bed).await;
    let jobs = bed.db.jobs().list(&crate::JobFilter { limit: 100, ..Default::default() }).await.unwrap();
    for job in jobs.iter().filter(|job| !job.status.ended()) {
        assert!(all.iter().any(|one| one.name == job.channel), "{job:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_becomes_the_default_is_not_deleted() {
    let Some(bed) = Bed::postgres().await else { return };
    add(&bed, "night").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let set = barrier.hold(1, act!(bed, |db| db.channels().set_default(&channel("night"), &anna()))).await;
    let deleted = barrier.hold(2, act!(bed, |db| db.channels().delete(&channel("night"), &anna()))).await;
    barrier.open().await;
    set.await.unwrap().unwrap();
    assert_eq!(deleted.await.unwrap().unwrap_err().code(), "refused");
    assert_eq!(defaults(&bed).await, ["night"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_is_being_deleted_does_not_become_the_default() {
    let Some(bed) = Bed::postgres().await else { return };
    add(&bed, "night").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let deleted = barrier.hold(1, act!(bed, |db| db.channels().delete(&channel("night"), &anna()))).await;
    let set = barrier.hold(2, act!(bed, |db| db.channels().set_default(&channel("night"), &anna()))).await;
    barrier.open().await;
    deleted.await.unwrap().unwrap();
    assert_eq!(set.await.unwrap().unwrap_err().code(), "not-found");
    assert_eq!(defaults(&bed).await, ["focused"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_new_defaults_the_later_one_stays() {
    let Some(bed) = Bed::postgres().await else { return };
    add(&bed, "day").await;
    add(&bed, "night").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let day = barrier.hold(1, act!(bed, |db| db.channels().set_default(&channel("day"), &anna()))).await;
    let night = barrier.hold(2, act!(bed, |db| db.channels().set_default(&channel("night"), &anna()))).await;
    barrier.open().await;
    day.await.unwrap().unwrap();
    night.await.unwrap().unwrap();
    assert_eq!(defaults(&bed).await, ["night"]);
}

/// A job that failed in the channel `night`, which nothing needs any more.
async fn failed_job(bed: &Bed) -> JobId {
    bed.stocked(&[]).await;
    add(bed, "night").await;
    bed.db.channels().set_default(&channel("night"), &anna()).await.unwrap();
    bed.selective("h", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    bed.db.channels().set_default(&channel("focused"), &anna()).await.unwrap();
    let claim = bed.db.jobs().claim(&[channel("night")], "h1", LONG).await.unwrap().unwrap();
    let failed = JobReport { harvest_errors: Some("no".to_owned()), ..JobReport::default() };
    bed.db.jobs().finish(&claim, failed).await.unwrap();
    claim.job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_is_not_deleted_under_a_job_that_is_resubmitted() {
    let Some(bed) = Bed::postgres().await else { return };
    let job = failed_job(&bed).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let again = barrier.hold(1, act!(bed, |db| db.jobs().resubmit(vec![job], &anna()))).await;
    let deleted = barrier.hold(2, act!(bed, |db| db.channels().delete(&channel("night"), &anna()))).await;
    barrier.open().await;
    again.await.unwrap().unwrap();
    assert_eq!(deleted.await.unwrap().map_err(|error| error.code()), Err("in-use"));
    assert_served(&bed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_resubmitted_into_a_channel_that_is_being_deleted() {
    let Some(bed) = Bed::postgres().await else { return };
    let job = failed_job(&bed).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let deleted = barrier.hold(1, act!(bed, |db| db.channels().delete(&channel("night"), &anna()))).await;
    let again = barrier.hold(2, act!(bed, |db| db.jobs().resubmit(vec![job], &anna()))).await;
    barrier.open().await;
    deleted.await.unwrap().unwrap();
    assert_eq!(again.await.unwrap().map_err(|error| error.code()), Err("not-found"));
    assert_served(&bed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_is_planned_into_a_channel_that_is_being_deleted() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&[]).await;
    add(&bed, "night").await;
    bed.db.channels().set_default(&channel("night"), &anna()).await.unwrap();
    bed.selective("h", &["a.dk"]).await;
    let due = bed.due(HarvestKind::Selective).await.unwrap();
    bed.draft(&due).await;
    bed.db.channels().set_default(&channel("focused"), &anna()).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let deleted = barrier.hold(1, act!(bed, |db| db.channels().delete(&channel("night"), &anna()))).await;
    let planned = barrier.hold(2, act!(bed, |db| db.planner().commit(&due, RunPlan::default()))).await;
    barrier.open().await;
    deleted.await.unwrap().unwrap();
    assert_eq!(planned.await.unwrap().map_err(|error| error.code()), Err("lease-lost"));
    assert_served(&bed).await;
}
