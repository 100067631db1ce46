//! Lists that skip records which exist: pages counted by offsets do when the repository changes between them.

use grange_model::oai::{Counts, DeletedSupport, HarvestSpec, RepositoryRules};

use super::super::Ended;
use super::bed::{Server, harvest_of, list, record, response, token_of};
use super::held::{Held, asked_record, does_not_exist, good, has_none, incomplete, one};
use crate::settings::Settings;

const SIZE: &str = " completeListSize='20'";

/// The first page of twenty records by offsets, with or without their number.
fn first_page(size: &str) -> String {
    list((0..10).map(good), &format!("<resumptionToken{size}>10</resumptionToken>"))
}

/// What a repository has that answers a request for record 3 with `three`: all records but that one.
fn has_others(number: u64, three: &str) -> String {
    if number == 3 { three.to_owned() } else { one(&good(number)) }
}

#[tokio::test]
async fn a_record_that_a_list_skips_and_the_repository_has_does_not_vanish() {
    type Respond = fn(&str, usize) -> String;
    let cases: [(&str, Respond); 3] = [
        // Record 3 is deleted after the first page, and record 10 moves to where that page was.
        ("deleted before the offset", |query, _| match (asked_record(query), token_of(query)) {
            (Some(number), _) => has_others(number, &does_not_exist()),
            (None, None) => first_page(""),
            (None, Some(_)) => list((11..20).map(good), ""),
        }),
        // Record 3 is edited after the first page and moves to the end. As many come as the list has.
        ("moved to the end", |query, _| match (asked_record(query), token_of(query)) {
            (Some(number), _) => one(&good(number)),
            (None, None) => first_page(SIZE),
            (None, Some(_)) => list((11..20).chain([3]).map(good), &format!("<resumptionToken{SIZE}/>")),
        }),
        ("moved to the end of a list without a size", |query, _| {
            match (asked_record(query), token_of(query)) {
                (Some(number), _) => one(&good(number)),
                (None, None) => first_page(""),
                (None, Some(_)) => list((11..20).chain([3]).map(good), ""),
            }
        }),
    ];
    for (what, respond) in cases {
        let held = Held::records(20).await;
        let ended = held.harvest(&Server::answering(respond).await).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{what}: {ended:?}");
        assert_eq!((held.active(), held.counts().deleted), (20, 0), "{what}");
        assert!(held.has_file(10), "{what}");
    }
}

/// Tokens that are offsets: when a record before the offset is deleted at the source, the next page skips a living one. The
/// records that came are then as many as the last page says.
#[tokio::test]
async fn a_record_that_is_skipped_because_the_list_changed_while_it_was_read_does_not_vanish() {
    // Record 3 is deleted after the first page, and record 10 moves to where that page was.
    let shrinking = |query: &str, _| match token_of(query) {
        _ if asked_record(query).is_some() => does_not_exist(),
        None => list((0..10).map(good), "<resumptionToken completeListSize='20'>10</resumptionToken>"),
        Some(_) => list((11..20).map(good), "<resumptionToken completeListSize='19'/>"),
    };
    let held = Held::records(20).await;
    let ended = held.harvest(&Server::answering(shrinking).await).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!((held.active(), held.counts().deleted), (20, 0));
    assert!(held.has_file(10));
    assert!(held.warned("changed from 20 to 19") && held.warned("--accept-deletions"));
    // A person, or a repository whose sizes are estimates, has the list believed.
    let spec = HarvestSpec { accept_deletions: true, ..HarvestSpec::all("oai_dc") };
    let estimated = RepositoryRules { estimated_size: true, ..RepositoryRules::default() };
    for (spec, rules) in [(spec, RepositoryRules::default()), (HarvestSpec::all("oai_dc"), estimated)] {
        let held = Held::records(20).await;
        let ended = held.harvest_as(&Server::answering(shrinking).await, spec, rules).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
        assert_eq!((held.active(), held.counts().deleted), (19, 1));
    }
}

#[tokio::test]
async fn a_record_that_the_repository_says_is_gone_vanishes() {
    const DELETED: &str = "<record><header status='deleted'><identifier>oai:x:3</identifier><datestamp>2026-01-02</datestamp></header></record>";
    type Respond = fn() -> String;
    let cases: [(&str, Respond); 2] =
        [("it does not exist", does_not_exist), ("its header says deleted", || one(DELETED))];
    for (what, three) in cases {
        let held = Held::records(20).await;
        let server = Server::answering(move |query, _| match asked_record(query) {
            Some(number) => has_others(number, &three()),
            None => list((0..20).filter(|n| *n != 3 && *n != 4).map(good), ""),
        })
        .await;
        let ended = held.harvest(&server).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{what}: {ended:?}");
        assert_eq!(held.counts(), Counts { unchanged: 19, deleted: 1, ..Counts::default() }, "{what}");
        assert!(!held.has_file(3) && held.has_file(4), "{what}");
        assert_eq!(server.asked().len(), 3, "{what}: one list, two questions");
    }
}

