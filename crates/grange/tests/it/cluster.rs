//! Several nodes on one PostgreSQL, with hints over PostgreSQL or NATS.

use grange_testkit::{TestDatabase, nats, until};

use crate::harness::Grange;

/// Two nodes on the same database see each other; one that is killed is found lost, one that stops says so.
async fn two_nodes(bus: &str) {
    let Some(database) = TestDatabase::create().await else { return };
    let environment = format!("bus.environment=T{}", std::process::id());
    let db = format!("db.url={}", database.url);
    let bus = format!("bus.url={bus}");
    let set = [db.as_str(), bus.as_str(), &environment, "node.heartbeat=200ms"];
    let one = Grange::with(&[&set[..], &["node.name=one"]].concat());
    let two = Grange::with(&[&set[..], &["node.name=two"]].concat());
    one.run(&["db", "migrate"]).ok();
    let first = one.up();
    let second = two.up();
    // Only one of them made the first admin.
    assert_eq!(u8::from(first.greeting.contains("log in")) + u8::from(second.greeting.contains("log in")), 1);
    let states = || {
        let nodes = one.run(&["nodes", "--json"]).ok().json();
        let mut shown: Vec<_> = nodes
            .as_array()
            .unwrap()
            .iter()
            .map(|node| format!("{}={}", node["name"], node["state"]))
            .collect();
        shown.sort();
        shown.join(" ").replace('"', "")
    };
    until("both are alive", || async { states() == "one=alive two=alive" }).await;
    second.kill();
    until("the killed node is found lost", || async { states() == "one=alive two=lost" }).await;
    let second = two.up();
    until("it is back under its own id", || async { states() == "one=alive two=alive" }).await;
    assert_eq!(second.stop(), 0);
    until("only one is alive", || async { states() == "one=alive two=stopped" }).await;
    assert_eq!(first.stop(), 0);
}

#[tokio::test]
async fn two_nodes_on_postgresql_alone() {
    two_nodes("postgres:").await;
}

#[tokio::test]
async fn two_nodes_on_postgresql_and_nats() {
    let Some(url) = nats::shared_url() else { return };
    two_nodes(&url).await;
}
