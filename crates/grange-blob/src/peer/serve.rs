//! The side that holds the bytes: requests in, responses out. No server here; a node mounts this below its own
//! routes, after it has checked who is asking.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::HEXLOWER_PERMISSIVE;
use grange_model::{Algorithm, Checksums, FileName};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::giving;
use super::origin::Reach;
use super::pull::{self, Pull};
use super::range::Part;
use super::taking::{Begin, LINGER, Uploads};
use super::wire::{EXPECTED, Fault, LIST_MAX, Mark, OFFSET, SIZE, UPLOAD};
use crate::blob::Blob;
use crate::error::Error;

/// A response's bytes: known ones, or a stream with a trailer.
pub type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;
pub type Answer = Response<AnswerBody>;

/// Bytes of a range read at once at most; a larger one is read as a stream.
const RANGE_BYTES_MAX: u64 = 1 << 20;

/// More than a request to fetch a file has.
const PULL_BYTES_MAX: usize = 16 << 10;

/// More than a marker has.
const MARK_BYTES_MAX: usize = 16 << 10;

/// A store as a node serves it to others. Clones share everything.
#[derive(Clone, Debug)]
pub struct Served {
    blob: Arc<dyn Blob>,
    uploads: Arc<Uploads>,
    reach: Option<Reach>,
}

impl Served {
    /// `reach`: how this node gets at others, to fetch files from them; without it they are sent.
    pub fn new(blob: Arc<dyn Blob>, reach: Option<Reach>) -> Self {
        Self { blob, uploads: Arc::new(Uploads::new(LINGER)), reach }
    }

    /// The same with less patience for senders that went away.
    #[cfg(test)]
    pub(crate) fn lingering(self, linger: std::time::Duration) -> Self {
        Self { uploads: Arc::new(Uploads::new(linger)), ..self }
    }

    /// Answers one request about the files. `path` is what follows the mount point, such as `/files/a.warc`, still
    /// percent-encoded. The caller has admitted the sender.
    pub async fn answer<B>(&self, path: &str, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let handled = self.handle(path, &parts, body).await;
        handled.unwrap_or_else(|refusal| {
            if refusal.0.is_server_error() {
                tracing::warn!(method = %parts.method, path, fault = ?refusal.1, "a peer's request failed");
            }
            refusal.into_answer()
        })
    }
}

/// A status with what the asking side is told.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) Box<Fault>);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (status, fault) = Fault::of(&error);
        Self(status, Box::new(fault))
    }
}

impl Refusal {
    pub(super) fn into_answer(self) -> Answer {
        json(self.0, &self.1)
    }
}

pub(super) fn no_route() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, Box::new(Fault::plain("blob-no-route", "there is no such route")))
}

/// The file's name in a path.
pub(super) fn named(segment: &str) -> Result<FileName, Refusal> {
    let text = percent_decode_str(segment).decode_utf8();
    let text = text.map_err(|_| bad("the file name is not UTF-8"))?;
    text.parse().map_err(|error: grange_model::file::FileNameError| bad(error.to_string()))
}

pub(super) fn bad(text: impl Into<String>) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, Box::new(Fault::plain("blob-bad-request", text)))
}

impl Served {
    async fn handle<B>(&self, path: &str, parts: &Parts, body: B) -> Result<Answer, Refusal>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let blob = &self.blob;
        let mut segments = path.trim_start_matches('/').splitn(2, '/');
        let (what, rest) = (segments.next().unwrap_or_default(), segments.next());
        let query: Vec<_> =
            url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).collect();
        let asked = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref());
        let name = || named(rest.unwrap_or_default());
        Ok(match (&parts.method, what) {
            (&Method::GET, "files") if rest.is_none() => {
                let after = asked("after").map(str::parse::<FileName>).transpose();
                let after = after.map_err(|error| bad(error.to_string()))?;
                let limit = asked("limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIST_MAX);
                ok(&blob.list(after.as_ref(), limit.min(LIST_MAX)).await?)
            }
            (&Method::GET, "unlisted") if rest.is_none() => {
                let limit = asked("limit").and_then(|limit| limit.parse().ok()).unwrap_or(LIST_MAX);
                ok(&blob.unlisted(limit.min(LIST_MAX)).await?)
            }
            (&Method::GET, "files") => get(blob, name()?, &parts.headers).await?,
            (&Method::PUT, "files") => {
                let (begin, offset) = begin(name()?, &parts.headers)?;
                ok(&self.uploads.take(blob, &begin, offset, body).await?)
            }
            (&Method::GET, "uploads") => {
                ok(&self.uploads.progress(rest.unwrap_or_default()).await.ok_or_else(no_route)?)
            }
            (&Method::DELETE, "uploads") => {
                self.uploads.give_up(rest.unwrap_or_default()).await;
                ok(&())
            }
            (&Method::POST, "pull") => {
                let name = name()?;
                let body = Limited::new(body, PULL_BYTES_MAX).collect().await;
                let body = body.map_err(|error| bad(error.to_string()))?.to_bytes();
                let asked: Pull = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
                ok(&pull::fetch(blob, &name, &asked, self.reach.as_ref()).await?)
            }
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
            (&Method::GET, "markers") if rest.is_none() => ok(&blob.markers().await?),
            (&Method::POST, "mark") if rest.is_none() => {
                let body = Limited::new(body, MARK_BYTES_MAX).collect().await;
                let body = body.map_err(|error| bad(error.to_string()))?.to_bytes();
                let mark: Mark = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
                blob.mark(&mark.part, &mark.text).await?;
                ok(&())
            }
            _ => return Err(no_route()),
        })
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(full(bytes.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn ok(value: &impl Serialize) -> Answer {
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
    match giving::part(headers)? {
        Part::Between(start, end) if end - start <= RANGE_BYTES_MAX => {
            let bytes = blob.read_at(&name, start, (end - start) as usize).await?;
            let mut response = Response::new(full(bytes));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            Ok(response)
        }
        _ => giving::stream(blob.get(&name).await?, headers),
    }
}

/// What the headers of a part say of its upload, and where the part begins.
fn begin(name: FileName, headers: &HeaderMap) -> Result<(Begin, u64), Refusal> {
    let number = |header: &HeaderName| {
        let value = headers.get(header).map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
        value
            .map(|value| value.ok_or_else(|| bad(format!("the header {header} holds no number"))))
            .transpose()
    };
    let plain = |id: &&str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = headers.get(UPLOAD).and_then(|id| id.to_str().ok()).filter(plain);
    let id = id.ok_or_else(|| bad("the header Grange-Upload holds no 32 hexadecimal digits"))?.to_owned();
    let begin = Begin { id, name, size: number(&SIZE)?, expected: expected(headers)? };
    Ok((begin, number(&OFFSET)?.unwrap_or(0)))
}
