//! Plans that are read over many acts, while people change what they are made of.

use grange_model::harvest::{HarvestDefinition, HarvestKind, Limits, NewConfiguration};

use super::{Barrier, act};
use crate::conformance::harvest_bed::{domain, name};
use crate::conformance::{Bed, LONG, anna, on_both_engines};
use crate::{Candidate, DomainChange, Member, NewJob, RunPlan};

on_both_engines! {
    a_domain_whose_default_moves_while_a_snapshot_is_read_is_in_it_once,
    a_plan_that_lost_a_configuration_is_not_made,
}

async fn other(bed: &Bed, of: &str) {
    let new = NewConfiguration {
        name: name("other"),
        template: name("default"),
        limits: Limits::NONE,
        seed_lists: vec![name("defaultseeds")],
        credentials: Vec::new(),
        comments: String::new(),
    };
    bed.db.domains().add_configuration(&domain(of), new, &anna()).await.unwrap();
}

async fn make_default(bed: &Bed, of: &str, called: &str) {
    let change = DomainChange { default_configuration: Some(name(called)), ..DomainChange::default() };
    bed.db.domains().change(&domain(of), change, None, &anna()).await.unwrap();
}

async fn page(bed: &Bed, of: &HarvestDefinition, after: i64, limit: u32) -> Vec<Candidate> {
    bed.db.planner().candidates(of, &[], LONG, after, limit).await.unwrap()
}

async fn a_domain_whose_default_moves_while_a_snapshot_is_read_is_in_it_once(bed: &Bed) {
    bed.stocked(&["a.dk", "b.dk"]).await;
    other(bed, "a.dk").await;
    other(bed, "b.dk").await;
    let snapshot = bed.harvest("s", HarvestKind::Snapshot).await;
    // The default moves up, behind the page that was read: the domain is not read again.
    let first = page(bed, &snapshot, 0, 1).await.remove(0);
    make_default(bed, "a.dk", "other").await;
    let rest = page(bed, &snapshot, first.place, 10).await;
    assert_eq!(rest.iter().filter(|one| one.domain == first.domain).count(), 0);
    // And down, before the page: the domain is not left out.
    make_default(bed, "b.dk", "other").await;
    let first = page(bed, &snapshot, 0, 1).await.remove(0);
    make_default(bed, "b.dk", "defaultconfig").await;
    let rest = page(bed, &snapshot, first.place, 10).await;
    assert_eq!(rest.len(), 1);
    assert!(rest[0].domain != first.domain);
}

async fn a_plan_that_lost_a_configuration_is_not_made(bed: &Bed) {
    bed.stocked(&["a.dk", "b.dk"]).await;
    other(bed, "b.dk").await;
    bed.harvest("s", HarvestKind::Snapshot).await;
    bed.db.harvests().set_active(&name("s"), true, None, &anna()).await.unwrap();
    let due = bed.due(HarvestKind::Snapshot).await.unwrap();
    let all = page(bed, &due.harvest, 0, 10).await;
    let job = NewJob {
        template: all[0].template,
        limits: Limits::NONE,
        expected_objects: 7,
        configurations: all.len() as u64,
    };
    let job = bed.db.planner().draft(&due, vec![job]).await.unwrap()[0];
    make_default(bed, "b.dk", "other").await;
    bed.db.domains().delete_configuration(&domain("b.dk"), &name("defaultconfig"), &anna()).await.unwrap();
    let member = |one: &Candidate| Member { configuration: one.configuration, job, expected_objects: 7 };
    let filled = bed.db.planner().fill(&due, all.iter().map(member).collect()).await;
    assert_eq!(filled.map_err(|error| error.code()), Err("lease-lost"), "b.dk would be in no job");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_void_when_its_harvest_is_changed_before_it_is_committed() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&[]).await;
    bed.selective("h", &["a.dk"]).await;
    let due = bed.due(HarvestKind::Selective).await.unwrap();
    bed.draft(&due).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let out =
        barrier.hold(1, act!(bed, |db| db.harvests().set_active(&name("h"), false, None, &anna()))).await;
    let planned = barrier.hold(2, act!(bed, |db| db.planner().commit(&due, RunPlan::default()))).await;
    barrier.open().await;
    out.await.unwrap().unwrap();
    assert_eq!(planned.await.unwrap().unwrap_err().code(), "lease-lost");
}
