//! What a capture is for the rewriter, decided from how it was asked for, its declared type and its first bytes.

use super::modifier::Modifier;

/// How a body is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Html,
    /// A page that browsers read by the rules of XML: one mistake in it, and all that they show is that.
    Xhtml,
    Css,
    /// A classic script, also that of a worker.
    Js,
    /// An ES module.
    Module,
    /// Also JSONP.
    Json,
    Xml,
    /// M3U and M3U8: addresses of films and sounds, and of their parts.
    Playlist,
    /// Text that is passed on as it is.
    Plain,
    Binary,
}

/// What is known about a capture before its body is read.
#[derive(Clone, Copy, Debug)]
pub struct Clues<'a> {
    pub modifier: Modifier,
    /// The archived `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The capture's URL.
    pub url: &'a str,
    /// The first bytes of the decoded body; 1 KiB is plenty.
    pub first: &'a [u8],
    /// Asked for by a script (`X-Requested-With`, `X-Pywb-Requested-With`, `Sec-Fetch-Dest: empty`): the script gets
    /// what the site sent, and wombat rewrites what it puts into the page.
    pub by_script: bool,
}

impl Kind {
    pub fn of(clues: &Clues<'_>) -> Self {
        let narrow = narrowed(clues.first);
        let clues = &Clues { first: narrow.as_deref().unwrap_or(clues.first), ..*clues };
        let declared = match declared(clues.content_type) {
            Some(Self::Xml) if is_xhtml(clues.first) => Some(Self::Xhtml),
            declared => declared,
        };
        if clues.modifier.is_raw() {
            return untouched(declared);
        }
        let start = significant_start(clues.first);
        match clues.modifier {
            Modifier::Module | Modifier::ModuleWorker
                if !matches!(declared, Some(Self::Css | Self::Json | Self::Binary)) =>
            {
                return Self::Module;
            }
            // A server that calls its scripts `text/html` is common; one whose scripts start with `<` is an error page.
            Modifier::Script | Modifier::Worker | Modifier::ServiceWorker => {
                return match declared {
                    Some(Self::Json) => Self::Json,
                    Some(Self::Js) => Self::Js,
                    _ if start == Some(b'<') => declared.unwrap_or(Self::Html),
                    _ => Self::Js,
                };
            }
            Modifier::Style => {
                return match declared {
                    Some(kind @ (Self::Html | Self::Xhtml)) if start == Some(b'<') => kind,
                    _ => Self::Css,
                };
            }
            Modifier::Image | Modifier::Object => {
                // Flash, fonts and pictures; but an SVG or an HTML object holds links.
                return match declared {
                    Some(kind @ (Self::Html | Self::Xhtml | Self::Xml)) if start == Some(b'<') => kind,
                    // A film may be one of many parts.
                    Some(Self::Playlist) => Self::Playlist,
                    _ => untouched(declared),
                };
            }
            _ => {}
        }
        let kind = match declared {
            None | Some(Self::Plain) => guessed(clues, start, declared),
            Some(Self::Html) if is_json_start(clues, start) => Self::Json,
            Some(kind) => kind,
        };
        let is_for_readers =
            matches!(kind, Self::Html | Self::Xhtml | Self::Js | Self::Css | Self::Xml | Self::Playlist);
        if clues.by_script && is_for_readers {
            return Self::Plain;
        }
        kind
    }

    /// The body is changed on its way to the reader.
    pub const fn is_rewritten(self) -> bool {
        !matches!(self, Self::Plain | Self::Binary)
    }
}

const fn untouched(declared: Option<Kind>) -> Kind {
    match declared {
        None | Some(Kind::Binary) => Kind::Binary,
        Some(_) => Kind::Plain,
    }
}

