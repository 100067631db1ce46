//! The system itself: version, nodes, database.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use grange_api::wire::system::{About, Backup, Database, NewBackup, NodeSeen};

use serde::Deserialize;

use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

pub(super) async fn about(State(web): State<Web>, Caller(who): Caller) -> Json<About> {
    Json(About { name: "Grange".to_owned(), version: web.version.to_owned(), user: who.name().to_owned() })
}

pub(super) async fn nodes(
    State(web): State<Web>,
    Caller(who): Caller,
) -> Result<Json<Vec<NodeSeen>>, Refusal> {
    let nodes = web.app.nodes(&who).await?;
    Ok(Json(nodes.into_iter().map(|(node, state)| NodeSeen { node, state }).collect()))
}

pub(super) async fn forget_node(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    web.app.forget_node(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize)]
pub(super) struct FindingFilter {
    /// Those that are over as well.
    #[serde(default)]
    all: bool,
    limit: Option<u32>,
}

/// More than anybody reads.
const FINDINGS_MAX: u32 = 10_000;

pub(super) async fn findings(
    State(web): State<Web>,
    Caller(who): Caller,
    Query(filter): Query<FindingFilter>,
) -> Result<Response, Refusal> {
    let limit = filter.limit.unwrap_or(1000).clamp(1, FINDINGS_MAX);
    Ok(Json(web.app.findings(&who, filter.all, limit).await?).into_response())
}

pub(super) async fn database(State(web): State<Web>, Caller(who): Caller) -> Result<Json<Database>, Refusal> {
    let status = web.app.database(&who)?;
    Ok(Json(Database {
        engine: status.engine.clone(),
        place: status.place.clone(),
        schema_version: status.step,
        newest_version: status.step_known,
    }))
}

pub(super) async fn backup(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewBackup>,
) -> Result<(StatusCode, Json<Backup>), Refusal> {
    let (path, bytes) = web.app.back_up(&who, new.path.map(Into::into)).await?;
    Ok((StatusCode::CREATED, Json(Backup { path: path.display().to_string(), bytes })))
}
