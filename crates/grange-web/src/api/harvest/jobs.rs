//! Jobs.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use grange_api::wire::harvests::JobIds;
use grange_model::harvest::{DomainName, JobId, JobStatus};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::{PAGE_MAX, Shown};
use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// Several, separated by commas.
    status: Option<String>,
    harvest: Option<String>,
    run: Option<u64>,
    domain: Option<DomainName>,
    started_since: Option<Timestamp>,
    ended_until: Option<Timestamp>,
    #[serde(default)]
    oldest_first: bool,
    beyond: Option<JobId>,
    limit: Option<u32>,
}

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let named = page.status.as_deref().unwrap_or_default().split(',').filter(|name| !name.is_empty());
    let status = named.map(str::parse::<JobStatus>).collect::<Result<Vec<_>, _>>();
    let status = status.map_err(|error| {
        Refusal::new(axum::http::StatusCode::UNPROCESSABLE_ENTITY, "invalid", error.to_string())
    })?;
    let filter = grange_app::JobFilter {
        status,
        harvest: page.harvest,
        run: page.run,
        domain: page.domain,
        started_since: page.started_since,
        ended_until: page.ended_until,
        oldest_first: page.oldest_first,
        beyond: page.beyond,
        limit: page.limit.unwrap_or(100).clamp(1, PAGE_MAX),
    };
    Ok(Json(web.app.jobs(&who, &filter).await?).into_response())
}

pub(super) async fn show(State(web): State<Web>, Caller(who): Caller, Path(id): Path<JobId>) -> Shown {
    let job = web.app.job(&who, id).await?;
    let (progress, _) = web.app.job_progress(&who, id).await?;
    let mut shown = json!(job);
    shown["progress"] = json!(progress);
    Ok(Json(shown).into_response())
}

pub(super) async fn configurations(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<JobId>,
) -> Shown {
    let (configurations, statistics) = web.app.job_configurations(&who, id).await?;
    Ok(Json(json!({ "configurations": configurations, "statistics": statistics })).into_response())
}

pub(super) async fn progress(State(web): State<Web>, Caller(who): Caller, Path(id): Path<JobId>) -> Shown {
    let (now, samples) = web.app.job_progress(&who, id).await?;
    Ok(Json(json!({ "now": now, "samples": samples })).into_response())
}

pub(super) async fn resubmit(State(web): State<Web>, Caller(who): Caller, Json(ids): Json<JobIds>) -> Shown {
    let jobs = web.app.resubmit_jobs(&who, ids.jobs).await?;
    Ok(Json(JobIds { jobs }).into_response())
}

pub(super) async fn reject(State(web): State<Web>, Caller(who): Caller, Path(id): Path<JobId>) -> Shown {
    Ok(Json(web.app.reject_job(&who, id, true).await?).into_response())
}

pub(super) async fn unreject(State(web): State<Web>, Caller(who): Caller, Path(id): Path<JobId>) -> Shown {
    Ok(Json(web.app.reject_job(&who, id, false).await?).into_response())
}

pub(super) async fn cancel(State(web): State<Web>, Caller(who): Caller, Path(id): Path<JobId>) -> Shown {
    Ok(Json(web.app.cancel_job(&who, id).await?).into_response())
}
