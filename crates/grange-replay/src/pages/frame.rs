//! The page around a capture: a banner above, the capture in a frame below.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use grange_i18n::Tongue;
use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Stamp};

use super::{captures_of, render, when};
use crate::lookup_pool;
use crate::memento::{self, Links};
use crate::wayback::{Request, View};

#[derive(Template)]
#[template(path = "frame.html")]
struct Frame<'a> {
    t: &'a Tongue,
    collection: &'a str,
    url: &'a str,
    when: String,
    iso: String,
    previous: Option<String>,
    next: Option<String>,
    count: String,
    calendar: String,
    src: String,
}

/// Captures counted for a banner; beyond it the exact number helps nobody and costs time.
const COUNTED_MAX: u64 = 10_000;

pub(crate) async fn frame(
    view: &View,
    asked_for: &Request,
    capture: &Capture,
    url: &str,
    exact: &str,
) -> Response {
    let (key, time, its_view) = (capture.surt.clone(), capture.time, view.clone());
    let looked = lookup_pool::run(move || {
        let around = its_view.around(&key, time).unwrap_or_default();
        (around, count(&its_view, key))
    });
    let Some((around, captures)) = looked.await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
    let href = |time: Stamp| format!("/{name}/{}/{url}", memento::digits(time));
    let page = Frame {
        t,
        collection: name,
        url,
        when: when(t, capture.time),
        iso: memento::moment(capture.time).map(|moment| format!("{moment}Z")).unwrap_or_default(),
        previous: around.previous.map(href),
        next: around.next.map(href),
        count: if captures == COUNTED_MAX {
            t.say_with("captures-at-least", &[("count", captures.into())])
        } else {
            captures_of(t, captures)
        },
        calendar: format!("/{name}/*/{url}"),
        src: format!("/{name}/{exact}mp_/{url}"),
    };
    let mut response = render(StatusCode::OK, &page);
    let prefix = format!("{}{}", asked_for.origin, asked_for.prefix);
    if let Ok(links) = HeaderValue::from_str(&Links { prefix: &prefix, url }.header(capture.time, &around)) {
        response.headers_mut().insert(header::LINK, links);
    }
    response
}

/// The captures of a URL, as far as they are counted.
fn count(view: &View, key: String) -> u64 {
    let mut captures = 0;
    let counted = Query::new(Keys::Exact(key)).run(&view.snapshot, |row| {
        captures += u64::from(view.sees(row));
        Ok(if captures < COUNTED_MAX { Next::More } else { Next::Stop })
    });
    if let Err(error) = counted {
        tracing::warn!(error = %grange_base::Chain(&error), "the index could not be read");
    }
    captures
}
