//! TimeMaps: every capture of a URL, streamed.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use grange_index::query::{Keys, Next, Query};
use tokio::sync::{Semaphore, mpsc};

use super::find::View;
use crate::lines::Lines;
use crate::memento::{Links, MapFormat};
use crate::pages;

/// TimeMaps written at a time: each takes a thread for as long as its reader needs.
static WRITERS: Semaphore = Semaphore::const_new(64);
/// Sent at a time.
const PIECE_BYTES: usize = 32 << 10;

pub(super) fn answer(view: View, origin: &str, format: MapFormat, url: String) -> Response {
    let key = grange_index::key(&url);
    let any = view.around(&key, grange_index::Stamp::MIN).is_ok_and(|around| around.first.is_some());
    if !any {
        return pages::missing(&view, "", &url);
    }
    let Ok(permit) = WRITERS.try_acquire() else {
        let t = &view.tongue();
        let (title, text) = (t.say("too-many"), t.say("too-many-later"));
        return pages::problem(t, StatusCode::SERVICE_UNAVAILABLE, &title, &text);
    };
    let prefix = format!("{origin}/{}/", view.collection.name);
    let (send, receive) = mpsc::channel::<Bytes>(4);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let links = Links { prefix: &prefix, url: &url };
        let mut out = Vec::with_capacity(PIECE_BYTES + 1024);
        links.map_head(format, &mut out);
        let mut first = true;
        let done = Query::new(Keys::Exact(key)).run(&view.snapshot, |row| {
            if view.sees(row) {
                links.map_line(format, first, row, &mut out);
                first = false;
            }
            if out.len() >= PIECE_BYTES && send.blocking_send(std::mem::take(&mut out).into()).is_err() {
                return Ok(Next::Stop);
            }
            Ok(Next::More)
        });
        if let Err(error) = done {
            tracing::warn!(error = %grange_base::Chain(&error), url, "a TimeMap broke off");
        }
        Links::map_tail(format, &mut out);
        let _ = send.blocking_send(out.into());
    });
    let content_type = [(header::CONTENT_TYPE, format.content_type())];
    (StatusCode::OK, content_type, Body::new(Lines(receive))).into_response()
}
