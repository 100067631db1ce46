//! One capture, from what was asked to what is sent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::{Capture, Stamp};
use http_body_util::{BodyExt as _, Limited};

use super::answer;
use super::find::{Found, View, Wanted};
use super::part::may_be_part;
use super::{RewritePool, redirect};
use crate::capture::{self, About, Loaded, NoPayload};
use crate::memento::{self, Around, Links};
use crate::pages;
use crate::rewrite::{Modifier, with_path};

/// Later than anything that can have been captured.
const LATEST: &str = "99991231235959";

/// The address of a capture as it was asked for.
pub(super) struct Asked {
    pub(super) time: String,
    pub(super) modifier: Modifier,
    pub(super) url: String,
    /// Relative addresses would not lead on from there as they do from the URL.
    pub(super) astray: bool,
}

pub(super) async fn capture(
    view: View,
    origin: &str,
    asked: Asked,
    rewriting: &RewritePool,
    request: Request,
) -> Response {
    let Asked { time, modifier, url, astray } = asked;
    let method = request.method().clone();
    if method == Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, "GET, HEAD, POST, PUT, OPTIONS")]).into_response();
    }
    // A worker that serves a whole site may be registered only by the name that confines it.
    if request.headers().contains_key("service-worker") && modifier != Modifier::ServiceWorker {
        return StatusCode::FORBIDDEN.into_response();
    }
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let by_script = text("x-requested-with").is_some()
        || text("x-pywb-requested-with").is_some()
        || text("sec-fetch-dest") == Some("empty");
    let asked_for = answer::Request {
        origin: origin.to_owned(),
        prefix: format!("/{}/", view.collection.name),
        time: time.clone(),
        modifier: if modifier == Modifier::TopFrame { Modifier::Top } else { modifier },
        url: url.clone(),
        astray,
        // No validator is sent with a capture, so no client can have one.
        range: text("range").filter(|_| may_be_part(text("if-range"), None, None)).map(ToOwned::to_owned),
        accepted: capture::Accepted::of(headers),
        by_script,
        head_only: method == Method::HEAD,
        rewriting: rewriting.clone(),
    };
    let stamp = Stamp::earliest(if time.is_empty() { LATEST } else { &time }).unwrap_or(Stamp::MIN);
    let wanted = if matches!(method, Method::GET | Method::HEAD) {
        Wanted::get(&url, stamp)
    } else {
        let content_type = text("content-type").unwrap_or_default().to_owned();
        let limited = Limited::new(request.into_body(), cdx::BODY_BYTES_MAX);
        let Ok(body) = limited.collect().await else {
            let t = &view.tongue();
            let (title, text) = (t.say("too-large"), t.say("too-large-limit"));
            return pages::problem(t, StatusCode::PAYLOAD_TOO_LARGE, &title, &text);
        };
        Wanted::with_body(&url, method.as_str(), &content_type, &body.to_bytes(), stamp)
    };
    let is_get = matches!(method, Method::GET | Method::HEAD);
    show(&view, &asked_for, &wanted, is_get).await
}

