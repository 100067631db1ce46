//! What recurring jobs of metadata harvesting promise.

use std::time::Duration;

use grange_model::harvest::{Every, Unit};
use grange_model::oai::{HarvestSpec, RecurringState};
use jiff::Timestamp;

use super::oai::whole;
use super::{Bed, LONG, anna, on_both_engines};
use crate::{Ending, NewRecurring};

on_both_engines! {
    a_recurring_job_goes_on_after_success_and_failure,
    a_changed_schedule_keeps_its_slots_and_its_planned_harvest,
    a_schedule_that_is_changed_while_its_harvest_runs_is_not_run_again_at_once,
}

async fn a_recurring_job_goes_on_after_success_and_failure(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let (schedules, jobs) = (bed.db.oai_recurring(), bed.db.oai_jobs());
    let start = bed.clock.now();
    let new = NewRecurring {
        repository,
        spec: HarvestSpec { incremental: true, ..HarvestSpec::all("oai_dc") },
        starts_at: start,
        ends_at: None,
        every: Some(Every { count: 1, unit: Unit::Day }),
    };
    let made = schedules.add(new.clone(), &anna()).await.unwrap();
    assert_eq!(made.state, RecurringState::New);
    assert_eq!(schedules.plan().await.unwrap(), 1);
    assert_eq!(schedules.plan().await.unwrap(), 0, "once");
    let mut claim = jobs.claim("node", LONG).await.unwrap().unwrap();
    let mark: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    jobs.finish(&claim, whole(Some(mark)), 3).await.unwrap();
    let [waiting] = &jobs.list(None).await.unwrap()[..] else { panic!("one job waits") };
    let start = Timestamp::from_microsecond(start.as_microsecond()).unwrap();
    assert_eq!(waiting.due_at, start + Duration::from_hours(24));
    assert_eq!(waiting.recurring, Some(made.id));
    // Failures come back sooner, and then wait for a person.
    for failure in 1..=3 {
        let due = jobs.list(None).await.unwrap()[0].due_at;
        bed.hand.set(due);
        claim = match jobs.claim("node", LONG).await.unwrap() {
            Some(claim) => claim,
            // PostgreSQL judges by its own clock, which is not ours to move: the rest is SQLite's to show.
            None => return,
        };
        assert_eq!(jobs.order(&claim).await.unwrap().next_from, Some(mark), "only success moves the mark");
        let reason = "it is away".to_owned();
        jobs.finish(&claim, Ending::Failed { reason }, 3).await.unwrap();
        let one = &schedules.list(Some(repository)).await.unwrap()[0];
        assert_eq!(one.failures, failure);
        assert_eq!(one.state == RecurringState::Parked, failure == 3);
    }
    assert!(jobs.list(None).await.unwrap().is_empty());
    let changed = schedules.change(made.id, new.clone(), Some(1), &anna()).await.unwrap();
    assert_eq!((changed.state, changed.failures, changed.edition), (RecurringState::New, 0, 2));
    assert_eq!(schedules.plan().await.unwrap(), 1);
    // After the plan, which leaves out rows that are locked: a refused change may hold its row for a moment longer.
    assert_eq!(schedules.change(made.id, new, Some(1), &anna()).await.unwrap_err().code(), "stale");
    schedules.delete(made.id, &anna()).await.unwrap();
    assert!(jobs.list(None).await.unwrap().is_empty(), "its waiting job went with it");
}

async fn a_changed_schedule_keeps_its_slots_and_its_planned_harvest(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let (schedules, jobs) = (bed.db.oai_recurring(), bed.db.oai_jobs());
    let day = Duration::from_hours(24);
    let start = Timestamp::from_second(bed.clock.now().as_second()).unwrap() - Duration::from_hours(1);
    let new = NewRecurring {
        repository,
        spec: HarvestSpec::all("oai_dc"),
        starts_at: start,
        ends_at: None,
        every: Some(Every { count: 1, unit: Unit::Day }),
    };
    let made = schedules.add(new.clone(), &anna()).await.unwrap();
    schedules.plan().await.unwrap();
    let claim = jobs.claim("node", LONG).await.unwrap().unwrap();
    jobs.finish(&claim, Ending::Failed { reason: "away".to_owned() }, 3).await.unwrap();
    let retry = jobs.list(None).await.unwrap()[0].due_at;
    assert!(retry < start + day, "a failure comes back sooner");
    // What is changed is in force for the planned harvest, which keeps its time.
    let spec = HarvestSpec { set: Some("a".to_owned()), ..new.spec.clone() };
    let weekly = NewRecurring { spec, every: Some(Every { count: 1, unit: Unit::Week }), ..new.clone() };
    let changed = schedules.change(made.id, weekly.clone(), None, &anna()).await.unwrap();
    assert_eq!((changed.state, changed.starts_at, changed.failures), (RecurringState::Recurring, start, 0));
    assert_eq!(schedules.list(None).await.unwrap(), std::slice::from_ref(&changed));
    assert_eq!(schedules.plan().await.unwrap(), 0);
    let [waiting] = &jobs.list(None).await.unwrap()[..] else { panic!("one job waits") };
    assert_eq!((waiting.due_at, waiting.spec.set.as_deref()), (retry, Some("a")));
    // Without it the next is a slot of the schedule, not a week after the retry.
    jobs.delete(waiting.id, &anna()).await.unwrap();
    assert_eq!(jobs.list(None).await.unwrap()[0].due_at, start + 7 * day);
    // Another start is where it is planned, and an end before the planned harvest ends it.
    let later = NewRecurring { starts_at: start + 3 * day, ..weekly.clone() };
    schedules.change(made.id, later, None, &anna()).await.unwrap();
    assert_eq!(schedules.plan().await.unwrap(), 1);
    assert_eq!(jobs.list(None).await.unwrap()[0].due_at, start + 3 * day);
    let over = NewRecurring { starts_at: start + 3 * day, ends_at: Some(start + 2 * day), ..weekly };
    assert_eq!(schedules.change(made.id, over, None, &anna()).await.unwrap().state, RecurringState::Over);
    assert!(jobs.list(None).await.unwrap().is_empty());
}

