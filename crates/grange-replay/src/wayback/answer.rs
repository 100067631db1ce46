//! A capture as an HTTP answer: its head made safe for the replay origin, its body rewritten or passed on.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use grange_index::Capture;
use warc::HttpHead;

use super::part::{Part, Slice, choose};
use super::rewrite_pool::RewritePool;
use super::rewriting::rewritten;
use crate::capture::{self, About, Accepted, BodyError, Loaded, Undo};
use crate::memento::{self, Around, Links};
use crate::rewrite::{self, Clues, Kind, Modifier, Place};

/// Content that is rewritten is unpacked up to this much: the longest pages are a few megabytes, bombs are gigabytes.
pub(crate) const CONTENT_BYTES_MAX: u64 = 256 << 20;

/// How a capture was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Scheme, host and port of this server as the browser sees it; empty if unknown.
    pub(crate) origin: String,
    /// Path of the collection, with a slash at both ends.
    pub(crate) prefix: String,
    /// The digits that were asked for.
    pub(crate) time: String,
    pub(crate) modifier: Modifier,
    /// The URL that was asked for.
    pub(crate) url: String,
    /// Relative addresses would not lead on from where it was asked for as they do from the URL.
    pub(crate) astray: bool,
    pub(crate) range: Option<String>,
    pub(crate) accepted: Accepted,
    pub(crate) by_script: bool,
    pub(crate) head_only: bool,
    /// Where long bodies are rewritten.
    pub(crate) rewriting: RewritePool,
}

impl Request {
    /// How much of the packing of a body must be undone: all of it where it will be rewritten.
    pub(crate) fn undo(&self) -> impl Fn(&About) -> Undo + Clone + Send + 'static {
        let (modifier, url, by_script, ranged, accepted) =
            (self.modifier, self.url.clone(), self.by_script, self.range.is_some(), self.accepted.clone());
        move |about: &About| {
            let content_type = content_type(about);
            let rewritten = |first: &[u8]| {
                let content_type = content_type.as_deref();
                Kind::of(&Clues { modifier, content_type, url: &url, first, by_script }).is_rewritten()
            };
            let maybe = [&b"<"[..], b"{", b"a"].iter().any(|first| rewritten(first));
            let parts =
                ranged && capture::is_packed(about) && !modifier.is_raw() && about.status() != Some(206);
            if maybe || parts { Undo::Content { bytes_max: CONTENT_BYTES_MAX } } else { accepted.undo(about) }
        }
    }
}

fn content_type(about: &About) -> Option<String> {
    match &about.http {
        Some(head) => head.get("Content-Type").map(|value| String::from_utf8_lossy(value).into_owned()),
        None => about.content_type.clone(),
    }
}

/// Where a redirect leads, resolved against the URL of the capture.
pub(crate) fn location(about: &About, url: &str) -> Option<String> {
    let head = about.http.as_ref()?;
    if !head.status().is_some_and(|status| (300..400).contains(&status) && status != 304) {
        return None;
    }
    let value = String::from_utf8_lossy(head.get("Location")?).into_owned();
    // One that names nothing leads nowhere: browsers show what came with it.
    let value = Some(value.trim()).filter(|value| !value.is_empty())?;
    let joined = url::Url::parse(url).ok()?.join(value).ok()?;
    Some(joined.into())
}

/// The status to answer with, also one that no standard knows. What browsers would wait behind or take as their own cache's is
/// shown as a page.
fn status(about: &About) -> StatusCode {
    let status = about.status().filter(|status| (200..1000).contains(status) && *status != 304);
    status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK)
}

