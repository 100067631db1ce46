//! TimeMaps: every capture of a URL, streamed.

use std::io::{self, Write as _};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::query::{Keys, Next, Query};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::find::View;
use crate::lookup_pool;
use crate::memento::{Links, MapFormat};
use crate::pages;
use crate::piece_channel::BodyWriter;

/// TimeMaps written at a time: each takes a thread for as long as its client reads.
static WRITERS: Semaphore = Semaphore::const_new(64);
/// Sent at a time.
const PIECE_BYTES: usize = 32 << 10;

pub(super) async fn answer(view: View, origin: &str, format: MapFormat, url: String) -> Response {
    let Ok(permit) = WRITERS.try_acquire() else {
        let t = &view.tongue();
        let (title, text) = (t.say("too-many"), t.say("too-many-later"));
        return pages::problem(t, StatusCode::SERVICE_UNAVAILABLE, &title, &text);
    };
    let key = grange_index::key(&url);
    let looked = lookup_pool::run(move || {
        let any = view.around(&key, grange_index::Stamp::MIN).is_ok_and(|around| around.first.is_some());
        (view, key, any)
    });
    let Some((view, key, any)) = looked.await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    if !any {
        return pages::missing(&view, "", &url);
    }
    let prefix = format!("{origin}/{}/", view.collection.name);
    let (mut out, body) = BodyWriter::new(PIECE_BYTES, Handle::current());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let done = write(&view, key, &Links { prefix: &prefix, url: &url }, format, &mut out);
        if let Err(error) = out.finish(done) {
            tracing::warn!(error = %grange_base::Chain(&error), url, "a TimeMap broke off");
        }
    });
    let content_type = [(header::CONTENT_TYPE, format.content_type())];
    (StatusCode::OK, content_type, body).into_response()
}

fn write(
    view: &View,
    key: String,
    links: &Links<'_>,
    format: MapFormat,
    out: &mut BodyWriter,
) -> io::Result<()> {
    let mut line = Vec::new();
    links.map_head(format, &mut line);
    let mut first = true;
    let mut sent = Ok(());
    let looked = Query::new(Keys::Exact(key)).run(&view.snapshot, |row| {
        if view.sees(row) {
            links.map_line(format, first, row, &mut line);
            first = false;
        }
        // Also where everything is hidden: a client that left ends it.
        sent = out.write_all(&line).and_then(|()| out.flush());
        line.clear();
        Ok(if sent.is_ok() { Next::More } else { Next::Stop })
    });
    sent?;
    looked.map_err(io::Error::other)?;
    Links::map_tail(format, &mut line);
    out.write_all(&line)
}