/// Kind by the declared media type alone.
fn declared(content_type: Option<&str>) -> Option<Kind> {
    let essence = content_type?.split(';').next()?.trim().to_ascii_lowercase();
    Some(match essence.as_str() {
        "" | "unk" | "unknown" | "application/octet-stream" if essence.len() < 8 => return None,
        "text/html" | "text/x-server-parsed-html" => Kind::Html,
        "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => Kind::Xhtml,
        "text/css" => Kind::Css,
        "text/json" | "text/x-json" => Kind::Json,
        "text/xml" | "image/svg+xml" => Kind::Xml,
        "text/plain" => Kind::Plain,
        "application/vnd.apple.mpegurl" | "application/x-mpegurl" | "audio/mpegurl" | "audio/x-mpegurl" => {
            Kind::Playlist
        }
        "application/xml" => Kind::Xml,
        _ if essence.contains("javascript") || essence.contains("ecmascript") => Kind::Js,
        "application/x-js" | "text/js" | "application/js" => Kind::Js,
        _ if essence.ends_with("json") => Kind::Json,
        _ if essence.ends_with("+xml") => Kind::Xml,
        _ if essence.starts_with("text/") => Kind::Plain,
        _ => Kind::Binary,
    })
}

/// For bodies declared as plain text or as nothing.
fn guessed(clues: &Clues<'_>, start: Option<u8>, declared: Option<Kind>) -> Kind {
    if is_json_start(clues, start) {
        return Kind::Json;
    }
    // What browsers do: a body declared as text is shown as text, one without a type is looked at.
    if declared.is_none() && start == Some(b'<') {
        let head = &clues.first[..clues.first.len().min(512)];
        let has = |word: &[u8]| head.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
        if has(b"<!doctype html") || has(b"<html") || has(b"<head") || has(b"<body") || has(b"<script") {
            return Kind::Html;
        }
        if has(b"<?xml") || has(b"<svg") || has(b"<rss") {
            return Kind::Xml;
        }
        return Kind::Html;
    }
    match (declared, extension(clues.url)) {
        (None, Some("css")) => Kind::Css,
        (None, Some("js")) => Kind::Js,
        (None, Some("mjs")) => Kind::Module,
        (None, _) if clues.first.contains(&0) => Kind::Binary,
        _ => Kind::Plain,
    }
}

/// XML whose elements are those of HTML.
fn is_xhtml(first: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(first, word).is_some();
    has(b"<html") && has(b"http://www.w3.org/1999/xhtml")
}

/// `.json` in the path, and a body that begins like JSON.
fn is_json_start(clues: &Clues<'_>, start: Option<u8>) -> bool {
    matches!(start, Some(b'{' | b'[')) && extension(clues.url) == Some("json")
}

/// The first bytes of UTF-16 as far as they are ASCII; `None` for anything else.
fn narrowed(first: &[u8]) -> Option<Vec<u8>> {
    let is_wide = first.starts_with(b"\xFF\xFE") || first.starts_with(b"\xFE\xFF");
    is_wide.then(|| first.iter().copied().filter(|byte| (1..0x80).contains(byte)).collect())
}