/// The answer for a capture that was read.
pub(crate) async fn answer(
    asked_for: &Request,
    capture: &Capture,
    loaded: Loaded,
    around: Around,
) -> Result<Response, BodyError> {
    let Loaded { about, original, mut body } = loaded;
    let url = &*rewrite::with_path(capture.url.as_deref().unwrap_or(&asked_for.url));
    let time = memento::digits(capture.time);
    let place = Place::new(&asked_for.origin, &asked_for.prefix, &time, asked_for.modifier, url);
    // What describes the body comes from the record that holds it; a revisit may have no head at all.
    let holder = original.as_ref().map_or(&about, |original| &original.about);
    let speaker =
        if about.http.as_ref().is_some_and(|head| head.status() != Some(304)) { &about } else { holder };
    let declared = content_type(speaker).or_else(|| content_type(holder));
    let undo = asked_for.undo()(holder);
    let first = if undo == Undo::Transfer { Bytes::new() } else { body.first().await? };
    let kind = Kind::of(&Clues {
        modifier: asked_for.modifier,
        content_type: declared.as_deref(),
        url,
        first: &first[..first.len().min(1024)],
        by_script: asked_for.by_script,
    });

    let mut headers = rewrite::headers(fields(speaker.http.as_ref()), &place, kind);
    if speaker.http.is_none()
        && let Some(value) = declared.as_deref().and_then(|text| HeaderValue::from_str(text).ok())
    {
        headers.insert(header::CONTENT_TYPE, value);
    }
    let mut status = status(speaker);
    if undo == Undo::Transfer
        && let Some(encoding) = capture::label(holder, &mut body).await?
    {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
    if !kind.is_rewritten() && capture::is_packed(holder) {
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    memento_headers(&mut headers, asked_for, capture, url, around);

    let rewriting = kind.is_rewritten() && undo != Undo::Transfer;
    if rewriting {
        headers.remove(header::ACCEPT_RANGES);
        status = whole_or_part(status, &mut headers);
    }
    let empty = asked_for.head_only || matches!(status.as_u16(), 204 | 205);
    let out = if rewriting {
        let charset = rewrite::charset_of(kind, declared.as_deref(), &first);
        let options = rewrite::Options {
            framed: asked_for.modifier == Modifier::Main,
            request_timestamp: Some(asked_for.time.clone())
                .filter(|asked| !asked.is_empty() && *asked != time),
            callback: callback(&asked_for.url),
            ..rewrite::Options::default()
        };
        let transform = rewrite::transform(kind, &place, charset.as_deref(), &options);
        if empty {
            axum::body::Body::empty()
        } else {
            rewritten(body, transform, &asked_for.rewriting, url).await?
        }
    } else {
        let (part_status, part) = part_of(asked_for, status, &mut headers, body.len());
        status = part_status;
        let length = match part {
            Part::All => body.len(),
            Part::Bytes(from, to) => Some(to - from + 1),
            Part::Outside => Some(0),
        };
        if asked_for.head_only
            && let Some(length) = length
        {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        match part {
            _ if empty => axum::body::Body::empty(),
            Part::Outside => axum::body::Body::empty(),
            Part::Bytes(from, to) => axum::body::Body::new(Slice { body, skip: from, left: to - from + 1 }),
            Part::All => axum::body::Body::new(body),
        }
    };
    let mut response = Response::new(out);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn fields(head: Option<&HttpHead>) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.into_iter().flat_map(HttpHead::iter)
}

/// The function that a JSONP request names.
fn callback(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let value = query.split('&').find_map(|arg| {
        let (name, value) = arg.split_once('=')?;
        matches!(name.to_ascii_lowercase().as_str(), "callback" | "jsonp" | "jsoncallback").then_some(value)
    })?;
    let value = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
    let name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '.' | '[' | ']');
    Some(value.into_owned()).filter(|value| !value.is_empty() && value.chars().all(name))
}

/// What readers may do with a device of theirs while they look at foreign code.
const PERMISSIONS: &str =
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), hid=(), midi=()";

fn memento_headers(
    headers: &mut HeaderMap,
    asked_for: &Request,
    capture: &Capture,
    url: &str,
    around: Around,
) {
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    set("memento-datetime", &memento::http_date(capture.time));
    let prefix = format!("{}{}", asked_for.origin, asked_for.prefix);
    let archived = Links { prefix: &prefix, url }.header(capture.time, &around);
    // An archived `Link` header is about the page; ours goes behind it.
    let time = memento::digits(capture.time);
    let here = format!("{}{time}{}/{url}", asked_for.prefix, asked_for.modifier);
    set("content-location", &rewrite::encoded_address(&here));
    set("permissions-policy", PERMISSIONS);
    set("x-archive-src", &capture.file);
    if let Ok(value) = HeaderValue::from_str(&archived) {
        headers.append(header::LINK, value);
    }
}

/// The status of a body that is sent from end to end: that of a part stays, so that it does not look like the whole.
fn whole_or_part(status: StatusCode, headers: &mut HeaderMap) -> StatusCode {
    let stored = headers.remove(header::CONTENT_RANGE);
    if !matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return status;
    }
    let chosen = choose(None, status, stored.as_ref().and_then(|value| value.to_str().ok()), None);
    if let Some(told) = chosen.content_range.and_then(|told| HeaderValue::from_str(&told).ok()) {
        headers.insert(header::CONTENT_RANGE, told);
    }
    chosen.status
}

/// Which part of a body is sent, and what is said of it.
fn part_of(
    asked_for: &Request,
    status: StatusCode,
    headers: &mut HeaderMap,
    len: Option<u64>,
) -> (StatusCode, Part) {
    // As it was captured is as it was sent, a part that is the whole too.
    let raw = asked_for.modifier.is_raw() && asked_for.range.is_none();
    if raw || !matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return (status, Part::All);
    }
    let stored = headers.remove(header::CONTENT_RANGE);
    let stored = stored.as_ref().and_then(|value| value.to_str().ok());
    let chosen = choose(asked_for.range.as_deref(), status, stored, len);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(told) = chosen.content_range.and_then(|told| HeaderValue::from_str(&told).ok()) {
        headers.insert(header::CONTENT_RANGE, told);
    }
    (chosen.status, chosen.part)
}
