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
use grange_i18n::Tongue;
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
                (header::VARY, HeaderValue::from_static("accept-language")),
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
fn when(t: &Tongue, time: Stamp) -> String {
    let Some(moment) = memento::moment(time) else { return time.to_string() };
    let (day, year) = (moment.day().to_string(), moment.year().to_string());
    let (month, clock) = (t.month(moment.month() as u8), moment.strftime("%H:%M:%S").to_string());
    let args = [("day", &day), ("month", &month), ("year", &year), ("time", &clock)];
    t.say_with("moment", &args.map(|(name, text)| (name, text.into())))
}

/// `2020-01-02 03:04`
fn short(time: Stamp) -> String {
    memento::moment(time)
        .map_or_else(|| time.to_string(), |moment| moment.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `3 captures`
fn captures_of(t: &Tongue, count: u64) -> String {
    t.say_with("captures", &[("count", count.into())])
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
    use grange_i18n::Texts;

    use super::*;

    #[test]
    fn moments_are_said_as_readers_say_them() {
        let time = Stamp::parse("20200502030405").unwrap();
        for (lang, said) in [
            ("en", "2 May 2020, 03:04:05 UTC"),
            ("da", "2. maj 2020 kl. 03:04:05 UTC"),
            ("de", "2. Mai 2020, 03:04:05 UTC"),
            ("fr", "2 mai 2020 à 03:04:05 UTC"),
            ("it", "2 maggio 2020, 03:04:05 UTC"),
        ] {
            assert_eq!(when(&Texts::built_in().tongue(Some(lang)), time), said);
        }
    }
}
