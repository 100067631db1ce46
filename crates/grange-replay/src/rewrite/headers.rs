//! The archived HTTP headers as the reader's browser gets them.
//!
//! Only headers that describe the body are passed on. The others speak for a server that is not there any more
//! (caching, policies, cookies' domains) or would speak for ours (`Clear-Site-Data`, `Strict-Transport-Security`):
//! they are kept for people and tools under pywb's names, `X-Archive-Orig-…`, where browsers do not act on them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::cookies;
use super::kind::Kind;
use super::modifier::Modifier;
use super::place::Place;

/// Prefix of archived headers that are shown but not acted on.
pub const ARCHIVED_PREFIX: &str = "x-archive-orig-";

/// Keeps a page within the archive: nothing is loaded, sent or framed but from the replay server itself. Inline
/// scripts and `eval` are what archived pages are made of. Sent with every answer, because workers follow the
/// policy of their own script's answer.
pub const POLICY: &str = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; \
    form-action 'self'; base-uri 'self'; frame-ancestors 'self'";

/// Chromium gives up on answers with more than 256 KiB of headers; an archive adds some of its own.
const ARCHIVED_BYTES_MAX: usize = 64 * 1024;

enum Rule {
    Keep,
    /// The value is one address.
    Address,
    Link,
    Refresh,
    Cookie,
    Archived,
}

fn rule(name: &HeaderName) -> Rule {
    match *name {
        header::CONTENT_TYPE
        | header::CONTENT_DISPOSITION
        | header::CONTENT_LANGUAGE
        | header::CONTENT_RANGE
        | header::ACCEPT_RANGES => Rule::Keep,
        header::LOCATION | header::CONTENT_LOCATION => Rule::Address,
        header::LINK => Rule::Link,
        header::REFRESH => Rule::Refresh,
        header::SET_COOKIE => Rule::Cookie,
        // Everything else, also what is yet to be invented.
        _ => Rule::Archived,
    }
}

/// The headers of an answer, from those archived. `Content-Length`, `Content-Encoding` and `Transfer-Encoding` are
/// always among the archived ones: the caller knows how long its body is and how it is coded.
///
/// A name or value that HTTP does not allow is left out, so that nothing archived can add a header of its own.
pub fn headers<'a>(
    archived: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    place: &Place,
    kind: Kind,
) -> HeaderMap {
    let mut out = HeaderMap::new();
    let mut archived_bytes = 0;
    let mut cookies_set = 0;
    for (name, value) in archived {
        let Ok(name) = HeaderName::from_bytes(name) else { continue };
        match rule(&name) {
            Rule::Keep => {
                if let Ok(value) = HeaderValue::from_bytes(value) {
                    // A second `Content-Type` would be a way to disagree about the first.
                    out.entry(name).or_insert(value);
                }
            }
            Rule::Address => {
                let address = as_address(value);
                // Browsers do not agree about where an address of nothing leads: some nowhere, some here again.
                if address.is_empty() {
                    continue;
                }
                insert_text(&mut out, name, &encoded_address(&place.link(&address, place.modifier())));
            }
            Rule::Link => append_text(&mut out, name, &link_header(&as_address(value), place)),
            Rule::Refresh => {
                let refresh = as_address(value);
                let refresh = refresh_value(&refresh, place).unwrap_or(refresh);
                insert_text(&mut out, name, &refresh);
            }
            Rule::Cookie => {
                if let Some(cookie) = cookies::scoped(value, place)
                    && cookies_set < cookies::PER_ANSWER_MAX
                {
                    cookies_set += 1;
                    append_text(&mut out, name.clone(), &cookie);
                }
                keep_archived(&mut out, &name, value, &mut archived_bytes);
            }
            Rule::Archived => keep_archived(&mut out, &name, value, &mut archived_bytes),
        }
    }
    if place.modifier() == Modifier::ServiceWorker && kind == Kind::Js {
        service_worker_scope(&mut out, place);
    }
    out.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    out
}

