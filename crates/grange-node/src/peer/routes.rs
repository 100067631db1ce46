//! What a node answers to its peers, below `/peer/v1`. Every request passes the gate first.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use grange_base::Clock;
use serde::{Deserialize, Serialize};

use super::proof::{Gate, Refused};

/// The header that carries the server's side of the proof.
pub const PROOF: &str = "grange-peer-proof";

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub node: String,
    pub name: String,
    pub version: String,
    pub roles: Vec<String>,
}

/// What the peer routes need of the node.
#[derive(Clone, Debug)]
pub struct PeerState {
    pub gate: Arc<Gate>,
    pub clock: Clock,
    pub hello: Hello,
    /// Wakes every worker of this node.
    pub wake: grange_base::worker::Hint,
}

/// The routes, with `more` of them brought by roles (file transfer, work next to the data).
pub fn routes(state: PeerState, more: Router) -> Router {
    let own = Router::new()
        .route("/peer/v1/hello", get(hello))
        .route("/peer/v1/wake", post(wake))
        .with_state(state.clone());
    let PeerState { gate, clock, .. } = state;
    gated(gate, clock, own.merge(more))
}

/// Lets only peers through, and proves every answer to them.
pub fn gated(gate: Arc<Gate>, clock: Clock, routes: Router) -> Router {
    routes.layer(from_fn_with_state((gate, clock), pass))
}

async fn pass(State((gate, clock)): State<(Arc<Gate>, Clock)>, mut request: Request, next: Next) -> Response {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let authorization =
        request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let admitted = gate.admit(authorization.as_deref(), request.method().as_str(), &target, clock.now());
    let (nonce, mut response) = match admitted {
        Err(Refused { refusal, nonce }) => {
            tracing::warn!(%refusal, target, "a peer was refused");
            (nonce, (StatusCode::UNAUTHORIZED, format!("{refusal}\n")).into_response())
        }
        Ok(peer) => {
            let nonce = peer.nonce.clone();
            request.extensions_mut().insert(peer);
            (Some(nonce), next.run(request).await)
        }
    };
    let status = response.status().as_u16();
    let proof = nonce.and_then(|nonce| HeaderValue::from_str(&gate.token().prove(&nonce, status)).ok());
    if let Some(proof) = proof {
        response.headers_mut().insert(PROOF, proof);
    }
    response
}

async fn hello(State(state): State<PeerState>) -> Json<Hello> {
    Json(state.hello)
}

async fn wake(State(state): State<PeerState>) -> Json<bool> {
    state.wake.wake();
    Json(true)
}
