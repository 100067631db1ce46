//! Requests that are the same but for arguments made up on the spot: cache busters, callbacks, trackers.

use grange_index::query::{Keys, Next, Query};
use grange_index::{Capture, Snapshot, Stamp};

/// Rows looked at behind a path, as pywb does: a path with more variants than this is a search page.
const ROWS_MAX: usize = 100;

/// Arguments that never choose the content.
const NOISE: &[&str] =
    &["_", "cb", "uncache", "fbclid", "gclid", "callback", "jsonp", "cachebuster", "rnd", "nocache"];

/// Endings of pages that are made from their arguments.
const DYNAMIC: &[&str] = &["asp", "aspx", "php", "jsp", "cgi", "cfm", "pl", "do", "html", "htm"];

/// How well a captured URL answers a request for another with the same path; `None`: not at all. Lower is better.
pub(super) fn distance(asked: &str, captured: &str) -> Option<usize> {
    let (path, asked_query) = split(asked);
    let (_, query) = split(captured);
    let (asked_args, args) = (meaningful(asked_query), meaningful(query));
    if asked_args == args {
        return Some(0);
    }
    // A picture or a font is the same whatever stands behind the question mark.
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let file = ending.is_some_and(|ending| {
        (1..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !DYNAMIC.contains(&ending.as_str())
    });
    let differ = asked_args.iter().filter(|arg| !args.contains(arg)).count()
        + args.iter().filter(|arg| !asked_args.contains(arg)).count();
    file.then_some(differ)
}

fn split(url: &str) -> (&str, &str) {
    url.split_once('?').unwrap_or((url, ""))
}

/// The arguments that choose the content, sorted.
fn meaningful(query: &str) -> Vec<&str> {
    let mut args: Vec<&str> = query
        .split('&')
        .filter(|arg| {
            let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
            let digits = |text: &str| text.len() >= 13 && text.bytes().all(|byte| byte.is_ascii_digit());
            let name = name.to_ascii_lowercase();
            !(arg.is_empty()
                || NOISE.contains(&name.as_str())
                || name.starts_with("utm_")
                || digits(value)
                || digits(&name))
        })
        .collect();
    args.sort_unstable();
    args
}

/// Captures that answer as well as the one asked for, the likeliest first and among those the closest in time.
pub(crate) fn candidates(
    snapshot: &Snapshot,
    url: &str,
    time: Stamp,
    sees: impl Fn(&grange_index::CaptureView<'_>) -> bool,
) -> Result<Vec<Capture>, grange_index::Error> {
    let (path, _) = split(url);
    let key = urlkey::key(path);
    let mut found: Vec<(usize, u64, Capture)> = Vec::new();
    let mut rows = 0;
    for keys in [Keys::Exact(key.clone()), Keys::Range(format!("{key}?"), Some(format!("{key}@")))] {
        Query::new(keys).run(snapshot, |view| {
            rows += 1;
            let surt = view.surt();
            let query = surt.split_once('?').map_or("", |(_, query)| query);
            let captured = format!("{path}?{query}");
            let asked = urlkey::key(url);
            let asked =
                asked.split_once('?').map_or_else(|| path.to_owned(), |(_, query)| format!("{path}?{query}"));
            if view.status() != Some(304)
                && sees(view)
                && let Some(distance) = distance(&asked, &captured)
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
        for (asked, captured, expected) in [
            ("http://e.org/x?a=1&_=1600000000000", "http://e.org/x?a=1", Some(0)),
            ("http://e.org/x?utm_source=y", "http://e.org/x", Some(0)),
            ("http://e.org/x?callback=jq123&a=1", "http://e.org/x?a=1&callback=jq9", Some(0)),
            ("http://e.org/x?a=1", "http://e.org/x?a=2", None),
            ("http://e.org/x.php?a=1", "http://e.org/x.php?a=2", None),
            ("http://e.org/x.png?a=1", "http://e.org/x.png?a=2", Some(2)),
            ("http://e.org/x.png", "http://e.org/x.png?v=2", Some(1)),
            ("http://e.org/x?t=1600000000001", "http://e.org/x?t=1600000000002", Some(0)),
        ] {
            assert_eq!(distance(asked, captured), expected, "{asked} {captured}");
        }
    }
}