fn keep_archived(out: &mut HeaderMap, name: &HeaderName, value: &[u8], bytes: &mut usize) {
    let size = ARCHIVED_PREFIX.len() + name.as_str().len() + value.len() + 4;
    if *bytes + size > ARCHIVED_BYTES_MAX {
        return;
    }
    let renamed = HeaderName::from_bytes(format!("{ARCHIVED_PREFIX}{name}").as_bytes());
    if let (Ok(renamed), Ok(value)) = (renamed, HeaderValue::from_bytes(value)) {
        *bytes += size;
        out.append(renamed, value);
    }
}

/// A service worker may serve its own site at this time, and no other part of the replay server.
fn service_worker_scope(out: &mut HeaderMap, place: &Place) {
    let Some(origin) = place.base().map(|base| base.origin().ascii_serialization()) else { return };
    let scope = place.path(&format!("{origin}/"), Modifier::Main);
    insert_text(out, HeaderName::from_static("service-worker-allowed"), &scope);
}

/// `<url>; rel=…, <url>; …` with every address rewritten.
fn link_header(value: &str, place: &Place) -> String {
    let mut out = String::with_capacity(value.len() + 64);
    let mut rest = value;
    while let Some(open) = rest.find('<') {
        let Some(close) = rest[open..].find('>').map(|at| at + open) else { break };
        // Up to the next address at most, or many of them without a comma would each take a look at all the rest.
        let end = rest[close..].find([',', '<']).map_or(rest.len(), |at| at + close);
        let parameters = &rest[close..end];
        out.push_str(&rest[..=open]);
        let modifier = if parameters.contains("stylesheet") || parameters.contains("as=style") {
            Modifier::Style
        } else if parameters.contains("modulepreload") {
            Modifier::Module
        } else if parameters.contains("as=script") {
            Modifier::Script
        } else if parameters.contains("preload") {
            Modifier::Object
        } else {
            Modifier::Main
        };
        out.push_str(&encoded_address(&place.link(&rest[open + 1..close], modifier)));
        rest = &rest[close..];
    }
    out.push_str(rest);
    out
}

/// `5; url=…`, of the header as of `<meta http-equiv="refresh">`; `None` when there is nothing to change.
pub(super) fn refresh_value(value: &str, place: &Place) -> Option<String> {
    let url = refresh_target(value)?;
    let changed = place.changed(&value[url.clone()], place.modifier())?;
    Some(format!("{}{changed}{}", &value[..url.start], &value[url.end..]))
}

/// Where the address stands in a refresh, by the steps of the HTML standard: behind the time come white space, `;` or `,`, and
/// `url=` may be left out. A time that is missing is taken for none.
fn refresh_target(value: &str) -> Option<Range<usize>> {
    let space = |letter: char| letter.is_ascii_whitespace();
    let rest = value.trim_start_matches(space);
    let behind_time = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let separated = behind_time.trim_start_matches(space);
    let separated = separated.strip_prefix([';', ',']).unwrap_or(separated).trim_start_matches(space);
    if separated.len() == behind_time.len() {
        return None;
    }
    let named = separated.get(..3).filter(|word| word.eq_ignore_ascii_case("url")).and_then(|_| {
        let sign = separated[3..].trim_start_matches(space).strip_prefix('=')?;
        Some(sign.trim_start_matches(space))
    });
    let target = named.unwrap_or(separated);
    let start = value.len() - target.len();
    let (start, len) = match target.chars().next()? {
        quote @ ('"' | '\'') => (start + 1, target[1..].find(quote).unwrap_or(target.len() - 1)),
        _ => (start, target.trim_end().len()),
    };
    Some(start..start + len)
}

