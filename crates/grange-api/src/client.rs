//! A small client: one request, one typed answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::BASE;
use crate::error::{ApiError, ErrorBody};

/// Carries a request to a server and brings the answer back.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// What to call the server in messages.
    fn server(&self) -> &str;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError>;
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

    pub async fn delete(&self, path: &str) -> Result<(), ApiError> {
        self.call(Method::DELETE, path, None::<&()>).await
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
        let request = Request::builder()
            .method(method)
            .uri(format!("{BASE}{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Bytes::from(bytes))
            .map_err(|error| ApiError::Request(error.into()))?;
        let response = self.transport.send(request).await?;
        read(self.transport.server(), response.status(), response.body())
    }
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

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let (parts, body) = request.into_parts();
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
        let status = answer.status();
        let body = answer.bytes().await.map_err(unreachable)?;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