#[tokio::test]
async fn a_record_that_the_list_lacks_and_that_has_changed_is_stored_as_it_is_now() {
    let held = Held::records(20).await;
    let server = Server::answering(|query, _| match asked_record(query) {
        Some(number) => one(&record(number, "<a>now</a>")),
        None => list((0..20).filter(|n| *n != 3).map(good), ""),
    })
    .await;
    held.harvest(&server).await;
    assert_eq!(held.counts(), Counts { unchanged: 19, changed: 1, ..Counts::default() });
    let text = std::fs::read_to_string(held.dir.path().join("x/3.xml")).unwrap();
    assert!(text.contains(">now</a>"), "{text}");
    // It was seen: another harvest of the whole list asks for it again.
    held.harvest(&server).await;
    assert_eq!(server.asked().len(), 4);
    assert_eq!(held.active(), 20);
}

#[tokio::test]
async fn a_repository_that_does_not_say_whether_a_record_exists_loses_none() {
    type Respond = fn() -> String;
    let unclear: [(&str, &str, Respond); 5] = [
        ("no such verb", "badVerb", || response("<error code='badVerb'>no</error>")),
        ("not in this format", "cannotDisseminateFormat", || {
            response("<error code='cannotDisseminateFormat'>no</error>")
        }),
        ("no record", "no record and no error", || response("<GetRecord/>")),
        ("another record", "oai:x:7", || one(&good(7))),
        ("no XML", "no web page", || "<html>no web page".to_owned()),
    ];
    for (what, word, respond) in unclear {
        let held = Held::records(20).await;
        let server = Server::answering(move |query, _| match asked_record(query) {
            Some(_) => respond(),
            None => list((0..16).map(good), ""),
        })
        .await;
        let settings = Settings { attempts: 1, ..Settings::default() };
        let ended = held.harvest_with(settings, &server).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{what}: {ended:?}");
        assert_eq!((held.active(), held.counts().deleted), (20, 0), "{what}");
        assert!((16..20).all(|number| held.has_file(number)), "{what}");
        let warned = held.warned("4 records that are held did not come") && held.warned("--accept-deletions");
        assert!(warned, "{what}: {:?}", held.facts.warnings.lock().unwrap());
        assert!(what == "no XML" || held.warned(word), "{what}: {:?}", held.facts.warnings.lock().unwrap());
        // Three requests that got nothing are enough.
        assert_eq!(server.asked().len(), if what == "no XML" { 4 } else { 5 }, "{what}");
    }
}

#[tokio::test]
async fn a_person_who_says_that_records_are_gone_is_believed_without_questions() {
    let held = Held::records(20).await;
    let server = Server::answering(|query, _| match asked_record(query) {
        Some(number) => one(&good(number)),
        None => list((0..19).map(good), ""),
    })
    .await;
    let spec = HarvestSpec { accept_deletions: true, ..HarvestSpec::all("oai_dc") };
    held.harvest_as(&server, spec, RepositoryRules::default()).await;
    assert_eq!((held.active(), server.asked().len()), (19, 1));
}

#[tokio::test]
async fn a_harvest_that_is_stopped_while_it_asks_goes_on_with_the_others() {
    let held = Held::records(1_000).await;
    let respond = |query: &str, _| has_none(query, || list((0..800).map(good), ""));
    let server = Server::answering(respond).await;
    // The commit behind the first group of responses: one of a list that is one page is the second.
    held.facts.go_away(held.facts.commits() + 3, 101, &server);
    let ended = held.harvest(&server).await;
    assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
    let active = held.active();
    held.facts.come_back();
    let ended = held.harvest(&server).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!((held.active(), active), (800, 1_000));
    let lists = server.queries().iter().filter(|query| query.contains("verb=ListRecords")).count();
    assert_eq!(lists, 1, "the list is not asked for again");
}

/// One record of these sets.
fn of_sets(number: u64, sets: &str) -> String {
    good(number).replace("</header>", &format!("{sets}</header>"))
}

