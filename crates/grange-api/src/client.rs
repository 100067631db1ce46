//! A small client: one request, one typed answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use grange_model::Checksums;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BASE;
use crate::error::{ApiError, ErrorBody};

/// Bytes on their way, in one piece or as a stream.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A body that is there already.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that is read from a file as it goes.
fn from_file(file: tokio::fs::File) -> Body {
    let stream = tokio_util::io::ReaderStream::with_capacity(file, 1 << 18);
    let frames = stream.map_ok(http_body::Frame::data).map_err(Into::into);
    StreamBody::new(frames).boxed_unsync()
}

/// Carries a request to a server and brings the answer back.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// What to call the server in messages.
    fn server(&self) -> &str;

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, ApiError>;
}

/// The acts of a node, wherever it is. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<dyn Transport>,
}

impl Client {
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Arc::new(transport) }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.call(Method::GET, path, None::<&()>).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub async fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub async fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<(), ApiError> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    /// Sends a file's bytes, after asking whether they would be taken: a server that refuses does not read them all,
    /// and its reason would be lost in the broken connection. The checksums are the sender's, for the server to compare
    /// with what arrives.
    pub async fn put_file<T: DeserializeOwned>(
        &self,
        path: &str,
        file: tokio::fs::File,
        checksums: &Checksums,
    ) -> Result<T, ApiError> {
        let kind = "application/octet-stream";
        let asked = self.request(Method::PUT, &format!("{path}?ask=true"), kind, whole("")).await?;
        self.read::<()>(asked).await?;
        let request = build(Method::PUT, path, kind)
            .header(CHECKSUM, checksums.to_string())
            .body(from_file(file))
            .map_err(|error| ApiError::Request(error.into()))?;
        self.read(self.transport.send(request).await?).await
    }

    /// Asks for bytes; the answer's headers and a body to read.
    pub async fn get_bytes(&self, path: &str) -> Result<(HeaderMap, Body), ApiError> {
        let response = self.request(Method::GET, path, "application/json", whole("")).await?;
        if !response.status().is_success() {
            let refused: Result<(), ApiError> = self.read(response).await;
            return Err(refused.err().unwrap_or_else(|| ApiError::Request("no reason given".into())));
        }
        let (parts, body) = response.into_parts();
        Ok((parts.headers, body))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ApiError> {
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| ApiError::Request(error.into()))?,
            None => Vec::new(),
        };
        let response = self.request(method, path, "application/json", whole(bytes)).await?;
        self.read(response).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Body,
    ) -> Result<Response<Body>, ApiError> {
        let request =
            build(method, path, kind).body(body).map_err(|error| ApiError::Request(error.into()))?;
        self.transport.send(request).await
    }

    async fn read<T: DeserializeOwned>(&self, response: Response<Body>) -> Result<T, ApiError> {
        let status = response.status();
        let server = || self.transport.server().to_owned();
        let broken = |source| ApiError::Unreachable { server: server(), source };
        let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
        read(self.transport.server(), status, &body)
    }
}

fn build(method: Method, path: &str, kind: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("{BASE}{path}"))
        .header(header::CONTENT_TYPE, kind)
        .header(header::ACCEPT, "application/json")
}

fn read<T: DeserializeOwned>(server: &str, status: StatusCode, body: &[u8]) -> Result<T, ApiError> {
    let foreign = |reason: serde_json::Error| ApiError::Foreign {
        server: server.to_owned(),
        status,
        reason: reason.to_string(),
    };
    if status.is_success() {
        // An act with nothing to tell answers 204 and no body, which reads as JSON null.
        let body = if body.is_empty() { b"null" } else { body };
        return serde_json::from_slice(body).map_err(foreign);
    }
    let body: ErrorBody = serde_json::from_slice(body).map_err(foreign)?;
    Err(ApiError::Refused { status, body })
}

/// The header with the checksums of the bytes that are sent, in either direction: `sha512=HEX md5=HEX`.
pub const CHECKSUM: &str = "grange-checksum";

/// One part of a path, safe to put between slashes.
pub fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// HTTP to a node, with a bearer token.
pub struct HttpTransport {
    server: String,
    token: String,
    /// Who sits at the terminal, for the record of changes when the token is the node's own local one.
    local_user: Option<String>,
    http: reqwest::Client,
}

/// Names the person behind a local command; only believed together with the node's local token.
pub const LOCAL_USER: &str = "grange-local-user";

impl HttpTransport {
    pub fn new(server: &str, token: &str, local_user: Option<String>) -> Result<Self, ApiError> {
        let http =
            reqwest::Client::builder().no_proxy().build().map_err(|error| ApiError::Request(error.into()))?;
        Ok(Self {
            server: server.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            local_user,
            http,
        })
    }
}

impl fmt::Debug for HttpTransport {
    /// Without the token: debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("server", &self.server).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for HttpTransport {
    fn server(&self) -> &str {
        &self.server
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let (parts, body) = request.into_parts();
        let body = reqwest::Body::wrap_stream(body.into_data_stream());
        let mut call = self
            .http
            .request(parts.method, format!("{}{}", self.server, parts.uri))
            .headers(parts.headers)
            .bearer_auth(&self.token)
            .body(body);
        if let Some(user) = &self.local_user {
            call = call.header(LOCAL_USER, user);
        }
        let unreachable = |source: reqwest::Error| ApiError::Unreachable {
            server: self.server.clone(),
            source: source.into(),
        };
        let answer = call.send().await.map_err(unreachable)?;
        let answer: Response<reqwest::Body> = answer.into();
        Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
    }
}
