//! Commands that hand out what is stored: a file, one record of it, the metadata of a job.

use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use grange_index::{Capture, Stamp};
use http_body::Frame;
use tokio::runtime::Handle;

use super::chain::Ask;
use super::control::command;
use super::{Proxy, page};
use crate::capture::{self, Place, Undo};
use crate::holdings::Holdings;

/// Larger objects are saved by browsers instead of shown, as in the documents.
const SHOWN_BYTES_MAX: u64 = 1_000_000;
/// Read and sent at a time.
const PIECE_BYTES: u64 = 256 << 10;
/// Metadata files of one job: it has one, or a few more if it was taken up again.
const METADATA_FILES_MAX: u32 = 20;
/// Metadata handed out of one file.
const METADATA_BYTES_MAX: usize = 16 << 20;

pub(super) async fn resolve(proxy: &Proxy, ask: &Ask) -> Option<Response<Body>> {
    let (path, params) = command(&ask.url)?;
    let file = params.get("arcFile").or_else(|| params.get("file")).unwrap_or_default();
    let bad = |text: &str| page::message(ask, StatusCode::BAD_REQUEST, text);
    match path {
        "getFile" if file.is_empty() => Some(bad("getFile needs arcFile=NAME.")),
        "getFile" => Some(get_file(proxy, ask, file).await),
        "getRecord" => {
            let offset =
                params.get("arcOffset").or_else(|| params.get("offset")).and_then(|text| text.parse().ok());
            match offset {
                Some(offset) if !file.is_empty() => Some(get_record(proxy, ask, file, offset).await),
                _ => Some(bad("getRecord needs arcFile=NAME and arcOffset=BYTE.")),
            }
        }
        "getMetadata" => match params.get("jobID") {
            Some(job) => Some(get_metadata(proxy, ask, job).await),
            None => Some(bad("getMetadata needs jobID=NUMBER.")),
        },
        _ => None,
    }
}

/// A whole file. Rules speak of captures, so where there are any, files are not handed out past them.
async fn get_file(proxy: &Proxy, ask: &Ask, file: &str) -> Response<Body> {
    let mut refused = false;
    for collection in proxy.collections.all() {
        match collection.holdings.read_at(file, 0, PIECE_BYTES).await {
            Ok(Some(first)) if collection.rules().is_empty() => {
                let name: String = file
                    .chars()
                    .filter(|letter| letter.is_ascii_alphanumeric() || "._-".contains(*letter))
                    .collect();
                let disposition = format!("attachment; filename=\"{name}\"");
                let holdings = Arc::clone(&collection.holdings);
                let body = Pieces::new(holdings, file.to_owned(), first);
                let mut response = Response::new(Body::new(body));
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                if let Ok(disposition) = HeaderValue::from_str(&disposition) {
                    response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
                }
                return response;
            }
            Ok(Some(_)) => refused = true,
            Ok(None) => {}
            Err(error) => {
                return page::message(
                    ask,
                    StatusCode::SERVICE_UNAVAILABLE,
                    &grange_base::Chain(&error).to_string(),
                );
            }
        }
    }
    if refused {
        let text =
            "Access rules hold for captures of this collection, so its files are not handed out whole.";
        return page::message(ask, StatusCode::FORBIDDEN, text);
    }
    page::message(ask, StatusCode::NOT_FOUND, &format!("There is no file {file} here."))
}

type Reading = Pin<Box<dyn Future<Output = Result<Option<Bytes>, crate::HoldingsError>> + Send>>;

/// A file read piece by piece.
struct Pieces {
    holdings: Arc<dyn Holdings>,
    file: String,
    at: u64,
    first: Option<Bytes>,
    reading: Option<Reading>,
}

