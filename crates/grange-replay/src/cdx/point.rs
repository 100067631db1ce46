//! OutbackCDX's access points: `/<collection>/ap/<name>`.
//!
//! There the client says for whom it asks, and is believed. Here whoever asks is known by their address and by what a front
//! server says of them, so the name of the point changes nothing: its clients work, and none gives itself rights. Rules are
//! made with `grange access` and the admin pages, never on this port, which readers reach.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use grange_index::Stamp;
use grange_index::access::{Asked, Decision, Verdict};
use grange_index::dialect::Params;
use serde_json::{Value, json};

use super::asker::Asker;
use super::{Served, outback, text};

pub(super) async fn ask(
    state: State<Served>,
    Path((name, _point)): Path<(String, String)>,
    query: RawQuery,
    asker: Asker,
) -> Response {
    outback(state, Path(name), query, asker).await
}

/// Whether a capture would be shown: `url`, and `timestamp` of the capture (absent: now).
pub(super) async fn check(
    State(served): State<Served>,
    Path((name, _point)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Response {
    let Some(collection) = served.collections.get(&name) else {
        return text(StatusCode::NOT_FOUND, format!("no collection is named {name}\n"));
    };
    let params = Params::parse(query.as_deref().unwrap_or_default());
    let Some(url) = params.get("url") else {
        return text(StatusCode::BAD_REQUEST, "the parameter \"url\" is missing\n".to_owned());
    };
    let time = match params.get("timestamp").map(Stamp::earliest) {
        Some(None) => return text(StatusCode::BAD_REQUEST, "the timestamp cannot be read\n".to_owned()),
        Some(Some(time)) => time,
        None => asker.now(),
    };
    let surt = urlkey::key(url);
    let asked = Asked { collection: &name, surt: surt.as_bytes(), time, mime: None };
    let rules = collection.rules();
    Json(answer(asker.judge(&rules, &asked))).into_response()
}

fn answer(verdict: Verdict<'_>) -> Value {
    let Verdict::Hidden(rule) = verdict else {
        return json!({ "allowed": true, "rule": null, "publicMessage": null });
    };
    let message = match &rule.decision {
        Decision::Block { message } if !message.is_empty() => Some(message),
        _ => None,
    };
    json!({ "allowed": false, "rule": { "publicMessage": message }, "publicMessage": message })
}
