//! Pages for people: where to begin, when a URL was captured, what is below it, and why something is not shown.
//!
//! They work without scripts and set no cookies.

mod calendar;
mod captures;
mod frame;
mod message;
mod start;
mod urls;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grange_index::Stamp;

pub(crate) use captures::captures;
pub(crate) use frame::frame;
pub(crate) use message::{broken, hidden, missing, no_collection, problem};
pub(crate) use start::{collection, home};

use crate::memento;

/// Nothing but our own style sheet and script, and archived pages in frames.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";

/// Files of these pages, by their names below `/static/`.
pub(crate) fn asset(name: &str) -> Option<(&'static str, &'static [u8])> {
    match name {
        "replay.css" => Some(("text/css; charset=utf-8", include_bytes!("../../assets/replay.css"))),
        "frame.js" => Some(("text/javascript; charset=utf-8", include_bytes!("../../assets/frame.js"))),
        _ => None,
    }
}

fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => {
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
                (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
                (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            ];
            (status, headers, text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// `2 January 2020, 03:04:05 UTC`, or the digits of a time that is none.
fn when(time: Stamp) -> String {
    memento::moment(time)
        .map_or_else(|| time.to_string(), |moment| moment.strftime("%-d %B %Y, %H:%M:%S UTC").to_string())
}

/// `2020-01-02 03:04`
fn short(time: Stamp) -> String {
    memento::moment(time)
        .map_or_else(|| time.to_string(), |moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
}

fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(number)) }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A step from 1 to 5 that grows with the logarithm of a count.
fn size(number: u64) -> u8 {
    match number {
        0 => 0,
        1 => 1,
        2..=4 => 2,
        5..=19 => 3,
        20..=99 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_easily() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(1, "capture", "captures"), "1 capture");
    }
}
