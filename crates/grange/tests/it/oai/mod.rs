//! Harvesting metadata from repositories that others wrote, through the command line.

mod bed;
mod faults;
mod proxy;
mod serving;

use std::collections::BTreeSet;
use std::path::Path;

use bed::{Provider, active, state};
use grange_testkit::wait_for;
use proxy::{Fault, Proxy};
use serde_json::Value;

use crate::harness::Grange;

/// With waits that a test can stand.
fn grange() -> Grange {
    Grange::with(&["oai.allow_networks=[\"127.0.0.0/8\"]", "oai.retry_first=10ms", "oai.lease=2s"])
}

fn add(grange: &Grange, url: &str) -> String {
    grange.run(&["oai", "add", url, "--json"]).ok().json()["id"].to_string()
}

/// A whole harvest's numbers.
#[track_caller]
fn harvest(grange: &Grange, id: &str, more: &[&str]) -> Value {
    let base = ["oai", "harvest", id, "--prefix", "oai_dc", "--wait", "--json"];
    grange.run(&[&base[..], more].concat()).ok().json()
}

/// The four numbers that matter most.
fn counts(ended: &Value) -> [u64; 4] {
    ["new", "changed", "unchanged", "deleted"].map(|name| ended[name].as_u64().unwrap())
}

/// Identifiers of the records that an export holds, active ones only.
fn exported(grange: &Grange, id: &str) -> BTreeSet<String> {
    let lines = grange.run(&["oai", "export", id, "--format", "jsonl"]).ok().stdout;
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records = records.filter(|record| record["deleted"] == false);
    records
        .inspect(|record| assert!(record["metadata"].as_str().unwrap().starts_with("<?xml"), "{record}"))
        .map(|record| record["identifier"].as_str().unwrap().to_owned())
        .collect()
}

fn files(folder: &Path) -> usize {
    let mut count = 0;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    for entry in entries.map(Result::unwrap) {
        // Not records: the journal and its like.
        if entry.file_name().to_string_lossy().starts_with('+') {
            continue;
        }
        count += if entry.file_type().unwrap().is_dir() { files(&entry.path()) } else { 1 };
    }
    count
}

#[test]
fn real_providers_are_harvested_in_full_and_then_by_what_changed() {
    for kind in ["oaipmh", "oai_repo"] {
        let grange = grange();
        let Some(provider) = Provider::start(kind, &grange.path("state"), state(95, 20)) else { return };
        let added = grange.run(&["oai", "add", &provider.url]).ok().stdout;
        assert!(added.contains("Repository 1: Judged by") && added.contains("oai_dc"), "{added}");
        // oai_repo never tells of deleted records, and leaves them out of its lists.
        let tells = kind == "oaipmh";
        let gone = if tells { 9 } else { 0 };
        if !tells {
            // It counts them in completeListSize all the same.
            let short = grange.run(&["oai", "harvest", "1", "--wait"]);
            assert!(short.code == 5 && short.stdout.contains("86 of 95"), "{short:?}");
            grange.run(&["oai", "rm", "1"]).ok();
            grange.run(&["oai", "add", &provider.url, "--estimated-size", "true"]).ok();
        }
        let id = if tells { "1" } else { "2" };
        let first = harvest(&grange, id, &[]);
        assert_eq!(counts(&first), [86, 0, 0, gone], "{kind}: {first}");
        assert_eq!(first["bad"], 0);
        let folder = grange.data().join(format!("oai/{id}"));
        assert_eq!(files(&folder), 86, "{kind}");
        let one = std::fs::read_to_string(folder.join("prov.example/coll1/4.xml")).unwrap();
        assert!(one.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<oai_dc:dc"), "{one}");
        // One writes é, the other &#233;; both stay as they came.
        assert!(one.contains("ro 4 &amp; &lt;more&gt;"), "{one}");
        assert_eq!(exported(&grange, id), active(95));
        assert_eq!(counts(&harvest(&grange, id, &[])), [0, 0, 86 + gone, 0], "{kind}: all known");

        let now = jiff::Timestamp::now().as_second();
        provider.change(&serde_json::json!({
            "count": 97, "page": 20, "changes": {
                "5": { "at": now, "title": "Another" },
                "6": { "at": now, "deleted": true },
                "95": { "at": now },
                "96": { "at": now },
            }
        }));
        let second = harvest(&grange, id, &["--incremental"]);
        let [new, changed, unchanged, deleted] = counts(&second);
        assert_eq!((new, changed, deleted), (2, 1, u64::from(tells)), "{kind}: {second}");
        assert!(unchanged < 86, "{kind}: only what changed came");
        assert_eq!(folder.join("prov.example/coll0/6.xml").exists(), !tells);
        let changed = std::fs::read_to_string(folder.join("prov.example/coll2/5.xml")).unwrap();
        assert!(changed.contains("Another"));
        let sets = harvest(&grange, id, &["--set-spec", "coll1"]);
        assert!(sets["records"].as_u64().unwrap() < 40, "{kind}: {sets}");
        let by_id =
            ["oai", "harvest", id, "--wait", "--json", "--method", "list-identifiers", "--set-spec", "coll2"];
        let by_id = grange.run(&by_id);
        // oai_repo lists identifiers of deleted records and then knows nothing of them.
        let (code, bad) = if tells { (0, 0) } else { (5, 3) };
        assert_eq!(by_id.code, code, "{kind}: {by_id:?}");
        let by_id = by_id.json();
        assert_eq!((&by_id["new"], &by_id["bad"]), (&0.into(), &(bad as u64).into()), "{kind}: {by_id}");
        let history = grange.run(&["oai", "history", "--repository", id, "--json"]).ok().json();
        // A line for each harvest and each bad record.
        assert_eq!(history.as_array().unwrap().len(), 5 + bad, "{kind}: {history}");
    }
}

#[test]
fn a_harvest_that_is_killed_goes_on_at_its_token() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(200, 10)) else { return };
    let proxy = Proxy::start(&provider.url, Fault::HoldAt(8));
    let id = add(&grange, &proxy.url);
    let mut first = grange.spawn(&["oai", "harvest", &id, "--wait", "--json"]);
    proxy.until_held();
    first.kill().unwrap();
    first.wait().unwrap();
    proxy.release();
    let before = proxy.lists();
    let ended = harvest(&grange, &id, &[]);
    assert_eq!(counts(&ended), [180, 0, 0, 20], "everything came once: {ended}");
    let asked = proxy.asked();
    assert!(asked[asked.len() - 13..].iter().all(|query| query.contains("resumptionToken")), "{asked:#?}");
    assert_eq!(proxy.lists(), before, "the list was not begun again");
    assert_eq!(exported(&grange, &id), active(200));
    let failed = grange.run(&["oai", "history", "--outcome", "failed", "--json"]).ok().json();
    assert!(failed[0]["reason"].as_str().unwrap().contains("fell silent"), "{failed}");
}

