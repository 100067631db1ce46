//! How much there is: an estimate at once, and counts by host, MIME type, status and year.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_base::Chain;
use grange_index::dialect::Params;
use grange_index::query::{Keys, Next, Query};
use grange_index::{CaptureView, Error, Stamp};

use super::asker::Asker;
use super::{Served, text};
use crate::access_check::AccessCheck;

/// Cells of an answer. Beyond a million nobody reads them, and they take some hundred bytes each.
const CELLS_MAX: usize = 1_000_000;

/// How many captures whoever asks may see: in an instant from the size of the index while no rule hides any, else counted.
pub(super) async fn stats(State(served): State<Served>, Path(name): Path<String>, asker: Asker) -> Response {
    let Some(collection) = served.collections.get(&name) else {
        return text(StatusCode::NOT_FOUND, format!("no collection is named {name}\n"));
    };
    let access = AccessCheck::new(&collection, &asker.person);
    if let Some((rows, files)) = access.quick_counts() {
        let stats = access.snapshot.stats();
        let body = serde_json::json!({
            "estimatedRecordCount": rows,
            "files": files,
            "bytes": stats.bytes,
            "segments": stats.segments,
        });
        return ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response();
    }
    let Ok(place) = Arc::clone(&served.long_answers).try_acquire_owned() else { return busy() };
    let counted = tokio::task::spawn_blocking(move || {
        let _place = place;
        let (mut rows, mut files) = (0u64, HashSet::new());
        let run = Query::new(Keys::Range(String::new(), None)).run(&access.snapshot, |view| {
            if access.sees_row(view) {
                rows += 1;
                if !files.contains(view.file()) {
                    files.insert(view.file().to_owned());
                }
            }
            Ok(Next::More)
        });
        run.map(|_| (rows, files.len()))
    });
    match counted.await {
        Ok(Ok((rows, files))) => {
            let body = serde_json::json!({ "estimatedRecordCount": rows, "files": files });
            ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
        }
        Ok(Err(error)) => failed(&name, &error),
        Err(error) => broken(&name, &error),
    }
}

fn busy() -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, "too much is under way; ask again in a moment\n".to_owned())
}

fn broken(name: &str, error: &tokio::task::JoinError) -> Response {
    tracing::error!(collection = name, %error, "the captures were not counted");
    text(StatusCode::INTERNAL_SERVER_ERROR, "the captures were not counted\n".to_owned())
}

#[derive(Default)]
struct Cell {
    captures: u64,
    bytes: u64,
}

/// Counts of what `url` and `matchType` cover, or of everything.
pub(super) async fn cube(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Response {
    let Some(collection) = served.collections.get(&name) else {
        return text(StatusCode::NOT_FOUND, format!("no collection is named {name}\n"));
    };
    let params = Params::parse(query.as_deref().unwrap_or_default());
    let keys = match params.get("url").map(|_| params.keys()).transpose() {
        Ok(keys) => keys.map_or(Keys::Range(String::new(), None), |(keys, _)| keys),
        Err(bad) => return text(StatusCode::BAD_REQUEST, format!("{bad}\n")),
    };
    let Ok(place) = Arc::clone(&served.long_answers).try_acquire_owned() else { return busy() };
    let access = AccessCheck::new(&collection, &asker.person);
    let counted = tokio::task::spawn_blocking(move || {
        let _place = place;
        let mut cells: BTreeMap<String, Cell> = BTreeMap::new();
        let mut label = String::new();
        let mut full = false;
        let run = Query::new(keys).run(&access.snapshot, |view| {
            if !access.sees_row(view) {
                return Ok(Next::More);
            }
            label.clear();
            name_cell(view, &mut label);
            if !cells.contains_key(&label) {
                full = cells.len() >= CELLS_MAX;
                if full {
                    return Ok(Next::Stop);
                }
                cells.insert(label.clone(), Cell::default());
            }
            if let Some(cell) = cells.get_mut(&label) {
                cell.captures += 1;
                cell.bytes += view.length().unwrap_or_default();
            }
            Ok(Next::More)
        });
        run.map(|_| (!full).then_some(cells))
    });
    match counted.await {
        Ok(Ok(Some(cells))) => {
            let mut out = "host,mime,status,year,captures,bytes\n".to_owned();
            for (label, cell) in cells {
                // A String never fails to be written to.
                let _ = writeln!(out, "{label},{},{}", cell.captures, cell.bytes);
            }
            ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], out).into_response()
        }
        Ok(Ok(None)) => {
            let message = format!(
                "there are more than {CELLS_MAX} different cells; ask for less with url and matchType\n"
            );
            text(StatusCode::BAD_REQUEST, message)
        }
        Ok(Err(error)) => failed(&name, &error),
        Err(error) => broken(&name, &error),
    }
}

fn failed(name: &str, error: &Error) -> Response {
    tracing::error!(collection = name, error = %Chain(error), "the captures were not counted");
    text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}

/// `host,mime,status,year`: the first columns of a line. Commas in hosts and types would shift the others.
fn name_cell(view: &CaptureView<'_>, out: &mut String) {
    let surt = view.surt();
    let host = surt.split_once(')').map_or(&*surt, |(host, _)| host);
    let mut first = true;
    for part in host.rsplit(',').filter(|part| !part.is_empty()) {
        if !std::mem::take(&mut first) {
            out.push('.');
        }
        out.push_str(part);
    }
    let mime = view.mime().unwrap_or("-").replace([',', '"', '\n', '\r'], "_");
    let status = view.status().map_or_else(|| "-".to_owned(), |status| status.to_string());
    let year = if view.time() == Stamp::MIN { 0 } else { view.time().leading(4) };
    // A String never fails to be written to.
    let _ = write!(out, ",{mime},{status},{year}");
}
