//! Schedules, templates, traps and custom fields.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::harvests::{Active, ScheduleEdit, ScheduleShown, TemplateEdit, TrapTest, TrapsEdit};
use grange_model::harvest::{CustomField, FieldNoun, Schedule};
use serde::Deserialize;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

/// Dates shown of a schedule at most.
const DATES_MAX: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Count {
    count: Option<usize>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Version {
    version: Option<u32>,
}

fn shown((schedule, edition): (Schedule, i64)) -> ScheduleShown {
    ScheduleShown { schedule, edition }
}

pub(super) async fn schedules(State(web): State<Web>, Caller(who): Caller) -> Shown {
    let all: Vec<_> = web.app.schedules(&who).await?.into_iter().map(shown).collect();
    Ok(Json(all).into_response())
}

pub(super) async fn schedule(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(shown(web.app.schedule(&who, &name).await?)).into_response())
}

pub(super) async fn save_schedule(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(edit): Json<ScheduleEdit>,
) -> Shown {
    let name = edit.schedule.name.to_string();
    web.app.save_schedule(&who, edit.schedule, edit.edition).await?;
    Ok(Json(shown(web.app.schedule(&who, &name).await?)).into_response())
}

pub(super) async fn delete_schedule(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    web.app.delete_schedule(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn schedule_dates(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(count): Query<Count>,
) -> Shown {
    let count = count.count.unwrap_or(10).min(DATES_MAX);
    Ok(Json(web.app.schedule_dates(&who, &name, count).await?).into_response())
}

pub(super) async fn templates(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.templates(&who).await?).into_response())
}

pub(super) async fn template(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(version): Query<Version>,
) -> Shown {
    Ok(Json(web.app.template(&who, &name, version.version).await?).into_response())
}

pub(super) async fn put_template(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<TemplateEdit>,
) -> Shown {
    Ok(Json(web.app.put_template(&who, &name, &edit.text, &edit.comments).await?).into_response())
}

pub(super) async fn activate_template(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<Active>,
) -> Shown {
    Ok(Json(web.app.set_template_active(&who, &name, edit.active).await?).into_response())
}

pub(super) async fn trap_lists(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.trap_lists(&who).await?).into_response())
}

pub(super) async fn trap_list(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    Ok(Json(web.app.trap_list(&who, &name).await?).into_response())
}

pub(super) async fn save_traps(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<TrapsEdit>,
) -> Shown {
    let TrapsEdit { expressions, description, active, edition } = edit;
    Ok(Json(web.app.save_traps(&who, &name, &description, active, &expressions, edition).await?)
        .into_response())
}

pub(super) async fn activate_traps(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<Active>,
) -> Shown {
    Ok(Json(web.app.set_traps_active(&who, &name, edit.active).await?).into_response())
}

pub(super) async fn delete_traps(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    web.app.delete_traps(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn test_traps(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(test): Json<TrapTest>,
) -> Shown {
    let Some(log) = test.crawl_log else {
        return Ok(
            Json(web.app.test_traps_on_jobs(&who, &test.expressions, test.jobs).await?).into_response()
        );
    };
    Ok(Json(web.app.test_traps(&who, &test.expressions, &log)?).into_response())
}

pub(super) async fn fields(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(noun): Path<FieldNoun>,
) -> Shown {
    Ok(Json(web.app.custom_fields(&who, noun).await?).into_response())
}

pub(super) async fn save_field(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(noun): Path<FieldNoun>,
    Json(field): Json<CustomField>,
) -> Shown {
    web.app.save_custom_field(&who, CustomField { noun, ..field }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn delete_field(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((noun, name)): Path<(FieldNoun, String)>,
) -> Shown {
    web.app.delete_custom_field(&who, noun, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
