//! Cookies domain by domain, as a crawl keeps them over restarts.

use jiff::Timestamp;
use url::Url;

use super::{CookieJar, domains_of, netscape};

impl CookieJar {
    /// The domains whose cookies an answer from `url` may have changed, each with all its cookies in the form of
    /// `cookies.txt`; None for a domain without any.
    pub fn of_domains_of(&self, url: &Url) -> Vec<(String, Option<String>)> {
        let jar = self.lock();
        let text = |domain: &str| jar.domains.get(domain).map(|held| netscape::write(&held.cookies));
        domains_of(url).map(|domain| (domain.to_owned(), text(domain))).collect()
    }

    /// All domains with their cookies in the form of `cookies.txt`, the one that was used last at the end.
    pub fn by_domain(&self) -> Vec<(String, String)> {
        let jar = self.lock();
        jar.by_use.values().map(|domain| (domain.clone(), netscape::write(jar.of(domain)))).collect()
    }

    /// The domains that made room for others since this was last asked, and have no cookies now.
    pub fn take_evicted(&self) -> Vec<String> {
        self.lock().evicted.drain().collect()
    }

    /// Adds cookies in the form of `cookies.txt`.
    pub fn add_text(&self, text: &str, now: Timestamp) {
        let mut jar = self.lock();
        for cookie in netscape::parse(text) {
            jar.insert(cookie, now);
        }
    }
}
