//! Proxy mode: the browser asks for pages under their own addresses and gets them from the archive only.
//!
//! TLS is ended here, with certificates of an authority of this machine. Every reader has choices of their own: which
//! index, which time, and whether missing URLs are written down.

mod archive;
mod authority;
mod chain;
mod control;
mod data;
mod page;
mod record_access;
mod session;
#[cfg(test)]
pub(crate) mod tests;
mod visible_file;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::http::uri::Authority as HostPort;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use data_encoding::BASE64;
use grange_base::Shutdown;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

pub use authority::{Authority, AuthorityError};

use crate::cdx::Options;
use crate::collection::Collections;
use crate::reader::Who;
use crate::serve::{Door, HEAD_WAIT};
use chain::Ask;
use session::Sessions;

/// The proxy: what it shows, who it speaks as, and what its readers chose. Cloning shares all of it.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub(crate) collections: Collections,
    options: Arc<Options>,
    authority: Arc<Authority>,
    sessions: Sessions,
    /// For answers that threads write.
    writers: Arc<Semaphore>,
}

impl Proxy {
    /// Opens the proxy with the authority in `folder`, which is made on the first call.
    pub fn open(collections: Collections, options: Options, folder: &Path) -> Result<Self, AuthorityError> {
        let authority = Arc::new(Authority::open(folder)?);
        let (options, writers) = (Arc::new(options), Arc::new(Semaphore::new(data::WRITERS_MAX)));
        Ok(Self { collections, options, authority, sessions: Sessions::default(), writers })
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }
}

/// Answers until shutdown.
pub async fn serve(listener: TcpListener, proxy: Proxy, shutdown: Shutdown) -> io::Result<()> {
    let door = Door::new(listener);
    while let Some((stream, address, place)) = door.next(&shutdown).await {
        let (proxy, shutdown) = (proxy.clone(), shutdown.clone());
        tokio::spawn(async move {
            let _place = place;
            tokio::select! {
                () = shutdown.wait() => {}
                () = connection(stream, address, proxy) => {}
            }
        });
    }
    Ok(())
}

async fn connection(stream: TcpStream, address: SocketAddr, proxy: Proxy) {
    let service = service_fn(move |request| plain(proxy.clone(), address, request));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection to the proxy broke off");
    }
}

/// A request as it comes to the proxy: for a whole URL, or to be let through to a host.
async fn plain(
    proxy: Proxy,
    address: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let user = user(request.headers());
    if request.method() == Method::CONNECT {
        let Some(authority) = request.uri().authority().cloned() else {
            return Ok(StatusCode::BAD_REQUEST.into_response());
        };
        tokio::spawn(async move {
            match hyper::upgrade::on(request).await {
                Ok(upgraded) => secure(proxy, address, user, &authority, upgraded).await,
                Err(error) => tracing::debug!(%error, "a connection was not let through"),
            }
        });
        return Ok(Response::new(Body::empty()));
    }
    let url = match (request.uri().scheme_str(), request.uri().authority()) {
        (Some("http" | "https"), Some(_)) => request.uri().to_string(),
        // Asked directly and not as a proxy: its own page says what this is.
        _ => format!(
            "http://viewerproxy.invalid{}",
            request.uri().path_and_query().map_or("/", |both| both.as_str())
        ),
    };
    Ok(answer(proxy, address, user, url, request).await)
}

/// Speaks TLS as the host that was asked for, and answers what comes inside.
async fn secure(
    proxy: Proxy,
    address: SocketAddr,
    user: Option<String>,
    authority: &HostPort,
    upgraded: hyper::upgrade::Upgraded,
) {
    let config = match proxy.authority.host(authority.host()) {
        Ok(config) => config,
        Err(error) => {
            return tracing::debug!(error = %grange_base::Chain(&error), "a host cannot be spoken for");
        }
    };
    let accepting = TlsAcceptor::from(config).accept(TokioIo::new(upgraded));
    let stream = match tokio::time::timeout(HEAD_WAIT, accepting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            return tracing::debug!(%error, host = authority.host(), "the browser does not trust the proxy");
        }
        Err(_) => return,
    };
    let host = match authority.port_u16() {
        Some(443) | None => authority.host().to_owned(),
        Some(port) => format!("{}:{port}", authority.host()),
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (proxy, user) = (proxy.clone(), user.clone());
        let path = request.uri().path_and_query().map_or("/", |both| both.as_str());
        let url = format!("https://{host}{path}");
        async move { Ok::<_, Infallible>(answer(proxy, address, user, url, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection inside the proxy broke off");
    }
}

async fn answer(
    proxy: Proxy,
    address: SocketAddr,
    user: Option<String>,
    url: String,
    request: Request<Incoming>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    // Whoever they are for, nothing in the chain reads, keeps or repeats them.
    parts.headers.remove(header::COOKIE);
    // Who the reader is for access rules is never taken from what the reader says.
    let who = Who::stranger(Some(address.ip()), &parts.headers, &proxy.options);
    let reader = user.unwrap_or_else(|| address.ip().to_string());
    let mut ask = Ask { method: parts.method, url, headers: parts.headers, body: Bytes::new(), reader, who };
    let Ok(body) = Limited::new(body, cdx::BODY_BYTES_MAX).collect().await else {
        let text = ask.who.tongue().say("too-large-limit");
        return page::message(&ask, StatusCode::PAYLOAD_TOO_LARGE, &text);
    };
    ask.body = body.to_bytes();
    chain::resolve(&proxy, &ask).await
}

/// The user name of `Proxy-Authorization: Basic`; it keeps readers apart, and is no proof of anything.
fn user(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, packed) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let plain = String::from_utf8(BASE64.decode(packed.trim().as_bytes()).ok()?).ok()?;
    let (user, _) = plain.split_once(':').unwrap_or((&plain, ""));
    // Long enough for every name, short enough that nobody fills the memory with them.
    Some(user.chars().take(200).collect())
}
