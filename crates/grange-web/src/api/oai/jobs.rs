//! Harvests, schedules and history.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::oai::{HistoryLines, JobShown, ScheduleEdit};
use grange_app::{NewRecurring, OaiHistoryFilter};
use grange_model::oai::{HarvestSpec, HistoryId, OaiJobId, Outcome, RecurringId, RepositoryId};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

#[derive(Debug, Deserialize)]
pub(super) struct Of {
    repository: Option<RepositoryId>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attend {
    /// Somebody waits for it.
    #[serde(default)]
    attend: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    repository: Option<RepositoryId>,
    job: Option<OaiJobId>,
    outcome: Option<Outcome>,
    before: Option<HistoryId>,
    limit: Option<u32>,
}

/// More rows than anybody reads; a program takes the next page.
const PAGE_MAX: u32 = 10_000;

pub(super) async fn harvest(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RepositoryId>,
    Json(spec): Json<HarvestSpec>,
) -> Shown {
    Ok((StatusCode::CREATED, Json(web.app.oai_harvest(&who, id, spec).await?)).into_response())
}

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller, Query(of): Query<Of>) -> Shown {
    Ok(Json(web.app.oai_jobs(&who, of.repository).await?).into_response())
}

pub(super) async fn show(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<OaiJobId>,
    Query(wait): Query<Attend>,
) -> Shown {
    let (job, ended) = web.app.oai_job(&who, id, wait.attend).await?;
    Ok(Json(JobShown { job, ended }).into_response())
}

pub(super) async fn delete(State(web): State<Web>, Caller(who): Caller, Path(id): Path<OaiJobId>) -> Shown {
    web.app.delete_oai_job(&who, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn schedules(State(web): State<Web>, Caller(who): Caller, Query(of): Query<Of>) -> Shown {
    Ok(Json(web.app.oai_schedules(&who, of.repository).await?).into_response())
}

/// A schedule without a start begins at once, by the clock that plans go by.
fn recurring(edit: ScheduleEdit, now: Timestamp) -> (NewRecurring, Option<i64>) {
    let starts_at = edit.starts_at.unwrap_or(now);
    let ScheduleEdit { repository, spec, ends_at, every, edition, .. } = edit;
    (NewRecurring { repository, spec, starts_at, ends_at, every }, edition)
}

pub(super) async fn add_schedule(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(edit): Json<ScheduleEdit>,
) -> Shown {
    let made = web.app.add_oai_schedule(&who, recurring(edit, web.app.now()).0).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

pub(super) async fn change_schedule(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RecurringId>,
    Json(edit): Json<ScheduleEdit>,
) -> Shown {
    let (new, edition) = recurring(edit, web.app.now());
    Ok(Json(web.app.change_oai_schedule(&who, id, new, edition).await?).into_response())
}

pub(super) async fn delete_schedule(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RecurringId>,
) -> Shown {
    web.app.delete_oai_schedule(&who, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn history(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let filter = OaiHistoryFilter {
        repository: page.repository,
        job: page.job,
        outcome: page.outcome,
        before: page.before,
        limit: page.limit.unwrap_or(100).clamp(1, PAGE_MAX),
    };
    Ok(Json(web.app.oai_history(&who, &filter).await?).into_response())
}

pub(super) async fn delete_history(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(lines): Json<HistoryLines>,
) -> Shown {
    let deleted = web.app.delete_oai_history(&who, &lines.lines).await?;
    Ok(Json(json!({ "deleted": deleted })).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_without_a_start_begins_by_the_clock_that_plans_go_by() {
        // Far from the machine's clock.
        let now = Timestamp::from_second(4_000_000_000).unwrap();
        let edit = |more: &str| {
            let text = format!(r#"{{ "repository": 1, "spec": {{ "prefix": "oai_dc" }} {more} }}"#);
            recurring(serde_json::from_str(&text).unwrap(), now).0.starts_at
        };
        assert_eq!(edit(""), now);
        assert_eq!(edit(r#", "starts_at": "2026-01-01T00:00:00Z""#), "2026-01-01T00:00:00Z".parse().unwrap());
    }
}
