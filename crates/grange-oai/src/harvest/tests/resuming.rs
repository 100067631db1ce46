//! Harvests that failed and go on: with the same rules where they were, with others from the beginning.

use std::sync::Arc;

use grange_model::oai::{HarvestSpec, Validation};

use super::super::Ended;
use super::bed::{Facts, Server, harvest, list, record, response, token_of};
use crate::settings::Settings;

/// Two pages of ten records; the second is an error until `after` requests were made.
async fn failing(after: usize) -> Server {
    Server::answering(move |query, number| match token_of(query) {
        Some(_) if number < after => response("<error code='InternalException'>no</error>"),
        Some(_) => list((10..20).map(good), ""),
        None => list((0..10).map(good), "<resumptionToken>a</resumptionToken>"),
    })
    .await
}

fn good(number: u64) -> String {
    record(number, &format!("<a>{}</a>", if number.is_multiple_of(2) { "even" } else { "odd" }))
}

#[tokio::test]
async fn a_failed_harvest_goes_on_only_with_the_rules_it_began_with() {
    let all = HarvestSpec::all("oai_dc");
    let filter = |word: &str| Some(format!("<filters><filter xpath='//*' regexp='{word}'/></filters>"));
    let normalize = "<normalize><mapping xpath='//*'><newElement name='b' regexp='even'><newValue>e</newValue></newElement>\
                     </mapping></normalize>";
    for (what, before, after, anew, kept) in [
        ("the same", all.clone(), all.clone(), false, 20),
        ("a filter", all.clone(), HarvestSpec { filter: filter("even"), ..all.clone() }, true, 10),
        (
            "another filter",
            HarvestSpec { filter: filter("even"), ..all.clone() },
            HarvestSpec { filter: filter("odd"), ..all.clone() },
            true,
            10,
        ),
        ("no filter any more", HarvestSpec { filter: filter("even"), ..all.clone() }, all.clone(), true, 20),
        (
            "a normalizer",
            all.clone(),
            HarvestSpec { normalize: Some(normalize.to_owned()), ..all.clone() },
            true,
            20,
        ),
        (
            "another validation",
            all.clone(),
            HarvestSpec { validation: Validation::Strict, ..all.clone() },
            true,
            20,
        ),
    ] {
        let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
        let server = failing(2).await;
        let first = harvest(&server, &facts, dir.path(), Settings::default(), before).await;
        assert!(matches!(first.ended, Ended::Failed(_)), "{what}: {first:?}");
        let second = harvest(&server, &facts, dir.path(), Settings::default(), after).await;
        assert!(matches!(second.ended, Ended::Whole { .. }), "{what}: {second:?}");
        let expected: &[&str] = if anew { &["", "a", "", "a"] } else { &["", "a", "a"] };
        assert_eq!(server.asked(), expected, "{what}");
        let active = facts.records.lock().unwrap().values().filter(|known| !known.deleted).count();
        assert_eq!(active, kept, "{what}");
    }
}

#[tokio::test]
async fn a_list_that_was_begun_too_often_is_begun_again_by_the_next_harvest() {
    let (dir, facts) = (tempfile::tempdir().unwrap(), Arc::new(Facts::default()));
    let all = || HarvestSpec::all("oai_dc");
    let server = Server::answering(|query, number| match token_of(query) {
        Some(_) if number < 13 => response("<error code='badResumptionToken'>no</error>"),
        Some(_) => list((10..20).map(good), ""),
        None => list((0..10).map(good), &format!("<resumptionToken>t{number}</resumptionToken>")),
    })
    .await;
    let first = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
    assert!(matches!(first.ended, Ended::Failed(_)), "{first:?}");
    let second = harvest(&server, &facts, dir.path(), Settings::default(), all()).await;
    assert!(matches!(second.ended, Ended::Whole { .. }), "{second:?}");
    assert_eq!(facts.records.lock().unwrap().len(), 20);
}
