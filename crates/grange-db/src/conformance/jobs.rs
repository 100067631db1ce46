//! What jobs promise to harvesters and to people.

use std::collections::HashSet;
use std::time::Duration;

use grange_model::harvest::{
    ChannelName, CrawlState, DomainReport, HarvestKind, HarvesterState, JobStatus, Progress, StopReason,
};
use jiff::Timestamp;

use super::harvest_bed::{domain, name};
use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{Afterwards, HistoryFilter, JobClaim, JobFilter, JobReport, Policy};

on_both_engines! {
    a_job_goes_its_way_and_leaves_history,
    many_harvesters_never_get_the_same_job,
    a_dead_harvesters_job_is_taken_over_and_then_given_up,
    a_late_harvester_is_not_heard,
    whoever_has_the_folder_takes_the_job_again,
    what_is_learnt_after_the_end_is_added,
    a_crawl_that_never_ends_is_ended,
    a_failed_job_is_resubmitted_whole_or_rejected,
    a_cancelled_job_ends,
    progress_is_kept_and_sampled,
    orders_are_kept_under_the_claim_of_the_job_and_read_by_the_next_one,
    the_best_of_a_configuration_follows_its_history,
    harvesters_are_known_while_they_live,
}

fn focused() -> Vec<ChannelName> {
    vec!["focused".parse().unwrap()]
}

const POLICY: Policy = Policy { takeovers_max: 1, job_timeout: Duration::from_hours(1000) };

async fn claim(bed: &Bed, lease: Duration) -> Option<JobClaim> {
    bed.db.jobs().claim(&focused(), "h1", lease).await.unwrap()
}

/// A harvest of these domains with one job that waits.
async fn waiting(bed: &Bed, domains: &[&str]) {
    bed.stocked(&[]).await;
    bed.selective("h", domains).await;
    bed.plan(HarvestKind::Selective).await;
}

fn report(of: &str, objects: u64, stop: StopReason) -> DomainReport {
    DomainReport { domain: domain(of), objects, bytes: objects * 10, stop }
}

async fn status(bed: &Bed, claim: &JobClaim) -> JobStatus {
    bed.db.jobs().get(claim.job).await.unwrap().unwrap().status
}

async fn a_job_goes_its_way_and_leaves_history(bed: &Bed) {
    waiting(bed, &["a.dk", "b.dk"]).await;
    let jobs = bed.db.jobs();
    assert!(jobs.claim(&["snapshot".parse().unwrap()], "x", LONG).await.unwrap().is_none());
    let first = claim(bed, LONG).await.unwrap();
    assert_eq!(status(bed, &first).await, JobStatus::Submitted);
    jobs.release(&first).await.unwrap();
    let ours = claim(bed, LONG).await.unwrap();
    assert_eq!((ours.job, ours.attempt), (first.job, 1), "given back, it does not count");
    assert_eq!(jobs.renew(&first, LONG).await.unwrap_err().code(), "lease-lost");
    // Nothing is done that was not started.
    assert_eq!(jobs.finish(&ours, JobReport::default()).await.unwrap_err().code(), "lease-lost");
    jobs.start(&ours, LONG).await.unwrap();
    assert_eq!(jobs.start(&ours, LONG).await.unwrap_err().code(), "lease-lost");
    let domains = vec![
        report("a.dk", 5, StopReason::Complete),
        report("foreign.dk", 9, StopReason::Complete),
        report("a.dk", 6, StopReason::Complete),
    ];
    let reported = jobs.finish(&ours, JobReport { domains, ..JobReport::default() }).await.unwrap();
    assert_eq!((reported.done, reported.domains_kept, reported.domains_foreign), (true, 1, 2));
    let job = jobs.get(ours.job).await.unwrap().unwrap();
    assert_eq!((job.status, job.harvester.as_deref()), (JobStatus::Done, Some("h1")));
    assert!(job.started_at.is_some() && job.ended_at.is_some() && job.lease_until.is_none());
    let filter = HistoryFilter { domain: Some(domain("a.dk")), configuration: None, job: None, limit: 10 };
    let history = bed.db.domains().history(&filter).await.unwrap();
    assert_eq!((history.len(), history[0].objects, history[0].run), (1, 5, 1));
    let runs = bed.db.harvests().runs(&name("h"), 1).await.unwrap();
    assert_eq!((runs[0].jobs_done, runs[0].objects, runs[0].bytes), (1, 5, 50));
    assert!(runs[0].ended_at.is_some());
    assert!(claim(bed, LONG).await.is_none());
    assert_eq!(jobs.renew(&ours, LONG).await.unwrap_err().code(), "lease-lost");
}