async fn show(view: &View, asked_for: &answer::Request, wanted: &Wanted, is_get: bool) -> Response {
    let by = wanted.clone();
    let captures = match view.look(move |view| view.find(&by)).await {
        None => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Ok(Found::Captures(captures))) => captures,
        Some(Ok(Found::Hidden(reason))) => return pages::hidden(view, &wanted.url, &reason),
        Some(Ok(Found::Nothing)) => return pages::missing(view, &asked_for.time, &asked_for.url),
        Some(Err(error)) => {
            return pages::broken(view, &wanted.url, &[grange_base::Chain(&error).to_string()]);
        }
    };
    let mut failures = Vec::new();
    let mut unheld = None;
    let mut hidden = None;
    let mut tried = Vec::new();
    let mut more = false;
    let mut queue = captures;
    loop {
        for capture in queue {
            let id = (capture.file.clone(), capture.offset);
            if tried.contains(&id) {
                continue;
            }
            tried.push(id);
            match attempt(view, asked_for, &capture, is_get).await {
                // A capture of another part may hold what was asked for.
                Ok(Attempt::Shown(response))
                    if response.status() == StatusCode::RANGE_NOT_SATISFIABLE
                        && capture.status == Some(206) =>
                {
                    unheld.get_or_insert(response);
                }
                Ok(Attempt::Shown(response)) => return response,
                // Its record is of a type that the index did not know; others may be visible.
                Ok(Attempt::Hidden(reason)) => hidden = Some(reason),
                Ok(Attempt::LeadsBack) => {
                    let time = capture.time.to_string();
                    failures.push(view.tongue().say_with("broken-loop", &[("time", (&time).into())]));
                }
                Err(error) => failures.push(format!("{}: {}", capture.time, grange_base::Chain(&error))),
            }
        }
        if more {
            return match (unheld, hidden) {
                (Some(response), _) => response,
                (None, Some(reason)) => pages::hidden(view, &wanted.url, &reason),
                (None, None) => pages::broken(view, &wanted.url, &failures),
            };
        }
        more = true;
        let by = wanted.clone();
        let looked = view.look(move |view| view.find_more(&by)).await;
        queue = looked.and_then(Result::ok).unwrap_or_default();
    }
}

/// What came of trying to show a capture.
enum Attempt {
    Shown(Response),
    /// By a rule, for this reason.
    Hidden(String),
    /// It leads nowhere but back to this request.
    LeadsBack,
}

/// Tries to show one capture.
async fn attempt(
    view: &View,
    asked_for: &answer::Request,
    capture: &Capture,
    is_get: bool,
) -> Result<Attempt, NoPayload> {
    let url = &*with_path(capture.url.as_deref().unwrap_or(&asked_for.url));
    let exact = memento::digits(capture.time);
    let document = asked_for.modifier.is_document();
    // The page around the frame needs the capture itself only to follow a redirect.
    let framed = asked_for.modifier == Modifier::Top;
    let may_redirect = capture.status.is_none_or(|status| (300..400).contains(&status));
    if framed && !may_redirect {
        return Ok(Attempt::Shown(frame(view, asked_for, capture, url, &exact).await));
    }
    let loaded = if framed {
        let about = about(view, capture).await?;
        Loaded { about, original: None, body: capture::Body::empty() }
    } else {
        view.load(capture, asked_for.undo()).await?
    };
    if let Some(reason) = view.hides_loaded(capture, &loaded).await {
        return Ok(Attempt::Hidden(reason));
    }
    let location = answer::location(&loaded.about, url);
    if location.as_deref().is_some_and(|location| leads_back(location, url, &asked_for.url)) {
        return Ok(Attempt::LeadsBack);
    }
    if loaded.about.status() == Some(304) && loaded.original.is_none() {
        return Ok(Attempt::LeadsBack);
    }
    if framed {
        return Ok(Attempt::Shown(match location {
            Some(location) => {
                let to = format!("{}{exact}/{location}", asked_for.prefix);
                redirect(StatusCode::FOUND, &to)
            }
            None => frame(view, asked_for, capture, url, &exact).await,
        }));
    }
    if document && is_get && is_elsewhere(asked_for, url, &exact) {
        return Ok(Attempt::Shown(to_exact(asked_for, capture, url, &exact)));
    }
    let around =
        if document { around(view, capture).await.ok_or(NoPayload::Stopping)?? } else { Around::default() };
    Ok(Attempt::Shown(match answer::answer(asked_for, capture, loaded, around).await {
        Ok(response) => response,
        Err(error) => pages::broken(view, url, &[grange_base::Chain(&error).to_string()]),
    }))
}

async fn around(view: &View, capture: &Capture) -> Option<Result<Around, grange_index::Error>> {
    let (key, time) = (capture.surt.clone(), capture.time);
    view.look(move |view| view.around(&key, time)).await
}

async fn about(view: &View, capture: &Capture) -> Result<Arc<About>, NoPayload> {
    let place = capture::Place::of(capture).ok_or(capture::OpenError::NoPlace)?;
    let opened = capture::open(&view.collection, &place, |_| capture::Undo::Skip).await;
    Ok(opened?.0)
}

