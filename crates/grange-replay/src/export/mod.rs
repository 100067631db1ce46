//! The captures of a query as a file of their own: WARC, or WACZ with an index and a list of pages. Streamed.
//!
//! Records keep their bytes: gzip members with one record are copied as they are stored, others are packed unchanged.
//! Originals that revisits refer to come along, so that the file stands alone. Every record, originals too, is one that the
//! reader would be shown. Records that cannot be read are named in a metadata record at the end.

mod missing;
mod records;
mod zip;

pub(crate) use records::{copy_range, pack_record};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use grange_index::Stamp;
use grange_index::dialect::Params;
use grange_index::query::Query;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use urlkey::MatchType;

use crate::pages;
use crate::piece_channel::BodyWriter;
use crate::wayback::{View, repaired};

/// Exports written at a time: each reads and packs as fast as its client takes it.
static WRITERS: Semaphore = Semaphore::const_new(8);
/// Sent at a time.
const PIECE_BYTES: usize = 128 << 10;

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
    let runtime = Handle::current();
    let (mut out, body) = BodyWriter::new(PIECE_BYTES, runtime.clone());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let done = if wacz {
            zip::wacz(&view, &selection, &runtime, &mut out)
        } else {
            records::warc(&view, &selection, &runtime, &mut out, &mut |_| Ok(()))
        };
        if let Err(error) = out.finish(done) {
            tracing::warn!(%error, selection = selection.text, "an export broke off");
        }
    });
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}
