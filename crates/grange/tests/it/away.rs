//! A node whose backends are away: it starts, answers `/healthz`, is not ready with the reason, and goes on by itself.

use std::io::{Read, Write};
use std::net::TcpListener;

use grange_testkit::{TcpFault, TestBucket, TestDatabase, until};
use serde_json::Value;

use crate::archive_bed::{bytes_at, machine, source};
use crate::harness::{Grange, RunningNode};

/// The check of that name on `/readyz`.
async fn check(node: &RunningNode, name: &str) -> Option<Value> {
    let (_, body) = node.ready().await;
    body["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned()
}

async fn is_ready(node: &RunningNode) -> bool {
    node.ready().await.0 == 200
}

/// A node with one replica on disk and one in a bucket at this address.
fn with_bucket(endpoint: &str, bucket: &TestBucket) -> Grange {
    let two = format!(
        "{{ url = \"s3://{}/{}?endpoint={endpoint}\", access_key_file = \"../access\", secret_key_file = \"../secret\" }}",
        bucket.bucket, bucket.prefix
    );
    let grange = machine(&[], &[bytes_at("one", &["file:replicas/one"]), bytes_at("two", &[&two])].concat());
    grange.file("access", &bucket.access_key);
    grange.file("secret", &bucket.secret_key);
    grange
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_while_s3_is_away_and_goes_on_when_it_comes() {
    let Some(bucket) = TestBucket::lend() else { return };
    let wire = TcpFault::before(bucket.endpoint.trim_start_matches("http://")).await;
    wire.cut();
    let grange = with_bucket(&format!("http://{}", wire.address()), &bucket);
    let node = grange.up();
    let (status, body) = node.ready().await;
    assert_eq!(status, 503, "{body}");
    let archive = check(&node, "archive").await.unwrap();
    assert!(archive["reason"].as_str().unwrap().contains("s3://"), "{archive}");
    let health = reqwest::get(format!("{}/healthz", node.url("node"))).await.unwrap();
    assert_eq!(health.status(), 200);
    // Everything that needs no replica works, and what needs one says why not.
    grange.run(&["domains", "create", "a.dk"]).ok();
    let file = source(&grange, "a.txt", 100);
    grange.run(&["store", file.to_str().unwrap()]).fails(1, &["s3://"]);
    wire.mend();
    until("the node is ready", async || is_ready(&node).await).await;
    // The first object of a bucket can take the store longer than one try.
    until("the file is stored", async || grange.run(&["store", file.to_str().unwrap()]).code == 0).await;
    assert_eq!(node.stop(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_waits_for_postgresql_longer_than_a_connection_takes_and_commands_say_why() {
    let Some(database) = TestDatabase::create().await else { return };
    let host = database.url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let wire = TcpFault::before(&host).await;
    let url = database.url.replace(&host, &wire.address().to_string());
    let grange = Grange::with(&[&format!("db.url={url}"), "db.connect_timeout=3s"]);
    grange.run(&["init"]).ok();
    wire.silence();
    // Without a node a command fails at once.
    grange.run(&["users", "ls"]).fails(1, &["cannot reach PostgreSQL"]);
    let node = grange.up_waiting();
    until("the node has tried twice", async || {
        let (status, body) = node.ready().await;
        status == 503 && body.to_string().contains("no answer within")
    })
    .await;
    let health = reqwest::get(node.local()["url"].as_str().unwrap().to_owned() + "/healthz").await.unwrap();
    assert_eq!(health.status(), 200);
    // A command waits for its node, and goes on with it.
    let mut command = grange.spawn(&["users", "ls"]);
    assert!(command.try_wait().unwrap().is_none());
    wire.mend();
    until("the node is ready", async || is_ready(&node).await).await;
    assert!(command.wait().unwrap().success());
    assert_eq!(node.stop(), 0);
}

#[tokio::test]
async fn a_node_that_waits_can_be_stopped() {
    let grange = Grange::with(&["db.url=postgres://grange@127.0.0.1:1/grange"]);
    let node = grange.up_waiting();
    until("it waits", async || check(&node, "database").await.is_some()).await;
    assert_eq!(node.stop(), 0);
    assert!(!grange.data().join("run/node.json").exists());
}

/// Answers every request as Amazon does to one whose time is wrong.
fn a_store_that_refuses_the_time() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>RequestTimeTooSkewed</Code>\
                <Message>The difference between the request time and the current time is too large.</Message>\
                <ServerTime>2026-01-02T03:04:05Z</ServerTime></Error>";
            let mut request = [0; 8192];
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-type: application/xml\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_clock_that_s3_refuses_is_named_with_both_times() {
    let bucket = TestBucket {
        endpoint: a_store_that_refuses_the_time(),
        bucket: "b".to_owned(),
        access_key: "a".to_owned(),
        secret_key: "s".to_owned(),
        prefix: "p".to_owned(),
    };
    let grange = with_bucket(&bucket.endpoint, &bucket);
    let node = grange.up();
    let archive = check(&node, "archive").await.unwrap();
    let reason = archive["reason"].as_str().unwrap();
    let year = jiff::Timestamp::now().strftime("this machine says %Y-%m-%d").to_string();
    for word in ["this machine's clock is wrong", "the store says 2026-01-02T03:04:05Z", &year] {
        assert!(reason.contains(word), "\"{word}\" is missing in: {reason}");
    }
    assert_eq!(node.stop(), 0);
}
