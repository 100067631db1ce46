//! What rules know of a capture.

use std::borrow::Cow;
use std::fmt;

use super::own_key::is_own_key;
use crate::capture::Capture;
use crate::stamp::Stamp;
use crate::view::CaptureView;

/// What rules look at.
#[derive(Debug, Clone, Copy)]
pub struct CaptureFacts<'a> {
    pub collection: &'a str,
    pub surt: &'a [u8],
    pub url: CapturedUrl<'a>,
    pub time: Stamp,
    pub media_type: MediaType<'a>,
}

/// The URL of a capture. Its key is nearly always the one that the capture is listed under, but lines that other programs wrote
/// may have keys of another kind, and an index may be older than its file: rules about either hide the capture.
#[derive(Debug, Clone, Copy)]
pub enum CapturedUrl<'a> {
    /// Its key is all that is known.
    Unknown,
    Text(&'a str),
    OfRow(CaptureView<'a>),
}

impl CapturedUrl<'_> {
    /// The key of the URL where `surt` is not that. A body that a key has from its request is no part of the URL: what is
    /// restricted of a page is restricted of the answers to its forms. `documentation`: only if it is of the documentation of a
    /// crawl.
    pub(super) fn key_unlike(&self, surt: &[u8], documentation: bool) -> Option<String> {
        let mut decoded = String::new();
        let url = match self {
            Self::Unknown if documentation => return None,
            Self::Unknown => {
                let surt = std::str::from_utf8(surt).ok()?;
                return crate::key::without_body(surt).map(ToOwned::to_owned);
            }
            Self::Text(url) => url,
            // The URL is the one that its key suggests: that of a page, or the key itself. With rules it counts still, for
            // `com,example,www2)/` and `com,example)/A` suggest URLs that have other keys.
            Self::OfRow(view) if documentation && !view.url_differs() => return None,
            Self::OfRow(view) if is_own_key(surt, view.address_code()) => return None,
            Self::OfRow(view) if view.has_no_url() => return Self::Unknown.key_unlike(surt, documentation),
            Self::OfRow(view) => view.url_into(&mut decoded).then_some(decoded.as_str())?,
        };
        if documentation && !is_crawl_documentation(start_of(url).as_bytes()) {
            return None;
        }
        let mut key = crate::key::line_key(url);
        if let Some(bare) = crate::key::without_body(&key) {
            key.truncate(bare.len());
        }
        let is_like = surt.strip_prefix(key.as_bytes()).is_some_and(|more| match more.first() {
            None => true,
            Some(b'?' | b'&') => !std::str::from_utf8(more).is_ok_and(crate::key::has_body),
            Some(_) => false,
        });
        (!key.is_empty() && !is_like).then_some(key)
    }
}

