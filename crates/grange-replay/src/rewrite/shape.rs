//! What kind of address a text is, as browsers read it.

use std::borrow::Cow;

pub(super) enum Shape {
    /// Nothing to fetch, or nothing an archive has: `#top`, `data:`, `javascript:`, `mailto:`, templates.
    Kept,
    /// `http://…` or `https://…`, with the length of the scheme.
    Absolute {
        scheme: usize,
    },
    SchemeRelative,
    Rooted,
    /// In a form that only resolving makes safe.
    Climbing,
    Relative,
}

pub(super) fn shape(text: &str) -> Shape {
    let bytes = text.as_bytes();
    match bytes {
        [] | [b'#' | b'{', ..] => return Shape::Kept,
        [b'/', b'/', third, ..] if !matches!(third, b'/' | b'\\') => {
            return if climbs(&text[2..]) { Shape::Climbing } else { Shape::SchemeRelative };
        }
        [b'/' | b'\\', b'/' | b'\\', ..] | [b'\\', ..] => return Shape::Climbing,
        [b'/', ..] => return if climbs(text) { Shape::Climbing } else { Shape::Rooted },
        _ => {}
    }
    if let Some(scheme) = scheme_len(bytes) {
        let name = &bytes[..scheme];
        if !name.eq_ignore_ascii_case(b"http") && !name.eq_ignore_ascii_case(b"https") {
            return Shape::Kept;
        }
        return match &bytes[scheme + 1..] {
            [b'/', b'/', third, ..] if !matches!(third, b'/' | b'\\') && !climbs(&text[scheme + 3..]) => {
                Shape::Absolute { scheme }
            }
            // `http:page` and `https:\\host` mean what the URL standard says they mean.
            _ => Shape::Climbing,
        };
    }
    if climbs(text) { Shape::Climbing } else { Shape::Relative }
}

/// Has a path with a segment `..`, in any spelling that browsers understand.
fn climbs(text: &str) -> bool {
    // Two dots or a percent sign or a backslash: nothing climbs without one of them.
    if !text.contains("..") && !text.contains(['%', '\\']) {
        return false;
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    path.contains('\\')
        || path.split('/').any(|segment| {
            segment == ".."
                || (segment.contains('%') && segment.to_ascii_lowercase().replace("%2e", ".") == "..")
        })
}

/// Length of the scheme in front of the first colon, if there is one.
fn scheme_len(bytes: &[u8]) -> Option<usize> {
    if !bytes.first()?.is_ascii_alphabetic() {
        return None;
    }
    let len = bytes
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))?;
    (bytes[len] == b':').then_some(len)
}

/// Without the space around it, and without the tabs and line ends that browsers skip inside.
pub(super) fn as_browsers_read(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte > b' ') {
        return Cow::Borrowed(text);
    }
    let text = text.trim_matches(|letter: char| letter <= ' ');
    if text.bytes().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) {
        Cow::Owned(text.replace(['\t', '\n', '\r'], ""))
    } else {
        Cow::Borrowed(text)
    }
}
