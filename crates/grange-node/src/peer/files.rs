//! What lies on this node, for other nodes: the files of its replicas (`/peer/v1/blob/REPLICA/…`), the checksums of
//! checksum replicas (`/peer/v1/sums/REPLICA`), and what it lays out for them to fetch (`/peer/v1/offer/ID/…`).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use grange_archive::Sums;
use grange_blob::peer::serve::Served;
use grange_blob::{Blob, Offers, Reach};

/// What this node holds on its own disks, by the name of the replica.
#[derive(Debug, Default)]
pub struct Held {
    pub bytes: BTreeMap<String, Arc<dyn Blob>>,
    pub sums: BTreeMap<String, Arc<dyn Sums>>,
}

type Desks = Arc<BTreeMap<String, Served>>;
type Journals = Arc<BTreeMap<String, Arc<dyn Sums>>>;

/// Routes below the peer gate, which has admitted whoever asks. `reach`: how this node fetches what it is to keep.
pub fn routes(held: Held, reach: &Reach, offers: Offers) -> Router {
    let desks = held.bytes.into_iter().map(|(name, blob)| (name, Served::new(blob, Some(reach.clone()))));
    let desks: Desks = Arc::new(desks.collect());
    let stores = Router::new().route("/peer/v1/blob/{store}/{*path}", any(answer)).with_state(desks);
    let offered = Router::new().route("/peer/v1/offer/{id}/{*path}", get(offer)).with_state(offers);
    let journals: Journals = Arc::new(held.sums);
    let sums = Router::new().route("/peer/v1/sums/{replica}", post(about_sums)).with_state(journals);
    stores.merge(offered).merge(sums)
}

async fn about_sums(
    State(journals): State<Journals>,
    Path(replica): Path<String>,
    question: axum::body::Bytes,
) -> Response {
    let Some(sums) = journals.get(&replica) else {
        return (StatusCode::NOT_FOUND, format!("this node holds no checksum replica {replica}\n"))
            .into_response();
    };
    match grange_archive::answer_about_sums(&**sums, &question).await {
        Ok(Ok(answer)) => axum::Json(answer).into_response(),
        Ok(Err(reason)) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
        Err(reason) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")).into_response(),
    }
}

async fn answer(
    State(desks): State<Desks>,
    Path((store, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    let Some(served) = desks.get(&store) else {
        return (StatusCode::NOT_FOUND, format!("this node holds no replica {store}\n")).into_response();
    };
    let path = below(&request, &grange_blob::mount(&store));
    served.answer(&path, request).await.map(Body::new)
}

async fn offer(
    State(offers): State<Offers>,
    Path((id, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    let path = below(&request, &format!("/peer/v1/offer/{id}"));
    offers.answer(&id, &path, request).await.map(Body::new)
}

/// The path as it was sent: names may hold escaped characters that routing has undone.
fn below(request: &Request, mount: &str) -> String {
    request.uri().path().strip_prefix(mount).unwrap_or_default().to_owned()
}
