//! Jobs that harvesters and people take hold of at the same moment.

use grange_model::harvest::{ChannelName, HarvestKind, JobId, JobStatus};

use super::{Barrier, act};
use crate::conformance::{Bed, LONG, anna};
use crate::{JobClaim, JobReport};

fn focused() -> Vec<ChannelName> {
    vec!["focused".parse().unwrap()]
}

/// A bed with one job that waits.
async fn waiting() -> Option<Bed> {
    let bed = Bed::postgres().await?;
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    Some(bed)
}

async fn started(bed: &Bed) -> JobClaim {
    let claim = bed.db.jobs().claim(&focused(), "h1", LONG).await.unwrap().unwrap();
    bed.db.jobs().start(&claim, LONG).await.unwrap();
    claim
}

async fn status(bed: &Bed, job: JobId) -> JobStatus {
    bed.db.jobs().get(job).await.unwrap().unwrap().status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_being_cancelled_is_not_taken() {
    let Some(bed) = waiting().await else { return };
    let job = bed.db.jobs().claim(&focused(), "h1", LONG).await.unwrap().unwrap();
    bed.db.jobs().release(&job).await.unwrap();
    let id = job.job;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let cancelled = barrier.hold(1, act!(bed, |db| db.jobs().cancel(id, &anna()))).await;
    let claimed = barrier.hold(2, act!(bed, |db| db.jobs().claim(&focused(), "h2", LONG))).await;
    let taken = barrier.hold(2, act!(bed, |db| db.jobs().take(id, "h3", LONG))).await;
    barrier.open().await;
    cancelled.await.unwrap().unwrap();
    assert_eq!(claimed.await.unwrap().unwrap(), None);
    assert_eq!(taken.await.unwrap().unwrap(), None);
    assert_eq!(status(&bed, id).await, JobStatus::Failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_being_cancelled_is_not_given_back_to_others() {
    let Some(bed) = waiting().await else { return };
    let claim = bed.db.jobs().claim(&focused(), "h1", LONG).await.unwrap().unwrap();
    let id = claim.job;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let cancelled = barrier.hold(1, act!(bed, |db| db.jobs().cancel(id, &anna()))).await;
    let released = barrier.hold(2, act!(bed, |db| db.jobs().release(&claim))).await;
    barrier.open().await;
    cancelled.await.unwrap().unwrap();
    assert_eq!(released.await.unwrap().unwrap_err().code(), "lease-lost");
    assert!(bed.db.jobs().get(id).await.unwrap().unwrap().stop_wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_resubmitted_twice_at_once_becomes_one() {
    let Some(bed) = waiting().await else { return };
    let claim = started(&bed).await;
    let failed = JobReport { harvest_errors: Some("no".to_owned()), ..JobReport::default() };
    bed.db.jobs().finish(&claim, failed).await.unwrap();
    let id = claim.job;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.jobs().resubmit(vec![id], &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.jobs().resubmit(vec![id], &anna()))).await;
    let three = barrier.hold(3, act!(bed, |db| db.jobs().reject(id, true, &anna()))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().unwrap_err().code(), "refused");
    assert_eq!(three.await.unwrap().unwrap_err().code(), "refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_ends_while_it_is_cancelled_ends_once() {
    let Some(bed) = waiting().await else { return };
    let claim = started(&bed).await;
    let id = claim.job;
    // Held after the job's row was changed, before the act is over.
    let mut barrier = Barrier::at(&bed, "BEFORE DELETE ON job_progress").await;
    let ended = barrier.hold(1, act!(bed, |db| db.jobs().finish(&claim, JobReport::default()))).await;
    let cancelled = barrier.hold(2, act!(bed, |db| db.jobs().cancel(id, &anna()))).await;
    barrier.open().await;
    assert!(ended.await.unwrap().unwrap().done);
    assert_eq!(cancelled.await.unwrap().unwrap_err().code(), "refused");
    assert_eq!(status(&bed, id).await, JobStatus::Done);
}
