//! Files, replicas, checks, repairs and the log.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;
use grange_api::client::CHECKSUM;
use grange_api::wire::archive::{NewAudit, RepairAll, RepairDecision, StoreFile};
use grange_model::Checksums;
use serde::Deserialize;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

/// Answers are the archive's own types, which say what they hold.
type Shown = Result<Response, Refusal>;

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    /// Only say whether the bytes would be taken.
    #[serde(default)]
    ask: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct At {
    offset: u64,
}

/// More rows than anybody reads; a program takes the next page.
const PAGE_MAX: u32 = 10_000;

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let limit = page.limit.unwrap_or(1000).clamp(1, PAGE_MAX);
    Ok(Json(web.app.files(&who, page.after.as_deref(), limit).await?).into_response())
}

pub(super) async fn show(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.file(&who, &name).await?).into_response())
}

pub(super) async fn store_path(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(file): Json<StoreFile>,
) -> Shown {
    Ok(Json(web.app.store_path(&who, file.path.as_ref(), file.name.as_deref()).await?).into_response())
}

pub(super) async fn store_bytes(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(ask): Query<Ask>,
    headers: HeaderMap,
    body: Body,
) -> Shown {
    web.app.may_store(&who, &name)?;
    let announced = headers.get(CHECKSUM).map(announced).transpose()?;
    if ask.ask {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let reader = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    Ok(Json(web.app.store_bytes(&who, &name, announced, reader).await?).into_response())
}

/// What the sender says its bytes are.
fn announced(value: &HeaderValue) -> Result<Checksums, Refusal> {
    let checksums = value.to_str().ok().and_then(|text| text.parse().ok());
    checksums.ok_or_else(|| {
        let text = format!("the header {CHECKSUM} holds no checksums such as sha512=HEX");
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "checksums", text)
    })
}

/// The bytes of a file, with its checksum: whoever takes them can see that they came whole.
pub(super) async fn content(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    let (opened, got) = web.app.open_file(&who, &name).await?;
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH.as_str(), opened.size.to_string()),
        (CHECKSUM, got.checksums.to_string()),
        ("grange-replica", got.replica),
    ];
    Ok((headers, Body::from_stream(ReaderStream::with_capacity(opened, 1 << 18))).into_response())
}

pub(super) async fn record(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(at): Query<At>,
) -> Shown {
    Ok(web.app.record(&who, &name, at.offset).await?.into_response())
}

pub(super) async fn proof(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.prove(&who, &name).await?).into_response())
}

pub(super) async fn replicas(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.replicas(&who).await?).into_response())
}

pub(super) async fn adopt_replica(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    Ok(Json(web.app.adopt_replica(&who, &name).await?).into_response())
}

pub(super) async fn audits(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    Ok(Json(web.app.audits(&who, page.limit.unwrap_or(100).clamp(1, PAGE_MAX)).await?).into_response())
}

pub(super) async fn strays(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let (count, files) = web.app.strays(&who, page.limit.unwrap_or(100).clamp(1, PAGE_MAX)).await?;
    Ok(Json(serde_json::json!({ "count": count, "files": files })).into_response())
}

pub(super) async fn deposits(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let (counts, folders) = web.app.deposits(&who, page.limit.unwrap_or(100).clamp(1, PAGE_MAX)).await?;
    Ok(Json(serde_json::json!({ "counts": counts, "folders": folders })).into_response())
}

pub(super) async fn start_audits(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewAudit>,
) -> Shown {
    let started = web.app.start_audits(&who, new.kind, new.replica.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(started)).into_response())
}

pub(super) async fn repairs(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.repairs(&who).await?).into_response())
}

pub(super) async fn repair_all(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(asked): Json<RepairAll>,
) -> Shown {
    Ok(Json(web.app.repair_all(&who, asked.dry_run, asked.credentials).await?).into_response())
}

pub(super) async fn decide(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(decision): Json<RepairDecision>,
) -> Shown {
    Ok(Json(web.app.decide_repair(&who, &name, decision.keep).await?).into_response())
}

pub(super) async fn confirm(State(web): State<Web>, Caller(who): Caller, Path(id): Path<String>) -> Shown {
    Ok(Json(web.app.confirm_repair(&who, &id).await?).into_response())
}

pub(super) async fn withdraw_repair(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Shown {
    Ok(Json(web.app.withdraw_repair(&who, &id).await?).into_response())
}

pub(super) async fn withdraw_deposit(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    Ok(Json(web.app.withdraw_deposit(&who, &name).await?).into_response())
}

pub(super) async fn verify_log(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.verify_log(&who).await?).into_response())
}

pub(super) async fn log_keys(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.log_keys(&who).await?).into_response())
}

pub(super) async fn rotate_log_key(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok((StatusCode::CREATED, Json(web.app.rotate_log_key(&who).await?)).into_response())
}

pub(super) async fn rebuild(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.rebuild(&who).await?).into_response())
}
