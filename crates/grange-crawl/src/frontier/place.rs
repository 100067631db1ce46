//! Which queue and which domain a URL belongs to.

use std::borrow::Cow;

use url::Url;
use urlkey::{Suffixes, registrable_domain};

use super::settings::QueueBy;

/// The host that is asked; of `dns:NAME` the name. Other URLs without a host share the empty one.
pub(super) fn host(url: &Url) -> &str {
    match url.host_str() {
        Some(host) => host,
        None if url.scheme() == "dns" => url.path().trim_start_matches('/'),
        None => "",
    }
}

/// Asking for it does not touch its host.
pub(super) fn is_far_from_host(url: &Url) -> bool {
    url.scheme() == "dns"
}

/// The registrable domain; addresses, single labels and bare suffixes are their own.
pub(super) fn domain(host: &str) -> &str {
    registrable_domain(host, Suffixes::All).unwrap_or(host)
}

pub(super) fn queue_name(url: &Url, queue_by: QueueBy) -> Cow<'_, str> {
    let host = host(url);
    match (queue_by, url.port()) {
        (QueueBy::Domain, _) => Cow::Borrowed(domain(host)),
        (QueueBy::Host, None) => Cow::Borrowed(host),
        (QueueBy::Host, Some(port)) => Cow::Owned(format!("{host}:{port}")),
    }
}

/// The host in the name of a queue; of a queue by domain the domain. An IPv6 address keeps its brackets.
pub fn queue_host(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_domains() {
        for (url, by_host, by_domain) in [
            ("http://www.bbc.co.uk/", "www.bbc.co.uk", "bbc.co.uk"),
            ("https://www.bbc.co.uk:443/x", "www.bbc.co.uk", "bbc.co.uk"),
            ("http://www.bbc.co.uk:8080/", "www.bbc.co.uk:8080", "bbc.co.uk"),
            ("http://127.0.0.1:81/", "127.0.0.1:81", "127.0.0.1"),
            ("http://[::1]/", "[::1]", "[::1]"),
            ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080", "[2001:db8::1]"),
            ("http://localhost/", "localhost", "localhost"),
            ("http://co.uk/", "co.uk", "co.uk"),
            ("dns:www.bbc.co.uk", "www.bbc.co.uk", "bbc.co.uk"),
            ("data:text/plain,x", "", ""),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!(queue_name(&parsed, QueueBy::Host), by_host, "{url}");
            assert_eq!(queue_host(by_host), host(&parsed), "{url}");
            assert_eq!(queue_name(&parsed, QueueBy::Domain), by_domain, "{url}");
        }
    }
}
