//! Captures as they were sent, for browsers that ask through the proxy. Nothing is rewritten and nothing fetched.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::{Capture, Stamp};

use super::chain::Ask;
use super::session::Choice;
use super::{Proxy, page};
use crate::capture::{self, About, Accepted, BodyError, Loaded, Undo};
use crate::memento;
use crate::rewrite::cookie_of_session;
use crate::wayback::{Found, Part, Slice, View, Wanted, choose, location, may_be_part};

/// Headers that speak of a connection that is over, or bind the browser beyond this visit to the archive.
const DROPPED: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "strict-transport-security",
    "public-key-pins",
    "public-key-pins-report-only",
    "alt-svc",
    "clear-site-data",
    "expect-ct",
    "nel",
    "report-to",
    "reporting-endpoints",
    "accept-ranges",
    "proxy-connection",
    "www-authenticate",
];

/// What the server of then said about keeping its answers. The same URL is another capture once the reader has chosen another
/// time, and a browser that kept the old one would mix the two.
const KEEPING: &[&str] = &["cache-control", "expires", "pragma", "age"];

/// Captures tried before giving up.
const TRIED_MAX: usize = 20;

/// The answer, and whether anything was found.
pub(super) async fn resolve(proxy: &Proxy, ask: &Ask) -> (bool, Response<Body>) {
    // Scripts ask first whether they may ask; nobody records the answers.
    if ask.method == Method::OPTIONS {
        return (true, preflight(&ask.headers));
    }
    let (choice, time) = proxy.sessions.with(&ask.reader, |session| (session.choice.clone(), session.time));
    let accepted = ask.headers.get("accept-datetime").and_then(|value| value.to_str().ok());
    let time = match accepted.map(memento::parse_http_date) {
        Some(None) => {
            return (true, page::message(ask, StatusCode::BAD_REQUEST, "Accept-Datetime cannot be read"));
        }
        Some(Some(time)) => time,
        None => time.or_else(|| Stamp::earliest("99991231235959")).unwrap_or(Stamp::MAX),
    };
    let wanted = if matches!(ask.method, Method::GET | Method::HEAD) {
        Wanted::get(&ask.url, time)
    } else {
        let content_type = ask.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Wanted::with_body(&ask.url, ask.method.as_str(), content_type.unwrap_or_default(), &ask.body, time)
    };
    let mut hidden = None;
    let mut candidates: Vec<(View, Vec<Capture>)> = Vec::new();
    for collection in proxy.collections.all() {
        if matches!(&choice, Choice::Collection(name) if *name != collection.name) {
            continue;
        }
        let mut view = View::new(collection, ask.who.clone());
        if let Choice::Jobs(jobs) = &choice {
            view.jobs.clone_from(jobs);
        }
        let by = wanted.clone();
        match view.look(move |view| view.find(&by)).await {
            Some(Ok(Found::Captures(captures))) => candidates.push((view, captures)),
            Some(Ok(Found::Hidden(reason))) => hidden = Some(reason),
            // Or the server stops.
            Some(Ok(Found::Nothing)) | None => {}
            Some(Err(error)) => {
                tracing::warn!(error = %grange_base::Chain(&error), "an index could not be read");
            }
        }
    }
    let apart = |captures: &[Capture]| {
        captures.first().map_or(u64::MAX, |capture| (capture.time.seconds() - time.seconds()).unsigned_abs())
    };
    candidates.sort_by_key(|(_, captures)| apart(captures));
    let mut failure = None;
    for (view, captures) in candidates {
        let (mut queue, mut tried) = (captures, 0);
        // More are looked for only where none of the first can be shown: those are nearly always enough.
        let mut more = Some(wanted.clone());
        loop {
            for capture in queue {
                tried += 1;
                if tried > TRIED_MAX {
                    break;
                }
                let accepted = Accepted::of(&ask.headers);
                let undo = move |about: &About| accepted.undo(about);
                let shown = match view.load(&capture, undo).await {
                    Ok(loaded) => {
                        if let Some(reason) = view.hides_loaded(&capture, &loaded).await {
                            hidden = Some(reason);
                            continue;
                        }
                        answer(ask, &capture, loaded)
                            .await
                            .map_err(|error| grange_base::Chain(&error).to_string())
                    }
                    Err(error) => Err(grange_base::Chain(&error).to_string()),
                };
                match shown {
                    Ok(Some(response)) => return (true, response),
                    Ok(None) => {}
                    Err(text) => failure = Some(text),
                }
            }
            let Some(by) = more.take() else { break };
            let looked = view.look(move |view| view.find_more(&by)).await;
            queue = looked.and_then(Result::ok).unwrap_or_default();
        }
    }
    if let Some(reason) = hidden {
        return (true, page::message(ask, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, &reason));
    }
    if let Some(failure) = failure {
        return (false, page::message(ask, StatusCode::SERVICE_UNAVAILABLE, &failure));
    }
    (false, page::message(ask, StatusCode::NOT_FOUND, &ask.who.tongue().say("missing")))
}

