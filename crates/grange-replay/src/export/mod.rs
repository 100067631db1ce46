//! The captures of a query as a file of their own: WARC, or WACZ with an index and a list of pages. Streamed.
//!
//! Records keep their bytes: gzip members with one record are copied as they are stored, others are packed unchanged.
//! Originals that revisits refer to come along, so that the file stands alone. Every record, originals too, is one that the
//! reader would be shown.

mod records;
mod zip;

pub(crate) use records::{copy_range, pack_record};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use grange_index::Stamp;
use grange_index::dialect::Params;
use grange_index::query::Query;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use urlkey::MatchType;

use crate::lines::Pieces;
use crate::pages;
use crate::wayback::{View, repaired};

/// Exports written at a time: each reads and packs as fast as its reader takes it.
static WRITERS: Semaphore = Semaphore::const_new(8);

/// What is exported, in words and as a question.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) text: String,
    pub(crate) query: Query,
}

impl Selection {
    /// Reads `url`, `matchType` (exact, prefix, host, domain), `from` and `to`.
    fn read(params: &Params) -> Result<Self, String> {
        let url = params
            .get("url")
            .and_then(repaired)
            .ok_or("Say which: url=http://example.org/ and matchType=prefix.")?;
        let kind = match params.get("matchType") {
            None => MatchType::Exact,
            Some(name) => {
                name.parse().map_err(|_| "matchType is exact, prefix, host or domain.".to_owned())?
            }
        };
        let mut query = Query::new(grange_index::keys(&url, kind));
        let time = |name: &str, read: fn(&str) -> Option<Stamp>| match params.get(name) {
            None => Ok(None),
            Some(text) => {
                read(text).map(Some).ok_or_else(|| format!("{name} is 1 to 17 digits, from the year on."))
            }
        };
        query.from = time("from", Stamp::earliest)?.unwrap_or(Stamp::MIN);
        query.to = time("to", Stamp::latest)?.unwrap_or(Stamp::MAX);
        let span = format!(
            "{} to {}",
            params.get("from").unwrap_or("the first"),
            params.get("to").unwrap_or("the last")
        );
        Ok(Self { text: format!("{} of {url}, captured from {span}", kind.name()), query })
    }
}

/// `GET /<collection>/export/{warc,wacz}?url=…`
pub(crate) fn answer(view: View, format: &str, query: &str) -> Response {
    let t = &view.tongue();
    let wacz = match format {
        "warc" => false,
        "wacz" => true,
        _ => {
            let (title, text) = (t.say("no-format"), t.say("no-format-known"));
            return pages::problem(t, StatusCode::NOT_FOUND, &title, &text);
        }
    };
    let selection = match Selection::read(&Params::parse(query)) {
        Ok(selection) => selection,
        Err(reason) => return pages::problem(t, StatusCode::BAD_REQUEST, &t.say("cannot-export"), &reason),
    };
    let Ok(permit) = WRITERS.try_acquire() else {
        let (title, text) = (t.say("too-many-exports"), t.say("too-many-exports-later"));
        return pages::problem(t, StatusCode::SERVICE_UNAVAILABLE, &title, &text);
    };
    let (content_type, end) =
        if wacz { ("application/wacz", "wacz") } else { ("application/warc", "warc.gz") };
    let name = format!("attachment; filename=\"{}-export.{end}\"", view.collection.name);
    let (send, receive) = mpsc::channel(4);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut out = Out::new(send);
        let done = if wacz {
            zip::wacz(&view, &selection, &runtime, &mut out)
        } else {
            records::warc(&view, &selection, &runtime, &mut out, &mut |_| Ok(())).and_then(|()| out.send())
        };
        if let Err(error) = done {
            tracing::warn!(%error, selection = selection.text, "an export broke off");
            // The receiver sees an error, not an end: half a file must not look whole.
            let _ = out.send.blocking_send(Err(error));
        }
    });
    let mut response = Response::new(Body::new(Pieces(receive)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

/// Sent at a time.
const PIECE_BYTES: usize = 128 << 10;

/// Where an export is written: pieces that go out as they fill.
pub(crate) struct Out {
    send: mpsc::Sender<std::io::Result<Bytes>>,
    buffer: Vec<u8>,
    /// Bytes written in all.
    pub(super) written: u64,
}

impl Out {
    pub(crate) fn new(send: mpsc::Sender<std::io::Result<Bytes>>) -> Self {
        Self { send, buffer: Vec::with_capacity(PIECE_BYTES), written: 0 }
    }

    /// Sends what is left.
    pub(crate) fn send(&mut self) -> std::io::Result<()> {
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES));
        let gone = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.send.blocking_send(Ok(piece.into())).map_err(gone)
    }
}

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        self.written += bytes.len() as u64;
        if self.buffer.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
