//! Requests that slipped out of the archive: `/logo.png` asked for by a replayed page belongs to that page's site.

use axum::http::HeaderMap;

use super::address::Address;
use crate::rewrite::Modifier;

/// Where a request that fits no route should have gone, told by the page that made it.
pub(super) fn target(
    headers: &HeaderMap,
    origin: &str,
    path_and_query: &str,
    is_collection: impl Fn(&str) -> bool,
) -> Option<String> {
    let referer = headers.get("referer")?.to_str().ok()?;
    let path = referer.strip_prefix(origin).filter(|_| !origin.is_empty())?.strip_prefix('/')?;
    let (collection, rest) = path.split_once('/')?;
    if !is_collection(collection) {
        return None;
    }
    let Address::Capture { time, url, .. } = Address::parse(rest)? else { return None };
    let url = url::Url::parse(&url).ok()?.join(path_and_query).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let modifier = modifier(headers);
    Some(format!("/{collection}/{time}{modifier}/{url}"))
}

/// What the browser wants the answer for.
fn modifier(headers: &HeaderMap) -> Modifier {
    match headers.get("sec-fetch-dest").and_then(|dest| dest.to_str().ok()) {
        Some("image") => Modifier::Image,
        Some("script") => Modifier::Script,
        Some("style") => Modifier::Style,
        Some("worker" | "sharedworker") => Modifier::Worker,
        Some("serviceworker") => Modifier::ServiceWorker,
        Some("iframe") => Modifier::Iframe,
        Some("frame") => Modifier::Frame,
        Some("audio" | "video" | "track" | "font" | "object" | "embed") => Modifier::Object,
        Some("document") => Modifier::Top,
        _ => Modifier::Main,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_asks_tells_where_it_belongs() {
        let cases: &[(&str, &str, &str, Option<&str>)] = &[
            (
                "http://h/local/20200102030405mp_/http://e.org/a/b",
                "/logo.png?x",
                "image",
                Some("/local/20200102030405im_/http://e.org/logo.png?x"),
            ),
            (
                "http://h/local/2020/https://e.org/",
                "/x.js",
                "script",
                Some("/local/2020js_/https://e.org/x.js"),
            ),
            ("http://h/other/2020mp_/http://e.org/", "/x", "", None),
            ("http://evil/local/2020mp_/http://e.org/", "/x", "", None),
            ("http://h/local/*/http://e.org/", "/x", "", None),
            ("http://h/", "/x", "", None),
            ("http://h/local/2020mp_/urn:isbn:1", "/x", "", None),
            (
                "http://h/local/2020mp_/http://e.org/",
                "//evil.org/x",
                "",
                Some("/local/2020mp_/http://evil.org/x"),
            ),
        ];
        for (referer, path, dest, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("referer", referer.parse().unwrap());
            if !dest.is_empty() {
                headers.insert("sec-fetch-dest", dest.parse().unwrap());
            }
            let found = target(&headers, "http://h", path, |name| name == "local");
            assert_eq!(found.as_deref(), *expected, "{referer} {path}");
        }
        assert_eq!(target(&HeaderMap::new(), "http://h", "/x", |_| true), None);
    }
}
