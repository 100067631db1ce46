//! Why something is not shown, what was tried, and where to go from there.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_i18n::Tongue;

use super::render;
use crate::wayback::{Site, View};

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    t: &'a Tongue,
    title: &'a str,
    collection: &'a str,
    url: &'a str,
    text: &'a str,
    details: &'a [String],
    /// Where to go from here, and what it is called.
    links: Vec<(String, String)>,
}

pub(crate) fn problem(t: &Tongue, status: StatusCode, title: &str, text: &str) -> Response {
    render(status, &Message { t, title, collection: "", url: "", text, details: &[], links: Vec::new() })
}

pub(crate) fn no_collection(site: &Site, t: &Tongue) -> Response {
    let names: Vec<String> = site.collections.all().iter().map(|one| one.name.clone()).collect();
    let (title, text) = (t.say("nothing-here"), t.say("no-collection"));
    let links = vec![("/".to_owned(), t.say("all-collections"))];
    let page = Message { t, title: &title, collection: "", url: "", text: &text, details: &names, links };
    render(StatusCode::NOT_FOUND, &page)
}

/// Nothing was captured under this URL.
pub(crate) fn missing(view: &View, time: &str, url: &str) -> Response {
    let (name, t) = (&view.collection.name, &view.tongue());
    let details = [
        t.say_with("missing-key", &[("key", (&grange_index::key(url)).into())]),
        if time.is_empty() {
            t.say("missing-any-time")
        } else {
            t.say_with("missing-time", &[("time", time.into())])
        },
        t.say("missing-alike"),
    ];
    let mut links = vec![(format!("/{name}/*/{url}*"), t.say("missing-below"))];
    if let Some(host) = host(url) {
        links.push((format!("/{name}/*/{host}*"), t.say("whole-host")));
    }
    let (title, text) = (t.say("not-in-archive"), t.say("missing"));
    let page = Message { t, title: &title, collection: name, url, text: &text, details: &details, links };
    render(StatusCode::NOT_FOUND, &page)
}

/// A rule hides it.
pub(crate) fn hidden(view: &View, url: &str, reason: &str) -> Response {
    let (collection, t) = (&view.collection.name, &view.tongue());
    let title = t.say("not-available");
    let page = Message { t, title: &title, collection, url, text: reason, details: &[], links: Vec::new() };
    render(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &page)
}

/// It was captured, and cannot be shown.
pub(crate) fn broken(view: &View, url: &str, failures: &[String]) -> Response {
    // The page is for people; a hundred lines of the same would help nobody.
    const SHOWN_MAX: usize = 10;
    let (name, t) = (&view.collection.name, &view.tongue());
    let links = vec![(format!("/{name}/*/{url}"), t.say("broken-all"))];
    let details = &failures[..failures.len().min(SHOWN_MAX)];
    for failure in details {
        tracing::warn!(collection = name, url, failure, "a capture cannot be shown");
    }
    let (title, text) = (t.say("cannot-be-shown"), t.say("broken"));
    let page = Message { t, title: &title, collection: name, url, text: &text, details, links };
    render(StatusCode::SERVICE_UNAVAILABLE, &page)
}

/// `http://host/` of a URL.
pub(super) fn host(url: &str) -> Option<String> {
    let start = url.find("://")? + 3;
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    Some(format!("{}/", &url[..end]))
}
