//! Domains, their configurations and their aliases.

use grange_model::harvest::{DomainName, Limits, NewConfiguration};

use super::{Barrier, act};
use crate::conformance::harvest_bed::{domain, name};
use crate::conformance::{Bed, anna};
use crate::{DomainChange, Error};

async fn configuration(bed: &Bed, of: &str, called: &str) {
    let new = NewConfiguration {
        name: name(called),
        template: name("default"),
        limits: Limits::NONE,
        seed_lists: vec![name("defaultseeds")],
        credentials: Vec::new(),
        comments: String::new(),
    };
    bed.db.domains().add_configuration(&domain(of), new, &anna()).await.unwrap();
}

fn alias_of(of: &str) -> DomainChange {
    DomainChange { alias_of: Some(Some(domain(of))), ..DomainChange::default() }
}

async fn alias(bed: &Bed, of: &str) -> Option<DomainName> {
    bed.db.domains().get(&domain(of)).await.unwrap().unwrap().alias.map(|alias| alias.of)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_answers_with_the_default_that_another_change_set() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&["a.dk"]).await;
    configuration(&bed, "a.dk", "other").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let other = DomainChange { default_configuration: Some(name("other")), ..DomainChange::default() };
    let one =
        barrier.hold(1, act!(bed, |db| db.domains().change(&domain("a.dk"), other, None, &anna()))).await;
    let note = DomainChange { comments: Some("note".to_owned()), ..DomainChange::default() };
    let two =
        barrier.hold(2, act!(bed, |db| db.domains().change(&domain("a.dk"), note, None, &anna()))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().unwrap().default_configuration, name("other"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_domains_do_not_become_aliases_of_each_other() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&["a.dk", "b.dk", "c.dk"]).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier
        .hold(1, act!(bed, |db| db.domains().change(&domain("a.dk"), alias_of("b.dk"), None, &anna())))
        .await;
    let two = barrier
        .hold(2, act!(bed, |db| db.domains().change(&domain("b.dk"), alias_of("a.dk"), None, &anna())))
        .await;
    let three = barrier
        .hold(3, act!(bed, |db| db.domains().change(&domain("b.dk"), alias_of("c.dk"), None, &anna())))
        .await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().unwrap_err().code(), "refused");
    assert_eq!(three.await.unwrap().unwrap_err().code(), "refused");
    assert_eq!((alias(&bed, "a.dk").await, alias(&bed, "b.dk").await), (Some(domain("b.dk")), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_is_being_added_to_a_harvest_is_in_use() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&["a.dk"]).await;
    bed.selective("h", &[]).await;
    configuration(&bed, "a.dk", "other").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let wanted = vec![(domain("a.dk"), Some(name("other")))];
    let added =
        barrier.hold(1, act!(bed, |db| db.harvests().add_domains(&name("h"), wanted, false, &anna()))).await;
    let deleted = barrier
        .hold(2, act!(bed, |db| db.domains().delete_configuration(&domain("a.dk"), &name("other"), &anna())))
        .await;
    barrier.open().await;
    assert_eq!(added.await.unwrap().unwrap().added, 1);
    let refused = deleted.await.unwrap().unwrap_err();
    assert!(matches!(&refused, Error::InUse { by, .. } if by == "the harvest h"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_is_being_deleted_is_not_added_to_a_harvest() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&["a.dk"]).await;
    bed.selective("h", &[]).await;
    configuration(&bed, "a.dk", "other").await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let deleted = barrier
        .hold(1, act!(bed, |db| db.domains().delete_configuration(&domain("a.dk"), &name("other"), &anna())))
        .await;
    let wanted = vec![(domain("a.dk"), Some(name("other")))];
    let added =
        barrier.hold(2, act!(bed, |db| db.harvests().add_domains(&name("h"), wanted, false, &anna()))).await;
    barrier.open().await;
    deleted.await.unwrap().unwrap();
    assert_eq!(added.await.unwrap().unwrap_err().code(), "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_imports_of_the_same_domain_make_it_once_and_whole() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&[]).await;
    bed.selective("h", &[]).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.domains().import(vec![domain("a.dk")], &anna()))).await;
    let wanted = vec![(domain("a.dk"), None)];
    let two =
        barrier.hold(2, act!(bed, |db| db.harvests().add_domains(&name("h"), wanted, true, &anna()))).await;
    barrier.open().await;
    assert_eq!(one.await.unwrap().unwrap().created, 1);
    let added = two.await.unwrap().unwrap();
    assert_eq!((added.added, added.domains_created), (1, 0));
    assert_eq!(bed.db.domains().configurations(&domain("a.dk")).await.unwrap().len(), 1);
}
