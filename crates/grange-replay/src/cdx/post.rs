//! Lines that are posted: to be added, or to be taken away again.
//!
//! Off unless told otherwise, and never for a browser: an archived page may hold any script, and a script may post to any
//! port that its browser reaches.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use grange_base::Chain;
use grange_index::dialect::{Params, PostFailure, outback_post};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Served, text};

/// A sender who is silent for this long is gone; a thread waits for them.
const SENDER_IDLE_MAX: Duration = Duration::from_secs(60);
/// Pieces of the body taken ahead of the reading.
const PIECES_AHEAD: usize = 4;

pub(super) async fn add(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    change(&served, &name, query, &headers, body, false).await
}

pub(super) async fn delete(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    change(&served, &name, query, &headers, body, true).await
}

async fn change(
    served: &Served,
    name: &str,
    query: Option<String>,
    headers: &HeaderMap,
    body: Body,
    delete: bool,
) -> Response {
    if !served.options.writing {
        let message =
            "this index cannot be changed here: see index.accept_posts, or grange cdx serve --writable\n";
        return text(StatusCode::FORBIDDEN, message.to_owned());
    }
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return text(StatusCode::FORBIDDEN, "browsers cannot change an index\n".to_owned());
    }
    let Some(collection) = served.collections.get(name) else {
        return text(StatusCode::NOT_FOUND, format!("no collection is named {name}\n"));
    };
    let Ok(_place) = served.long_answers.try_acquire() else {
        return text(
            StatusCode::SERVICE_UNAVAILABLE,
            "too much is under way; post again in a moment\n".to_owned(),
        );
    };
    let skip_bad = Params::parse(query.as_deref().unwrap_or_default()).get("badLines") == Some("skip");
    let (send, receive) = mpsc::channel::<io::Result<Bytes>>(PIECES_AHEAD);
    let handle = Handle::current();
    let index = collection.index.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let lines = BufReader::with_capacity(1 << 16, Received { receive, handle, piece: Bytes::new() });
        outback_post(lines, &index, delete, skip_bad)
    });
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        // What came before a break must not be taken for the whole.
        let piece = piece.map_err(|error| io::Error::new(io::ErrorKind::UnexpectedEof, error));
        let broken = piece.is_err();
        if send.send(piece).await.is_err() || broken {
            break;
        }
    }
    drop(send);
    match reading.await {
        Ok(Ok(posted)) => {
            let done = if delete { "Deleted" } else { "Added" };
            let mut message = format!("{done} {} records\n", posted.captures);
            if posted.bad_count > 0 {
                let _ = writeln!(message, "Skipped {} bad lines", posted.bad_count);
            }
            text(StatusCode::OK, message)
        }
        Ok(Err(PostFailure::Line { number })) => {
            let message =
                format!("At line {number}: not a CDX or CDXJ line; badLines=skip passes over such lines\n");
            text(StatusCode::BAD_REQUEST, message)
        }
        Ok(Err(PostFailure::Receive(_))) => {
            text(StatusCode::BAD_REQUEST, "the lines did not come whole; post them again\n".to_owned())
        }
        Ok(Err(failure)) => {
            tracing::error!(collection = name, error = %Chain(&failure), "posted lines were not taken");
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("{failure}\n"))
        }
        Err(error) => {
            tracing::error!(collection = name, %error, "posted lines were not taken");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the lines were not taken\n".to_owned())
        }
    }
}

/// The body of a request, for a thread that reads it.
struct Received {
    receive: mpsc::Receiver<io::Result<Bytes>>,
    handle: Handle,
    piece: Bytes,
}

impl Read for Received {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.handle.block_on(tokio::time::timeout(SENDER_IDLE_MAX, self.receive.recv())) {
                Ok(Some(piece)) => self.piece = piece?,
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let len = buffer.len().min(self.piece.len());
        buffer[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}