#[tokio::test]
async fn a_record_that_moved_to_another_set_stays() {
    const A: &str = "<setSpec>a</setSpec>";
    const B: &str = "<setSpec>b</setSpec>";
    let held = Held::records(0).await;
    *held.facts.set.lock().unwrap() = Some("a".to_owned());
    let spec = HarvestSpec { set: Some("a".to_owned()), ..HarvestSpec::all("oai_dc") };
    let all = Server::answering(|_, _| list((0..20).map(|n| of_sets(n, A)), "")).await;
    held.harvest_as(&all, spec.clone(), RepositoryRules::default()).await;
    assert_eq!(held.active(), 20);
    let server = Server::answering(|query, _| match asked_record(query) {
        Some(3) => one(&of_sets(3, B)),
        Some(_) => does_not_exist(),
        None => list((0..19).filter(|n| *n != 3).map(|n| of_sets(n, A)), ""),
    })
    .await;
    let ended = held.harvest_as(&server, spec.clone(), RepositoryRules::default()).await;
    assert_eq!(held.counts(), Counts { unchanged: 18, changed: 1, deleted: 1, ..Counts::default() });
    assert!(held.has_file(3) && !held.has_file(19));
    assert_eq!(held.facts.sets.lock().unwrap()["oai:x:3"], ["b"]);
    // The list of the set is as it should be.
    assert!(matches!(ended, Ended::Whole { next_from: Some(_), lacking: false }), "{ended:?}");
    held.harvest_as(&server, spec, RepositoryRules::default()).await;
    assert_eq!(server.asked().len(), 4, "nobody asks for it again");
}

#[tokio::test]
async fn lists_that_lack_a_record_keep_the_next_start_where_it_was_once() {
    type Respond = fn(&str, usize) -> String;
    let cases: [(&str, &str, DeletedSupport, Respond); 3] = [
        // The second page repeats 9 and lacks 10.
        ("overlapping pages", "19 different ones", DeletedSupport::Persistent, |query, _| {
            match token_of(query) {
                None => first_page(SIZE),
                Some(_) => {
                    list([9].into_iter().chain(11..20).map(good), &format!("<resumptionToken{SIZE}/>"))
                }
            }
        }),
        // A repository that lists a record of two sets twice has no others.
        ("a record listed twice", "19 different ones", DeletedSupport::Persistent, |_, _| {
            list((0..19).chain([3]).map(good), &format!("<resumptionToken{SIZE}/>"))
        }),
        ("a record that exists", "lack 1 records", DeletedSupport::No, |query, _| {
            match asked_record(query) {
                Some(number) => one(&good(number)),
                None => list((0..19).map(good), ""),
            }
        }),
    ];
    for (what, word, support, respond) in cases {
        let held = Held::records(20).await;
        let server = Server::answering(respond).await;
        let rules = RepositoryRules::default;
        let harvest = async |rules| {
            let with = (Settings::default(), HarvestSpec::all("oai_dc"));
            harvest_of(&server, &held.facts, held.dir.path(), with, (support, rules)).await.ended
        };
        let first = harvest(rules()).await;
        assert!(matches!(first, Ended::Whole { next_from: None, lacking: true }), "{what}: {first:?}");
        assert!(held.warned(word) && held.warned("stays where it was"), "{what}");
        let warnings = held.facts.warnings.lock().unwrap().len();
        // It is not stuck for ever, and warns no more.
        for _ in 0..2 {
            let next = harvest(rules()).await;
            assert!(matches!(next, Ended::Whole { next_from: Some(_), lacking: true }), "{what}: {next:?}");
        }
        assert_eq!(held.facts.warnings.lock().unwrap().len(), warnings, "{what}");
        assert_eq!(held.active(), 20, "{what}");
    }
}

#[tokio::test]
async fn lists_that_repeat_records_beside_all_of_them_lack_none() {
    let last = format!("<resumptionToken{SIZE}/>");
    let estimated = RepositoryRules { estimated_size: true, ..RepositoryRules::default() };
    let cases: [(&str, Vec<u64>, String, RepositoryRules); 3] = [
        ("all and one again", (0..20).chain([3]).collect(), last.clone(), RepositoryRules::default()),
        ("no size", (0..20).chain([3]).collect(), String::new(), RepositoryRules::default()),
        ("an estimate", (0..19).chain([3]).collect(), last, estimated),
    ];
    for (what, numbers, token, rules) in cases {
        let held = Held::records(19).await;
        let server =
            Server::answering(move |_, _| list(numbers.iter().map(|number| good(*number)), &token)).await;
        let ended = held.harvest_as(&server, HarvestSpec::all("oai_dc"), rules).await;
        assert!(matches!(ended, Ended::Whole { next_from: Some(_), lacking: false }), "{what}: {ended:?}");
    }
    let held = Held::records(20).await;
    let short = Server::answering(|_, _| {
        list((0..18).chain([3]).map(good), "<resumptionToken completeListSize='20'/>")
    });
    assert!(incomplete(&held.harvest(&short.await).await).contains("19 of 20"));
}
