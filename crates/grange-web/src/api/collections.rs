//! Collections, the index and access rules.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use grange_api::wire::collections::{
    AccessAnswer, AccessImported, AccessQuestion, AccessRulePart, AccessTable, ImportPaths, Imported, Marked,
    MarkedFiles, NewAccessRule,
};
use grange_app::{AccessTest, CollectedState, RuleDraft, RulePart, Which};
use serde::Deserialize;
use tower_http::limit::RequestBodyLimitLayer;

use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

type Shown = Result<Response, Refusal>;

/// More rows than anybody reads; a program takes the next page.
const PAGE_MAX: u32 = 10_000;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/collections", get(list))
        .route("/collections/{name}", get(show).delete(remove))
        .route("/collections/{name}/rollback", post(roll_back))
        .route("/collections/{name}/again", post(again))
        .route("/access", get(rules).post(add_rule))
        .route("/access/{id}", delete(remove_rule))
        .route("/access-test", post(test))
}

/// A table of access rules: some 300,000 of them.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// Walks folders, stores files, and takes large tables.
pub(super) fn long_routes() -> Router<Web> {
    let table = post(import_rules).layer(RequestBodyLimitLayer::new(TABLE_BYTES_MAX));
    Router::new()
        .route("/collections/{name}/files", get(files).post(import))
        .route("/access-table", table.get(export_rules))
}

#[derive(Debug, Deserialize)]
struct Page {
    state: Option<CollectedState>,
    after: Option<i64>,
    limit: Option<u32>,
}

async fn list(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.collections(&who).await?).into_response())
}

async fn show(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    Ok(Json(web.app.collection(&who, &name).await?).into_response())
}

async fn remove(State(web): State<Web>, Caller(who): Caller, Path(name): Path<String>) -> Shown {
    web.app.remove_collection(&who, &name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn files(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Shown {
    let limit = page.limit.unwrap_or(1000).clamp(1, PAGE_MAX);
    let after = page.after.unwrap_or_default();
    Ok(Json(web.app.collection_files(&who, &name, page.state, after, limit).await?).into_response())
}

async fn import(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(asked): Json<ImportPaths>,
) -> Shown {
    let done = web.app.import(&who, &name, &asked.paths, asked.store).await?;
    let enrolled = done.enrolled;
    let answer = Imported {
        new: enrolled.new,
        known: enrolled.known,
        again: enrolled.again,
        passed_over: done.passed_over,
    };
    Ok(Json(answer).into_response())
}

fn which(marked: Marked) -> Result<Which, Refusal> {
    match (marked.file, marked.job, marked.all) {
        (Some(file), None, false) => Ok(Which::File(file)),
        (None, Some(job), false) => Ok(Which::Job(job)),
        (None, None, true) => Ok(Which::All),
        _ => Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid", "name one of file, job and all")),
    }
}

async fn roll_back(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(marked): Json<Marked>,
) -> Shown {
    let files = web.app.roll_back_index(&who, &name, &which(marked)?).await?;
    Ok(Json(MarkedFiles { files }).into_response())
}

async fn again(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(marked): Json<Marked>,
) -> Shown {
    let files = web.app.index_again(&who, &name, &which(marked)?).await?;
    Ok(Json(MarkedFiles { files }).into_response())
}

async fn rules(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(web.app.access_rules(&who).await?).into_response())
}

async fn add_rule(State(web): State<Web>, Caller(who): Caller, Json(new): Json<NewAccessRule>) -> Shown {
    let draft = RuleDraft {
        surt_prefix: new.surt_prefix,
        url: new.url,
        matches: new.matches,
        collection: new.collection,
        mime: new.mime,
        captured_from: new.captured_from,
        captured_to: new.captured_to,
        decision: new.decision,
        audience: new.audience,
        everything: new.everything,
    };
    Ok(Json(web.app.add_access_rule(&who, &draft, &new.note).await?).into_response())
}

async fn remove_rule(State(web): State<Web>, Caller(who): Caller, Path(id): Path<i64>) -> Shown {
    web.app.remove_access_rule(&who, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn export_rules(State(web): State<Web>, Caller(who): Caller) -> Shown {
    Ok(Json(AccessTable { csv: web.app.export_access_rules(&who).await? }).into_response())
}

async fn import_rules(State(web): State<Web>, Caller(who): Caller, Json(table): Json<AccessTable>) -> Shown {
    let (made, all) = web.app.import_access_rules(&who, &table.csv).await?;
    Ok(Json(AccessImported { made, known: all - made }).into_response())
}

async fn test(State(web): State<Web>, Caller(who): Caller, Json(asked): Json<AccessQuestion>) -> Shown {
    let test = AccessTest {
        url: asked.url,
        collection: asked.collection,
        captured: asked.captured,
        mime: asked.mime,
        address: asked.address,
        user: asked.user,
    };
    let access = web.app.test_access(&who, &test).await?;
    let decides = access.rules.first().filter(|_| !access.visible);
    let rule = decides.and_then(|part| part.id);
    let part = |part: &RulePart| AccessRulePart {
        id: part.id,
        rule: part.rule.clone(),
        effect: part.effect.to_owned(),
        lifted_by: part.lifted_by,
    };
    let rules = access.rules.iter().map(part).collect();
    Ok(Json(AccessAnswer { visible: access.visible, rule, message: access.message, rules }).into_response())
}
