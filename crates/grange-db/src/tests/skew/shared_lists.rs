//! Schedules, trap lists and seed lists: deleted while others change them.

use grange_model::harvest::Schedule;

use super::{Barrier, act};
use crate::AuditFilter;
use crate::conformance::harvest_bed::{domain, name};
use crate::conformance::{Bed, anna, on_both_engines};

on_both_engines! {
    what_was_deleted_is_not_made_again_by_a_save_of_its_last_edition,
}

async fn what_was_deleted_is_not_made_again_by_a_save_of_its_last_edition(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let hourly = Schedule::shipped()[0].clone();
    let edition = bed.db.schedules().get(&hourly.name).await.unwrap().unwrap().1;
    bed.db.schedules().delete(&hourly.name, &anna()).await.unwrap();
    let saved = bed.db.schedules().save(hourly.clone(), Some(edition), &anna()).await;
    assert_eq!(saved.map_err(|error| error.code()), Err("not-found"));
    bed.db.schedules().save(hourly, None, &anna()).await.unwrap();

    let traps = bed.db.traps();
    let list = traps.save(&name("t"), "", true, &[".*x.*".to_owned()], None, &anna()).await.unwrap();
    traps.delete(&name("t"), &anna()).await.unwrap();
    let saved = traps.save(&name("t"), "", false, &list.expressions, Some(list.edition), &anna()).await;
    assert_eq!(saved.map(|_| ()).map_err(|error| error.code()), Err("not-found"));

    let domains = bed.db.domains();
    let (of, called) = (domain("a.dk"), name("more"));
    let seeds = domains.save_seeds(&of, &called, "http://a.dk/", &[], "", None, &anna()).await.unwrap();
    domains.delete_seeds(&of, &called, &anna()).await.unwrap();
    let saved = domains.save_seeds(&of, &called, "x", &[], "", Some(seeds.edition), &anna()).await;
    assert_eq!(saved.map(|_| ()).map_err(|error| error.code()), Err("not-found"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trap_list_deleted_twice_at_once_is_deleted_once() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.db.traps().save(&name("t"), "", true, &[".*x.*".to_owned()], None, &anna()).await.unwrap();
    let mut barrier = Barrier::before_the_log(&bed).await;
    let one = barrier.hold(1, act!(bed, |db| db.traps().delete(&name("t"), &anna()))).await;
    let two = barrier.hold(2, act!(bed, |db| db.traps().delete(&name("t"), &anna()))).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().map_err(|error| error.code()), Err("not-found"));
    let filter = AuditFilter { act: Some("traps.delete".to_owned()), ..AuditFilter::default() };
    assert_eq!(bed.db.audit().list(&filter).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_new_trap_lists_of_one_name_the_log_knows_what_the_second_replaced() {
    let Some(bed) = Bed::postgres().await else { return };
    let mut barrier = Barrier::before_the_log(&bed).await;
    let save = |trap: &'static str| {
        act!(bed, |db| async move {
            db.traps().save(&name("t"), "", true, &[trap.to_owned()], None, &anna()).await
        })
    };
    let one = barrier.hold(1, save(".*x.*")).await;
    let two = barrier.hold(2, save(".*y.*")).await;
    barrier.open().await;
    one.await.unwrap().unwrap();
    assert_eq!(two.await.unwrap().unwrap().edition, 2);
    let newest = &bed.db.audit().list(&AuditFilter::default()).await.unwrap()[0];
    assert!(newest.before.is_some(), "{newest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_a_harvest_takes_is_not_deleted() {
    let Some(bed) = Bed::postgres().await else { return };
    bed.stocked(&[]).await;
    let mut barrier = Barrier::before_the_log(&bed).await;
    let taken = {
        let db = bed.db.clone();
        async move {
            let new = crate::NewHarvest {
                name: name("h"),
                kind: grange_model::harvest::HarvestKind::Selective,
                comments: String::new(),
                audience: String::new(),
                schedule: Some(name("daily")),
                channel: None,
                limits: grange_model::harvest::Limits::NONE,
                continues: None,
                traps: Vec::new(),
                fields: std::collections::BTreeMap::new(),
            };
            db.harvests().create(new, &anna()).await
        }
    };
    let taken = barrier.hold(1, taken).await;
    let deleted = barrier.hold(2, act!(bed, |db| db.schedules().delete(&name("daily"), &anna()))).await;
    barrier.open().await;
    taken.await.unwrap().unwrap();
    assert_eq!(deleted.await.unwrap().unwrap_err().code(), "in-use");
}