/// An address as a header holds it: what URIs may not hold is percent-encoded, so that no part of it ends a `<…>` or a quoted
/// value, and parameters behind it are read as what they are. An apostrophe may stand in a URI; browsers would ask for it as it
/// is, and be led here again.
pub(crate) fn encoded_address(address: &str) -> Cow<'_, str> {
    let is_odd = |byte: u8| !(0x21..0x7f).contains(&byte) || b"<>\"".contains(&byte);
    if !address.bytes().any(is_odd) {
        return Cow::Borrowed(address);
    }
    let mut out = String::with_capacity(address.len() + 16);
    for byte in address.bytes() {
        if is_odd(byte) {
            // A String never fails to be written to.
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
    Cow::Owned(out)
}

/// Bytes of an address as ASCII: what is not is percent-encoded, as browsers do.
fn as_address(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    for &byte in value.trim_ascii() {
        if byte == b'\t' || (0x20..0x7f).contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn insert_text(out: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        out.insert(name, value);
    }
}

fn append_text(out: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        out.append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(modifier: Modifier) -> Place {
        Place::new("http://r.example:8081", "/c/", "20200102030405", modifier, "https://example.org/a/b")
    }

    fn sent(archived: &[(&str, &str)]) -> Vec<(String, String)> {
        let archived = archived.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut out: Vec<(String, String)> = headers(archived, &place(Modifier::Main), Kind::Html)
            .iter()
            .filter(|(name, _)| *name != header::CONTENT_SECURITY_POLICY)
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        out.sort();
        out
    }

    #[test]
    fn each_header_has_its_rule() {
        let cases: &[(&str, &str, &str, &str)] = &[
            ("Content-Type", "text/html", "content-type", "text/html"),
            ("Content-Language", "da", "content-language", "da"),
            ("Location", "/x", "location", "/c/20200102030405mp_/https://example.org/x"),
            ("Location", "http://o.org/\u{e9}", "location", "/c/20200102030405mp_/http://o.org/%C3%A9"),
            (
                "Location",
                "http://o.org/a b\"'<x>",
                "location",
                "/c/20200102030405mp_/http://o.org/a%20b%22'%3Cx%3E",
            ),
            (
                "Link",
                "<http://o.org/a \"b'>; rel=\"next\"",
                "link",
                "</c/20200102030405mp_/http://o.org/a%20%22b'>; rel=\"next\"",
            ),
            ("Location", "javascript:alert(1)", "location", "javascript:alert(1)"),
            ("Location", "http://o.org", "location", "/c/20200102030405mp_/http://o.org/"),
            ("Refresh", "0 /x", "refresh", "0 /c/20200102030405mp_/https://example.org/x"),
            ("Content-Location", "//o.org/", "content-location", "/c/20200102030405mp_/https://o.org/"),
            (
                "Link",
                "<http://o.org/a>; rel=preload; as=style, </m.js>; rel=modulepreload",
                "link",
                "</c/20200102030405cs_/http://o.org/a>; rel=preload; as=style, \
                 </c/20200102030405esm_/https://example.org/m.js>; rel=modulepreload",
            ),
            ("Link", "<broken", "link", "<broken"),
            ("Refresh", "5; url=/x", "refresh", "5; url=/c/20200102030405mp_/https://example.org/x"),
            ("Refresh", "5;URL='http://o.org/'", "refresh", "5;URL='/c/20200102030405mp_/http://o.org/'"),
            ("Refresh", "5", "refresh", "5"),
            ("Content-Length", "5", "x-archive-orig-content-length", "5"),
            ("Content-Encoding", "gzip", "x-archive-orig-content-encoding", "gzip"),
            ("Transfer-Encoding", "chunked", "x-archive-orig-transfer-encoding", "chunked"),
            ("Connection", "keep-alive", "x-archive-orig-connection", "keep-alive"),
            ("Keep-Alive", "5", "x-archive-orig-keep-alive", "5"),
            (
                "Content-Security-Policy",
                "default-src *",
                "x-archive-orig-content-security-policy",
                "default-src *",
            ),
            (
                "Strict-Transport-Security",
                "max-age=1",
                "x-archive-orig-strict-transport-security",
                "max-age=1",
            ),
            ("Clear-Site-Data", "\"*\"", "x-archive-orig-clear-site-data", "\"*\""),
            (
                "Cross-Origin-Opener-Policy",
                "same-origin",
                "x-archive-orig-cross-origin-opener-policy",
                "same-origin",
            ),
            (
                "Cross-Origin-Embedder-Policy",
                "require-corp",
                "x-archive-orig-cross-origin-embedder-policy",
                "require-corp",
            ),
            ("Service-Worker-Allowed", "/", "x-archive-orig-service-worker-allowed", "/"),
            ("X-Frame-Options", "DENY", "x-archive-orig-x-frame-options", "DENY"),
            ("WWW-Authenticate", "Basic", "x-archive-orig-www-authenticate", "Basic"),
            ("Access-Control-Allow-Origin", "*", "x-archive-orig-access-control-allow-origin", "*"),
            ("X-Powered-By", "PHP", "x-archive-orig-x-powered-by", "PHP"),
        ];
        for (name, value, new_name, new_value) in cases {
            assert_eq!(
                sent(&[(name, value)]),
                [((*new_name).to_owned(), (*new_value).to_owned())],
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn an_archived_header_cannot_add_another() {
        assert_eq!(sent(&[("X-A", "b\r\nSet-Cookie: s=1")]), []);
        assert_eq!(sent(&[("X-A\r\nSet-Cookie", "s=1")]), []);
        assert_eq!(sent(&[("Content-Type", "text/html\0")]), []);
        assert_eq!(
            sent(&[("Location", "/x\r\nSet-Cookie: s=1")]),
            [(
                "location".to_owned(),
                "/c/20200102030405mp_/https://example.org/x%0D%0ASet-Cookie:%20s=1".to_owned()
            )]
        );
        assert_eq!(
            sent(&[("Content-Type", "text/html"), ("Content-Type", "text/plain")]),
            [("content-type".to_owned(), "text/html".to_owned())]
        );
    }

    #[test]
    fn every_answer_confines_the_page_to_the_archive() {
        let headers = headers([], &place(Modifier::Image), Kind::Binary);
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], POLICY);
    }

    #[test]
    fn a_service_worker_gets_its_own_site_only() {
        let archived = [(b"Service-Worker-Allowed".as_slice(), b"/".as_slice())];
        let headers = headers(archived, &place(Modifier::ServiceWorker), Kind::Js);
        assert_eq!(headers["service-worker-allowed"], "/c/20200102030405mp_/https://example.org/");
    }

    #[test]
    fn a_refresh_is_read_by_the_steps_of_browsers() {
        for (value, target) in [
            ("5; url=/x", Some("/x")),
            ("5;URL = '/x' rest", Some("/x")),
            ("5, /x", Some("/x")),
            ("5 /x", Some("/x")),
            ("0 url=/x", Some("/x")),
            ("0\turl=/x ", Some("/x")),
            ("0 ; /x", Some("/x")),
            (".5;url=\"/x", Some("/x")),
            ("; url=/x", Some("/x")),
            ("0; urlpath", Some("urlpath")),
            ("0; url /x", Some("url /x")),
            ("0; url='é'", Some("é")),
            ("5", None),
            ("5;", None),
            ("5 ", None),
            ("5x /x", None),
            ("url=/x", None),
            ("", None),
        ] {
            assert_eq!(refresh_target(value).map(|at| &value[at]), target, "{value:?}");
        }
    }

    #[test]
    fn a_flood_of_headers_is_cut() {
        let value = [b'x'; 1000];
        let archived = std::iter::repeat_n((b"X-Flood".as_slice(), value.as_slice()), 1000);
        let headers = headers(archived, &place(Modifier::Main), Kind::Html);
        let bytes: usize = headers.values().map(HeaderValue::len).sum();
        assert!(bytes < ARCHIVED_BYTES_MAX + 1000, "{bytes}");
    }

    proptest! {
        #[test]
        fn any_bytes_make_headers(archived in proptest::collection::vec(
            ("(?i)link|refresh|location|set-cookie|x-[a-z]{1,5}", proptest::collection::vec(any::<u8>(), 0..60)), 0..6)) {
            let pairs = archived.iter().map(|(name, value)| (name.as_bytes(), value.as_slice()));
            let out = headers(pairs, &place(Modifier::Main), Kind::Html);
            prop_assert!(out.values().all(|value| !value.as_bytes().contains(&b'\n')));
        }
    }
}
