//! Machines whose clocks differ: what the refused one is told.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use grange_base::{Chain, Clock, Shutdown};
use grange_blob::{Context, Settings};
use jiff::SignedDuration;

use super::auth::NodeAuth;
use super::proof::{Gate, NodeToken};
use super::routes::gated;

fn token(letter: &str) -> NodeToken {
    NodeToken::from_text(&letter.repeat(64))
}

/// A node with this token and the right time, at a free port.
async fn node(letter: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let starting = StatusCode::SERVICE_UNAVAILABLE;
    let routes = Router::new().route("/peer/{*rest}", any(move || async move { starting }));
    let routes = gated(Arc::new(Gate::new(token(letter))), Clock::system(), routes);
    tokio::spawn(crate::serve::serve(listener, routes, Shutdown::never()));
    address
}

/// Why a machine with the token `a` and this clock does not get at a replica there.
async fn refused(address: &str, clock: Clock) -> String {
    let auth = NodeAuth { node: "n".to_owned(), token: token("a"), clock: clock.clone() };
    let context = Context { auth: Some(Arc::new(auth)), ..Context::local("/nonexistent", clock) };
    let settings = Settings { url: format!("peer://{address}/one"), ..Settings::default() };
    let peer = grange_blob::open(&settings, &context).await.unwrap();
    let error = peer.stat(&"a.txt".parse().unwrap()).await.unwrap_err();
    format!("{}: {}", error.code(), Chain(&error))
}

#[tokio::test]
async fn a_wrong_clock_is_told_as_that_with_both_times_and_not_as_a_wrong_token() {
    let address = node("a").await;
    let wrong = Clock::shifted(SignedDuration::from_hours(30));
    let (ours, theirs) = (Clock::system().now(), wrong.now());
    let said = refused(&address, wrong).await;
    assert!(said.starts_with("blob-refused") && said.contains("clocks of the two nodes differ"), "{said}");
    for day in [ours, theirs].map(|time| time.strftime("%Y-%m-%d").to_string()) {
        assert!(said.contains(&day), "{day} is missing in: {said}");
    }
    assert!(!said.contains("token"), "{said}");
}

#[tokio::test]
async fn a_wrong_token_is_told_as_that_and_a_node_that_starts_is_believed() {
    let said = refused(&node("b").await, Clock::system()).await;
    assert!(said.starts_with("blob-unproven"), "{said}");
    let said = refused(&node("a").await, Clock::system()).await;
    assert!(said.starts_with("blob-refused") && said.contains("503"), "{said}");
}
