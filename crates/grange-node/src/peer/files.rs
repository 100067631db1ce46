//! The files of this node's replicas, for other nodes: `/peer/v1/blob/REPLICA/…`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use grange_blob::Blob;

/// The stores this node holds on its own disks, by the name of their replica.
pub type Held = Arc<BTreeMap<String, Arc<dyn Blob>>>;

/// Routes below the peer gate, which has admitted whoever asks.
pub fn routes(held: Held) -> Router {
    Router::new().route("/peer/v1/blob/{store}/{*path}", any(answer)).with_state(held)
}

async fn answer(
    State(held): State<Held>,
    Path((store, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    let Some(blob) = held.get(&store) else {
        return (StatusCode::NOT_FOUND, format!("this node holds no replica {store}\n")).into_response();
    };
    // The path as it was sent: names may hold escaped characters that routing has undone.
    let mount = grange_blob::mount(&store);
    let path = request.uri().path().strip_prefix(&mount).unwrap_or_default().to_owned();
    grange_blob::peer::serve::answer(blob, &path, request).await.map(Body::new)
}
