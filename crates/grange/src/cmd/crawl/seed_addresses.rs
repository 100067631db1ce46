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
        let Ok(url) = Url::parse(seed) else { continue };
        let Some(port) = url.port_or_known_default() else { continue };
        let ips = match url.host() {
            Some(Host::Ipv4(ip)) => vec![ip.into()],
            Some(Host::Ipv6(ip)) => vec![ip.into()],
            Some(Host::Domain(name)) if typed.contains(seed) => {
                let found = tokio::net::lookup_host((name, port)).await;
                // A name that cannot be resolved is reported by the crawl.
                found.into_iter().flatten().map(|address| address.ip()).collect()
            }
            _ => Vec::new(),
        };
        let ports = if WEB_PORTS.contains(&port) { WEB_PORTS.to_vec() } else { vec![port] };
        for ip in ips.into_iter().filter(|ip| AddressKind::of(*ip) != AddressKind::Public) {
            endpoints.extend(ports.iter().map(|port| SocketAddr::new(ip, *port)));
        }
    }
    endpoints.into_iter().collect()
}