async fn many_harvesters_never_get_the_same_job(bed: &Bed) {
    const JOBS: usize = 30;
    bed.stocked(&[]).await;
    for n in 0..JOBS {
        bed.selective(&format!("h{n}"), &["a.dk"]).await;
        bed.plan(HarvestKind::Selective).await;
    }
    let claiming = (0..10).map(|n| {
        let db = bed.db.clone();
        tokio::spawn(async move {
            let mut got = Vec::new();
            while let Some(claim) = db.jobs().claim(&focused(), &format!("h{n}"), LONG).await.unwrap() {
                got.push(claim.job);
            }
            got
        })
    });
    let mut all = Vec::new();
    for task in claiming.collect::<Vec<_>>() {
        all.extend(task.await.unwrap());
    }
    // On PostgreSQL a claimer may pass over a row that another holds; what is left is found by the next look.
    while let Some(left) = claim(bed, LONG).await {
        all.push(left.job);
    }
    assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (JOBS, JOBS));
}

async fn a_dead_harvesters_job_is_taken_over_and_then_given_up(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let first = claim(bed, SHORT).await.unwrap();
    jobs.start(&first, LONG).await.unwrap();
    assert_eq!(jobs.supervise(POLICY).await.unwrap(), crate::DeadJobs::default());
    jobs.renew(&first, SHORT).await.unwrap();
    bed.pass(bed.lease_now() + SHORT).await;
    let dead = jobs.supervise(POLICY).await.unwrap();
    assert_eq!(dead.taken_back, [(first.job, "focused".parse().unwrap())]);
    let second = claim(bed, SHORT).await.unwrap();
    assert_eq!((second.job, second.attempt), (first.job, 2));
    bed.pass(bed.lease_now() + SHORT).await;
    let dead = jobs.supervise(POLICY).await.unwrap();
    assert_eq!(dead.failed, [first.job]);
    let job = jobs.get(first.job).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Failed);
    assert!(job.harvest_errors.unwrap().contains("h1 fell silent"));
}

async fn a_late_harvester_is_not_heard(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let late = claim(bed, SHORT).await.unwrap();
    jobs.start(&late, SHORT).await.unwrap();
    bed.pass(bed.lease_now() + SHORT).await;
    // It ended, but nobody took it away: its harvester may go on.
    jobs.renew(&late, SHORT).await.unwrap();
    bed.pass(bed.lease_now() + SHORT).await;
    jobs.supervise(POLICY).await.unwrap();
    let domains = vec![report("a.dk", 5, StopReason::Complete)];
    for error in [
        jobs.renew(&late, LONG).await.unwrap_err(),
        jobs.finish(&late, JobReport { domains, ..JobReport::default() }).await.unwrap_err(),
        jobs.release(&late).await.unwrap_err(),
    ] {
        assert_eq!(error.code(), "lease-lost");
    }
    assert_eq!(status(bed, &late).await, JobStatus::New);
}

