//! OutbackCDX's access points: `/<collection>/ap/<name>`.
//!
//! There the client says for whom it asks, and is believed. Here whoever asks is known by their address and by what a front
//! server says of them, so the name of the point changes nothing: its clients work, and none gives itself rights. Rules are
//! made with `grange access` and the admin pages, never on this port, which readers reach.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use grange_index::access::{CompiledRule, Decision};
use grange_index::dialect::Params;
use grange_index::{Capture, Stamp};
use serde_json::{Value, json};

use super::asker::Asker;
use super::{Served, outback, text};
use crate::access_check::AccessCheck;

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
        None => asker.person.now,
    };
    let access = AccessCheck::new(&collection, &asker.person);
    // The capture meant, for its type; rules about types say nothing of what was never captured.
    let found = access.snapshot.closest(&grange_index::key(url), time);
    let captured = found.ok().flatten().filter(|capture| capture.time.leading(14) == time.leading(14));
    let capture =
        captured.unwrap_or_else(|| Capture { surt: grange_index::key(url), time, ..Capture::default() });
    Json(answer(access.hides_capture(&capture))).into_response()
}

fn answer(hides: Option<&CompiledRule>) -> Value {
    let Some(rule) = hides else {
        return json!({ "allowed": true, "rule": null, "publicMessage": null });
    };
    let message = match &rule.rule.decision {
        Decision::Block { message } if !message.is_empty() => Some(message),
        _ => None,
    };
    json!({ "allowed": false, "rule": { "publicMessage": message }, "publicMessage": message })
}
