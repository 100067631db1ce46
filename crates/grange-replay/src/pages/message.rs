//! Why something is not shown, what was tried, and where to go from there.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::render;
use crate::wayback::{Site, View};

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    collection: &'a str,
    url: &'a str,
    text: &'a str,
    details: &'a [String],
    links: Vec<(String, &'static str)>,
}

pub(crate) fn problem(status: StatusCode, title: &str, text: &str) -> Response {
    render(status, &Message { title, collection: "", url: "", text, details: &[], links: Vec::new() })
}

pub(crate) fn no_collection(site: &Site) -> Response {
    let names: Vec<String> = site.collections.all().iter().map(|one| one.name.clone()).collect();
    let text = "No collection of this archive has that name. There are:";
    let links = vec![("/".to_owned(), "All collections")];
    let page =
        Message { title: "There is nothing here", collection: "", url: "", text, details: &names, links };
    render(StatusCode::NOT_FOUND, &page)
}

/// Nothing was captured under this URL.
pub(crate) fn missing(view: &View, time: &str, url: &str) -> Response {
    let name = &view.collection.name;
    let details = [
        format!("looked for the key {}", urlkey::key(url)),
        if time.is_empty() {
            "at any time".to_owned()
        } else {
            format!("closest to {time}, at any distance")
        },
        "then for captures that differ only in cache busters, callbacks and trackers".to_owned(),
    ];
    let mut links = vec![(format!("/{name}/*/{url}*"), "What begins with it")];
    if let Some(host) = host(url) {
        links.push((format!("/{name}/*/{host}*"), "The whole host"));
    }
    let text = "This archive has no capture of it. It never asks the live web.";
    let page = Message { title: "Not in the archive", collection: name, url, text, details: &details, links };
    render(StatusCode::NOT_FOUND, &page)
}

/// A rule hides it.
pub(crate) fn hidden(view: &View, url: &str, reason: &str) -> Response {
    let collection = &view.collection.name;
    let page =
        Message { title: "Not available", collection, url, text: reason, details: &[], links: Vec::new() };
    render(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &page)
}

/// It was captured, and cannot be shown.
pub(crate) fn broken(view: &View, url: &str, failures: &[String]) -> Response {
    // The page is for people; a hundred lines of the same would help nobody.
    const SHOWN_MAX: usize = 10;
    let name = &view.collection.name;
    let text = "It was captured, but no capture can be shown now. What was tried:";
    let links = vec![(format!("/{name}/*/{url}"), "All captures of it")];
    let details = &failures[..failures.len().min(SHOWN_MAX)];
    for failure in details {
        tracing::warn!(collection = name, url, failure, "a capture cannot be shown");
    }
    let page = Message { title: "It cannot be shown", collection: name, url, text, details, links };
    render(StatusCode::SERVICE_UNAVAILABLE, &page)
}

/// `http://host/` of a URL.
pub(super) fn host(url: &str) -> Option<String> {
    let start = url.find("://")? + 3;
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    Some(format!("{}/", &url[..end]))
}