async fn what_is_learnt_after_the_end_is_added(bed: &Bed) {
    waiting(bed, &["a.dk", "b.dk"]).await;
    let jobs = bed.db.jobs();
    let dead = claim(bed, SHORT).await.unwrap();
    jobs.start(&dead, SHORT).await.unwrap();
    let said = |text: &str, objects| Afterwards {
        harvest: Some(text.to_owned()),
        upload: None,
        domains: vec![report("a.dk", objects, StopReason::Unfinished)],
    };
    // Whoever has the job reports it.
    assert_eq!(jobs.tell_afterwards(dead.job, said("too early", 1)).await.unwrap(), 0);
    bed.pass(bed.lease_now() + SHORT).await;
    jobs.supervise(Policy { takeovers_max: 0, ..POLICY }).await.unwrap();
    assert_eq!(status(bed, &dead).await, JobStatus::Failed);
    assert_eq!(jobs.tell_afterwards(dead.job, said("found later", 5)).await.unwrap(), 1);
    // Again, after a crash; and by somebody who counted otherwise.
    assert_eq!(jobs.tell_afterwards(dead.job, said("found later", 6)).await.unwrap(), 0);
    let uploaded = || Afterwards { upload: Some("all stored".to_owned()), ..Afterwards::default() };
    jobs.tell_afterwards(dead.job, uploaded()).await.unwrap();
    let job = jobs.get(dead.job).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.harvest_error_details.as_deref(), Some("found later"));
    assert_eq!(job.upload_error_details, None, "nothing was wrong with it");
    assert!(job.harvest_errors.unwrap().contains("fell silent") && job.upload_errors.is_none());
    let filter = HistoryFilter { domain: None, configuration: None, job: Some(dead.job), limit: 10 };
    let history = bed.db.domains().history(&filter).await.unwrap();
    assert_eq!(
        history.iter().map(|one| (one.objects, one.stop)).collect::<Vec<_>>(),
        [(5, StopReason::Unfinished)]
    );
    // What was done by somebody else is counted already.
    let again = jobs.resubmit(vec![dead.job], &anna()).await.unwrap()[0];
    let ours = claim(bed, LONG).await.unwrap();
    jobs.start(&ours, LONG).await.unwrap();
    let report = JobReport { upload_errors: Some("1 of 2".to_owned()), ..JobReport::default() };
    jobs.finish(&ours, report).await.unwrap();
    jobs.tell_afterwards(again, uploaded()).await.unwrap();
    let job = jobs.get(again).await.unwrap().unwrap();
    assert_eq!((job.status, job.upload_error_details.as_deref()), (JobStatus::Failed, Some("all stored")));
    let third = jobs.resubmit(vec![again], &anna()).await.unwrap()[0];
    let ours = claim(bed, LONG).await.unwrap();
    jobs.start(&ours, LONG).await.unwrap();
    jobs.finish(&ours, JobReport::default()).await.unwrap();
    assert_eq!(jobs.tell_afterwards(third, said("late", 9)).await.unwrap(), 0);
    assert_eq!(jobs.tell_afterwards(grange_model::harvest::JobId(999), said("no job", 9)).await.unwrap(), 0);
}

async fn whoever_has_the_folder_takes_the_job_again(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let first = claim(bed, SHORT).await.unwrap();
    jobs.start(&first, SHORT).await.unwrap();
    assert!(jobs.take(first.job, "h1", LONG).await.unwrap().is_none(), "somebody has it");
    bed.pass(bed.lease_now() + SHORT).await;
    jobs.supervise(POLICY).await.unwrap();
    let again = jobs.take(first.job, "h2", LONG).await.unwrap().unwrap();
    assert_eq!((again.job, again.attempt), (first.job, 2));
    assert!(again.token > first.token && claim(bed, LONG).await.is_none());
    assert_eq!(jobs.renew(&first, LONG).await.unwrap_err().code(), "lease-lost");
    jobs.start(&again, LONG).await.unwrap();
    assert_eq!(jobs.get(first.job).await.unwrap().unwrap().harvester.as_deref(), Some("h2"));
    jobs.finish(&again, JobReport::default()).await.unwrap();
    assert!(jobs.take(first.job, "h1", LONG).await.unwrap().is_none(), "it is over");
}

async fn a_crawl_that_never_ends_is_ended(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let ours = claim(bed, LONG).await.unwrap();
    jobs.start(&ours, LONG).await.unwrap();
    bed.pass(bed.lease_now() + SHORT).await;
    let dead = jobs.supervise(Policy { job_timeout: SHORT, ..POLICY }).await.unwrap();
    assert_eq!(dead.failed, [ours.job]);
    assert_eq!(jobs.renew(&ours, LONG).await.unwrap_err().code(), "lease-lost");
}

