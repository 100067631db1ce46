//! Repositories.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::oai::{Friends, NewRepository, RepositoryShown, RulesEdit};
use grange_model::oai::RepositoryId;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.oai_repositories(&who).await?).into_response())
}

pub(super) async fn show(State(web): State<Web>, Caller(who): Caller, Path(id): Path<RepositoryId>) -> Shown {
    let (repository, (records, deleted)) = web.app.oai_repository(&who, id).await?;
    Ok(Json(RepositoryShown { repository, records, deleted }).into_response())
}

pub(super) async fn add(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewRepository>,
) -> Shown {
    let made = web.app.add_oai_repository(&who, &new.base_url, new.rules).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

pub(super) async fn refresh(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RepositoryId>,
) -> Shown {
    Ok(Json(web.app.refresh_oai_repository(&who, id).await?).into_response())
}

pub(super) async fn change(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RepositoryId>,
    Json(edit): Json<RulesEdit>,
) -> Shown {
    Ok(Json(web.app.change_oai_repository(&who, id, edit.rules, edit.edition).await?).into_response())
}

pub(super) async fn delete(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RepositoryId>,
) -> Shown {
    web.app.delete_oai_repository(&who, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn friends(State(web): State<Web>, Caller(who): Caller, Json(list): Json<Friends>) -> Shown {
    Ok(Json(web.app.oai_friends(&who, list.text.as_deref(), list.url.as_deref()).await?).into_response())
}
