//! A save made from an older edition is refused, for every noun that promises it; without an edition the newest is changed.
//! Users, domains, seed lists and repositories have their cases beside the others of their nouns.

use grange_model::harvest::{HarvestKind, Schedule};

use super::harvest_bed::{domain, name};
use super::{Bed, anna, on_both_engines};
use crate::{ConfigurationChange, Error, HarvestChange};

on_both_engines! {
    a_configuration_saved_from_an_older_edition_is_refused,
    a_harvest_changed_or_put_into_service_from_an_older_edition_is_refused,
    a_trap_list_saved_from_an_older_edition_is_refused,
    a_schedule_saved_from_an_older_edition_is_refused,
}

fn is_stale<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.unwrap_err();
    assert_eq!(error.code(), "stale", "{error}");
}

async fn a_configuration_saved_from_an_older_edition_is_refused(bed: &Bed) {
    bed.stocked(&["a.dk"]).await;
    let (domains, a, called) = (bed.db.domains(), domain("a.dk"), name("defaultconfig"));
    let change = |text: &str| ConfigurationChange {
        comments: Some(text.to_owned()),
        ..ConfigurationChange::default()
    };
    let seen = domains.configurations(&a).await.unwrap()[0].edition;
    let changed =
        domains.change_configuration(&a, &called, change("one"), Some(seen), &anna()).await.unwrap();
    assert!(changed.edition > seen);
    is_stale(domains.change_configuration(&a, &called, change("two"), Some(seen), &anna()).await);
    assert_eq!(domains.configurations(&a).await.unwrap()[0].comments, "one");
    domains.change_configuration(&a, &called, change("three"), None, &anna()).await.unwrap();
}

async fn a_harvest_changed_or_put_into_service_from_an_older_edition_is_refused(bed: &Bed) {
    bed.stocked(&[]).await;
    let seen = bed.harvest("h", HarvestKind::Selective).await.edition;
    let (harvests, called) = (bed.db.harvests(), name("h"));
    let change = |text: &str| HarvestChange { comments: Some(text.to_owned()), ..HarvestChange::default() };
    harvests.change(&called, change("one"), Some(seen), &anna()).await.unwrap();
    is_stale(harvests.change(&called, change("two"), Some(seen), &anna()).await);
    is_stale(harvests.set_active(&called, true, Some(seen), &anna()).await);
    let now = harvests.get(&called).await.unwrap().unwrap();
    assert_eq!((now.comments.as_str(), now.active), ("one", false));
    harvests.set_active(&called, true, Some(now.edition), &anna()).await.unwrap();
}

async fn a_trap_list_saved_from_an_older_edition_is_refused(bed: &Bed) {
    let (traps, called) = (bed.db.traps(), name("calendars"));
    let expressions = |text: &str| vec![text.to_owned()];
    let made = traps.save(&called, "", true, &expressions(".*a.*"), None, &anna()).await.unwrap();
    traps.save(&called, "", true, &expressions(".*b.*"), Some(made.edition), &anna()).await.unwrap();
    is_stale(traps.save(&called, "", true, &expressions(".*c.*"), Some(made.edition), &anna()).await);
}

async fn a_schedule_saved_from_an_older_edition_is_refused(bed: &Bed) {
    bed.stocked(&[]).await;
    let schedule = Schedule::shipped().to_vec().remove(0);
    let schedules = bed.db.schedules();
    schedules.save(schedule.clone(), Some(1), &anna()).await.unwrap();
    is_stale(schedules.save(schedule.clone(), Some(1), &anna()).await);
    schedules.save(schedule, None, &anna()).await.unwrap();
}
