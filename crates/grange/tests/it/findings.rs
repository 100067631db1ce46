//! States that need a person: one line, one count, until the cause is gone.

use grange_testkit::{TestDatabase, until};
use serde_json::Value;

use crate::archive_bed::{single, single_with, source};
use crate::harness::Grange;

/// The ERROR lines of the node's log that name all of these words.
fn errors(grange: &Grange, words: &[&str]) -> usize {
    let log = std::fs::read_to_string(grange.data().with_extension("log")).unwrap_or_default();
    let named = |line: &&str| line.contains("ERROR") && words.iter().all(|word| line.contains(word));
    log.lines().filter(named).count()
}

fn open(grange: &Grange) -> Vec<String> {
    let found = grange.run(&["findings", "--json"]).json();
    let shown =
        |one: &Value| format!("{} {}", one["kind"].as_str().unwrap(), one["subject"].as_str().unwrap());
    let mut shown: Vec<_> = found.as_array().unwrap().iter().map(shown).collect();
    shown.sort();
    shown
}

async fn get(url: String) -> String {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    http.get(url).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_corrupt_and_a_missing_copy_are_announced_once_and_counted_until_they_are_repaired() {
    let grange = single();
    let node = grange.up();
    for name in ["a.warc", "b.warc", "c.warc"] {
        grange.run(&["store", source(&grange, name, 5000).to_str().unwrap()]).ok();
    }
    assert_eq!(grange.run(&["findings"]).ok().stdout, "Nothing needs a person.\n");
    let files = grange.data().join("replicas/one/filedir");
    std::fs::remove_file(files.join("a.warc")).unwrap();
    std::fs::remove_file(files.join("b.warc")).unwrap();
    std::fs::write(files.join("b.warc"), b"other bytes").unwrap();
    assert_eq!(grange.run(&["audit", "run", "--wait"]).code, 5);
    let expected = ["corrupt-copy b.warc on one", "missing-copy a.warc on one"];
    assert_eq!(open(&grange), expected);
    let corrupt = ["corrupt-copy", "b.warc on one", "grange repair"];
    let missing = ["missing-copy", "a.warc on one"];
    until("both were announced", || async {
        errors(&grange, &corrupt) == 1 && errors(&grange, &missing) == 1
    })
    .await;
    let metrics = get(format!("{}/metrics", node.url("node"))).await;
    assert!(metrics.contains("grange_findings_total{kind=\"corrupt-copy\"} 1"), "{metrics}");
    assert!(metrics.contains("grange_findings_open{kind=\"missing-copy\"} 1"), "{metrics}");
    assert_eq!(grange.run(&["audit", "run", "--wait"]).code, 5);
    // A node that starts again knows, and does not repeat it.
    node.kill();
    let node = grange.up();
    let readyz = async || get(format!("{}/readyz", node.url("node"))).await;
    until("the node has looked", || async { readyz().await.contains("\"corrupt-copy\":1") }).await;
    assert!(readyz().await.contains("\"ready\":true"));
    assert!(!get(format!("{}/readyz", node.url("admin"))).await.contains("corrupt-copy"));
    let metrics = get(format!("{}/metrics", node.url("node"))).await;
    assert!(metrics.contains("grange_findings_open{kind=\"corrupt-copy\"} 1"), "{metrics}");
    assert_eq!((errors(&grange, &corrupt), errors(&grange, &missing)), (1, 1));
    grange.run(&["repair", "--all", "--yes"]).ok();
    assert_eq!(open(&grange), Vec::<String>::new());
    until("the counts are down", || async {
        let metrics = get(format!("{}/metrics", node.url("node"))).await;
        metrics.contains("grange_findings_open{kind=\"corrupt-copy\"} 0")
    })
    .await;
    assert_eq!((errors(&grange, &corrupt), errors(&grange, &missing)), (1, 1));
    assert_eq!(grange.run(&["findings", "--all", "--json"]).ok().json().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_lost_node_is_announced_once_and_the_log_of_one_node_is_verified_on_another() {
    let Some(database) = TestDatabase::create().await else { return };
    let environment = format!("bus.environment=F{}", std::process::id());
    let db = format!("db.url={}", database.url);
    let set = [db.as_str(), "bus.url=postgres:", &environment, "node.heartbeat=2s"];
    let node =
        |name: &str, roles: &str| single_with(&[&set[..], &[&format!("node.name={name}"), roles]].concat());
    // The replicas are on the first machine.
    let admin = "node.roles=[\"admin\"]";
    let (one, two, three) = (node("one", "node.roles=[]"), node("two", admin), node("three", admin));
    one.run(&["db", "migrate"]).ok();
    let (_first, _second, third) = (one.up(), two.up(), three.up());
    one.run(&["store", source(&one, "a.warc", 5000).to_str().unwrap()]).ok();
    // Signs the log as it is.
    one.run(&["audit", "prove", "a.warc"]).ok();
    assert_eq!(one.run(&["audit", "keys", "--json"]).ok().json().as_array().unwrap().len(), 3);
    let verified = two.run(&["audit", "verify-log"]).ok().stdout;
    assert!(verified.contains("1 signed roots") && verified.contains("Nothing was rewritten."), "{verified}");
    let rotated = one.run(&["audit", "rotate-key", "--json"]).ok().json();
    one.run(&["store", source(&one, "b.warc", 5000).to_str().unwrap()]).ok();
    let proof = one.run(&["audit", "prove", "b.warc"]).ok().json();
    assert_eq!(proof["checkpoint"]["public_key"], rotated["public_key"]);
    for grange in [&one, &two] {
        grange.run(&["audit", "verify-log"]).ok();
    }
    third.kill();
    let lines = || errors(&one, &["lost-node", "three"]) + errors(&two, &["lost-node", "three"]);
    until("the lost node was announced", || async { lines() > 0 }).await;
    assert!(open(&two).iter().any(|one| one.starts_with("lost-node three")), "{:?}", open(&two));
    assert_eq!(
        two.run(&["nodes"]).ok().stdout.lines().last().unwrap(),
        "1 open findings: see `grange findings`"
    );
    two.run(&["nodes", "forget", "one"]).fails(3, &["stopped or lost node"]);
    two.run(&["nodes", "forget", "three"]).ok();
    assert_eq!(open(&two), Vec::<String>::new());
    assert_eq!(lines(), 1, "by one of the two that are left");
}
