//! The side that holds the bytes: requests in, responses out. No server here; a node mounts this below its own
//! routes, after it has checked who is asking.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use data_encoding::HEXLOWER_PERMISSIVE;
use futures_util::{Stream, StreamExt, stream};
use grange_model::{Algorithm, Checksums, FileName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio_util::io::StreamReader;

use super::range::{self, Part};
use super::wire::{CHECKSUM, EXPECTED, Fault, LIST_MAX, SIZE};
use crate::blob::{Blob, Source, Trailer};
use crate::buffers::Buffers;
use crate::digest::{By, Summing};
use crate::error::Error;

/// A response's bytes: known ones, or a stream with a trailer.
pub type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;
pub type Answer = Response<AnswerBody>;

/// Bytes of a range read at once at most; a larger one is read as a stream.
const RANGE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a refused upload that are still read; its sender asks for room first when it sends more.
pub(super) const DRAIN_BYTES_MAX: u64 = 64 << 20;

/// Answers one request about the files of `blob`. `path` is what follows the mount point, such as `/files/a.warc`,
/// still percent-encoded. The caller has admitted the sender.
pub async fn answer<B>(blob: &Arc<dyn Blob>, path: &str, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let handled = handle(blob, path, &parts, body).await;
    handled.unwrap_or_else(|refusal| {
        if refusal.0.is_server_error() {
            tracing::warn!(method = %parts.method, path, fault = ?refusal.1, "a peer's request failed");
        }
        json(refusal.0, &refusal.1)
    })
}

/// A status with what the asking side is told.
struct Refusal(StatusCode, Box<Fault>);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (status, fault) = Fault::of(&error);
        Self(status, Box::new(fault))
    }
}

fn bad(text: impl Into<String>) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, Box::new(Fault::plain("blob-bad-request", text)))
}

async fn handle<B>(blob: &Arc<dyn Blob>, path: &str, parts: &Parts, body: B) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut segments = path.trim_start_matches('/').splitn(2, '/');
    let (what, rest) = (segments.next().unwrap_or_default(), segments.next());
    let query: Vec<_> =
        url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).collect();
    let asked = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref());
    let name = || -> Result<FileName, Refusal> {
        let text = percent_decode_str(rest.unwrap_or_default()).decode_utf8();
        let text = text.map_err(|_| bad("the file name is not UTF-8"))?;
        text.parse().map_err(|error: grange_model::file::FileNameError| bad(error.to_string()))
    };
    Ok(match (&parts.method, what) {
        (&Method::GET, "files") if rest.is_none() => {
            let after = asked("after").map(str::parse::<FileName>).transpose();
            let after = after.map_err(|error| bad(error.to_string()))?;
            let limit = asked("limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIST_MAX);
            ok(&blob.list(after.as_ref(), limit.min(LIST_MAX)).await?)
        }
        (&Method::GET, "files") => get(blob, name()?, &parts.headers).await?,
        (&Method::PUT, "files") => put(blob, &name()?, &parts.headers, body).await?,
        (&Method::GET, "stat") => {
            let name = name()?;
            found(blob, name.clone(), blob.stat(&name).await?)?
        }
        (&Method::GET, "checksum") => {
            let name = name()?;
            let algorithms =
                asked("algorithms").unwrap_or_default().split(',').filter(|text| !text.is_empty());
            let algorithms: Result<Vec<Algorithm>, _> = algorithms.map(str::parse).collect();
            let algorithms = algorithms.map_err(|error| bad(error.to_string()))?;
            found(blob, name.clone(), blob.checksum(&name, &algorithms).await?)?
        }
        (&Method::GET, "challenge") => {
            let name = name()?;
            let salt = HEXLOWER_PERMISSIVE.decode(asked("salt").unwrap_or_default().as_bytes());
            let salt = salt.map_err(|_| bad("the salt is not hexadecimal"))?;
            found(blob, name.clone(), blob.challenge(&name, &salt).await?)?
        }
        (&Method::POST, "remove") => {
            let expected = expected(&parts.headers)?.unwrap_or_default();
            blob.remove_to_attic(&name()?, &expected).await?;
            ok(&())
        }
        (&Method::GET, "free") => ok(&blob.free().await?),
        _ => {
            let fault = Fault::plain("blob-no-route", "there is no such route");
            return Err(Refusal(StatusCode::NOT_FOUND, Box::new(fault)));
        }
    })
}

fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(full(bytes.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn ok(value: &impl Serialize) -> Answer {
    json(StatusCode::OK, value)
}

fn found<T: Serialize>(blob: &Arc<dyn Blob>, name: FileName, value: Option<T>) -> Result<Answer, Refusal> {
    let value = value.ok_or_else(|| Error::NotFound { name, place: blob.place().to_owned() })?;
    Ok(ok(&value))
}

fn full(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn expected(headers: &HeaderMap) -> Result<Option<Checksums>, Refusal> {
    let Some(text) = headers.get(EXPECTED) else { return Ok(None) };
    let sums = text.to_str().ok().and_then(|text| text.parse().ok());
    sums.map(Some).ok_or_else(|| bad("the header Grange-Expected holds no checksums"))
}

async fn get(blob: &Arc<dyn Blob>, name: FileName, headers: &HeaderMap) -> Result<Answer, Refusal> {
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part =
        range::read(asked).ok_or_else(|| bad("only bytes=N- and bytes=A-B are understood as a range"))?;
    match part {
        Part::Between(start, end) if end - start <= RANGE_BYTES_MAX => {
            let bytes = blob.read_at(&name, start, (end - start) as usize).await?;
            let mut response = Response::new(full(bytes));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            Ok(response)
        }
        Part::Between(..) => {
            Err(bad("a range between two offsets may have a mebibyte; read on with the next"))
        }
        Part::From(start) => {
            let opened = blob.get(&name).await?;
            let size = opened.size;
            if start > size {
                return Err(bad(format!("the file has {size} bytes")));
            }
            let mut response = Response::new(StreamBody::new(download(opened, start)).boxed_unsync());
            if start > 0 {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
            let headers = response.headers_mut();
            headers.insert(SIZE, HeaderValue::from(size));
            headers.insert(header::TRAILER, HeaderValue::from_static("grange-checksum"));
            Ok(response)
        }
    }
}

/// The bytes from `start` on and the checksum of all of them. What lies before `start` is read too, for the sum.
fn download(
    opened: crate::blob::Opened,
    start: u64,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send + 'static {
    struct State {
        opened: crate::blob::Opened,
        buffers: Buffers,
        summing: Option<Summing>,
        start: u64,
    }
    let summing = Some(Summing::inline(By::Second, &[Algorithm::Sha512]));
    let state = State { opened, buffers: Buffers::default(), summing, start };
    stream::try_unfold(state, |mut state| async move {
        loop {
            let Some(summing) = &mut state.summing else { return Ok(None) };
            let mut bytes = state.buffers.next(&mut state.opened).await?;
            let before = summing.bytes();
            summing.update(&bytes);
            if bytes.is_empty() {
                let sums = state.summing.take().map(Summing::finish).unwrap_or_default();
                return Ok(Some((Frame::trailers(trailer(&sums)), state)));
            }
            let skipped = state.start.saturating_sub(before).min(bytes.len() as u64);
            let wanted = bytes.split_off(skipped as usize);
            if !wanted.is_empty() {
                return Ok(Some((Frame::data(wanted), state)));
            }
        }
    })
}

pub(super) fn trailer(sums: &Checksums) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&sums.to_string()) {
        trailers.insert(CHECKSUM, value);
    }
    trailers
}

/// The checksum in a trailer.
pub(super) fn announced(trailers: &HeaderMap) -> Option<Checksums> {
    let sums: Checksums = trailers.get(CHECKSUM)?.to_str().ok()?.parse().ok()?;
    (!sums.is_empty()).then_some(sums)
}

async fn put<B>(
    blob: &Arc<dyn Blob>,
    name: &FileName,
    headers: &HeaderMap,
    body: B,
) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let expected = expected(headers)?;
    let size = headers.get(SIZE).map(|size| size.to_str().ok().and_then(|size| size.parse().ok()));
    let size: Option<u64> =
        size.map(|size| size.ok_or_else(|| bad("the header Grange-Size holds no number"))).transpose()?;
    let trailer = Trailer::default();
    let mut reader = StreamReader::new(upload(body, Arc::clone(&trailer)).boxed());
    let mut source = Source::new(&mut reader).with_trailer(trailer);
    if let Some(size) = size {
        source = source.of_size(size);
    }
    let stored = blob.put(name, source, expected.as_ref()).await;
    // An answer that comes while the sender is still sending can get lost with the connection. So what is left is
    // read and thrown away; a sender that goes on for ever is cut off.
    let left = &mut reader.take(DRAIN_BYTES_MAX);
    let _ = tokio::io::copy(left, &mut tokio::io::sink()).await;
    Ok(ok(&stored?))
}

/// The bytes of a request. Without a trailer they do not end well: it is the sender's word that this was all.
fn upload<B>(body: B, trailer: Arc<OnceLock<Checksums>>) -> impl Stream<Item = io::Result<Bytes>> + Send
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    stream::try_unfold((body, trailer), |(mut body, trailer)| async move {
        loop {
            let Some(frame) = body.frame().await else {
                let text = "the sender's checksum is missing after the bytes";
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, text);
                return if trailer.get().is_some() { Ok(None) } else { Err(error) };
            };
            let frame = frame.map_err(io::Error::other)?;
            match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Ok(Some((bytes, (body, trailer)))),
                Err(frame) => {
                    if let Some(sums) = frame.trailers_ref().and_then(announced) {
                        let _ = trailer.set(sums);
                    }
                }
            }
        }
    })
}