async fn a_schedule_that_is_changed_while_its_harvest_runs_is_not_run_again_at_once(bed: &Bed) {
    let (schedules, jobs) = (bed.db.oai_recurring(), bed.db.oai_jobs());
    let day = Duration::from_hours(24);
    let start = Timestamp::from_second(bed.clock.now().as_second()).unwrap() - Duration::from_hours(1);
    let daily = Some(Every { count: 1, unit: Unit::Day });
    // The interval before and after the change, the state from then on, and what is left: the next slot, or nothing.
    for (case, (before, after, state, next)) in [
        (daily, daily, RecurringState::Recurring, Some(start + day)),
        (None, daily, RecurringState::Recurring, Some(start + day)),
        (daily, None, RecurringState::Once, None),
        (None, None, RecurringState::Once, None),
    ]
    .into_iter()
    .enumerate()
    {
        let repository = bed.repository(&format!("http://x{case}/oai")).await.id;
        let spec = HarvestSpec::all("oai_dc");
        let new = NewRecurring { repository, spec, starts_at: start, ends_at: None, every: before };
        let made = schedules.add(new.clone(), &anna()).await.unwrap();
        assert_eq!(schedules.plan().await.unwrap(), 1);
        let claim = jobs.claim("node", LONG).await.unwrap().unwrap();
        let spec = HarvestSpec { set: Some("a".to_owned()), ..new.spec.clone() };
        let changed = NewRecurring { spec, every: after, ..new.clone() };
        let changed = schedules.change(made.id, changed, None, &anna()).await.unwrap();
        assert_eq!(changed.state, state, "case {case}");
        assert_eq!(schedules.list(Some(repository)).await.unwrap(), [changed], "case {case}");
        jobs.finish(&claim, whole(None), 3).await.unwrap();
        assert_eq!(schedules.plan().await.unwrap(), 0, "case {case}");
        let left = jobs.list(Some(repository)).await.unwrap();
        let left: Vec<_> = left.iter().map(|job| (job.due_at, job.spec.set.as_deref())).collect();
        assert_eq!(
            left,
            next.map(|due_at| (due_at, Some("a"))).into_iter().collect::<Vec<_>>(),
            "case {case}"
        );
        schedules.delete(made.id, &anna()).await.unwrap();
    }
    // A failure of the harvest that ran comes back sooner, by what was changed.
    let repository = bed.repository("http://y/oai").await.id;
    let spec = HarvestSpec::all("oai_dc");
    let new = NewRecurring { repository, spec, starts_at: start, ends_at: None, every: None };
    let made = schedules.add(new.clone(), &anna()).await.unwrap();
    schedules.plan().await.unwrap();
    let claim = jobs.claim("node", LONG).await.unwrap().unwrap();
    let spec = HarvestSpec { set: Some("a".to_owned()), ..new.spec.clone() };
    schedules.change(made.id, NewRecurring { spec, ..new.clone() }, None, &anna()).await.unwrap();
    jobs.finish(&claim, Ending::Failed { reason: "away".to_owned() }, 3).await.unwrap();
    let [retry] = &jobs.list(Some(repository)).await.unwrap()[..] else { panic!("one job waits") };
    assert!(retry.due_at > start && retry.spec.set.as_deref() == Some("a"), "{retry:?}");
    // Another start is where it is planned, once the harvest that ran has ended.
    let at = start + 3 * day;
    let restarted = NewRecurring { every: daily, ..new };
    let made = schedules.add(restarted.clone(), &anna()).await.unwrap();
    jobs.delete(retry.id, &anna()).await.unwrap();
    schedules.plan().await.unwrap();
    let claim = jobs.claim("node", LONG).await.unwrap().unwrap();
    let moved = NewRecurring { starts_at: at, ..restarted };
    assert_eq!(schedules.change(made.id, moved, None, &anna()).await.unwrap().state, RecurringState::New);
    assert_eq!(schedules.plan().await.unwrap(), 0, "its harvest runs");
    jobs.finish(&claim, whole(None), 3).await.unwrap();
    assert_eq!(schedules.plan().await.unwrap(), 1);
    assert_eq!(jobs.list(Some(repository)).await.unwrap().last().unwrap().due_at, at);
}
