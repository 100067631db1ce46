//! Which host a URI of the log counts for.

use std::borrow::Cow;

/// How much of a host is kept, in bytes; DNS allows 253.
const HOST_BYTES_MAX: usize = 255;

/// The host in lower case without its port; `dns:` and `whois:` are hosts of their own, as in Heritrix.
/// A URI without a host counts for its scheme.
pub(crate) fn host_of(uri: &str) -> Cow<'_, str> {
    let host = match uri.split_once("://") {
        Some((_, rest)) => {
            let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())];
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            match host.strip_prefix('[') {
                // An IPv6 address keeps its brackets.
                Some(inner) => inner.find(']').map_or(host, |end| &host[..end + 2]),
                None => host.split_once(':').map_or(host, |(name, _)| name),
            }
        }
        None => uri.find(':').map_or("", |at| &uri[..=at]),
    };
    let host = &host[..host.floor_char_boundary(HOST_BYTES_MAX)];
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

/// Names that are no hosts but are counted beside them.
pub(crate) fn is_pseudo(host: &str) -> bool {
    host.ends_with(':') || host.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uri_counts_for_one_host() {
        for (uri, host) in [
            ("http://Example.COM/a", "example.com"),
            ("https://example.com:8443", "example.com"),
            ("http://user:pw@example.com:80?x@y", "example.com"),
            ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
            ("http://[broken", "[broken"),
            ("dns:example.com", "dns:"),
            ("whois:example.com", "whois:"),
            ("nonsense", ""),
            ("", ""),
        ] {
            assert_eq!(host_of(uri), host, "{uri}");
        }
        assert!(is_pseudo("dns:") && is_pseudo("") && !is_pseudo("a.dk"));
    }
}