/// The MIME type of a capture.
#[derive(Clone, Copy)]
pub enum MediaType<'a> {
    /// What the server named, if it named one.
    Of(Option<&'a str>),
    /// Of a revisit: the types of the record itself and of its original. They are looked up only if a rule asks for them.
    /// None at all: nobody knows, and it may be any.
    Revisit(&'a dyn Fn() -> Vec<String>),
    /// Nobody knows: it may be any.
    Unknown,
}

impl fmt::Debug for MediaType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(mime) => f.debug_tuple("Of").field(mime).finish(),
            Self::Revisit(types) => f.debug_tuple("Revisit").field(&types()).finish(),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

/// The type under which indexes list revisits.
const REVISIT: &str = cdx::REVISIT_MIME;

impl<'a> CaptureFacts<'a> {
    /// The facts of a row of an index. `original` gives the types of a revisit.
    pub fn of_view(
        collection: &'a str,
        view: &CaptureView<'a>,
        original: &'a dyn Fn() -> Vec<String>,
    ) -> Self {
        let media_type =
            if view.is_revisit() { MediaType::Revisit(original) } else { MediaType::Of(view.mime()) };
        let url = CapturedUrl::OfRow(*view);
        Self { collection, surt: view.surt_bytes(), url, time: view.time(), media_type }
    }

    /// The facts of a capture. `original` gives the types of a revisit.
    pub fn of_capture(
        collection: &'a str,
        capture: &'a Capture,
        original: &'a dyn Fn() -> Vec<String>,
    ) -> Self {
        let media_type = if capture.is_revisit() {
            MediaType::Revisit(original)
        } else {
            MediaType::Of(capture.mime.as_deref())
        };
        let url = capture.url.as_deref().map_or(CapturedUrl::Unknown, CapturedUrl::Text);
        Self { collection, surt: capture.surt.as_bytes(), url, time: capture.time, media_type }
    }

    /// The key of the URL that the key is about, where it is not itself one of a page: `urn:text:http://e.com/`,
    /// `screenshot:http://e.com/`, `dns:e.com`.
    pub(super) fn embedded_key(&self) -> Option<String> {
        if is_page_key(self.surt) {
            return None;
        }
        embedded_url(&String::from_utf8_lossy(self.surt)).map(|url| urlkey::key(&url))
    }
}

impl MediaType<'_> {
    /// Whether a restriction of a type or a kind of types is about this. What nobody knows may be of any type.
    pub(super) fn may_be(&self, pattern: &str) -> bool {
        match self {
            Self::Of(mime) => matches(pattern, &normal(mime.unwrap_or_default())),
            Self::Revisit(types) => {
                let types = types();
                types.is_empty()
                    || matches(pattern, REVISIT)
                    || types.iter().any(|one| matches(pattern, &normal(one)))
            }
            Self::Unknown => true,
        }
    }

    /// Whether an allow of a type or a kind of types is about this: nothing that it may be is of another type.
    pub(super) fn must_be(&self, pattern: &str) -> bool {
        match self {
            Self::Of(mime) => matches(pattern, &normal(mime.unwrap_or_default())),
            Self::Revisit(types) => {
                let types = types();
                !types.is_empty() && types.iter().all(|one| matches(pattern, &normal(one)))
            }
            Self::Unknown => false,
        }
    }
}

/// A MIME type as rules compare it: lower case, without parameters.
pub(super) fn normal(mime: &str) -> Cow<'_, str> {
    let bare = mime.split(';').next().unwrap_or_default().trim();
    if bare.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(bare.to_ascii_lowercase())
    } else {
        Cow::Borrowed(bare)
    }
}

fn matches(pattern: &str, mime: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(kind) => mime.starts_with(kind),
        None => mime == pattern,
    }
}

/// Whether a key is of the documentation of a crawl: orders, seeds, logs and reports of a job, and headers of ARC files. It
/// names URLs, people and passwords that no rule about pages knows, so it is hidden unless a rule allows it.
pub fn is_crawl_documentation(surt: &[u8]) -> bool {
    surt.starts_with(b"metadata:") || surt.starts_with(b"filedesc:")
}

/// The beginning of a URL as keys have it, long enough to tell documentation.
fn start_of(url: &str) -> String {
    url.chars().take(16).collect::<String>().to_ascii_lowercase()
}