async fn a_failed_job_is_resubmitted_whole_or_rejected(bed: &Bed) {
    waiting(bed, &["a.dk", "b.dk"]).await;
    let jobs = bed.db.jobs();
    let ours = claim(bed, LONG).await.unwrap();
    assert_eq!(jobs.resubmit(vec![ours.job], &anna()).await.unwrap_err().code(), "refused");
    let failed = JobReport {
        harvest_errors: Some("disk\0full".to_owned()),
        upload_errors: Some("two files".to_owned()),
        domains: vec![report("a.dk", 3, StopReason::Unfinished)],
        ..JobReport::default()
    };
    assert!(!jobs.finish(&ours, failed).await.unwrap().done);
    let old = jobs.get(ours.job).await.unwrap().unwrap();
    assert_eq!((old.status, old.upload_errors.as_deref()), (JobStatus::Failed, Some("two files")));
    assert_eq!(jobs.reject(ours.job, true, &anna()).await.unwrap().status, JobStatus::FailedRejected);
    assert_eq!(jobs.resubmit(vec![ours.job], &anna()).await.unwrap_err().code(), "refused");
    assert_eq!(jobs.reject(ours.job, false, &anna()).await.unwrap().status, JobStatus::Failed);
    let [new] = jobs.resubmit(vec![ours.job], &anna()).await.unwrap()[..] else { panic!("one") };
    let (old, made) = (jobs.get(ours.job).await.unwrap().unwrap(), jobs.get(new).await.unwrap().unwrap());
    assert_eq!((old.status, old.resubmitted_as), (JobStatus::Resubmitted, Some(new)));
    assert_eq!((made.status, made.continuation_of, made.run), (JobStatus::New, Some(old.id), old.run));
    assert_eq!(
        (made.limits, made.configurations, made.template_version),
        (old.limits, 2, old.template_version)
    );
    assert_eq!(jobs.configurations(new).await.unwrap(), jobs.configurations(old.id).await.unwrap());
    assert_eq!(claim(bed, LONG).await.unwrap().job, new);
    let listed = async |filter: JobFilter| {
        let filter = JobFilter { limit: 10, ..filter };
        jobs.list(&filter).await.unwrap().into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(JobFilter::default()).await, [new, old.id]);
    assert_eq!(
        listed(JobFilter { oldest_first: true, beyond: Some(old.id), ..JobFilter::default() }).await,
        [new]
    );
    assert_eq!(
        listed(JobFilter { status: vec![JobStatus::Resubmitted], ..JobFilter::default() }).await,
        [old.id]
    );
    assert_eq!(listed(JobFilter { domain: Some(domain("b.dk")), ..JobFilter::default() }).await.len(), 2);
    assert_eq!(listed(JobFilter { domain: Some(domain("c.dk")), ..JobFilter::default() }).await, []);
    assert_eq!(
        listed(JobFilter { harvest: Some("?".to_owned()), run: Some(1), ..JobFilter::default() }).await.len(),
        2
    );
    assert_eq!(
        listed(JobFilter { started_since: Some(Timestamp::UNIX_EPOCH), ..JobFilter::default() }).await,
        []
    );
}

async fn a_cancelled_job_ends(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    bed.selective("i", &["a.dk"]).await;
    bed.plan(HarvestKind::Selective).await;
    let jobs = bed.db.jobs();
    let running = claim(bed, LONG).await.unwrap();
    let beat = jobs.start(&running, LONG).await.unwrap();
    assert!(!beat.stop_wanted);
    assert!(jobs.cancel(running.job, &anna()).await.unwrap().stop_wanted);
    assert!(jobs.renew(&running, LONG).await.unwrap().stop_wanted);
    let report = JobReport { harvest_errors: Some("stopped".to_owned()), ..JobReport::default() };
    jobs.finish(&running, report).await.unwrap();
    assert_eq!(status(bed, &running).await, JobStatus::Failed);
    let waiting = jobs
        .list(&JobFilter { status: vec![JobStatus::New], limit: 1, ..JobFilter::default() })
        .await
        .unwrap();
    let cancelled = jobs.cancel(waiting[0].id, &anna()).await.unwrap();
    assert_eq!(cancelled.status, JobStatus::Failed);
    assert!(cancelled.harvest_errors.unwrap().contains("anna"));
    assert!(claim(bed, LONG).await.is_none());
    assert_eq!(jobs.cancel(running.job, &anna()).await.unwrap_err().code(), "refused");
}