/// Whether following a redirect asks for the same again: to another spelling that has the same captures.
fn leads_back(location: &str, url: &str, asked: &str) -> bool {
    let key = grange_index::key(location);
    key == grange_index::key(url) || key == grange_index::key(asked)
}

/// Whether a document has an address of its own that is not the one asked for. A URL that browsers would spell differently on
/// their next request is none that they could ever be led to.
fn is_elsewhere(asked_for: &answer::Request, url: &str, exact: &str) -> bool {
    let kept = || !url.contains('#') && url::Url::parse(url).is_ok_and(|parsed| parsed.as_str() == url);
    asked_for.time != exact || asked_for.astray || (asked_for.url != url && kept())
}

/// Documents are shown under their own time and URL, so that what they link to is found from there.
fn to_exact(asked_for: &answer::Request, capture: &Capture, url: &str, exact: &str) -> Response {
    let to = format!("{}{exact}{}/{url}", asked_for.prefix, asked_for.modifier);
    let mut response = redirect(StatusCode::FOUND, &to);
    let prefix = format!("{}{}", asked_for.origin, asked_for.prefix);
    let links = Links { prefix: &prefix, url }.header(capture.time, &Around::default());
    if let Ok(links) = HeaderValue::from_str(&links) {
        response.headers_mut().insert(header::LINK, links);
    }
    response
}

async fn frame(
    view: &View,
    asked_for: &answer::Request,
    capture: &Capture,
    url: &str,
    exact: &str,
) -> Response {
    if is_elsewhere(asked_for, url, exact) {
        return to_exact(asked_for, capture, url, exact);
    }
    pages::frame(view, asked_for, capture, url, exact).await
}

/// `/<collection>/<url>`: leads to the capture for the time that the client names, or to the latest. Whatever the answer, it
/// depends on that time (RFC 7089 §2.1.2).
pub(super) async fn time_gate(view: &View, origin: &str, url: &str, headers: &HeaderMap) -> Response {
    let mut response = chosen(view, origin, url, headers).await;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-datetime"));
    response
}

async fn chosen(view: &View, origin: &str, url: &str, headers: &HeaderMap) -> Response {
    let asked = headers.get("accept-datetime").map(|value| value.to_str().unwrap_or_default());
    let time = match asked.map(memento::parse_http_date) {
        None => Stamp::earliest(LATEST),
        Some(Some(time)) => Some(time),
        Some(None) => {
            let t = &view.tongue();
            let (title, text) = (t.say("bad-time"), t.say("bad-time-form"));
            return pages::problem(t, StatusCode::BAD_REQUEST, &title, &text);
        }
    };
    let wanted = Wanted::get(url, time.unwrap_or(Stamp::MAX));
    let capture = match view.look(move |view| view.find(&wanted)).await {
        None => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Ok(Found::Captures(captures))) => captures.into_iter().next(),
        Some(Ok(Found::Hidden(reason))) => return pages::hidden(view, url, &reason),
        Some(Ok(Found::Nothing)) => None,
        Some(Err(error)) => return pages::broken(view, url, &[grange_base::Chain(&error).to_string()]),
    };
    let Some(capture) = capture else { return pages::missing(view, "", url) };
    let own = &*with_path(capture.url.as_deref().unwrap_or(url));
    // Programs that speak Memento want the capture, people the page with the banner.
    let modifier = if asked.is_some() { Modifier::Main } else { Modifier::Top };
    let prefix = format!("/{}/", view.collection.name);
    let to = format!("{prefix}{}{modifier}/{own}", memento::digits(capture.time));
    let mut response = redirect(StatusCode::FOUND, &to);
    let around = around(view, &capture).await.and_then(Result::ok).unwrap_or_default();
    let prefix = format!("{origin}{prefix}");
    let links = Links { prefix: &prefix, url: own }.header(capture.time, &around);
    if let Ok(links) = HeaderValue::from_str(&links) {
        response.headers_mut().insert(header::LINK, links);
    }
    *response.body_mut() = Body::empty();
    response
}
