//! Files on their way into the archive, from nodes that play no archiver.
//!
//! ```text
//! POST /peer/v1/archive/NAME   "store this; it lies with me": every replica fetches it from the offer
//! PUT  /peer/v1/archive/NAME   the bytes, where the archiver cannot get at the node that has them
//! ```
//!
//! Everything else a harvester asks of the archive it can answer itself.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as InPath, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use futures_util::TryStreamExt;
use grange_app::OpenArchive;
use grange_archive::{Error, Store};
use grange_base::{Chain, to_its_end};
use grange_blob::{Blob as _, Origin, Reach};
use grange_model::{Checksums, FileName};
use serde::{Deserialize, Serialize};
use tokio_util::io::StreamReader;

/// What is said of a file that is sent.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    by: String,
    /// As `sha512=…`; compared before anything is stored.
    checksums: String,
}

/// What is said of a file that is to be fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offered {
    pub(super) by: String,
    pub(super) origin: Origin,
    pub(super) size: u64,
    pub(super) checksums: Checksums,
}

/// Routes below the peer gate, for nodes with an archiver.
pub fn routes(archive: OpenArchive, reach: Reach) -> Router {
    let offered =
        Router::new().route("/peer/v1/archive/{name}", post(fetch)).with_state((archive.clone(), reach));
    Router::new().route("/peer/v1/archive/{name}", put(take)).with_state(archive).merge(offered)
}

fn refused(error: &dyn std::fmt::Display) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response()
}

fn stopping() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping\n").into_response()
}

async fn fetch(
    State((archive, reach)): State<(OpenArchive, Reach)>,
    InPath(name): InPath<String>,
    axum::Json(offered): axum::Json<Offered>,
) -> Response {
    let name = match name.parse::<FileName>() {
        Ok(name) => name,
        Err(error) => return refused(&error),
    };
    let archive = match archive.get().await {
        Ok(archive) => archive.clone(),
        Err(error) => return refused(&Chain(&error)),
    };
    // The sender falls back to sending.
    let away = |reason: String| (StatusCode::FAILED_DEPENDENCY, format!("{reason}\n")).into_response();
    let holder = match reach.peer(&offered.origin).await {
        Ok(holder) => holder,
        Err(reason) => return away(reason),
    };
    match holder.stat(&name).await {
        Ok(Some(stat)) if stat.size == offered.size => {}
        Ok(_) => return away(format!("{name} is not on offer there")),
        Err(error) => return away(Chain(&error).to_string()),
    }
    let store = Store::new(name, offered.by);
    // A sender that goes away takes the answer with it, not the store: half done, it would hold its lease for nobody.
    let stored = to_its_end(async move {
        archive.store_offered(Arc::new(holder), offered.size, offered.checksums, &store).await
    });
    match stored.await {
        Some(Ok(outcome)) => axum::Json(outcome).into_response(),
        Some(Err(Error::Settings { reason })) => away(reason),
        Some(Err(error)) => refused(&Chain(&error)),
        None => stopping(),
    }
}

async fn take(
    State(archive): State<OpenArchive>,
    InPath(name): InPath<String>,
    Query(sent): Query<Sent>,
    body: Body,
) -> Response {
    let (name, checksums) = match (name.parse::<FileName>(), sent.checksums.parse::<Checksums>()) {
        (Ok(name), Ok(checksums)) => (name, checksums),
        (Err(error), _) => return refused(&error),
        (_, Err(error)) => return refused(&error),
    };
    let archive = match archive.get().await {
        Ok(archive) => archive.clone(),
        Err(error) => return refused(&Chain(&error)),
    };
    let store = Store::new(name, sent.by).expecting(checksums);
    // As above; also, its bytes would stay in the spool.
    let stored = to_its_end(async move {
        let reader = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
        archive.store_reader(reader, &store).await
    });
    match stored.await {
        Some(Ok(outcome)) => axum::Json(outcome).into_response(),
        Some(Err(error)) => refused(&Chain(&error)),
        None => stopping(),
    }
}