#[test]
fn a_node_harvests_by_schedule_and_survives_its_own_death() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(60, 10)) else { return };
    let proxy = Proxy::start(&provider.url, Fault::HoldAt(5));
    let id = add(&grange, &proxy.url);
    let node = grange.up();
    grange.run(&["oai", "schedule", &id, "--every", "day", "--incremental"]).ok();
    proxy.until_held();
    let jobs = grange.run(&["oai", "jobs", "--json"]).ok().json();
    assert_eq!(jobs[0]["status"], "in-progress", "{jobs}");
    node.kill();
    proxy.release();
    let node = grange.up();
    let done = wait_for("the harvest to end", || {
        let done = grange.run(&["oai", "history", "--outcome", "success", "--json"]).ok().json();
        done.get(0).cloned()
    });
    assert_eq!((&done["counts"]["new"], &done["counts"]["deleted"]), (&54.into(), &6.into()), "{done}");
    // The next one waits for tomorrow; deleting it waits for the day after.
    let next = grange.run(&["oai", "jobs", "--json"]).ok().json();
    assert_eq!(next[0]["status"], "scheduled", "{next}");
    grange.run(&["oai", "stop", &next[0]["id"].to_string()]).ok();
    let after = grange.run(&["oai", "jobs", "--json"]).ok().json();
    assert!(after[0]["due_at"].as_str() > next[0]["due_at"].as_str(), "{after}");
    let schedules = grange.run(&["oai", "schedules", "--json"]).ok().json();
    assert_eq!(schedules[0]["state"], "recurring", "{schedules}");
    let filter = grange.file("filter", "<filters/>");
    let edit = ["oai", "reschedule", "1", "--every", "week", "--filter", filter.to_str().unwrap()];
    grange.run(&edit).ok();
    let schedules = grange.run(&["oai", "schedules", "--json"]).ok().json();
    assert_eq!(schedules[0]["every"]["unit"], "week", "{schedules}");
    assert_eq!(schedules[0]["spec"]["incremental"], true, "what was not said stays: {schedules}");
    assert_eq!(schedules[0]["spec"]["filter"], "<filters/>", "{schedules}");
    let planned = wait_for("the schedule to be planned anew", || {
        let jobs = grange.run(&["oai", "jobs", "--json"]).ok().json();
        jobs.get(0).cloned()
    });
    assert_eq!(planned["due_at"], after[0]["due_at"], "at its time, and not before");
    grange.run(&["oai", "reschedule", "1", "--filter", "", "--incremental", "false"]).ok();
    let schedules = grange.run(&["oai", "schedules", "--json"]).ok().json();
    let spec = &schedules[0]["spec"];
    assert_eq!((&spec["filter"], &spec["incremental"]), (&Value::Null, &false.into()), "{schedules}");
    grange.run(&["oai", "reschedule", "99", "--every", "day"]).fails(2, &["99"]);
    grange.run(&["oai", "unschedule", "1"]).ok();
    assert!(grange.run(&["oai", "jobs", "--json"]).ok().json().as_array().unwrap().is_empty());
    assert_eq!(node.stop(), 0);
}