impl Pieces {
    fn new(holdings: Arc<dyn Holdings>, file: String, first: Bytes) -> Self {
        Self { holdings, file, at: first.len() as u64, first: Some(first), reading: None }
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = crate::HoldingsError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let this = &mut *self;
        let reading = this.reading.get_or_insert_with(|| {
            let (holdings, file, at) = (Arc::clone(&this.holdings), this.file.clone(), this.at);
            Box::pin(async move { holdings.read_at(&file, at, PIECE_BYTES).await })
        });
        let read = std::task::ready!(reading.as_mut().poll(context));
        this.reading = None;
        Poll::Ready(match read {
            Ok(Some(piece)) if !piece.is_empty() => {
                this.at += piece.len() as u64;
                Some(Ok(Frame::data(piece)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// One record: the content, as the documents' viewer proxy gives it.
async fn get_record(proxy: &Proxy, ask: &Ask, file: &str, offset: u64) -> Response<Body> {
    let place = Place { file: file.to_owned(), offset, ..Place::default() };
    let mut failure = format!("There is no record at byte {offset} of a file {file} here.");
    for collection in proxy.collections.all() {
        let (about, body) = match capture::open(&collection, &place, |_| Undo::Transfer).await {
            Ok(opened) => opened,
            Err(capture::OpenError::NoFile { .. }) => continue,
            Err(error) => {
                failure = grange_base::Chain(&error).to_string();
                continue;
            }
        };
        let uri = about.uri.clone().unwrap_or_default();
        let capture = Capture {
            surt: urlkey::key(&uri),
            time: about.date.and_then(|date| Stamp::parse(date.digits14())).unwrap_or_default(),
            mime: about.mime(),
            ..Capture::default()
        };
        if let Some(reason) = ask.who.hidden(&collection.name, &collection.rules(), &capture) {
            return page::message(ask, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &reason);
        }
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        let mime = about.mime().unwrap_or_else(|| "application/octet-stream".to_owned());
        // A page shown here would speak for the command host.
        headers
            .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(mime) = HeaderValue::from_str(&mime) {
            headers.insert(header::CONTENT_TYPE, mime);
        }
        for value in about.http.iter().flat_map(|head| head.all("Content-Encoding")) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(header::CONTENT_ENCODING, value);
            }
        }
        if body.len().is_none_or(|len| len > SHOWN_BYTES_MAX) {
            headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        }
        *response.body_mut() = Body::new(body);
        return response;
    }
    page::message(ask, StatusCode::NOT_FOUND, &failure)
}

/// The metadata records of a job: reports, logs and settings, one after another, each behind its URL.
async fn get_metadata(proxy: &Proxy, ask: &Ask, job: &str) -> Response<Body> {
    if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return page::message(ask, StatusCode::BAD_REQUEST, "jobID is a number.");
    }
    let mut out = Vec::new();
    for collection in proxy.collections.all() {
        if !collection.rules().is_empty() {
            continue;
        }
        for number in 1..=METADATA_FILES_MAX {
            let Some(file) = metadata_file(&*collection.holdings, job, number).await else { break };
            let place = Place { file, ..Place::default() };
            let (holdings, runtime) = (Arc::clone(&collection.holdings), Handle::current());
            let read = tokio::task::spawn_blocking(move || metadata(&holdings, &place, &runtime)).await;
            match read {
                Ok(Ok(bytes)) => out.extend_from_slice(&bytes),
                Ok(Err(error)) => tracing::warn!(%error, job, "metadata could not be read"),
                Err(error) => tracing::warn!(%error, job, "metadata could not be read"),
            }
        }
    }
    if out.is_empty() {
        return page::message(
            ask,
            StatusCode::NOT_FOUND,
            &format!("There is no metadata of a job {job} here."),
        );
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], out).into_response()
}

/// The metadata file of a job with this number, by any of the names that the documents give it.
async fn metadata_file(holdings: &dyn Holdings, job: &str, number: u32) -> Option<String> {
    for end in ["warc.gz", "warc", "arc.gz", "arc"] {
        let name = format!("{job}-metadata-{number}.{end}");
        if holdings.read_at(&name, 0, 1).await.is_ok_and(|bytes| bytes.is_some()) {
            return Some(name);
        }
    }
    None
}

/// All records of a metadata file as text. A crawl log may be large: of each as much as is shown elsewhere.
fn metadata(holdings: &Arc<dyn Holdings>, place: &Place, runtime: &Handle) -> io::Result<Vec<u8>> {
    let mut reader = capture::reader_at(holdings, place, runtime)?;
    let mut out = Vec::new();
    while let Some(mut record) = reader.next()? {
        if out.len() > METADATA_BYTES_MAX {
            out.extend_from_slice(b"(more is in the file)\n");
            break;
        }
        out.extend_from_slice(record.target_uri().unwrap_or_default());
        out.push(b'\n');
        record.payload()?.take(SHOWN_BYTES_MAX).read_to_end(&mut out)?;
        out.extend_from_slice(b"\n\n");
    }
    Ok(out)
}
