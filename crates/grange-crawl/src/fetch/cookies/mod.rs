//! Cookies, as RFC 6265 has them, shared by all fetches of a crawl.

mod kept;
mod netscape;
mod set_cookie;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use url::{Host, Url};

use super::error::FetchError;

/// The longest cookie, name and value, in bytes: what RFC 6265 asks user agents to keep.
const COOKIE_BYTES_MAX: usize = 4096;
/// The most cookies of one domain: what RFC 6265 asks for.
const PER_DOMAIN_MAX: usize = 50;
/// The most domains with cookies; a further one takes the place of the one used least recently. With full ones of 100
/// bytes this is 100 MB; in practice a tenth.
pub(crate) const DOMAINS_MAX: usize = if cfg!(test) { 200 } else { 20_000 };
/// The longest `Cookie` header sent; servers refuse more.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// One cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    pub name: String,
    pub value: String,
    /// In lower case, without a dot in front.
    pub domain: String,
    /// Sent to exactly this host, not to those below it.
    pub host_only: bool,
    pub path: String,
    pub secure: bool,
    pub http_only: bool,
    /// None for the time of the crawl.
    pub expires: Option<Timestamp>,
}

/// All cookies of a crawl.
#[derive(Debug, Default)]
pub struct CookieJar(Mutex<Jar>);

#[derive(Debug, Default)]
struct Jar {
    domains: HashMap<String, DomainCookies>,
    /// The domains by their last use.
    by_use: BTreeMap<u64, String>,
    uses: u64,
    /// Domains that made room for others and have no cookies any more, until somebody asks. Not more than the jar has:
    /// whoever keeps cookies elsewhere asks after every response.
    evicted: HashSet<String>,
}

#[derive(Debug)]
struct DomainCookies {
    /// In the order of their making; never empty.
    cookies: Vec<Cookie>,
    last_use: u64,
}

impl CookieJar {
    /// The value of `Cookie` for a request at `now`, if there is any to send.
    pub fn header(&self, url: &Url, now: Timestamp) -> Option<String> {
        let mut jar = self.lock();
        if jar.domains.is_empty() {
            return None;
        }
        let host = url.host_str()?;
        let secure = url.scheme() == "https";
        for domain in domains_of(url) {
            jar.touch(domain);
        }
        let mut found: Vec<&Cookie> = Vec::new();
        for domain in domains_of(url) {
            found.extend(jar.of(domain).iter().filter(|cookie| {
                (!cookie.host_only || cookie.domain == host)
                    && (!cookie.secure || secure)
                    && cookie.expires.is_none_or(|expires| expires > now)
                    && path_matches(url.path(), &cookie.path)
            }));
        }
        // Longer paths first; the sort keeps the order of making.
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut header = String::new();
        for cookie in found {
            if header.len() + cookie.name.len() + cookie.value.len() + 3 > HEADER_BYTES_MAX {
                break;
            }
            if !header.is_empty() {
                header.push_str("; ");
            }
            header.push_str(&cookie.name);
            header.push('=');
            header.push_str(&cookie.value);
        }
        (!header.is_empty()).then_some(header)
    }

