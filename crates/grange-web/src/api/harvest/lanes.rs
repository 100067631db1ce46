//! Channels and harvesters.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::harvests::NewChannel;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

pub(super) async fn channels(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.channels(&who).await?).into_response())
}

pub(super) async fn harvesters(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.harvesters(&who).await?).into_response())
}

pub(super) async fn create(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewChannel>,
) -> Shown {
    let NewChannel { name, kind, comments } = new;
    web.app.create_channel(&who, grange_app::NewChannel { name, kind, comments }).await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn delete(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    web.app.delete_channel(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn set_default(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    web.app.set_default_channel(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
