//! Everything that strangers may write and we parse, in one call for the fuzzer: no bytes may panic, and whatever is
//! taken keeps to what the rest relies on.

use crate::collection::Collection;
use crate::digest::Declared;
use crate::http::{answer, range, request};
use crate::name::{LocalPath, Namespace, decode, encode};
use crate::properties;

/// Reads the bytes as a request and as each thing in it.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) {
    if let Ok(Some((request, length))) = request::read(bytes) {
        assert!(length <= bytes.len(), "a head is longer than what it was read from");
        path(request.path.trim_start_matches("/get/"));
        let _ = (request.hops(), request.parameter("swap-ticket"));
        assert!(!request.own_query().split('&').any(|pair| pair.starts_with("swap-")));
        request.range.as_deref().map(ranges);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    path(text);
    ranges(text);
    if let Some(seconds) = answer::read_http_date(text).filter(|seconds| *seconds >= 0) {
        assert_eq!(answer::read_http_date(&answer::http_date(seconds)), Some(seconds));
    }
    for name in ["Content-MD5", "Repr-Digest", "Digest"] {
        let _ = Declared::default().header(name, text);
    }
    let _ = properties::read(text);
    let _ = Collection::from_text(text);
}

fn path(raw: &str) {
    let Ok(path) = decode(raw) else { return };
    if let Ok(path) = LocalPath::new(path.as_str()) {
        assert!(path.as_str().split('/').all(|name| !["", ".", ".."].contains(&name)));
        assert!(!path.as_str().bytes().any(|byte| byte.is_ascii_control()));
        assert_eq!(decode(&encode(path.as_str())).as_deref(), Ok(path.as_str()));
    }
    if let Ok(namespace) = Namespace::new(path) {
        assert!(!namespace.as_str().starts_with(".swap"));
    }
}

fn ranges(header: &str) {
    for size in [0, 1, 1000] {
        if let range::Wanted::Parts(parts) = range::wanted(header, size) {
            assert!(parts.iter().all(|span| span.start < span.end && span.end <= size));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_anything;

    proptest! {
        #[test]
        fn no_request_breaks_anything(
            path in "[a-c%/.0-9A-F]{0,30}",
            query in "(swap-hop=[0-9]{0,3}&?|x=1&?|swap-epoch=-?[0-9]{0,25}&?){0,4}",
            range in "bytes=[0-9,-]{0,20}",
            cut in 0_usize..200,
        ) {
            let text = format!("GET /get/{path}?{query} HTTP/1.1\r\nRange: {range}\r\n\r\n");
            read_anything(text.as_bytes());
            read_anything(&text.as_bytes()[..cut.min(text.len())]);
            read_anything(path.as_bytes());
        }

        #[test]
        fn no_bytes_break_anything(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_anything(&bytes);
        }
    }
}
