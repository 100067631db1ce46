//! Wayback mode: `/<collection>/<time><modifier>/<url>` on an origin of its own.
//!
//! ```text
//! GET /                                   the collections
//! GET /<collection>/                      where to begin
//! GET /<collection>/<time>/<url>          the capture closest in time, in a frame with a banner
//! GET /<collection>/<time><mod>/<url>     the capture itself (mp_, id_, js_, …)
//! GET /<collection>/<url>                 TimeGate: the best capture for Accept-Datetime, else the latest
//! GET /<collection>/*/<url>               when it was captured; <url>* lists URLs
//! GET /<collection>/timemap/{link,json,cdxj}/<url>
//! GET /<collection>/export/{warc,wacz}?url=…
//! ```
//!
//! No cookie is read here and none is set but those of archived sites, below their own path.

mod address;
mod answer;
#[cfg(test)]
mod damaged_tests;
mod find;
pub(crate) mod fuzzy;
#[cfg(test)]
mod hostile_tests;
mod part;
mod replay;
mod rescue;
mod rewrite_pool;
mod rewriting;
#[cfg(test)]
mod sending_tests;
#[cfg(test)]
mod tests;
mod timemap;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use grange_i18n::Tongue;
use tower::ServiceExt as _;

use address::Address;
pub(crate) use address::{own_parameters, repaired};
pub(crate) use answer::{Request, location};
pub(crate) use find::{Found, View, Wanted};
pub(crate) use part::{Part, Slice, choose, may_be_part};
pub use rewrite_pool::RewritePool;

use crate::cdx::{self, Options};
use crate::collection::{Collection, Collections};
use crate::export;
use crate::lookup_pool;
use crate::pages;
use crate::reader::Who;
use crate::rewrite::{self, STATIC_PREFIX};

/// What every request needs.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) collections: Collections,
    pub(crate) options: Arc<Options>,
    /// The CDX APIs. Asked only for collections there are, so that nothing of an archived site is taken for one.
    cdx: Router,
}

/// What follows a collection's name on the routes of the CDX APIs; none of it can be a URL.
const CDX_PATHS: [&str; 6] = ["cdx", "cdx/ia", "index", "delete", "stats", "cube"];

/// All routes of the replay port: Wayback mode, Memento and the CDX APIs.
pub fn routes(collections: Collections, options: Options) -> Router {
    let cdx = cdx::routes(collections.clone(), options.clone());
    Router::new().fallback(any).with_state(Site { collections, options: Arc::new(options), cdx })
}

async fn any(State(site): State<Site>, mut request: axum::extract::Request) -> Response {
    // Cookies know no ports: on one host name the session of the admin pages comes along. Nothing behind this line can
    // read, log or repeat it.
    request.headers_mut().remove(header::COOKIE);
    let mut response = site.answer(request).await;
    let headers = response.headers_mut();
    // Browsers tell nobody outside which archived page links to them.
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    response
}

impl Site {
    async fn answer(&self, request: axum::extract::Request) -> Response {
        let uri = request.uri().clone();
        let path_and_query = uri.path_and_query().map_or("/", |both| both.as_str());
        let path = path_and_query.strip_prefix('/').unwrap_or(path_and_query);
        if path.is_empty() || path.starts_with('?') {
            let who = self.who(&request);
            return pages::home(self, &who.tongue(), &who.person);
        }
        if let Some(name) = uri.path().strip_prefix(STATIC_PREFIX) {
            return asset(name, request.headers());
        }
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let is_cdx = match uri.path().strip_prefix('/').and_then(|path| path.split_once('/')) {
            Some((_, below)) => CDX_PATHS.contains(&below) || below.starts_with("ap/"),
            None => true,
        };
        // A person who leaves out the last slash; programs that ask here have a question.
        if request.method() == Method::GET && uri.query().is_none() && self.collections.get(path).is_some() {
            return redirect(StatusCode::FOUND, &format!("/{path}/"));
        }
        if uri.path() == "/cdx/ia" || (is_cdx && self.collections.get(uri_name(&uri)).is_some()) {
            return match self.cdx.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        }
        let Some(collection) = self.collections.get(name) else {
            return self.strayed(path_and_query, &request);
        };
        let Some(address) = Address::parse(rest) else {
            let t = &self.tongue(&request);
            let (title, text) = (t.say("bad-address"), t.say("bad-address-form"));
            return pages::problem(t, StatusCode::BAD_REQUEST, &title, &text);
        };
        let leads_on = address::leads_on(rest);
        self.serve(collection, address, leads_on, request).await
    }

