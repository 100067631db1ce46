//! Admin pages and the JSON API. A handler reads the request, calls one act of `grange-app` and shows the answer;
//! it decides nothing and knows no database, bus or blob.
//!
//! Who is asking is found out in one file (`caller.rs`), errors become answers in one file (`error.rs`).

pub mod api;
pub mod caller;
pub mod error;
pub mod pages;
pub mod settings;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use grange_app::App;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

pub use caller::LocalToken;
pub use settings::Settings;

/// JSON bodies are small; uploads get routes with limits of their own.
const BODY_BYTES_MAX: usize = 1 << 20;

/// No act of the API takes this long; one that does is stuck, and its client has gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// What handlers share.
#[derive(Clone, Debug)]
pub struct Web {
    pub app: App,
    /// The key of people on the node's own machine; `None` where the transport vouches for them.
    pub local: Option<Arc<LocalToken>>,
    pub version: &'static str,
}

/// The JSON API below `/api/v1`.
pub fn api(web: Web) -> Router {
    let long = safe(api::long_routes().with_state(web.clone()));
    guarded(api::routes().with_state(web)).merge(long)
}

/// The admin site: pages and API.
pub fn site(web: Web) -> Router {
    let pages = pages::routes().with_state(web.clone());
    let long = safe(api::long_routes().with_state(web.clone()));
    guarded(api::routes().with_state(web).merge(pages)).merge(long).fallback(error::no_such_page)
}

/// What holds for most answers: bounded bodies, bounded time, and what holds for all of them.
fn guarded(routes: Router) -> Router {
    let bounded = routes
        .layer(RequestBodyLimitLayer::new(BODY_BYTES_MAX))
        .layer(TimeoutLayer::with_status_code(axum::http::StatusCode::GATEWAY_TIMEOUT, ANSWER_WITHIN));
    safe(bounded)
}

/// What holds for every answer: no panic that takes the process with it, and headers that keep browsers from
/// guessing types, framing pages or running foreign scripts.
fn safe(routes: Router) -> Router {
    let fixed = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
    };
    routes
        .layer(fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed(header::X_FRAME_OPTIONS, "DENY"))
        .layer(fixed(header::REFERRER_POLICY, "same-origin"))
        .layer(fixed(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
        ))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(error::panicked))
}
