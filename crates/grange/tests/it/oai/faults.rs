//! Every record accounted for, whatever goes wrong on the way.

use super::bed::{Provider, active, state};
use super::proxy::{Fault, Proxy};
use super::{add, counts, exported, grange, harvest};
use crate::harness::Grange;

#[test]
fn every_record_is_accounted_for_whatever_goes_wrong() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(120, 20)) else { return };
    for fault in [
        Fault::None,
        Fault::Busy,
        Fault::BusyUntil,
        Fault::Failing,
        Fault::Cut,
        Fault::CutQuietly,
        Fault::WrongCharset,
        Fault::ExpiredToken,
        Fault::Ring,
    ] {
        let proxy = Proxy::start(&provider.url, fault);
        let id = add(&grange, &proxy.url);
        let ended = grange.run(&["oai", "harvest", &id, "--wait", "--json"]);
        // Nobody knows where a list ends that begins again: everything came, and that is not known.
        let (code, outcome) = if fault == Fault::Ring { (5, "incomplete") } else { (0, "success") };
        assert_eq!(ended.code, code, "{fault:?}: {ended:?}");
        let ended = ended.json();
        assert_eq!((&ended["outcome"], &ended["bad"]), (&outcome.into(), &0.into()), "{fault:?}: {ended}");
        assert_eq!(exported(&grange, &id), active(120), "{fault:?}: {ended}");
        let [new, changed, _, deleted] = counts(&ended);
        assert_eq!((new, changed, deleted), (108, 0, 12), "{fault:?}: {ended}");
        let file = grange.data().join(format!("oai/{id}/prov.example/coll0/0.xml"));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("Numéro 0"), "{fault:?}: {text}");
    }
}

#[test]
fn a_token_that_never_changes_ends_the_harvest_as_incomplete() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(120, 20)) else { return };
    let proxy = Proxy::start(&provider.url, Fault::SameToken);
    let id = add(&grange, &proxy.url);
    for more in [&[][..], &["--incremental"]] {
        let ended = grange.run(&[&["oai", "harvest", &id, "--wait", "--json"], more].concat());
        assert_eq!(ended.code, 5, "{ended:?}");
        let ended = ended.json();
        assert!(ended["pages"].as_u64().unwrap() < 10, "{ended}");
        assert!(ended["reason"].as_str().unwrap().contains("token"), "{ended}");
    }
    let lists = proxy.asked().into_iter().filter(|query| query.contains("ListRecords"));
    assert!(lists.clone().all(|query| !query.contains("from=")), "no start for the next: {lists:#?}");
    let incomplete = grange.run(&["oai", "history", "--outcome", "incomplete", "--json"]).ok().json();
    assert_eq!(incomplete.as_array().unwrap().len(), 2, "{incomplete}");
}

#[test]
fn windows_that_are_ignored_become_one_list() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(120, 20)) else { return };
    let proxy = Proxy::start(&provider.url, Fault::NoWindows);
    let id = add(&grange, &proxy.url);
    let ended = harvest(&grange, &id, &["--from", "2020-01-04", "--until", "2020-01-04"]);
    assert_eq!(exported(&grange, &id), active(120), "{ended}");
    let shown = grange.run(&["oai", "show", &id, "--json"]).ok().json();
    assert_eq!(shown["rules"]["no_windows"], true, "{shown}");
    // With windows that work only those come, and by month all of them.
    let honest = add(&grange, &provider.url);
    let some = harvest(&grange, &honest, &["--from", "2020-01-04", "--until", "2020-01-04"]);
    assert_eq!(some["records"], 24, "{some}");
    grange.run(&["oai", "set", &honest, "--windows", "month"]).ok();
    let all = harvest(&grange, &honest, &[]);
    assert_eq!(all["records"], 120, "{all}");
    assert_eq!(exported(&grange, &honest), active(120));
}

#[test]
fn a_repository_without_end_is_stopped_by_limits() {
    let grange = Grange::with(&[
        "oai.allow_networks=[\"127.0.0.0/8\"]",
        "oai.retry_first=10ms",
        "oai.page_bytes_max=20MB",
    ]);
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(1, 1)) else { return };
    let proxy = Proxy::start(&provider.url, Fault::Endless);
    let id = add(&grange, &proxy.url);
    let ended = grange.run(&["oai", "harvest", &id, "--wait", "--json"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let ended = ended.json();
    assert!(ended["reason"].as_str().unwrap().contains("larger than"), "{ended}");
    // What came before the end is kept and counted.
    let new = ended["new"].as_u64().unwrap();
    assert!(new > 0 && exported(&grange, &id).len() as u64 == new, "{ended}");
}