    async fn serve(
        &self,
        collection: Arc<Collection>,
        address: Address,
        leads_on: bool,
        request: axum::extract::Request,
    ) -> Response {
        let who = self.who(&request);
        let view = View::new(collection, who);
        let origin = origin(request.headers());
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match address {
            Address::Capture { time, modifier, url } => {
                let astray = !leads_on && address::leads_on(&format!("{time}{modifier}/{url}"));
                let asked = replay::Asked { time, modifier, url, astray };
                replay::capture(view, &origin, asked, &self.options.rewriting, request).await
            }
            _ if !is_read => (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response(),
            Address::TimeGate { url } => replay::time_gate(&view, &origin, &url, request.headers()).await,
            Address::TimeMap { format, url } => timemap::answer(view, &origin, format, url).await,
            Address::Calendar { from, to, url, wide } => {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let page = move || pages::captures(&view, &from, &to, &url, wide, &query);
                lookup_pool::run(page)
                    .await
                    .unwrap_or_else(|| StatusCode::SERVICE_UNAVAILABLE.into_response())
            }
            Address::Home { query } => pages::collection(&view, query.as_deref()),
            Address::Export { format, query } => export::answer(view, &format, &query),
        }
    }

    fn who(&self, request: &axum::extract::Request) -> Who {
        Who::of(request.headers(), request.extensions(), &self.options, &self.collections)
    }

    /// The language to answer a request in that concerns no collection.
    fn tongue(&self, request: &axum::extract::Request) -> Tongue {
        self.who(request).tongue()
    }

    /// A request that fits no route: perhaps a replayed page made it, else it is told what there is.
    fn strayed(&self, path_and_query: &str, request: &axum::extract::Request) -> Response {
        let is_collection = |name: &str| self.collections.get(name).is_some();
        let origin = origin(request.headers());
        match rescue::target(request.headers(), &origin, path_and_query, is_collection) {
            Some(target) => redirect(StatusCode::TEMPORARY_REDIRECT, &target),
            None => pages::no_collection(self, &self.tongue(request)),
        }
    }
}

/// The first part of a path, where the name of a collection stands.
fn uri_name(uri: &Uri) -> &str {
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    path.split('/').next().unwrap_or_default()
}

/// Scheme, host and port by which the browser reached us; empty if it named no host that could be one.
pub(crate) fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or_default();
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
    if host.is_empty() || !host.bytes().all(sound) {
        return String::new();
    }
    // A front server that ends TLS says so; anything else is plain HTTP, which is all that is spoken here.
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{host}")
}

/// Leads to an address; what no header may hold is percent-encoded, as browsers would do.
pub(crate) fn redirect(status: StatusCode, to: &str) -> Response {
    let plain = rewrite::encoded_address(to);
    match HeaderValue::from_str(&plain) {
        Ok(to) => (status, [(header::LOCATION, to)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn asset(name: &str, headers: &HeaderMap) -> Response {
    // Nothing of ours is a service worker: it would stand between readers and everything served here.
    if headers.contains_key("service-worker") {
        return StatusCode::FORBIDDEN.into_response();
    }
    let (content_type, body) = match pages::asset(name) {
        Some((content_type, body)) => (content_type, body),
        None => match rewrite::asset(name) {
            Ok(asset) => (asset.content_type, asset.body),
            Err(rewrite::NoAsset::Unknown) => return StatusCode::NOT_FOUND.into_response(),
            Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
        },
    };
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, body).into_response()
}
