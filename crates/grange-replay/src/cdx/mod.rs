//! The CDX APIs: one index asked in three dialects, on the routes their clients know.
//!
//! ```text
//! GET  /cdx/ia?url=…               the Internet Archive's dialect; collection=NAME chooses among several
//! GET  /<collection>/cdx/ia?url=…
//! GET  /<collection>/cdx?url=…     pywb's dialect, also as /<collection>/index
//! GET  /<collection>?url=…         OutbackCDX's dialect; ?q=… asks in OpenWayback's XML
//! POST /<collection>               CDX 9–14 or CDXJ lines to add, where writing is on
//! POST /<collection>/delete        lines to take away again
//! GET  /<collection>/ap/<point>    the same as without the point; …/check says whether a capture would be shown
//! GET  /<collection>/stats, /<collection>/cube
//! ```
//!
//! None of these paths can be a page of the Wayback routes: those have a URL behind the collection, and no URL is a word
//! without a dot or a colon. Hidden captures are invisible here: no line, no count and no page tells of them.

mod answer;
mod asker;
#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod count_tests;
mod cube;
mod dialect;
mod open;
mod point;
mod post;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use grange_base::Clock;
use grange_i18n::Texts;
use grange_index::dialect::Params;
use tokio::sync::Semaphore;

pub use asker::Asker;
pub use open::{LOCAL, OpenError, open, serve};

use crate::collection::{Collection, Collections};
use crate::wayback::{self, RewritePool};
use dialect::Dialect;

/// What the routes may do, and for whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether lines may be posted and deleted. Whoever reaches the port can then change the index.
    pub writing: bool,
    /// A header in which a front server names the user who asks; it must take it off what comes from outside.
    pub user_header: Option<HeaderName>,
    pub clock: Clock,
    /// What pages say to people.
    pub texts: Texts,
    /// Where long pages and scripts are rewritten.
    pub rewriting: RewritePool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            writing: false,
            user_header: None,
            clock: Clock::system(),
            texts: Texts::built_in(),
            rewriting: RewritePool::default(),
        }
    }
}

/// Long answers made at the same time: each takes a thread for as long as its reader needs to take it.
const LONG_ANSWERS_MAX: usize = 64;

#[derive(Clone, Debug)]
struct Served {
    collections: Collections,
    options: Arc<Options>,
    long_answers: Arc<Semaphore>,
}

/// The routes of all dialects. Merge them with others, or serve them alone.
pub fn routes(collections: Collections, options: Options) -> Router {
    let long_answers = Arc::new(Semaphore::new(LONG_ANSWERS_MAX));
    Router::new()
        .route("/cdx/ia", get(ia_of_one))
        .route("/{collection}/cdx/ia", get(ia))
        .route("/{collection}/cdx", get(pywb))
        .route("/{collection}/index", get(pywb))
        .route("/{collection}", get(outback).post(post::add))
        .route("/{collection}/delete", post(post::delete))
        .route("/{collection}/ap/{point}", get(point::ask))
        .route("/{collection}/ap/{point}/check", get(point::check))
        .route("/{collection}/stats", get(cube::stats))
        .route("/{collection}/cube", get(cube::cube))
        .with_state(Served { collections, options: Arc::new(options), long_answers })
}

impl Served {
    fn answer(&self, dialect: Dialect, name: &str, query: Option<String>, asker: Asker) -> Response {
        let Some(collection) = self.collections.get(name) else { return self.unknown(dialect, name) };
        let params = Params::parse(query.as_deref().unwrap_or_default());
        answer::answer(self, dialect, collection, params, asker)
    }

    fn unknown(&self, dialect: Dialect, name: &str) -> Response {
        let names: Vec<String> = self.collections.all().iter().map(|one| one.name.clone()).collect();
        let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
        dialect.refuse(StatusCode::NOT_FOUND, &format!("no collection is named {name}; known: {known}"))
    }
}

async fn ia_of_one(State(served): State<Served>, RawQuery(query): RawQuery, asker: Asker) -> Response {
    let params = Params::parse(query.as_deref().unwrap_or_default());
    let all = served.collections.all();
    let name = match (params.get("collection"), all.as_slice()) {
        (Some(name), _) => name.to_owned(),
        (None, [only]) => only.name.clone(),
        (None, several) if several.iter().any(|one| one.name == Collection::ARCHIVE) => {
            Collection::ARCHIVE.to_owned()
        }
        _ => {
            let message = "there are several collections: name one with collection=NAME or /NAME/cdx/ia";
            return Dialect::Ia.refuse(StatusCode::BAD_REQUEST, message);
        }
    };
    served.answer(Dialect::Ia, &name, query, asker)
}

async fn ia(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Response {
    served.answer(Dialect::Ia, &name, query, asker)
}

async fn pywb(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    Origin(origin): Origin,
    asker: Asker,
) -> Response {
    let prefix = format!("{origin}/{name}/");
    served.answer(Dialect::Pywb { prefix }, &name, query, asker)
}

/// Scheme and host by which the server was reached.
struct Origin(String);

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(wayback::origin(&parts.headers)))
    }
}

async fn outback(
    State(served): State<Served>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Response {
    let params = Params::parse(query.as_deref().unwrap_or_default());
    let dialect = if params.get("q").is_some() { Dialect::Xml } else { Dialect::Outback };
    served.answer(dialect, &name, query, asker)
}

fn text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
