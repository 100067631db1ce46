//! Metadata harvests: the same job asked for twice, repositories that are deleted, records that change while they are read.

use grange_model::harvest::{Every, Unit};
use grange_model::oai::{HarvestSpec, OaiPage, RecordRow};

use super::{Barrier, act};
use crate::conformance::oai::{identified, row};
use crate::conformance::{Bed, LONG, anna, on_both_engines};
use crate::{NewOaiJob, NewRecurring};

on_both_engines! {
    a_record_that_changed_after_it_was_read_stays_marked,
}

async fn a_record_that_changed_after_it_was_read_stays_marked(bed: &Bed) {
    let repository = bed.repository("http://x/oai").await.id;
    let claim = bed.oai_claim(repository).await;
    let page = |digest: &str| OaiPage {
        records: vec![RecordRow { digest: digest.to_owned(), ..row("oai:x:1", false) }],
        ..OaiPage::default()
    };
    bed.db.oai_jobs().commit(&claim, page("first")).await.unwrap();
    let read = bed.db.oai_records().list(repository, "oai_dc", "", 10).await.unwrap();
    bed.hand.advance(std::time::Duration::from_secs(1));
    bed.db.oai_jobs().commit(&claim, page("second")).await.unwrap();
    bed.db.oai_records().clear_updated(&[(read[0].id, read[0].changed_at)]).await.unwrap();
    let now = bed.db.oai_records().list(repository, "oai_dc", "", 10).await.unwrap();
    assert!(now[0].updated, "the consumer has not seen the second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_harvest_asked_for_twice_at_once_is_planned_once() {
    let Some(bed) = Bed::postgres().await else { return };
    let repository = bed.repository("http://x/oai").await.id;
    let new = NewOaiJob { repository, spec: HarvestSpec::all("oai_dc"), due_at: bed.clock.now() };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let asked = new.clone();
    let one = barrier.hold(1, act!(bed, |db| db.oai_jobs().add(asked, &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.oai_jobs().add(new, &anna()))).await;
    barrier.open().await;
    assert_eq!(one.await.unwrap().unwrap().id, two.await.unwrap().unwrap().id);
    assert_eq!(bed.db.oai_jobs().list(None).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_whose_harvest_begins_while_it_is_deleted_stays() {
    let Some(bed) = Bed::postgres().await else { return };
    let repository = bed.repository("http://x/oai").await.id;
    bed.oai_due(repository).await;
    let mut barrier = Barrier::at(&bed, "BEFORE DELETE ON oai_jobs").await;
    let deleted = barrier.hold(1, act!(bed, |db| db.oai_repositories().delete(repository, &anna()))).await;
    let claim = bed.db.oai_jobs().claim("node", LONG).await.unwrap();
    barrier.open().await;
    let deleted = deleted.await.unwrap();
    // Whoever was first: a claimed harvest keeps its repository.
    if let Some(claim) = claim {
        assert_eq!(deleted.map_err(|error| error.code()), Err("in-use"));
        bed.db.oai_jobs().renew(&claim, LONG).await.unwrap();
    } else {
        deleted.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_harvest_is_planned_of_a_repository_that_is_being_deleted() {
    let Some(bed) = Bed::postgres().await else { return };
    let repository = bed.repository("http://x/oai").await.id;
    let new = NewOaiJob { repository, spec: HarvestSpec::all("oai_dc"), due_at: bed.clock.now() };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let deleted = barrier.hold(1, act!(bed, |db| db.oai_repositories().delete(repository, &anna()))).await;
    let planned = barrier.hold(2, act!(bed, |db| db.oai_jobs().add(new, &anna()))).await;
    let again = barrier.hold(3, act!(bed, |db| db.oai_repositories().delete(repository, &anna()))).await;
    barrier.open().await;
    deleted.await.unwrap().unwrap();
    assert_eq!(planned.await.unwrap().unwrap_err().code(), "not-found");
    assert_eq!(again.await.unwrap().unwrap_err().code(), "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_format_is_not_lost_with_the_last_other_repository_that_had_it() {
    let Some(bed) = Bed::postgres().await else { return };
    let going = bed.repository("http://x/oai").await.id;
    let empty = grange_model::oai::Identified { formats: Vec::new(), ..identified() };
    let rules = grange_model::oai::RepositoryRules::default();
    let kept = bed.db.oai_repositories().add("http://y/oai", empty, rules, &anna()).await.unwrap().id;
    let mut barrier = Barrier::at(&bed, "AFTER INSERT ON oai_formats").await;
    let said = barrier.hold(1, act!(bed, |db| db.oai_repositories().identified(kept, identified()))).await;
    let deleted = barrier.hold(2, act!(bed, |db| db.oai_repositories().delete(going, &anna()))).await;
    barrier.open().await;
    said.await.unwrap().unwrap();
    deleted.await.unwrap().unwrap();
    let kept = bed.db.oai_repositories().get(kept).await.unwrap().unwrap();
    assert_eq!(kept.said.formats.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recurring_job_is_planned_once_by_two_schedulers() {
    let Some(bed) = Bed::postgres().await else { return };
    let repository = bed.repository("http://x/oai").await.id;
    let new = NewRecurring {
        repository,
        spec: HarvestSpec::all("oai_dc"),
        starts_at: bed.clock.now(),
        ends_at: None,
        every: Some(Every { count: 1, unit: Unit::Day }),
    };
    let made = bed.db.oai_recurring().add(new.clone(), &anna()).await.unwrap();
    let mut barrier = Barrier::at(&bed, "AFTER INSERT ON oai_jobs").await;
    let one = barrier.hold(1, act!(bed, |db| db.oai_recurring().plan())).await;
    let two = barrier.hold(2, act!(bed, |db| db.oai_recurring().plan())).await;
    let changed =
        barrier.hold(2, act!(bed, |db| db.oai_recurring().change(made.id, new, None, &anna()))).await;
    barrier.open().await;
    assert_eq!((one.await.unwrap().unwrap(), two.await.unwrap().unwrap()), (1, 0));
    changed.await.unwrap().unwrap();
    assert_eq!(bed.db.oai_jobs().list(None).await.unwrap().len(), 1, "replaced with the change");
    assert_eq!(bed.db.oai_recurring().plan().await.unwrap(), 0);
}
