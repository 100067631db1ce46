//! Paths: dot segments resolved, doubled slashes joined, session ids and the last slash dropped.

use crate::escape::{escape_lower, unescape_repeatedly};
use crate::session;
use std::ops::Range;

/// What happens to a `..` that would climb above the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AboveRoot {
    /// It is dropped, as browsers and RFC 3986 do.
    Drop,
    /// The first stays as a segment (and the next one removes it): PyPI surt.
    Keep,
}

/// Buffers for one path.
#[derive(Debug, Default)]
pub(crate) struct PathScratch {
    decoded: Vec<u8>,
    normal: Vec<u8>,
    segments: Vec<Range<usize>>,
}

/// Appends the canonical form of `path` to `out`.
///
/// `has_host` says whether slashes divide directories; without a host the path is free text.
pub(crate) fn write_path(
    path: &[u8],
    lacks_slash: bool,
    has_host: bool,
    above: AboveRoot,
    scratch: &mut PathScratch,
    out: &mut Vec<u8>,
) {
    let PathScratch { decoded, normal, segments } = scratch;
    decoded.clear();
    if lacks_slash {
        decoded.push(b'/');
    }
    decoded.extend_from_slice(path);
    unescape_repeatedly(decoded);
    let start = out.len();
    if has_host {
        normal.clear();
        normalize(decoded, above, segments, normal);
        escape_lower(normal, out);
    } else {
        escape_lower(decoded, out);
    }
    session::strip_path(out, start);
    if out.len() > start + 1 && out.last() == Some(&b'/') {
        out.pop();
    }
}

fn normalize(path: &[u8], above: AboveRoot, segments: &mut Vec<Range<usize>>, out: &mut Vec<u8>) {
    segments.clear();
    let mut start = usize::from(path.first() == Some(&b'/'));
    while start <= path.len() && !path.is_empty() {
        let end = memchr::memchr(b'/', &path[start..]).map_or(path.len(), |at| start + at);
        match &path[start..end] {
            b"." => {}
            b".." => {
                if segments.pop().is_none() && above == AboveRoot::Keep {
                    segments.push(start..end);
                }
            }
            _ => segments.push(start..end),
        }
        start = end + 1;
    }
    out.push(b'/');
    if let Some((last, dirs)) = segments.split_last() {
        for dir in dirs.iter().filter(|dir| !dir.is_empty()) {
            out.extend_from_slice(&path[dir.clone()]);
            out.push(b'/');
        }
        out.extend_from_slice(&path[last.clone()]);
    }
}
