//! One suite for a checksum replica in a folder and for one on another node.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use grange_base::Clock;
use grange_blob::{Context, Peer, PeerAuth, SignedRequest};
use grange_model::{Algorithm, Checksums, FileName};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{LocalSums, PeerSums, Sums, answer};
use crate::journal::{Entry, Line};

/// Believes everybody; the proofs of nodes are tested where they are made.
#[derive(Debug)]
struct Trusting;

impl PeerAuth for Trusting {
    fn sign(&self, _: &str, _: &str) -> SignedRequest {
        SignedRequest { authorization: "none".to_owned(), nonce: String::new() }
    }

    fn proven(&self, _: &str, _: u16, _: &str) -> bool {
        true
    }
}

/// A node that answers for the folder.
async fn serve(folder: &Path) -> String {
    let sums: Arc<dyn Sums> = Arc::new(LocalSums::open(folder).await.unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sums = Arc::clone(&sums);
            let service = service_fn(move |request: Request<Incoming>| {
                let sums = Arc::clone(&sums);
                async move {
                    assert_eq!(request.uri().path(), "/peer/v1/sums/three");
                    let question = request.into_body().collect().await.unwrap().to_bytes();
                    let (status, text) = match answer(&*sums, &question).await {
                        Ok(Ok(answer)) => (200, answer.to_string()),
                        Ok(Err(reason)) => (400, reason),
                        Err(reason) => (500, reason),
                    };
                    let mut response = Response::new(Full::new(bytes::Bytes::from(text)));
                    *response.status_mut() = status.try_into().unwrap();
                    Ok::<_, Infallible>(response)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn at_a_peer(folder: &Path) -> PeerSums {
    let address = serve(folder).await;
    PeerSums::new(Peer::new(&address, "/peer/v1/sums/three", Arc::new(Trusting), Clock::system()).unwrap())
}

fn name(text: &str) -> FileName {
    text.parse().unwrap()
}

fn line(text: &str, size: u64) -> Line {
    let checksums = format!("md5={:032x} sha512={:0128x}", size, size * 7).parse::<Checksums>().unwrap();
    Line { name: name(text), size, checksums, removed: false, at: Timestamp::UNIX_EPOCH }
}

fn entry(size: u64) -> Entry {
    Entry::Sums(size, line("x", size).checksums)
}

/// Every sentence about the port.
async fn behaves(sums: &dyn Sums, folder: &Path) {
    assert_eq!(sums.get(&name("a")).await.unwrap(), None);
    assert!(sums.list(None, 9).await.unwrap().is_empty());
    for (text, size) in [("b", 2), ("a", 1), ("ç d&?.warc", 3)] {
        assert!(sums.add(line(text, size)).await.unwrap());
    }
    let lines = || std::fs::read_to_string(folder.join("checksums.journal")).unwrap().lines().count();
    assert_eq!(lines(), 3);
    // The same again is no news; another checksum of a known name is refused.
    assert!(sums.add(line("a", 1)).await.unwrap());
    assert!(!sums.add(line("a", 9)).await.unwrap());
    assert_eq!((lines(), sums.get(&name("a")).await.unwrap()), (3, Some(entry(1))));
    let Some(Entry::Sums(_, found)) = sums.get(&name("b")).await.unwrap() else { panic!() };
    assert_eq!(found.algorithms().collect::<Vec<_>>(), [Algorithm::Sha512, Algorithm::Md5]);
    // In order, page by page.
    let names = |page: Vec<(String, Entry)>| page.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(sums.list(None, 2).await.unwrap()), ["a", "b"]);
    assert_eq!(names(sums.list(Some(&name("b")), 2).await.unwrap()), ["ç d&?.warc"]);
    assert!(sums.list(Some(&name("ç d&?.warc")), 2).await.unwrap().is_empty());
    // Struck out, and entered anew with another checksum.
    for (expected, struck) in [
        (Checksums::default(), false),
        (line("a", 9).checksums, false),
        (line("a", 1).checksums.only(&[Algorithm::Md5]), true),
    ] {
        let removed = sums.remove(&name("a"), &expected, Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!((removed, sums.get(&name("a")).await.unwrap().is_none()), (struck, struck), "{expected}");
    }
    assert_eq!(sums.get(&name("a")).await.unwrap(), None);
    assert!(sums.add(line("a", 9)).await.unwrap());
    assert_eq!((lines(), sums.get(&name("a")).await.unwrap()), (5, Some(entry(9))));
    // What another process adds is known at once.
    LocalSums::open(folder).await.unwrap().add(line("other", 5)).await.unwrap();
    assert_eq!(sums.get(&name("other")).await.unwrap(), Some(entry(5)));
    // A line that was edited does not fit the chain; a list from the start looks at the disk.
    let journal = folder.join("checksums.journal");
    let text = std::fs::read_to_string(&journal).unwrap().replacen("\"size\":2", "\"size\":4", 1);
    std::fs::write(&journal, text).unwrap();
    let listed = sums.list(None, 99).await.unwrap();
    assert_eq!(listed.iter().find(|(name, _)| name == "b").unwrap().1, Entry::Damaged);
    assert_eq!(sums.get(&name("b")).await.unwrap(), Some(Entry::Damaged));
    assert!(sums.remove(&name("b"), &Checksums::default(), Timestamp::UNIX_EPOCH).await.unwrap());
    assert_eq!(sums.get(&name("b")).await.unwrap(), None);
    // Witnesses lie beside it.
    let witness = name("grange-witness-20260101-000000000001-00000000.json");
    sums.put_witness(&witness, b"{\"a\": 1}\n").await.unwrap();
    assert_eq!(sums.witness_names().await.unwrap(), std::slice::from_ref(&witness));
    assert_eq!(sums.read_witness(&witness).await.unwrap().as_ref(), b"{\"a\": 1}\n");
    // So does the marker, which can be replaced.
    assert_eq!(sums.marker().await.unwrap().marker, None);
    for text in ["one", "two"] {
        sums.mark(text).await.unwrap();
        assert_eq!(sums.marker().await.unwrap().marker.as_deref(), Some(text));
    }
    assert_eq!(sums.witness_names().await.unwrap().len(), 1, "a marker is no witness");
    // More names than one answer holds.
    for n in 0..50 {
        sums.add(line(&format!("m{n:03}"), n)).await.unwrap();
    }
    assert_eq!(sums.list(None, usize::MAX).await.unwrap().len(), 53);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checksum_replica_in_a_folder() {
    let dir = TempDir::new().unwrap();
    behaves(&LocalSums::open(dir.path()).await.unwrap(), dir.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checksum_replica_on_another_node() {
    let dir = TempDir::new().unwrap();
    behaves(&at_a_peer(dir.path()).await, dir.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_answers_only_what_it_understands_and_writes_only_witnesses() {
    let dir = TempDir::new().unwrap();
    let sums = LocalSums::open(dir.path()).await.unwrap();
    let questions = [
        "",
        "{}",
        r#"{"ask":"drop"}"#,
        r#"{"ask":"get","name":"../x"}"#,
        r#"{"ask":"get","name":"a","more":1}"#,
        r#"{"ask":"put-witness","name":"a.warc","text":"x"}"#,
        r#"{"ask":"put-witness","name":"grange-witness-../../x","text":"x"}"#,
    ];
    for question in questions {
        assert!(answer(&sums, question.as_bytes()).await.unwrap().is_err(), "{question}");
    }
    let long =
        serde_json::json!({ "ask": "put-witness", "name": "grange-witness-1", "text": "x".repeat(70_000) });
    assert!(answer(&sums, long.to_string().as_bytes()).await.unwrap().is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_away_is_said_to_be_away() {
    let sums = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        PeerSums::new(
            Peer::new(&address, "/peer/v1/sums/three", Arc::new(Trusting), Clock::system()).unwrap(),
        )
    };
    let error = sums.get(&name("a")).await.unwrap_err();
    assert_eq!((error.code(), error.retry()), ("blob-unreachable", grange_base::Retry::Soon));
}

#[tokio::test]
async fn places_of_checksum_replicas_are_folders_and_nodes() {
    let dir = TempDir::new().unwrap();
    let context = Context::local(dir.path(), Clock::system());
    super::open("file:three", &context).await.unwrap();
    assert!(!dir.path().join("three").exists(), "the disk may not be mounted");
    for url in ["memory:", "file:", "file:a,b", "s3://bucket", "peer://host/x", "three"] {
        let error = super::open(url, &context).await.unwrap_err();
        assert!(error.to_string().contains("peer://HOST:PORT/REPLICA"), "{url}: {error}");
    }
    let error = super::open("peer://host:1/three", &context).await.unwrap_err();
    assert!(error.to_string().contains("no node with a token"), "{error}");
    let with_auth = Context { auth: Some(Arc::new(Trusting)), ..context };
    super::open("peer://host:1/three", &with_auth).await.unwrap();
}

#[tokio::test]
async fn a_marker_whose_name_was_not_synced_is_gone_and_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let sums = LocalSums::open(folder.path()).await.unwrap();
    // Made before, so that the marker's sync is the next one.
    sums.add(line("a", 1)).await.unwrap();
    crate::journal::FOLDER_SYNCS_TO_FAIL.lock().unwrap().push(folder.path().to_owned());
    assert_eq!(sums.mark("mine").await.unwrap_err().code(), "archive-io");
    assert_eq!(sums.marker().await.unwrap().marker, None, "it would be believed");
    sums.mark("mine").await.unwrap();
    assert_eq!(sums.marker().await.unwrap().marker.as_deref(), Some("mine"));
}