    /// Keeps the cookies of an answer from `url`, given the values of its `Set-Cookie` headers.
    pub fn store<'a>(&self, url: &Url, values: impl Iterator<Item = &'a [u8]>, now: Timestamp) {
        let cookies: Vec<Cookie> =
            values.filter_map(|value| set_cookie::parse(&String::from_utf8_lossy(value), url, now)).collect();
        if !cookies.is_empty() {
            let mut jar = self.lock();
            for cookie in cookies {
                jar.insert(cookie, now);
            }
        }
    }

    pub fn insert(&self, cookie: Cookie, now: Timestamp) {
        self.lock().insert(cookie, now);
    }

    pub fn len(&self) -> usize {
        self.lock().domains.values().map(|domain| domain.cookies.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the cookies in a `cookies.txt`, as browsers export it and [`CookieJar::save`] writes it. Lines that are
    /// none are left out; gives the number of cookies taken.
    pub fn load(&self, path: &Path, now: Timestamp) -> Result<usize, FetchError> {
        let failed = |source| FetchError::Cookies { act: "read", path: path.to_owned(), source };
        let text = std::fs::read(path).map_err(failed)?;
        let cookies = netscape::parse(&String::from_utf8_lossy(&text));
        let mut jar = self.lock();
        let count = cookies.len();
        for cookie in cookies {
            jar.insert(cookie, now);
        }
        Ok(count)
    }

    /// Writes all cookies, those of the session too, so that a resumed crawl stays logged in. The file is for its
    /// owner alone, and is either the old one or the new one, never half of it.
    pub fn save(&self, path: &Path) -> Result<(), FetchError> {
        let failed = |source| FetchError::Cookies { act: "write", path: path.to_owned(), source };
        let text = {
            let jar = self.lock();
            // What was used last comes last, so that a jar that is filled from it forgets the others first.
            netscape::write(jar.by_use.values().flat_map(|domain| jar.of(domain)))
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let write = || {
            // A temporary file can be read by its owner alone from the start.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok::<_, std::io::Error>(())
        };
        write().map_err(failed)
    }

    fn lock(&self) -> MutexGuard<'_, Jar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jar {
    fn of(&self, domain: &str) -> &[Cookie] {
        self.domains.get(domain).map_or(&[], |domain| &domain.cookies)
    }

    /// Makes `domain` the one used last, if it has cookies.
    fn touch(&mut self, domain: &str) {
        let Some(used) = self.domains.get_mut(domain) else { return };
        self.uses += 1;
        if let Some(name) = self.by_use.remove(&used.last_use) {
            self.by_use.insert(self.uses, name);
        }
        used.last_use = self.uses;
    }

    fn remove(&mut self, domain: &str) {
        if let Some(removed) = self.domains.remove(domain) {
            self.by_use.remove(&removed.last_use);
        }
    }

    fn insert(&mut self, cookie: Cookie, now: Timestamp) {
        let dead = cookie.expires.is_some_and(|expires| expires <= now);
        let domain = cookie.domain.clone();
        if !self.domains.contains_key(&domain) {
            if dead {
                return;
            }
            while self.domains.len() >= DOMAINS_MAX
                && let Some((_, oldest)) = self.by_use.pop_first()
            {
                self.domains.remove(&oldest);
                if self.evicted.len() < DOMAINS_MAX {
                    self.evicted.insert(oldest);
                }
            }
            self.evicted.remove(&domain);
            self.uses += 1;
            self.by_use.insert(self.uses, domain.clone());
            let empty = DomainCookies { cookies: Vec::new(), last_use: self.uses };
            self.domains.insert(domain.clone(), empty);
        }
        self.touch(&domain);
        let Some(DomainCookies { cookies: list, .. }) = self.domains.get_mut(&domain) else { return };
        let same = |other: &Cookie| {
            other.name == cookie.name && other.path == cookie.path && other.host_only == cookie.host_only
        };
        match list.iter().position(same) {
            Some(at) if dead => drop(list.remove(at)),
            Some(at) => list[at] = cookie,
            None if dead => {}
            None => {
                if list.len() >= PER_DOMAIN_MAX {
                    let stale = list.iter().position(|old| old.expires.is_some_and(|expires| expires <= now));
                    list.remove(stale.unwrap_or(0));
                }
                list.push(cookie);
            }
        }
        if list.is_empty() {
            self.remove(&domain);
        }
    }
}

/// The host of `url` and the domains above it, nearest first. An address has none above.
fn domains_of(url: &Url) -> impl Iterator<Item = &str> {
    let host = url.host_str().unwrap_or_default();
    let name = matches!(url.host(), Some(Host::Domain(_)));
    std::iter::successors(Some(host), move |domain| {
        domain.split_once('.').map(|(_, above)| above).filter(|above| name && !above.is_empty())
    })
}

/// RFC 6265 5.1.4.
fn path_matches(path: &str, cookie: &str) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
