//! HTTP clients that connect only to addresses that the operator allows.
//!
//! Anybody can enter a repository's address, and a repository can redirect anywhere. Names are checked where they are
//! resolved, so the address that was checked is the one that is connected to; addresses in URLs never reach the resolver
//! and are checked with every request and redirect.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::Arc;

use grange_base::{AddressPolicy, AddressRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::settings::Settings;

/// Redirects that a list of repositories may take. The lists that are known take none or one.
const REDIRECTS_MAX: usize = 5;

/// The addresses that may be connected to.
pub(crate) fn address_policy(settings: &Settings) -> AddressPolicy {
    AddressPolicy::new(settings.allow_networks.clone(), Vec::new())
}

/// A client without redirects. Callers check the URL of each request with [`check_url`].
pub(crate) fn client(policy: &AddressPolicy) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(CheckedResolver(policy.clone())))
}

/// Follows redirects to allowed addresses.
pub(crate) fn checked_redirects(policy: AddressPolicy) -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS_MAX {
            return attempt.error("too many redirects");
        }
        match check_url(attempt.url(), &policy) {
            Ok(()) => attempt.follow(),
            Err(refused) => attempt.error(refused),
        }
    })
}

/// Refuses a URL whose host is an address that is not allowed.
pub(crate) fn check_url(url: &Url, policy: &AddressPolicy) -> Result<(), AddressRefused> {
    match url.host() {
        Some(Host::Ipv4(ip)) => policy.check_ip(ip.into()),
        Some(Host::Ipv6(ip)) => policy.check_ip(ip.into()),
        Some(Host::Domain(_)) | None => Ok(()),
    }
}

/// The refusal behind an error, if that is what it is. Asking again would not change it.
pub(crate) fn refusal(error: &reqwest::Error) -> Option<AddressRefused> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<AddressRefused>() {
            return Some(*refused);
        }
        next = error.source();
    }
    None
}

#[derive(Debug)]
struct CheckedResolver(AddressPolicy);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Addrs = Box::new(allowed(found, &policy)?.into_iter());
            Ok(addresses)
        })
    }
}

/// The addresses that may be connected to; an error when there are others only.
fn allowed(found: Vec<SocketAddr>, policy: &AddressPolicy) -> Result<Vec<SocketAddr>, AddressRefused> {
    let mut refused = None;
    let mut allowed = found;
    allowed.retain(|address| policy.check_ip(address.ip()).map_err(|error| refused = Some(error)).is_ok());
    match refused {
        Some(refused) if allowed.is_empty() => Err(refused),
        _ => Ok(allowed),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A server at this address of loopback that redirects everything to `to`, and how often it was connected to.
    pub(crate) async fn redirecting(ip: &str, to: &str) -> (SocketAddr, Arc<AtomicUsize>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let (connections, to) = (Arc::clone(&count), to.to_owned());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
            }
        });
        (address, connections)
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused_before_a_connection() {
        let (address, connections) = redirecting("127.0.0.1", "/").await;
        let http = client(&AddressPolicy::default()).build().unwrap();
        let url = format!("http://localhost:{}/", address.port());
        let error = http.get(url).send().await.unwrap_err();
        assert!(refusal(&error).is_some(), "{error:?}");
        assert_eq!(connections.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_redirect_to_a_private_address_is_not_followed() {
        let (inside, connections) = redirecting("127.0.0.1", "/").await;
        let (outside, _) = redirecting("127.0.0.1", &format!("http://{inside}/")).await;
        let outside_only = AddressPolicy::new(Vec::new(), vec![outside]);
        // The first address is allowed for this test alone: the list itself is public.
        let http =
            client(&outside_only).redirect(checked_redirects(AddressPolicy::default())).build().unwrap();
        let error = http.get(format!("http://{outside}/")).send().await.unwrap_err();
        assert!(refusal(&error).is_some(), "{error:?}");
        assert_eq!(connections.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn urls_with_private_addresses_are_refused_however_they_are_written() {
        let none = AddressPolicy::default();
        let loopback = AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
        for (url, refused, on_loopback) in [
            ("http://127.0.0.1/oai", true, false),
            ("http://0x7f000001/oai", true, false),
            ("http://[::ffff:127.0.0.1]/oai", true, false),
            ("http://169.254.169.254/latest/meta-data/", true, true),
            ("https://[fd00::1]/oai", true, true),
            ("https://example.org/oai", false, false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(check_url(&url, &none).is_err(), refused, "{url}");
            assert_eq!(check_url(&url, &loopback).is_err(), on_loopback, "{url}");
        }
    }
}
