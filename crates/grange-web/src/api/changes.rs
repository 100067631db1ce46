//! The record of changes.

use axum::Json;
use axum::extract::{Query, State};
use grange_api::wire::changes::Changes;
use serde::Deserialize;

use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

/// What to list.
#[derive(Debug, Deserialize)]
pub(super) struct Filter {
    who: Option<String>,
    subject: Option<String>,
    before: Option<i64>,
    limit: Option<u32>,
}

/// One page when nothing else is asked.
const PAGE: u32 = 100;
/// More rows than anybody reads; a program takes the next page.
const PAGE_MAX: u32 = 1000;

pub(super) async fn list(
    State(web): State<Web>,
    Caller(who): Caller,
    Query(filter): Query<Filter>,
) -> Result<Json<Changes>, Refusal> {
    let limit = filter.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let changes = web.app.changes(&who, filter.who, filter.subject, filter.before, limit).await?;
    let full = changes.len() == limit as usize;
    let next = changes.last().filter(|_| full).map(|change| change.number);
    Ok(Json(Changes { changes, next }))
}
