//! Requests that are the same but for arguments made up on the spot: cache busters, callbacks, trackers.

use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Snapshot, Stamp};

/// Rows looked at behind a path, as pywb does: a path with more variants than this is a search page.
const ROWS_MAX: usize = 100;

/// Names under which a moment in milliseconds is there only to be another one each time. docs/src/readers/replay.md lists them.
const CACHE_BUSTERS: &[&str] = &[
    "_",
    "__",
    "_dc",
    "_t",
    "_ts",
    "bust",
    "cachebust",
    "cachebuster",
    "cb",
    "nc",
    "no_cache",
    "nocache",
    "now",
    "ord",
    "rand",
    "random",
    "rnd",
    "t",
    "time",
    "timestamp",
    "ts",
    "uncache",
];

/// Those that can also choose what is told: the minute of a film, the day of a timetable, the number of an entry.
const TIMES: &[&str] = &["now", "ord", "t", "time", "timestamp", "ts"];

/// Names that say where a reader came from, not what is shown; those that begin with `utm_` too.
const TRACKERS: &[&str] = &["fbclid", "gclid", "msclkid"];

/// Names under which a script says how it wants to be called back.
const CALLBACKS: &[&str] = &["callback", "jsonp", "jsoncallback"];

/// Endings of files that are parts of pages: the same whatever stands behind the question mark.
const PART_ENDINGS: &[&str] = &[
    "avif", "bmp", "css", "eot", "gif", "ico", "jpeg", "jpg", "js", "m4a", "m4v", "mjs", "mp3", "mp4", "ogg",
    "otf", "png", "svg", "swf", "tif", "tiff", "ttf", "wav", "webm", "webp", "woff", "woff2",
];

/// What a capture is to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Looked at as a page, or something that may be. Its arguments are its identity.
    Document,
    /// JSON: fetched by a script, which may show what stands in it.
    Data,
    /// Fetched by a page or its scripts.
    Part,
}

impl Use {
    fn of(mime: Option<&str>) -> Self {
        let mime = mime.unwrap_or_default().to_ascii_lowercase();
        let is_part = mime.contains("javascript")
            || mime.contains("ecmascript")
            || matches!(
                mime.as_str(),
                "text/css" | "application/x-shockwave-flash" | "application/font-woff"
            )
            || ["image/", "font/", "audio/", "video/"].iter().any(|start| mime.starts_with(start));
        if mime.split(';').next().unwrap_or_default().trim().ends_with("json") {
            Self::Data
        } else if is_part {
            Self::Part
        } else {
            Self::Document
        }
    }
}

