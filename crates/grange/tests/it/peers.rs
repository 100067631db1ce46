//! Nodes believe each other only with the shared token, in both directions.

use grange_base::Clock;
use grange_node::peer::routes::Hello;
use grange_node::peer::{NodeToken, PeerClient, PeerError};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::Grange;

fn client(token: &std::path::Path) -> PeerClient {
    PeerClient::new("test-node", NodeToken::read_or_make(token).unwrap(), Clock::system()).unwrap()
}

#[tokio::test]
async fn a_peer_with_the_token_is_answered_and_one_without_is_not() {
    let grange = Grange::new();
    let node = grange.up();
    let address = node.url("node").trim_start_matches("http://").to_owned();
    let ours = client(&grange.data().join("secrets/node.token"));
    let hello: Hello = ours.call(&address, Method::GET, "/peer/v1/hello", "".into()).await.unwrap();
    assert_eq!(hello.version, env!("CARGO_PKG_VERSION"));
    assert!(ours.call::<bool>(&address, Method::POST, "/peer/v1/wake", "".into()).await.unwrap());

    let stranger = client(&grange.path("other.token"));
    let error = stranger.call::<Hello>(&address, Method::GET, "/peer/v1/hello", "".into()).await.unwrap_err();
    assert!(error.to_string().contains("do not share the same node token"), "{error}");
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = plain.get(format!("http://{address}/peer/v1/hello")).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn an_impostor_is_not_believed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes).await;
        let body = r#"{"node":"x","name":"x","version":"9","roles":[]}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ngrange-peer-proof: {}\r\n\r\n{body}",
            body.len(),
            "00".repeat(32)
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let ours = client(&folder.path().join("node.token"));
    let error = ours.call::<Hello>(&address, Method::GET, "/peer/v1/hello", "".into()).await.unwrap_err();
    assert!(matches!(error, PeerError::Unproven { .. }), "{error}");
}
