//! Strings that may be URLs: which of them are worth a request.
//!
//! Most strings of a script are none, and a server that is asked for them anyway sees nonsense in its log. So
//! the cautious reading wants an absolute URL with a plausible host, or a path that ends like a file of the web.

use memchr::memchr;

/// How sure one has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// Absolute with a host, or a path with a slash and a known extension.
    Cautious,
    /// A file name with a known extension alone will do: where scripts name the next page, as in event handlers.
    Page,
    /// Any path will do.
    Eager,
}

/// Shortest string looked at: `/a.js`.
const SHORTEST: usize = 5;

/// Whether `text` looks like a URL, absolute or relative.
pub(super) fn is_likely(text: &[u8], need: Need) -> bool {
    if text.len() < SHORTEST || text.len() > 2_083 || !text.iter().all(|b| is_url_byte(*b)) {
        return false;
    }
    if let Some(rest) = after_scheme(text) {
        return has_plausible_host(rest) && !is_vocabulary(rest);
    }
    if let Some(rest) = text.strip_prefix(b"//") {
        // Without a scheme `//` is as often a comment or a path gone wrong.
        return has_plausible_host(rest) && memchr(b'/', rest).is_some() && !is_vocabulary(rest);
    }
    is_likely_path(text, need)
}

/// Whether `text` is an absolute URL of ours with a host that could be one.
pub(super) fn is_absolute(text: &[u8]) -> bool {
    after_scheme(text).is_some_and(|rest| has_plausible_host(rest) && !is_vocabulary(rest))
}

fn after_scheme(text: &[u8]) -> Option<&[u8]> {
    let http = text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http://"));
    let https = text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https://"));
    if http {
        Some(&text[7..])
    } else if https {
        Some(&text[8..])
    } else {
        None
    }
}

/// What a URL may hold, and what people leave unescaped in it.
pub(super) const fn is_url_byte(byte: u8) -> bool {
    matches!(byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'?' | b'#' | b'@'
        | b'!' | b'&' | b'(' | b')' | b',' | b';' | b'=' | b'+' | b'%' | b'[' | b']' | 0x80..)
}

/// A name with a dot and a last label of letters, or an address; a port may follow.
fn has_plausible_host(rest: &[u8]) -> bool {
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = &rest[..end];
    let host = host.rsplit(|b| *b == b'@').next().unwrap_or(host);
    let (name, port) = match host.iter().rposition(|b| *b == b':') {
        Some(at) => (&host[..at], &host[at + 1..]),
        None => (host, &b"80"[..]),
    };
    if port.is_empty() || port.len() > 5 || !port.iter().all(u8::is_ascii_digit) {
        return false;
    }
    if name.eq_ignore_ascii_case(b"localhost") {
        return end < rest.len();
    }
    if name.len() < 4 || name.len() > 253 || !name.contains(&b'.') {
        return false;
    }
    let mut last: &[u8] = &[];
    for label in name.split(|b| *b == b'.') {
        let sound = !label.is_empty()
            && label.len() <= 63
            && label.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || *b >= 0x80);
        if !sound {
            return false;
        }
        last = label;
    }
    let numeric = name.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    numeric && name.split(|b| *b == b'.').count() == 4 || last.len() >= 2 && !last[0].is_ascii_digit()
}

/// URLs that are names of vocabularies and not places to go: every page holds some of them.
fn is_vocabulary(rest: &[u8]) -> bool {
    const NAMES: [&[u8]; 14] = [
        b"www.w3.org/1998/",
        b"www.w3.org/1999/",
        b"www.w3.org/2000/",
        b"www.w3.org/2001/",
        b"www.w3.org/XML/",
        b"www.w3.org/TR/",
        b"www.w3.org/ns/",
        b"schema.org",
        b"json-schema.org/",
        b"ogp.me/ns",
        b"purl.org/dc/",
        b"ns.adobe.com/",
        b"xmlns.com/",
        b"schemas.microsoft.com/",
    ];
    NAMES.iter().any(|name| rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

fn is_likely_path(text: &[u8], need: Need) -> bool {
    let end = text.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(text.len());
    let path = &text[..end];
    let rooted = path.starts_with(b"/") || path.starts_with(b"./") || path.starts_with(b"../");
    // A colon makes a scheme, a double slash a comment, and a parenthesis code.
    let odd = path.windows(2).any(|pair| pair == b"//")
        || path.iter().any(|b| matches!(b, b':' | b'(' | b')' | b'[' | b']' | b'!' | b';' | b'#'));
    if path.is_empty() || odd || !path.iter().any(u8::is_ascii_alphanumeric) {
        return false;
    }
    let file = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let known = file
        .iter()
        .rposition(|b| *b == b'.')
        .is_some_and(|dot| dot > 0 && is_web_extension(&file[dot + 1..]));
    match need {
        Need::Cautious => known && path.contains(&b'/'),
        Need::Page => known,
        // A path with nothing but one word is a key of some table more often than a page.
        Need::Eager => known || rooted && path.split(|b| *b == b'/').count() > 2,
    }
}

/// Endings of files that pages are made of.
fn is_web_extension(extension: &[u8]) -> bool {
    const KNOWN: [&str; 58] = [
        "aac", "asp", "aspx", "atom", "avi", "avif", "bmp", "cfm", "cgi", "css", "csv", "doc", "docx", "eot",
        "flv", "gif", "htm", "html", "ico", "jpeg", "jpg", "js", "json", "jsp", "jxl", "m3u8", "m4a", "m4v",
        "mjs", "mov", "mp3", "mp4", "mpd", "oga", "ogg", "ogv", "otf", "pdf", "php", "png", "pptx", "rss",
        "shtml", "svg", "swf", "tif", "tiff", "ts", "ttf", "txt", "wasm", "wav", "webm", "webp", "woff",
        "woff2", "xhtml", "xml",
    ];
    let mut lower = [0; 5];
    let Some(lower) = lower.get_mut(..extension.len()) else { return false };
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    KNOWN.binary_search_by(|known| known.as_bytes().cmp(lower)).is_ok()
}
