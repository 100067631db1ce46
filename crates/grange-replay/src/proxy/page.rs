//! What people see of the proxy itself.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Proxy;
use super::chain::{Ask, CHAIN};
use super::control::status;

#[derive(Template)]
#[template(path = "proxy.html")]
struct Control {
    status: String,
    recording: bool,
    collections: Vec<String>,
    chain: Vec<&'static str>,
    time: String,
}

#[derive(Template)]
#[template(path = "proxy_message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
    url: &'a str,
    again: bool,
}

pub(super) fn control(proxy: &Proxy, ask: &Ask) -> Response<Body> {
    let (recording, time) = proxy.sessions.with(&ask.reader, |session| (session.recording, session.time));
    let page = Control {
        status: status(proxy, ask),
        recording,
        collections: proxy.collections.all().iter().map(|one| one.name.clone()).collect(),
        chain: CHAIN.iter().map(|resolver| resolver.name()).collect(),
        time: time.map(|time| time.to_string()).unwrap_or_default(),
    };
    render(StatusCode::OK, &page)
}

pub(super) fn message(status: StatusCode, text: &str, url: &str) -> Response<Body> {
    let title = match status {
        StatusCode::NOT_FOUND => "Not in the archive",
        StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => "Not available",
        StatusCode::SERVICE_UNAVAILABLE => "It cannot be shown",
        _ => "This cannot be done",
    };
    render(status, &Message { title, text, url, again: false })
}

/// A command that another page made the browser send is done only when the reader says so.
pub(super) fn confirm(url: &str) -> Response<Body> {
    let text = "Another page asks for this. If you want it too, follow the link.";
    render(StatusCode::FORBIDDEN, &Message { title: "Do this?", text, url, again: true })
}

fn render(status: StatusCode, page: &impl Template) -> Response<Body> {
    let Ok(text) = page.render() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, text).into_response()
}
