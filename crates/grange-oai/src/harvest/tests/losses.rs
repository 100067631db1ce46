//! Lists that lack records, and records that are damaged: nothing that is held is lost by either.

use grange_model::oai::{Counts, HarvestSpec, Method, RepositoryRules};

use super::super::Ended;
use super::bed::{Server, header, list, response, token_of};
use super::held::{Held, good, has_none, incomplete};

#[tokio::test]
async fn a_record_that_comes_damaged_keeps_the_copy_that_is_held() {
    let held = Held::records(11).await;
    let damaged = |n: u64| if n == 3 { format!("<record>{}</record>", header(3)) } else { good(n) };
    let server = Server::answering(move |_, _| list((0..11).map(damaged), "")).await;
    let ended = held.harvest(&server).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!(held.counts(), Counts { unchanged: 10, bad: 1, ..Counts::default() });
    assert!(held.has_file(3) && held.active() == 11);
    // One that the list really lacks is gone.
    let without = |query: &str, _| has_none(query, || list((0..11).filter(|n| *n != 3).map(good), ""));
    held.harvest(&Server::answering(without).await).await;
    assert_eq!(held.counts(), Counts { unchanged: 10, deleted: 1, ..Counts::default() });
    assert!(!held.has_file(3) && held.active() == 10);
}

#[tokio::test]
async fn a_damaged_record_beside_a_good_one_of_the_same_name_changes_nothing() {
    let held = Held::records(11).await;
    for order in [[0, 1], [1, 0]] {
        let three = [good(3), format!("<record>{}</record>", header(3))];
        let server = Server::answering(move |_, _| {
            let others = (0..11).filter(|n| *n != 3).map(good);
            list(others.chain(order.map(|at: usize| three[at].clone())), "")
        })
        .await;
        held.harvest(&server).await;
        assert_eq!(held.counts(), Counts { unchanged: 11, bad: 1, ..Counts::default() });
        assert!(held.has_file(3));
    }
}

#[tokio::test]
async fn a_record_without_a_readable_identifier_lets_nothing_vanish() {
    for unreadable in [
        "<record><header><identifier></identifier></header><metadata><a>3</a></metadata></record>",
        "<record><header></header><metadata><a>3</a></metadata></record>",
        "<record><header><identifier>oai:x:3\u{b}7</identifier></header><metadata><a>3</a></metadata></record>",
    ] {
        let held = Held::records(11).await;
        let server = Server::answering(move |_, _| {
            list((0..11).map(|n| if n == 3 { unreadable.to_owned() } else { good(n) }), "")
        })
        .await;
        let ended = held.harvest(&server).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
        assert_eq!(held.counts().deleted, 0, "{unreadable}");
        assert!(held.has_file(3), "{unreadable}");
        assert!(held.warned("none was deleted"), "{unreadable}");
    }
}

/// A repository whose list always has one record without an identifier would keep its deleted records for ever.
#[tokio::test]
async fn a_doubtful_list_deletes_only_when_a_person_accepts_it_and_an_incomplete_one_never() {
    type Respond = fn(&str, usize) -> String;
    // All but record 3, and one that nobody can recognize.
    fn listed() -> impl Iterator<Item = String> {
        let unreadable = "<record><header></header><metadata><a>3</a></metadata></record>".to_owned();
        (0..11).filter(|n| *n != 3).map(good).chain([unreadable])
    }
    let accepted = || HarvestSpec { accept_deletions: true, ..HarvestSpec::all("oai_dc") };
    let doubtful: [(&str, Respond); 2] = [
        ("a record without an identifier", |_, _| list(listed(), "")),
        ("a list that was begun again", |query, number| {
            if token_of(query).is_some() {
                return response("<error code='badResumptionToken'>no</error>");
            }
            let token = if number == 0 { "<resumptionToken>a</resumptionToken>" } else { "" };
            list((0..11).filter(|n| *n != 3).map(good), token)
        }),
    ];
    for (what, respond) in doubtful {
        let held = Held::records(11).await;
        let server = Server::answering(respond).await;
        let ended = held.harvest(&server).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{what}: {ended:?}");
        assert_eq!((held.active(), held.counts().deleted), (11, 0), "{what}");
        assert!(held.warned("none was deleted") && held.warned("--accept-deletions"), "{what}");
        let server = Server::answering(respond).await;
        let ended = held.harvest_as(&server, accepted(), RepositoryRules::default()).await;
        assert!(matches!(ended, Ended::Whole { .. }), "{what}: {ended:?}");
        assert_eq!((held.active(), held.counts().deleted), (10, 1), "{what}");
        assert!(!held.has_file(3) && held.has_file(4), "{what}");
        assert!(held.warned("may still exist"), "{what}");
    }
    // A list that is doubtful and known to lack records as well.
    let incomplete_too: [(&str, &str, Respond); 3] = [
        ("fewer than its size", "11 of 12", |_, _| {
            list(listed(), "<resumptionToken completeListSize='12'/>")
        }),
        ("a list without an end", "again", |_, _| list(listed(), "<resumptionToken>a</resumptionToken>")),
        ("an error among its last records", "x", |_, _| {
            let records: String = listed().collect();
            response(&format!("<error code='x'>no</error><ListRecords>{records}</ListRecords>"))
        }),
    ];
    for (what, word, respond) in incomplete_too {
        let held = Held::records(11).await;
        let server = Server::answering(respond).await;
        let reason = incomplete(&held.harvest_as(&server, accepted(), RepositoryRules::default()).await);
        assert!(reason.contains(word), "{what}: {reason}");
        assert_eq!((held.active(), held.counts().deleted), (11, 0), "{what}");
    }
}

