//! The addresses of the seeds that a person types: these may be reached although they are not public.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use grange_base::AddressKind;
use grange_crawl::job::Job;
use url::{Host, Url};

/// Ports that one server mostly has both of: sites redirect from one to the other.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The private addresses of the URLs given as arguments, each with its port, and of the addresses (not names) among the
/// seeds of a file. What a name means is settled here once, so that it cannot come to mean another private address later.
pub(super) async fn private_endpoints(urls: &[String], job: &Job) -> Vec<SocketAddr> {
    let mut endpoints = BTreeSet::new();
    let typed: BTreeSet<_> = urls.iter().cloned().map(super::job::with_scheme).collect();
    for seed in &job.seeds {
        endpoints.extend(endpoints_of(seed, typed.contains(seed)).await);
    }
    endpoints.into_iter().collect()
}

/// The private addresses of one URL, each with its port. A name is resolved if `resolves_name`.
pub(super) async fn endpoints_of(url: &str, resolves_name: bool) -> Vec<SocketAddr> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let Some(port) = url.port_or_known_default() else { return Vec::new() };
    let ips = match url.host() {
        Some(Host::Ipv4(ip)) => vec![ip.into()],
        Some(Host::Ipv6(ip)) => vec![ip.into()],
        Some(Host::Domain(name)) if resolves_name => {
            let found = tokio::net::lookup_host((name, port)).await;
            // A name that cannot be resolved is reported by the crawl.
            found.into_iter().flatten().map(|address| address.ip()).collect()
        }
        _ => Vec::new(),
    };
    let ports = if WEB_PORTS.contains(&port) { WEB_PORTS.to_vec() } else { vec![port] };
    let private = ips.into_iter().filter(|ip| AddressKind::of(*ip) != AddressKind::Public);
    private.flat_map(|ip| ports.iter().map(move |port| SocketAddr::new(ip, *port))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn private_addresses_are_found_with_their_ports() {
        for (url, resolves_name, expected) in [
            ("http://127.0.0.1:8080/a", false, vec!["127.0.0.1:8080"]),
            ("http://10.0.0.1/", true, vec!["10.0.0.1:80", "10.0.0.1:443"]),
            ("https://[::1]/", false, vec!["[::1]:80", "[::1]:443"]),
            ("http://192.88.99.1.example/", false, vec![]),
            ("http://93.184.216.34/", true, vec![]),
            ("http://localhost/", false, vec![]),
            ("nonsense", true, vec![]),
        ] {
            let found: Vec<_> =
                endpoints_of(url, resolves_name).await.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{url}");
        }
        assert!(!endpoints_of("http://localhost:81/", true).await.is_empty());
    }
}