async fn progress_is_kept_and_sampled(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let ours = claim(bed, LONG).await.unwrap();
    jobs.start(&ours, LONG).await.unwrap();
    let start = bed.clock.now();
    let at = |seconds: u64| Progress {
        at: start + Duration::from_secs(seconds),
        state: CrawlState::Active,
        elapsed_s: seconds,
        discovered: 9,
        downloaded: seconds,
        queued: 1,
        bytes: 7,
        queues: 1,
        queues_active: 1,
        queues_retired: 0,
        queues_exhausted: 0,
        objects_per_s: 0.5,
        objects_per_s_mean: 0.5,
        bytes_per_s: 1.0,
        bytes_per_s_mean: 1.0,
        active: 1,
        alerts: 0,
        waits_for: None,
    };
    for seconds in [0, 5, 10, 15, 20] {
        jobs.report_progress(&ours, at(seconds), LONG, Duration::from_secs(10)).await.unwrap();
    }
    assert_eq!(jobs.progress_of(ours.job).await.unwrap().unwrap().downloaded, 20);
    let samples: Vec<_> = jobs.samples_of(ours.job).await.unwrap().iter().map(|one| one.elapsed_s).collect();
    assert_eq!(samples, [0, 10, 20]);
    jobs.finish(&ours, JobReport::default()).await.unwrap();
    assert_eq!(jobs.progress_of(ours.job).await.unwrap(), None);
    assert_eq!(jobs.samples_of(ours.job).await.unwrap().len(), 3);
    let late = jobs.report_progress(&ours, at(30), LONG, LONG).await.unwrap_err();
    assert_eq!(late.code(), "lease-lost");
}

async fn orders_are_kept_under_the_claim_of_the_job_and_read_by_the_next_one(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let jobs = bed.db.jobs();
    let first = claim(bed, SHORT).await.unwrap();
    assert_eq!(jobs.orders_of(first.job).await.unwrap(), None);
    for orders in ["[]", "[\"a\0\"]"] {
        jobs.keep_orders(&first, orders.to_owned()).await.unwrap();
    }
    bed.pass(bed.lease_now() + SHORT).await;
    jobs.supervise(POLICY).await.unwrap();
    let late = jobs.keep_orders(&first, "late".to_owned()).await.unwrap_err();
    assert_eq!(late.code(), "lease-lost");
    let second = claim(bed, LONG).await.unwrap();
    assert_eq!(jobs.orders_of(second.job).await.unwrap().as_deref(), Some("[\"a\u{fffd}\"]"));
}

async fn the_best_of_a_configuration_follows_its_history(bed: &Bed) {
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    for (objects, stop, best) in [
        (30, StopReason::Unfinished, (30, false)),
        (20, StopReason::TimeLimit, (30, false)),
        (10, StopReason::Complete, (10, true)),
        (10, StopReason::Unfinished, (10, true)),
        (11, StopReason::Unfinished, (11, false)),
    ] {
        bed.plan(HarvestKind::Selective).await;
        let ours = claim(bed, LONG).await.unwrap();
        bed.db.jobs().start(&ours, LONG).await.unwrap();
        let domains = vec![report("a.dk", objects, stop)];
        bed.db.jobs().finish(&ours, JobReport { domains, ..JobReport::default() }).await.unwrap();
        let kept = bed.db.domains().configurations(&domain("a.dk")).await.unwrap()[0].best.unwrap();
        assert_eq!((kept.objects, kept.complete), best, "{objects} {stop}");
        bed.hand.advance(Duration::from_hours(24));
    }
    let filter = HistoryFilter { domain: Some(domain("a.dk")), configuration: None, job: None, limit: 10 };
    let history = bed.db.domains().history(&filter).await.unwrap();
    assert_eq!(history.iter().map(|entry| entry.run).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
}

async fn harvesters_are_known_while_they_live(bed: &Bed) {
    waiting(bed, &["a.dk"]).await;
    let channels = bed.db.channels();
    channels.serve("h1", "host", &focused(), HarvesterState::Idle, Some(5)).await.unwrap();
    let unknown = channels.serve("h2", "host", &["none".parse().unwrap()], HarvesterState::Idle, None).await;
    assert_eq!(unknown.unwrap_err().code(), "not-found");
    let ours = claim(bed, LONG).await.unwrap();
    let seen = channels.harvesters(LONG).await.unwrap();
    assert_eq!((seen.len(), seen[0].alive, &seen[0].jobs[..]), (1, true, &[ours.job][..]));
    let list = channels.list(LONG).await.unwrap();
    assert_eq!(list.iter().map(|channel| channel.harvesters).collect::<Vec<_>>(), [1, 0]);
    bed.pass(bed.lease_now() + SHORT).await;
    assert!(!channels.harvesters(SHORT).await.unwrap()[0].alive);
}
