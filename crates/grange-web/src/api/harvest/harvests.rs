//! Harvest definitions.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::harvests::{Active, EventSeeds, HarvestEdit, Members, NewHarvest};
use grange_model::harvest::HarvestKind;
use serde::Deserialize;
use serde_json::json;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

#[derive(Debug, Deserialize)]
pub(super) struct OfKind {
    kind: Option<HarvestKind>,
}

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller, Query(of): Query<OfKind>) -> Shown {
    Ok(Json(web.app.harvests(&who, of.kind).await?).into_response())
}

pub(super) async fn show(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.harvest(&who, &name).await?).into_response())
}

pub(super) async fn create(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewHarvest>,
) -> Shown {
    let new = grange_app::NewHarvest {
        name: new.name,
        kind: new.kind,
        comments: new.comments,
        audience: new.audience,
        schedule: new.schedule,
        channel: new.channel,
        limits: new.limits,
        continues: new.continues,
        traps: new.traps,
        fields: new.fields,
    };
    Ok((StatusCode::CREATED, Json(web.app.create_harvest(&who, new).await?)).into_response())
}

pub(super) async fn change(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<HarvestEdit>,
) -> Shown {
    let change = grange_app::HarvestChange {
        comments: edit.comments,
        audience: edit.audience,
        schedule: edit.schedule,
        channel: edit.channel.map(Some),
        limits: edit.limits,
        continues: edit.continues.map(Some),
        traps: edit.traps,
        fields: edit.fields,
        next_at: edit.next_at,
    };
    Ok(Json(web.app.change_harvest(&who, &name, change, edit.edition).await?).into_response())
}

pub(super) async fn activate(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(active): Json<Active>,
) -> Shown {
    Ok(Json(web.app.set_harvest_active(&who, &name, active.active, active.edition).await?).into_response())
}

pub(super) async fn run_now(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.run_harvest_now(&who, &name).await?).into_response())
}

pub(super) async fn members(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    let members = web.app.harvest_members(&who, &name).await?;
    let shown: Vec<_> = members
        .into_iter()
        .map(|(domain, configuration)| json!({ "domain": domain, "configuration": configuration }))
        .collect();
    Ok(Json(shown).into_response())
}

pub(super) async fn add(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(members): Json<Members>,
) -> Shown {
    Ok(Json(web.app.add_to_harvest(&who, &name, &members.domains, members.create).await?).into_response())
}

pub(super) async fn remove(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(members): Json<Members>,
) -> Shown {
    let removed = web.app.remove_from_harvest(&who, &name, &members.domains).await?;
    Ok(Json(json!({ "removed": removed })).into_response())
}

pub(super) async fn add_seeds(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(seeds): Json<EventSeeds>,
) -> Shown {
    let EventSeeds { seeds, template, limits } = seeds;
    let (added, bad) = web.app.add_event_seeds(&who, &name, &seeds, &template, limits).await?;
    Ok(Json(json!({ "added": added, "bad": bad })).into_response())
}

pub(super) async fn preview(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.preview_harvest(&who, &name).await?).into_response())
}

pub(super) async fn runs(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.runs(&who, &name).await?).into_response())
}
