//! What people see of the proxy itself.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use grange_i18n::Tongue;

use super::Proxy;
use super::chain::{Ask, CHAIN};
use super::session::Choice;

#[derive(Template)]
#[template(path = "proxy.html")]
struct Control<'a> {
    t: &'a Tongue,
    /// What the reader sees now, in words.
    chosen: [String; 3],
    recording: bool,
    collections: Vec<String>,
    chain: Vec<&'static str>,
    time: String,
}

#[derive(Template)]
#[template(path = "proxy_message.html")]
struct Message<'a> {
    t: &'a Tongue,
    title: &'a str,
    text: &'a str,
    url: &'a str,
    again: bool,
}

pub(super) fn control(proxy: &Proxy, ask: &Ask) -> Response<Body> {
    let t = &ask.who.tongue();
    let session = proxy.sessions.with(&ask.reader, |session| session.clone());
    let time = session.time.map(|time| time.to_string());
    let page = Control {
        t,
        chosen: [
            t.say_with(
                "proxy-chosen-index",
                &[("index", (&index(t, &session.choice, &session.label)).into())],
            ),
            match &time {
                Some(time) => t.say_with("proxy-chosen-time", &[("time", time.into())]),
                None => t.say("proxy-chosen-latest"),
            },
            t.say_with("proxy-collected", &[("count", (session.missing.len() as u64).into())]),
        ],
        recording: session.recording,
        collections: proxy.collections.all().iter().map(|one| one.name.clone()).collect(),
        chain: CHAIN.iter().map(|resolver| resolver.name()).collect(),
        time: time.unwrap_or_default(),
    };
    render(StatusCode::OK, &page)
}

/// What is looked through, and what the reader calls it.
fn index(t: &Tongue, choice: &Choice, label: &str) -> String {
    let index = match choice {
        Choice::All => t.say("all-collections"),
        Choice::Collection(name) => t.say_with("proxy-chosen-collection", &[("name", name.into())]),
        Choice::Jobs(jobs) => t.say_with("proxy-chosen-jobs", &[("jobs", (&jobs.join(", ")).into())]),
    };
    if label.is_empty() { index } else { format!("{index} ({label})") }
}

pub(super) fn message(ask: &Ask, status: StatusCode, text: &str) -> Response<Body> {
    let t = &ask.who.tongue();
    let title = match status {
        StatusCode::NOT_FOUND => t.say("not-in-archive"),
        StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => t.say("not-available"),
        StatusCode::SERVICE_UNAVAILABLE => t.say("cannot-be-shown"),
        _ => t.say("proxy-cannot"),
    };
    render(status, &Message { t, title: &title, text, url: &ask.url, again: false })
}

/// A command that another page made the browser send is done only when the reader says so.
pub(super) fn confirm(ask: &Ask) -> Response<Body> {
    let t = &ask.who.tongue();
    let (title, text) = (t.say("proxy-confirm"), t.say("proxy-confirm-why"));
    render(StatusCode::FORBIDDEN, &Message { t, title: &title, text: &text, url: &ask.url, again: true })
}

fn render(status: StatusCode, page: &impl Template) -> Response<Body> {
    let Ok(text) = page.render() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::VARY, HeaderValue::from_static("accept-language")),
    ];
    (status, headers, text).into_response()
}