/// Whether a key begins with a host, as those of pages do: `com,example)/`, `com,example:8080)/`.
fn is_page_key(surt: &[u8]) -> bool {
    let Some(end) = memchr::memchr2(b':', b')', surt) else { return false };
    if surt[end] == b')' {
        return true;
    }
    let is_scheme = surt.first().is_some_and(u8::is_ascii_alphabetic)
        && surt[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let digits = surt[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_port = digits > 0 && surt.get(end + 1 + digits) == Some(&b')');
    is_port || !is_scheme
}

/// The URL inside a key such as `urn:text:http://e.com/`; a host without a scheme, as in `dns:e.com`, as its root.
fn embedded_url(key: &str) -> Option<String> {
    let plain;
    let mut key = key;
    let escaped = key.to_ascii_lowercase().find("%3a");
    if escaped.is_some_and(|at| key.find("://").is_none_or(|plain| at < plain)) {
        plain = percent_encoding::percent_decode_str(key).decode_utf8_lossy();
        key = &plain;
    }
    // The first URL in it: one behind that is an argument of it.
    let first = key.match_indices(":/").find(|(colon, _)| {
        let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        let scheme = key[..*colon].rsplit(|letter| !is_scheme(letter)).next().unwrap_or_default();
        key[colon + 1..].starts_with("//")
            || ["http", "https", "ftp"].iter().any(|known| known.eq_ignore_ascii_case(scheme))
    });
    if let Some((colon, _)) = first {
        return Some(format!("http://{}", key[colon + 1..].trim_start_matches('/')));
    }
    let name = key.rsplit_once(':')?.1.trim_start_matches('/');
    let name = name.rsplit_once('@').map_or(name, |(_, host)| host);
    let is_host = name.contains('.')
        && name
            .split(['/', '?'])
            .next()
            .is_some_and(|host| host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c)));
    is_host.then(|| format!("http://{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_is_about_is_found_in_it() {
        for (key, expected) in [
            ("com,example)/", None),
            ("com,example:8080)/x?u=http://other.org/", None),
            ("localhost:8080)/", None),
            ("com,e:x)/?u=http://other.org/", None),
            ("urn:text:http://www.example.com/a", Some("com,example)/a")),
            ("urn:pageinfo:https://example.com/a?b=c", Some("com,example)/a?b=c")),
            ("urn:text:http%3a%2f%2fexample.com%2fa", Some("com,example)/a")),
            ("screenshot:http:/example.com/", Some("com,example)/")),
            (
                "urn:text:https://example.com/a?u=http://other.org/",
                Some("com,example)/a?u=http://other.org/"),
            ),
            (
                "urn:text:http%3a%2f%2fexample.com%2fa?u=http://other.org/",
                Some("com,example)/a?u=http://other.org/"),
            ),
            ("urn:text:ftp:/example.com/a/http://other.org/", Some("com,example)/a/http:/other.org")),
            ("screenshot:gopher://example.com/http://other.org/", Some("com,example)/http:/other.org")),
            ("urn:text:x?u=http://example.com/", Some("com,example)/")),
            (
                "metadata://netarkivet.dk/crawl/order.xml?jobid=7",
                Some("dk,netarkivet)/crawl/order.xml?jobid=7"),
            ),
            ("dns:www.example.com", Some("com,example)/")),
            ("mailto:anna@example.com", Some("com,example)/")),
            ("youtube-dl:00001:https://example.com/v", Some("com,example)/v")),
            ("urn:uuid:0c5b-11", None),
            ("urn:x", None),
            ("-", None),
            ("", None),
        ] {
            let facts = CaptureFacts {
                collection: "news",
                surt: key.as_bytes(),
                url: CapturedUrl::Unknown,
                time: Stamp::MIN,
                media_type: MediaType::Unknown,
            };
            assert_eq!(facts.embedded_key().as_deref(), expected, "{key}");
        }
    }

    #[test]
    fn types_are_compared_without_case_and_parameters() {
        for (pattern, mime, expected) in [
            ("video/*", "Video/MP4", true),
            ("video/*", "video/mp4; codecs=x", true),
            ("text/html", " TEXT/HTML ;charset=utf-8", true),
            ("text/html", "text/htm", false),
            ("video/*", "", false),
        ] {
            let of = MediaType::Of(Some(mime));
            assert_eq!((of.may_be(pattern), of.must_be(pattern)), (expected, expected), "{pattern} {mime}");
        }
        let both = || vec!["text/html".to_owned(), "VIDEO/mp4".to_owned()];
        let revisit = MediaType::Revisit(&both);
        assert!(revisit.may_be("video/*") && revisit.may_be("text/html") && revisit.may_be("warc/revisit"));
        assert!(!revisit.may_be("image/*") && !revisit.must_be("video/*"));
        let nobody_knows = Vec::new;
        let revisit = MediaType::Revisit(&nobody_knows);
        assert!(revisit.may_be("video/*") && !revisit.must_be("video/*"));
        assert!(MediaType::Unknown.may_be("video/*") && !MediaType::Unknown.must_be("video/*"));
    }
}