#[tokio::test]
async fn a_record_that_is_listed_and_cannot_be_had_keeps_the_copy_that_is_held() {
    let held = Held::records(11).await;
    let server = Server::answering(|query, _| {
        let Some((_, rest)) = query.split_once("identifier=oai%3Ax%3A") else {
            let headers: String = (0..11).map(header).collect();
            return response(&format!("<ListIdentifiers>{headers}</ListIdentifiers>"));
        };
        let number: u64 = rest.split('&').next().unwrap().parse().unwrap();
        match number {
            3 => response("<error code='idDoesNotExist'>no</error>"),
            // A record whose header was lost on the way is the one that was asked for.
            4 => response("<GetRecord><record><header/><metadata><a>4</a></metadata></record></GetRecord>"),
            _ => response(&format!("<GetRecord>{}</GetRecord>", good(number))),
        }
    })
    .await;
    let spec = HarvestSpec { method: Method::ListIdentifiers, ..HarvestSpec::all("oai_dc") };
    let ended = held.harvest_as(&server, spec, RepositoryRules::default()).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!(held.counts(), Counts { unchanged: 10, bad: 1, ..Counts::default() });
    assert!(held.has_file(3) && held.has_file(4) && held.active() == 11);
}

#[tokio::test]
async fn a_list_that_lacks_records_is_incomplete_and_nothing_vanishes() {
    type Respond = fn(&str, usize) -> String;
    let cases: [(&str, &str, Respond); 5] = [
        ("the same token again", "token", |query, _| {
            let from = token_of(query).map_or(0, |_| 10);
            list((from..from + 10).map(good), "<resumptionToken>a</resumptionToken>")
        }),
        ("fewer than its size", "99 of 100", |_, _| {
            list((0..99).map(good), "<resumptionToken completeListSize='100'/>")
        }),
        ("the list again under new tokens", "again", |_, number| {
            list((0..90).map(good), &format!("<resumptionToken>t{number}</resumptionToken>"))
        }),
        ("empty pages without end", "empty", |_, number| {
            let records = if number == 0 { 90 } else { 0 };
            list((0..records).map(good), &format!("<resumptionToken>t{number}</resumptionToken>"))
        }),
        ("an error among its last records", "x", |_, _| {
            response(&format!(
                "<error code='x'>no</error><ListRecords>{}</ListRecords>",
                (0..99).map(good).collect::<String>()
            ))
        }),
    ];
    for (what, word, respond) in cases {
        let held = Held::records(100).await;
        let server = Server::answering(respond).await;
        let reason = incomplete(&held.harvest(&server).await);
        assert!(reason.contains(word), "{what}: {reason}");
        assert_eq!((held.active(), held.counts().deleted), (100, 0), "{what}");
    }
}

#[tokio::test]
async fn a_size_that_is_an_estimate_does_not_make_a_list_incomplete() {
    let held = Held::records(100).await;
    let shorter = || list((0..99).map(good), "<resumptionToken completeListSize='100'/>");
    let server = Server::answering(move |query, _| has_none(query, shorter)).await;
    let rules = RepositoryRules { estimated_size: true, ..RepositoryRules::default() };
    let ended = held.harvest_as(&server, HarvestSpec::all("oai_dc"), rules).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!(held.active(), 99, "what the list lacks is gone");
}

#[tokio::test]
async fn a_list_that_was_begun_again_lets_nothing_vanish() {
    let held = Held::records(100).await;
    let server = Server::answering(|query, number| {
        if token_of(query).is_some() {
            return response("<error code='badResumptionToken'>no</error>");
        }
        let (count, token) =
            if number == 0 { (50, "<resumptionToken>a</resumptionToken>") } else { (95, "") };
        list((0..count).map(good), token)
    })
    .await;
    let ended = held.harvest(&server).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!((held.active(), held.counts().deleted), (100, 0));
    assert!(held.warned("none was deleted"));
    // Where it lacks too many it is not believed to be complete either.
    let server = Server::answering(|query, number| {
        if token_of(query).is_some() {
            return response("<error code='badResumptionToken'>no</error>");
        }
        let (count, token) =
            if number == 0 { (50, "<resumptionToken>a</resumptionToken>") } else { (40, "") };
        list((0..count).map(good), token)
    })
    .await;
    let reason = incomplete(&held.harvest(&server).await);
    assert!(reason.contains("50 of 100"), "{reason}");
    assert_eq!((held.active(), held.counts().unchanged), (100, 90));
}

#[tokio::test]
async fn more_than_a_fifth_vanishes_only_when_a_person_accepts_it() {
    let held = Held::records(100).await;
    let short = |_: &str, _| list((0..50).map(good), "<resumptionToken completeListSize='100'/>");
    // Fifty records, each twice: a hundred deliveries.
    let mostly_gone = |_: &str, _| list((0..50).flat_map(|n| [good(n), good(n)]), "");
    let server = Server::answering(mostly_gone).await;
    let reason = incomplete(&held.harvest(&server).await);
    assert!(reason.contains("50 of 100") && reason.contains("--accept-deletions"), "{reason}");
    assert_eq!((held.active(), held.counts().deleted), (100, 0));
    // The yes is for complete lists only.
    let spec = HarvestSpec { accept_deletions: true, ..HarvestSpec::all("oai_dc") };
    let server = Server::answering(short).await;
    incomplete(&held.harvest_as(&server, spec.clone(), RepositoryRules::default()).await);
    assert_eq!(held.active(), 100);
    let server = Server::answering(mostly_gone).await;
    let ended = held.harvest_as(&server, spec, RepositoryRules::default()).await;
    assert!(matches!(ended, Ended::Whole { .. }), "{ended:?}");
    assert_eq!((held.active(), held.counts().deleted), (50, 50));
    assert!(held.has_file(49) && !held.has_file(50));
}
