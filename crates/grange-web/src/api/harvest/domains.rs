//! Domains with their configurations, seed lists and logins.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use grange_api::wire::harvests::{ConfigurationEdit, DomainEdit, LoginEdit, NewDomains, SeedsEdit};
use grange_model::harvest::{DomainName, Name, NewConfiguration};
use serde::Deserialize;
use serde_json::json;

use super::{PAGE_MAX, Shown};
use crate::Web;
use crate::caller::Caller;

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    name: Option<String>,
    comments: Option<String>,
    traps: Option<String>,
    after: Option<DomainName>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HistoryPage {
    configuration: Option<Name>,
    limit: Option<u32>,
}

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller, Query(page): Query<Page>) -> Shown {
    let Page { name, comments, traps, after, limit } = page;
    let limit = limit.unwrap_or(100).clamp(1, PAGE_MAX);
    Ok(Json(web.app.domains(&who, name, comments, traps, after, limit).await?).into_response())
}

pub(super) async fn create(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewDomains>,
) -> Shown {
    Ok(Json(web.app.create_domains(&who, &new.lines, new.first_line).await?).into_response())
}

pub(super) async fn show(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    let (domain, configurations) = web.app.domain(&who, &name).await?;
    let seeds = web.app.seed_lists(&who, &name).await?;
    Ok(Json(json!({ "domain": domain, "configurations": configurations, "seed_lists": seeds }))
        .into_response())
}

pub(super) async fn change(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(edit): Json<DomainEdit>,
) -> Shown {
    let DomainEdit { comments, traps, alias_of, default_configuration, fields, edition } = edit;
    let alias = alias_of.map(|of| Some(of).filter(|of| !of.is_empty()));
    let changed = web
        .app
        .change_domain(&who, &name, comments, traps.as_deref(), alias, default_configuration, fields, edition)
        .await?;
    Ok(Json(changed).into_response())
}

pub(super) async fn history(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(page): Query<HistoryPage>,
) -> Shown {
    let limit = page.limit.unwrap_or(100).clamp(1, PAGE_MAX);
    Ok(Json(web.app.history(&who, &name, page.configuration, limit).await?).into_response())
}

pub(super) async fn aliases(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.aliases(&who).await?).into_response())
}

pub(super) async fn counts(State(web): State<Web>, Caller(who): Caller) -> Shown {
    let (all, by_suffix) = web.app.domain_counts(&who).await?;
    Ok(Json(json!({ "domains": all, "by_suffix": by_suffix })).into_response())
}

pub(super) async fn add_configuration(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(new): Json<NewConfiguration>,
) -> Shown {
    Ok((StatusCode::CREATED, Json(web.app.add_configuration(&who, &name, new).await?)).into_response())
}

pub(super) async fn change_configuration(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, name)): Path<(String, String)>,
    Json(edit): Json<ConfigurationEdit>,
) -> Shown {
    let ConfigurationEdit { rename, template, limits, seed_lists, credentials, comments, edition } = edit;
    let change =
        grange_app::ConfigurationChange { rename, template, limits, seed_lists, credentials, comments };
    Ok(Json(web.app.change_configuration(&who, &domain, &name, change, edition).await?).into_response())
}

pub(super) async fn delete_configuration(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, name)): Path<(String, String)>,
) -> Shown {
    web.app.delete_configuration(&who, &domain, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn seed_lists(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Shown {
    Ok(Json(web.app.seed_lists(&who, &name).await?).into_response())
}

pub(super) async fn save_seeds(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, list)): Path<(String, String)>,
    Json(edit): Json<SeedsEdit>,
) -> Shown {
    let saved = web.app.save_seeds(&who, &domain, &list, &edit.seeds, &edit.comments, edit.edition).await?;
    Ok(Json(saved).into_response())
}

pub(super) async fn delete_seeds(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, list)): Path<(String, String)>,
) -> Shown {
    web.app.delete_seeds(&who, &domain, &list).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn logins(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.logins(&who, &name).await?).into_response())
}

pub(super) async fn save_login(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, name)): Path<(String, String)>,
    Json(edit): Json<LoginEdit>,
) -> Shown {
    let LoginEdit { url, realm, username, form, secret, comments } = edit;
    let login = grange_app::NewLogin { name, url, realm, username, form, secret, comments };
    web.app.save_login(&who, &domain, login).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn delete_login(
    State(web): State<Web>,
    Caller(who): Caller,
    Path((domain, name)): Path<(String, String)>,
) -> Shown {
    web.app.delete_login(&who, &domain, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