/// The first byte that is neither white space nor part of a byte order mark.
fn significant_start(first: &[u8]) -> Option<u8> {
    let first = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(first);
    first.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn extension(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let (_, name) = path.rsplit_once('/')?;
    name.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_request_type_and_first_bytes() {
        use Modifier::{Image, Main, Module, Object, Raw, Script, ServiceWorker, Style, Worker};
        type Case = (Modifier, Option<&'static str>, &'static str, &'static [u8], Kind);
        let cases: &[Case] = &[
            (Main, Some("text/html; charset=utf-8"), "http://a/", b"<p>", Kind::Html),
            (Main, Some("application/xhtml+xml"), "http://a/", b"<?xml", Kind::Xhtml),
            (
                Main,
                Some("text/xml"),
                "http://a/",
                b"<html xmlns='http://www.w3.org/1999/xhtml'>",
                Kind::Xhtml,
            ),
            (Main, Some("text/xml"), "http://a/", b"<html>", Kind::Xml),
            (Object, Some("application/xhtml+xml"), "http://a/", b"<html>", Kind::Xhtml),
            (Style, Some("application/xhtml+xml"), "http://a/", b"<html>", Kind::Xhtml),
            (Main, Some("TEXT/CSS"), "http://a/", b"a{}", Kind::Css),
            (Main, Some("application/x-javascript"), "http://a/", b"x", Kind::Js),
            (Main, Some("application/ld+json"), "http://a/", b"{}", Kind::Json),
            (Main, Some("application/rss+xml"), "http://a/", b"<rss", Kind::Xml),
            (Main, Some("image/png"), "http://a/", b"\x89PNG", Kind::Binary),
            (Main, Some("application/octet-stream"), "http://a/", b"<html>", Kind::Binary),
            (Main, Some("text/plain"), "http://a/", b"<html>", Kind::Plain),
            (Main, Some("text/plain"), "http://a/x.json", b" {\"a\":1}", Kind::Json),
            (Main, Some("text/html"), "http://a/x.json?y", b"[1]", Kind::Json),
            (Main, None, "http://a/", b"\xEF\xBB\xBF <!DOCTYPE html>", Kind::Html),
            (Main, None, "http://a/", b"<?xml version='1.0'?><rss>", Kind::Xml),
            (Main, None, "http://a/", b"\xFF\xFE<\0h\0t\0m\0l\0>\0", Kind::Html),
            (Object, Some("text/html"), "http://a/", b"\xFE\xFF\0<\0p\0>", Kind::Html),
            (Main, None, "http://a/x.css", b"a{}", Kind::Css),
            (Main, None, "http://a/x", b"\x00\x01", Kind::Binary),
            (Main, Some(""), "http://a/x.mjs", b"import", Kind::Module),
            (Script, Some("text/html"), "http://a/x.php", b"var a", Kind::Js),
            (Script, Some("text/html"), "http://a/x.php", b"\n<html>", Kind::Html),
            (Script, Some("application/json"), "http://a/x", b"{}", Kind::Json),
            (Script, None, "http://a/x", b"", Kind::Js),
            (Script, Some("text/javascript"), "http://a/x", b"<!-- old", Kind::Js),
            (Worker, Some("text/plain"), "http://a/x", b"self", Kind::Js),
            (ServiceWorker, Some("text/javascript"), "http://a/x", b"self", Kind::Js),
            (Module, Some("text/javascript"), "http://a/x", b"import", Kind::Module),
            (Module, Some("text/css"), "http://a/x", b"a{}", Kind::Css),
            (Module, Some("application/json"), "http://a/x", b"{}", Kind::Json),
            (Style, Some("text/html"), "http://a/x", b"a{}", Kind::Css),
            (Style, Some("text/html"), "http://a/x", b"<html>", Kind::Html),
            (Image, Some("image/svg+xml"), "http://a/x", b"<svg>", Kind::Xml),
            (Image, Some("image/jpeg"), "http://a/x", b"\xFF\xD8", Kind::Binary),
            (Object, Some("text/html"), "http://a/x", b"<html>", Kind::Html),
            (Main, Some("application/vnd.apple.mpegurl"), "http://a/", b"#EXTM3U", Kind::Playlist),
            (Object, Some("application/x-mpegURL"), "http://a/", b"#EXTM3U", Kind::Playlist),
            (Image, Some("audio/mpegurl"), "http://a/", b"#EXTM3U", Kind::Playlist),
            (Raw, Some("audio/mpegurl"), "http://a/", b"#EXTM3U", Kind::Plain),
            (Raw, Some("text/html"), "http://a/x", b"<html>", Kind::Plain),
            (Raw, None, "http://a/x", b"<html>", Kind::Binary),
        ];
        for &(modifier, content_type, url, first, kind) in cases {
            let clues = Clues { modifier, content_type, url, first, by_script: false };
            assert_eq!(Kind::of(&clues), kind, "{clues:?}");
        }
    }

    #[test]
    fn scripts_get_what_the_site_sent() {
        let clues = |content_type| Clues {
            modifier: Modifier::Main,
            content_type: Some(content_type),
            url: "http://a/",
            first: b"<p>",
            by_script: true,
        };
        assert_eq!(Kind::of(&clues("text/html")), Kind::Plain);
        assert_eq!(Kind::of(&clues("application/xhtml+xml")), Kind::Plain);
        assert_eq!(Kind::of(&clues("text/javascript")), Kind::Plain);
        assert_eq!(Kind::of(&clues("application/x-mpegURL")), Kind::Plain);
        assert_eq!(Kind::of(&clues("application/json")), Kind::Json);
    }
}
