//! Answers: short ones at once, long ones in a stream from a thread of their own.

use std::io::{self, Write};
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use grange_base::Chain;
use grange_index::dialect::{Answer, Failure, Params};
use grange_index::{CaptureView, Error, Stamp};
use tokio::runtime::Handle;

use super::Served;
use super::asker::Asker;
use super::dialect::Dialect;
use crate::access_check::AccessCheck;
use crate::collection::Collection;
use crate::lookup_pool::SHORT_ROWS_MAX;
use crate::piece_channel::BodyWriter;
use crate::wayback::fuzzy;

/// Bytes of an answer in place.
const SHORT_BYTES_MAX: usize = 64 << 10;
/// Bytes of one piece of a long answer.
const PIECE_BYTES: usize = 64 << 10;
/// Below this gzip gains nothing that a packet would not carry anyway.
const GZIP_BYTES_MIN: usize = 1400;

/// One request, with everything that its answer depends on.
struct Request {
    dialect: Dialect,
    collection: Arc<Collection>,
    access: AccessCheck,
}

impl Request {
    fn run(&self, params: &Params, out: &mut dyn Write) -> Result<Answer, Failure> {
        let sees = |view: &CaptureView<'_>| self.access.sees_row(view);
        let answer = self.dialect.run(&self.access.snapshot, params, &sees, out)?;
        if let Some(error) = answer.noticed.damaged.first() {
            let (collection, blocks) = (&self.collection.name, answer.noticed.damaged_count);
            tracing::error!(collection, blocks, error = %Chain(error), "an answer went past damage in the index");
        }
        Ok(answer)
    }

    /// The same question about a URL that differs only in what does not matter, such as an argument against caches. pywb asks
    /// it unless told not to.
    fn alike(&self, params: &Params) -> Option<Params> {
        let exact = matches!(params.get("matchType"), None | Some("exact"));
        let off = matches!(params.get("allowFuzzy"), Some("0" | "false" | "no"));
        let url = params.get("url").filter(|url| !url.starts_with("*.") && !url.ends_with('*'))?;
        if off || !exact || !matches!(self.dialect, Dialect::Pywb { .. }) {
            return None;
        }
        let time = params.get("closest").and_then(Stamp::earliest).unwrap_or(Stamp::MAX);
        let sees = |view: &CaptureView<'_>| self.access.sees_row(view);
        let found = fuzzy::candidates(&self.access.snapshot, url, time, sees).ok()?;
        let alike = found.into_iter().next()?.url?;
        Some(params.clone().with("url", &alike))
    }

    fn failed(&self, failure: &Failure) -> Response {
        match failure {
            Failure::Request(bad) => self.dialect.refuse(StatusCode::BAD_REQUEST, &bad.to_string()),
            Failure::Index(_) | Failure::Send(_) => {
                tracing::error!(collection = self.collection.name, error = %Chain(failure), "no answer");
                self.dialect.refuse(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string())
            }
        }
    }
}

/// Answers a request. What fits is answered in place: that is what lookups are, and a thread for each would cost more than
/// the lookup. What does not fit begins anew in a thread and is sent as it is found.
pub(super) fn answer(
    served: &Served,
    dialect: Dialect,
    collection: Arc<Collection>,
    mut params: Params,
    asker: Asker,
) -> Response {
    let takes_gzip = asker.takes_gzip && params.get("gzip") != Some("false");
    let content_type = dialect.content_type(&params);
    let mut access = AccessCheck::new(&collection, &asker.person);
    access.limit(SHORT_ROWS_MAX);
    let mut request = Request { dialect, collection, access };
    let mut short = Short(Vec::new());
    params.rows_most = Some(SHORT_ROWS_MAX);
    match request.run(&params, &mut short) {
        Ok(answer) => {
            if answer.captures == 0
                && let Some(alike) = request.alike(&params)
            {
                let mut second = Short(Vec::new());
                if request.run(&alike, &mut second).is_ok_and(|answer| answer.captures > 0) {
                    short = second;
                }
            }
            if !request.access.is_cut_short() {
                return whole(short.0, content_type, takes_gzip);
            }
        }
        Err(Failure::Send(_) | Failure::Index(Error::Unfinished { .. })) => {}
        Err(failure) => return request.failed(&failure),
    }
    params.rows_most = None;
    request.access = request.access.clone();
    let Ok(place) = Arc::clone(&served.long_answers).try_acquire_owned() else {
        let message = "too many long answers are under way; ask again in a moment, or for less with limit";
        let mut response = request.dialect.refuse(StatusCode::SERVICE_UNAVAILABLE, message);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return response;
    };
    let (mut out, body) = BodyWriter::new(PIECE_BYTES, Handle::current());
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let done = if takes_gzip {
            let mut packer = GzEncoder::new(&mut out, Compression::fast());
            request.run(&params, &mut packer).and_then(|_| Ok(packer.finish().map(drop)?))
        } else {
            request.run(&params, &mut out).map(drop)
        };
        let done = done.map_err(|failure| match failure {
            // The client left.
            Failure::Send(error) => error,
            // The status is sent already: all that can be said is that this is not the end.
            failure => {
                tracing::error!(error = %Chain(&failure), "an answer was cut short");
                io::Error::other(failure.to_string())
            }
        });
        // What went wrong was logged, or is the client's own leaving.
        let _ = out.finish(done);
    });
    let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    if takes_gzip {
        mark_gzip(&mut response);
    }
    response
}

fn whole(bytes: Vec<u8>, content_type: &'static str, takes_gzip: bool) -> Response {
    if !takes_gzip || bytes.len() < GZIP_BYTES_MIN {
        return ([(header::CONTENT_TYPE, content_type)], bytes).into_response();
    }
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    match packed.write_all(&bytes).and_then(|()| packed.finish()) {
        Ok(packed) => {
            let mut response = ([(header::CONTENT_TYPE, content_type)], packed).into_response();
            mark_gzip(&mut response);
            response
        }
        Err(_) => ([(header::CONTENT_TYPE, content_type)], bytes).into_response(),
    }
}

fn mark_gzip(response: &mut Response) {
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
}

/// Takes an answer that fits.
struct Short(Vec<u8>);

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > SHORT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