#[test]
fn filters_and_rules_are_checked_before_anything_is_asked() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(30, 10)) else { return };
    let id = add(&grange, &provider.url);
    grange.run(&["oai", "add", &provider.url]).fails(4, &["already"]);
    grange.run(&["oai", "add", "ftp://x/"]).fails(2, &["http://"]);
    grange.run(&["oai", "harvest", &id, "--prefix", "marc21"]).fails(2, &["marc21", "oai_dc"]);
    grange.run(&["oai", "harvest", "99"]).fails(3, &["99"]);
    let bad = grange.file("bad", "<filters><filter xpath='//nope:x' regexp='a'/></filters>");
    grange.run(&["oai", "harvest", &id, "--filter", bad.to_str().unwrap()]).fails(2, &["filter"]);
    let filter = grange.file(
        "filter",
        "<filters match=\"any\"><selectionNamespaces>xmlns:dc='http://purl.org/dc/elements/1.1/'</selectionNamespaces>
         <filter xpath=\"//dc:title\" regexp=\"1\" ignoreCase=\"true\"/></filters>",
    );
    let ended = harvest(&grange, &id, &["--filter", filter.to_str().unwrap()]);
    // 1, 10 to 18 and 21; 19 is deleted.
    assert_eq!((counts(&ended), &ended["filtered"]), ([11, 0, 0, 3], &16.into()), "{ended}");
    let record = grange.data().join("oai/1/prov.example/coll1/1.xml");
    let tested = ["oai", "filter", "test", filter.to_str().unwrap(), record.to_str().unwrap(), "--json"];
    assert_eq!(grange.run(&tested).ok().json()[0]["wanted"], true);
    let strict = harvest(&grange, &id, &["--validation", "very-strict"]);
    assert_eq!(counts(&strict), [16, 0, 11 + 3, 0], "{strict}");
    // The answers as they came are WARC files like any other.
    grange.run(&["oai", "set", &id, "--keep-responses", "true"]).ok();
    harvest(&grange, &id, &[]);
    let kept = std::fs::read_dir(grange.data().join("oai/1/+responses")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().path()).collect();
    let [warc] = &kept[..] else { panic!("one file: {kept:?}") };
    let listed = grange.run(&["warc", "ls", warc.to_str().unwrap()]).ok().stdout;
    assert_eq!(listed.matches("response").count(), 3, "{listed}");
    grange.run(&["warc", "check", warc.to_str().unwrap()]).ok();
    let (bytes, name) =
        (std::fs::read(warc).unwrap(), warc.file_name().unwrap().to_str().unwrap().to_owned());
    let node = grange.up();
    wait_for("the answers are in the archive", || (!warc.exists()).then_some(()));
    let got = grange.path("got.warc.gz");
    grange.run(&["get", &name, got.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read(got).unwrap(), bytes);
    assert_eq!(node.stop(), 0);
    grange.run(&["oai", "rm", &id]).ok();
    assert!(grange.run(&["oai", "repos", "--json"]).ok().json().as_array().unwrap().is_empty());
    assert!(record.exists(), "files stay");
}

#[test]
fn a_list_of_friends_is_imported() {
    let grange = grange();
    let Some(provider) = Provider::start("oai_repo", &grange.path("state"), state(3, 10)) else { return };
    let list = format!(
        "<BaseURLs><baseURL id='x'>{}</baseURL><baseURL>http://127.0.0.1:9/</baseURL></BaseURLs>",
        provider.url
    );
    let file = grange.file("friends", &list);
    let imported = grange.run(&["oai", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(imported.code, 5, "{imported:?}");
    let imported = imported.json();
    assert_eq!(imported["added"].as_array().unwrap().len(), 1, "{imported}");
    assert_eq!(imported["failed"][0]["base_url"], "http://127.0.0.1:9/");
}
