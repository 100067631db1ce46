//! Cutting a URL into its parts the way the archive tools do, which is older and laxer than WHATWG.
//!
//! Index files of twenty years were keyed with these rules, so a key must follow them even where a browser
//! would read the URL differently: a missing scheme means `http://`, tabs and line ends vanish,
//! `http://https://x` is `https://x`, and everything that has no authority is free text behind its scheme.

use std::ops::Range;

/// The parts of one URL, as ranges of the cleaned text or as owned small values.
#[derive(Debug, Default, Clone)]
pub(crate) struct Parts {
    pub(crate) scheme: Range<usize>,
    pub(crate) host: Range<usize>,
    /// What stood behind the host's colon, unchecked; empty when there was none.
    pub(crate) port: Range<usize>,
    /// Without a leading slash when `path_lacks_slash`.
    pub(crate) path: Range<usize>,
    /// The host was taken out of the path (`http:///host/x`), which leaves a path without its first slash.
    pub(crate) path_lacks_slash: bool,
    pub(crate) query: Range<usize>,
}

/// Trims `url`, drops tabs and line ends, and adds the scheme a person left out; the result is in `clean`.
///
/// `scheme_any_case` says whether `HTTP://http://x` counts as a doubled scheme too.
pub(crate) fn clean(url: &[u8], scheme_any_case: bool, clean: &mut Vec<u8>) {
    clean.clear();
    // Line ends go first: they may tear a scheme apart.
    clean.extend(trim(url).iter().copied().filter(|b| !matches!(b, b'\t' | b'\r' | b'\n')));
    if !clean.is_empty() && scheme_len(clean).is_none() {
        clean.splice(..0, *b"http://");
    }
    let mut start = 0;
    let mut last = 0;
    while let Some(len) = http_scheme_len(&clean[start..], scheme_any_case) {
        last = start;
        start += len;
    }
    if last > 0 {
        clean.drain(..last);
    }
}

/// Removes the ASCII white space around `url`, vertical tab and form feed included.
pub(crate) fn trim(url: &[u8]) -> &[u8] {
    let space = |b: &u8| matches!(b, b' ' | 0x09..=0x0d);
    let start = url.iter().position(|b| !space(b)).unwrap_or(url.len());
    let end = url.iter().rposition(|b| !space(b)).map_or(start, |at| at + 1);
    &url[start..end]
}

/// The length of the scheme without its colon, if `url` begins with one.
pub(crate) fn scheme_len(url: &[u8]) -> Option<usize> {
    if !url.first()?.is_ascii_alphabetic() {
        return None;
    }
    let len = url.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))?;
    (url[len] == b':').then_some(len)
}

fn http_scheme_len(url: &[u8], any_case: bool) -> Option<usize> {
    [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| {
        let head = url.get(..scheme.len())?;
        let same = if any_case { head.eq_ignore_ascii_case(scheme) } else { head == scheme };
        same.then_some(scheme.len())
    })
}

/// Cuts cleaned text into parts. Text without a scheme (only the empty text) gives empty parts.
pub(crate) fn split(clean: &[u8], scheme_any_case: bool) -> Parts {
    let Some(scheme_end) = scheme_len(clean) else {
        return Parts::default();
    };
    let mut parts = Parts { scheme: 0..scheme_end, ..Parts::default() };
    let rest = scheme_end + 1;
    let end = memchr::memchr(b'#', &clean[rest..]).map_or(clean.len(), |at| rest + at);
    let (before_query, query) = match memchr::memchr(b'?', &clean[rest..end]) {
        Some(at) => (rest + at, rest + at + 1..end),
        None => (end, end..end),
    };
    parts.query = query;
    let mut path = rest;
    if clean[rest..before_query].starts_with(b"//") {
        let start = rest + 2;
        path = memchr::memchr(b'/', &clean[start..before_query]).map_or(before_query, |at| start + at);
        split_authority(clean, start..path, &mut parts);
    }
    parts.path = path..before_query;
    let scheme = &clean[..scheme_end];
    let is_http = scheme.starts_with(b"http")
        || (scheme_any_case && scheme.len() >= 4 && scheme[..4].eq_ignore_ascii_case(b"http"));
    if is_http && parts.host.is_empty() && !parts.path.is_empty() {
        host_from_path(clean, &mut parts);
    }
    parts
}

/// `http:////example.com/x` names a host all the same.
fn host_from_path(clean: &[u8], parts: &mut Parts) {
    let path = &clean[parts.path.clone()];
    let slashes = path.iter().take_while(|b| **b == b'/').count();
    let start = parts.path.start + slashes;
    let host_end = memchr::memchr(b'/', &path[slashes..]).map_or(parts.path.end, |at| start + at);
    parts.host = start..host_end;
    parts.path = (host_end + 1).min(parts.path.end)..parts.path.end;
    parts.path_lacks_slash = true;
}

fn split_authority(clean: &[u8], mut range: Range<usize>, parts: &mut Parts) {
    while range.end > range.start && clean[range.end - 1] == b':' {
        range.end -= 1;
    }
    if let Some(at) = memchr::memrchr(b'@', &clean[range.clone()]) {
        range.start += at + 1;
    }
    let text = &clean[range.clone()];
    let colon = |from: usize| memchr::memchr(b':', &clean[from..range.end]).map(|at| from + at);
    if let Some(open) = memchr::memchr(b'[', text) {
        let start = range.start + open + 1;
        let close = memchr::memchr(b']', &clean[start..range.end]).map(|at| start + at);
        parts.host = start..close.unwrap_or(range.end);
        if let Some(at) = close.and_then(|close| colon(close + 1)) {
            parts.port = at + 1..range.end;
        }
    } else {
        let at = colon(range.start);
        parts.host = range.start..at.unwrap_or(range.end);
        if let Some(at) = at {
            parts.port = at + 1..range.end;
        }
    }
}