/// The capture as an answer. `None` if it only leads back to what was asked.
async fn answer(ask: &Ask, capture: &Capture, loaded: Loaded) -> Result<Option<Response<Body>>, BodyError> {
    let Loaded { about, original, mut body } = loaded;
    let url = capture.url.as_deref().unwrap_or(&ask.url);
    let leads_back =
        |to: String| to == ask.url || (to != url && grange_index::key(&to) == grange_index::key(&ask.url));
    if location(&about, url).is_some_and(leads_back) {
        return Ok(None);
    }
    let holder = original.as_ref().map_or(&about, |original| &original.about);
    let speaker =
        if about.http.as_ref().is_some_and(|head| head.status() != Some(304)) { &about } else { holder };
    if speaker.status() == Some(304) {
        return Ok(None);
    }
    let mut headers = HeaderMap::new();
    // Whoever names the time in every request has answers kept apart by it.
    let names_time = ask.headers.contains_key("accept-datetime");
    if !names_time {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    for (name, value) in speaker.http.iter().flat_map(warc::HttpHead::iter) {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            continue;
        };
        if name == header::SET_COOKIE {
            let kept = cookie_of_session(value.as_bytes());
            if let Some(kept) = kept.and_then(|kept| HeaderValue::from_str(&kept).ok()) {
                headers.append(name, kept);
            }
            continue;
        }
        let of_body = name == header::CONTENT_ENCODING;
        let keeps = KEEPING.contains(&name.as_str()) && !names_time;
        if !DROPPED.contains(&name.as_str()) && !of_body && !keeps {
            headers.append(name, value);
        }
    }
    if holder.http.is_some() {
        if Accepted::of(&ask.headers).undo(holder) == Undo::Transfer
            && let Some(encoding) = capture::label(holder, &mut body).await?
        {
            headers.insert(header::CONTENT_ENCODING, encoding);
        }
        if capture::is_packed(holder) {
            headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
    } else {
        let value = holder.content_type.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
        if let Some(value) = value {
            headers.insert(header::CONTENT_TYPE, value);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&memento::http_date(capture.time)) {
        headers.insert(HeaderName::from_static("memento-datetime"), value);
    }
    // Every URL is its own TimeGate here.
    if let Ok(value) = HeaderValue::from_str(&format!("<{url}>; rel=\"original timegate\"")) {
        headers.append(header::LINK, value);
    }
    headers.append(header::VARY, HeaderValue::from_static("accept-datetime"));

    let mut status = StatusCode::from_u16(speaker.status().unwrap_or(200)).unwrap_or(StatusCode::OK);
    if status.is_informational() {
        status = StatusCode::OK;
    }
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = |name: &HeaderName| ask.headers.get(name).and_then(|value| value.to_str().ok());
    let (etag, modified) = (text(&header::ETAG), text(&header::LAST_MODIFIED));
    let range = asked(&header::RANGE).filter(|_| may_be_part(asked(&header::IF_RANGE), etag, modified));
    let mut part = Part::All;
    if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        let chosen = choose(range, status, text(&header::CONTENT_RANGE), body.len());
        (status, part) = (chosen.status, chosen.part);
        headers.remove(header::CONTENT_RANGE);
        if let Some(told) = chosen.content_range.and_then(|told| HeaderValue::from_str(&told).ok()) {
            headers.insert(header::CONTENT_RANGE, told);
        }
    }
    let out = match part {
        Part::All => Body::new(body),
        Part::Bytes(from, to) => Body::new(Slice { body, skip: from, left: to - from + 1 }),
        Part::Outside => Body::empty(),
    };
    let mut response = Response::new(if ask.method == Method::HEAD { Body::empty() } else { out });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(Some(response))
}

fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.insert("access-control-allow-origin", asked.get("origin").unwrap_or(&any).clone());
    for (allow, request) in [
        ("access-control-allow-methods", "access-control-request-method"),
        ("access-control-allow-headers", "access-control-request-headers"),
    ] {
        if let Some(value) = asked.get(request) {
            headers.insert(HeaderName::from_static(allow), value.clone());
        }
    }
    headers.insert("access-control-allow-credentials", HeaderValue::from_static("true"));
    response
}