/// How well a captured URL answers a request for another with the same path; `None`: not at all. Lower is better. `mime`: of
/// the capture.
///
/// A document is never answered across an argument that may choose it: what differs may only be where the reader came from
/// and cache busters that are moments in milliseconds.
pub(super) fn distance(asked: &str, captured: &str, mime: Option<&str>) -> Option<usize> {
    let (path, asked_query) = split(asked);
    let (_, query) = split(captured);
    let usage = Use::of(mime);
    let (asked_args, args) = (meaningful(asked_query, usage), meaningful(query, usage));
    if asked_args == args {
        return Some(0);
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let is_file = ending.is_some_and(|ending| PART_ENDINGS.contains(&ending.as_str()));
    let differ = asked_args.iter().filter(|arg| !args.contains(arg)).count()
        + args.iter().filter(|arg| !asked_args.contains(arg)).count();
    (is_file && usage != Use::Document).then_some(differ)
}

fn split(url: &str) -> (&str, &str) {
    url.split_once('?').unwrap_or((url, ""))
}

/// The arguments that choose the content, sorted.
fn meaningful(query: &str, usage: Use) -> Vec<&str> {
    let mut args: Vec<&str> = query
        .split('&')
        .filter(|arg| {
            let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
            let name = name.to_ascii_lowercase();
            let is = |names: &[&str]| names.contains(&name.as_str());
            let with_any_value = match usage {
                Use::Document => false,
                Use::Data => !is(TIMES),
                Use::Part => true,
            };
            let is_noise = arg.is_empty()
                || is(TRACKERS)
                || name.starts_with("utm_")
                || is(CACHE_BUSTERS) && (with_any_value || is_moment(value))
                || is(CALLBACKS) && usage != Use::Document;
            !is_noise
        })
        .collect();
    args.sort_unstable();
    args
}

/// Milliseconds since 1970, of this century's first half.
fn is_moment(value: &str) -> bool {
    value.len() == 13
        && value.bytes().all(|byte| byte.is_ascii_digit())
        && value.parse().is_ok_and(|at: u64| (1_000_000_000_000..2_600_000_000_000).contains(&at))
}

/// Captures that answer as well as the one asked for, the likeliest first and among those the closest in time.
pub(crate) fn candidates(
    snapshot: &Snapshot,
    url: &str,
    time: Stamp,
    sees: impl Fn(&grange_index::CaptureView<'_>) -> bool,
) -> Result<Vec<Capture>, grange_index::Error> {
    let (path, _) = split(url);
    let key = grange_index::key(path);
    let mut found: Vec<(usize, u64, Capture)> = Vec::new();
    let mut rows = 0;
    for keys in [Keys::Exact(key.clone()), Keys::Range(format!("{key}?"), Some(format!("{key}@")))] {
        Query::new(keys).run(snapshot, |view| {
            rows += 1;
            let surt = view.surt();
            let query = surt.split_once('?').map_or("", |(_, query)| query);
            let captured = format!("{path}?{query}");
            let asked = grange_index::key(url);
            let asked =
                asked.split_once('?').map_or_else(|| path.to_owned(), |(_, query)| format!("{path}?{query}"));
            if view.status() != Some(304)
                && sees(view)
                && let Some(distance) = distance(&asked, &captured, view.mime())
            {
                let apart = (view.time().seconds() - time.seconds()).unsigned_abs();
                found.push((distance, apart, view.to_capture()));
            }
            Ok(if rows < ROWS_MAX { Next::More } else { Next::Stop })
        })?;
    }
    found.sort_by_key(|(distance, apart, _)| (*distance, *apart));
    Ok(found.into_iter().map(|(_, _, capture)| capture).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_count_and_content_does() {
        let (html, js, png) = (Some("text/html"), Some("application/javascript"), Some("image/png"));
        let json = Some("application/json; charset=utf-8");
        for (asked, captured, mime, expected) in [
            // A document: moments under names of cache busters, and where readers came from.
            ("http://e.org/x?a=1&_=1600000000000", "http://e.org/x?a=1", html, Some(0)),
            ("http://e.org/x?t=1600000000001", "http://e.org/x?t=1600000000002", html, Some(0)),
            ("http://e.org/x?TS=1600000000001", "http://e.org/x", html, Some(0)),
            ("http://e.org/x?utm_source=y&gclid=1", "http://e.org/x", html, Some(0)),
            // Nothing else of it.
            ("http://e.org/book?isbn=9788702000011", "http://e.org/book?isbn=9788702000028", html, None),
            ("http://e.org/status?id=1600000000001", "http://e.org/status?id=1600000000002", html, None),
            ("http://e.org/status?1600000000001", "http://e.org/status?1600000000002", html, None),
            ("http://e.org/status?1600000000001=", "http://e.org/status", html, None),
            ("http://e.org/x?t=15", "http://e.org/x?t=16", html, None),
            ("http://e.org/x?t=9788702000011", "http://e.org/x?t=9788702000028", html, None),
            ("http://e.org/x?_=16000000000000", "http://e.org/x", html, None),
            ("http://e.org/x?a=1", "http://e.org/x?a=2", html, None),
            ("http://e.org/x?callback=/a", "http://e.org/x?callback=/b", html, None),
            ("http://e.org/x.php?a=1", "http://e.org/x.php?a=2", html, None),
            ("http://e.org/x.dll?a=1", "http://e.org/x.dll?a=2", html, None),
            ("http://e.org/x.exe?a=1", "http://e.org/x.exe?a=2", html, None),
            ("http://e.org/x.pdf?a=1", "http://e.org/x.pdf?a=2", Some("application/pdf"), None),
            ("http://e.org/x.zip?a=1", "http://e.org/x.zip?a=2", Some("application/zip"), None),
            // One that calls itself a picture, and one whose type nobody knows.
            ("http://e.org/x.png?a=1", "http://e.org/x.png?a=2", html, None),
            ("http://e.org/x.png?a=1", "http://e.org/x.png?a=2", None, None),
            ("http://e.org/x?a=1&_=15", "http://e.org/x?a=1", Some("warc/revisit"), None),
            // Parts of pages.
            ("http://e.org/x?callback=jq123&a=1", "http://e.org/x?a=1&callback=jq9", js, Some(0)),
            ("http://e.org/x?_=15&a=1", "http://e.org/x?a=1", json, Some(0)),
            ("http://e.org/x?callback=f&a=1", "http://e.org/x?a=1", json, Some(0)),
            // Of data, a time may choose what it tells.
            ("http://e.org/x?t=15", "http://e.org/x?t=16", json, None),
            ("http://e.org/x?time=1200", "http://e.org/x?time=1300", json, None),
            ("http://e.org/x?now=2020-01-01", "http://e.org/x?now=2020-01-02", json, None),
            ("http://e.org/x?ts=1600000000", "http://e.org/x?ts=1600000001", json, None),
            ("http://e.org/x?ord=1", "http://e.org/x", json, None),
            ("http://e.org/x?t=1600000000001", "http://e.org/x?t=1600000000002", json, Some(0)),
            ("http://e.org/x?timestamp=1600000000001", "http://e.org/x", json, Some(0)),
            ("http://e.org/x?t=15", "http://e.org/x?t=16", js, Some(0)),
            ("http://e.org/x?a=1", "http://e.org/x?a=2", js, None),
            ("http://e.org/x.png?a=1", "http://e.org/x.png?a=2", png, Some(2)),
            ("http://e.org/x.png", "http://e.org/x.png?v=2", png, Some(1)),
            ("http://e.org/x.dll?a=1", "http://e.org/x.dll?a=2", png, None),
        ] {
            assert_eq!(distance(asked, captured, mime), expected, "{asked} {captured} {mime:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_document_is_never_another(
            name in "[a-z_]{1,9}", one in "[0-9]{1,20}", other in "[0-9]{1,20}", ending in "([.](html|php|dll|exe|pdf|png))?",
        ) {
            let url = |value: &str| format!("http://e.org/x{ending}?{name}={value}");
            let answers = distance(&url(&one), &url(&other), Some("text/html")).is_some();
            let may = one == other || (CACHE_BUSTERS.contains(&name.as_str()) && is_moment(&one) && is_moment(&other))
                || TRACKERS.contains(&name.as_str()) || name.starts_with("utm_");
            proptest::prop_assert_eq!(answers, may);
        }
    }
}
