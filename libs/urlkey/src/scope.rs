//! SURT prefixes: which URLs belong to a crawl.
//!
//! A scope SURT keeps what a key throws away (`www`, the port, the scheme's place) and ends the host with a
//! comma, so that one prefix can mean a host, a domain or a directory:
//!
//! ```text
//! http://(com,example,            example.com and every host below it
//! http://(com,example,)/          the host example.com alone
//! http://(com,example,www,)/docs/ a directory
//! http://(192.0.2.1)/             an address; addresses are not reversed
//! ```
//!
//! `https` is written as `http`: a prefix means both.

use crate::domain::{Suffixes, registrable_domain};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use url::{Host, Url};

/// The scope SURT of a URL, or `None` for one without a host.
///
/// ```
/// let surt = urlkey::scope_surt("https://www.Example.com:8080/Docs/?q=1#x").unwrap();
/// assert_eq!(surt, "http://(com,example,www,:8080)/docs/?q=1");
/// ```
#[must_use]
pub fn scope_surt(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    let mut out = String::with_capacity(url.as_str().len() + 4);
    scope_surt_into(&url, &mut out).then_some(out)
}

/// Appends the scope SURT of a parsed URL to `out`; returns false, having appended nothing, without a host.
pub fn scope_surt_into(url: &Url, out: &mut String) -> bool {
    let Some(host) = url.host() else { return false };
    push_scheme(url, out);
    push_host(&host, out);
    push_port(url, out);
    out.push(')');
    // Prefixes are compared without regard to case, as crawlers have always done.
    let lower = |text: &str, out: &mut String| out.extend(text.chars().map(|c| c.to_ascii_lowercase()));
    lower(url.path(), out);
    if let Some(query) = url.query() {
        out.push('?');
        lower(query, out);
    }
    true
}

fn push_scheme(url: &Url, out: &mut String) {
    out.push_str(if url.scheme() == "https" { "http" } else { url.scheme() });
    out.push_str("://(");
}

fn push_port(url: &Url, out: &mut String) {
    if let Some(port) = url.port() {
        use fmt::Write as _;
        let _ = write!(out, ":{port}");
    }
}

fn push_host(host: &Host<&str>, out: &mut String) {
    match host {
        Host::Domain(name) => {
            for label in name.trim_end_matches('.').rsplit('.') {
                out.extend(label.chars().map(|c| c.to_ascii_lowercase()));
                out.push(',');
            }
        }
        Host::Ipv4(_) | Host::Ipv6(_) => out.push_str(&host.to_string()),
    }
}

/// A text that every scope SURT of a scope begins with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SurtPrefix(String);

impl SurtPrefix {
    /// What a seed implies: its directory when it has a path, its host and all below when it has none.
    ///
    /// ```
    /// use urlkey::SurtPrefix;
    /// let prefix = |seed| SurtPrefix::from_seed(seed).unwrap().to_string();
    /// assert_eq!(prefix("http://www.example.com"), "http://(com,example,www,");
    /// assert_eq!(prefix("http://www.example.com/"), "http://(com,example,www,)/");
    /// assert_eq!(prefix("https://example.com/a/b.html?q"), "http://(com,example,)/a/");
    /// ```
    #[must_use]
    pub fn from_seed(seed: &str) -> Option<Self> {
        let seed = seed.trim();
        let url = parse_lax(seed)?;
        let mut surt = String::with_capacity(seed.len() + 4);
        if !scope_surt_into(&url, &mut surt) {
            return None;
        }
        let host_end = surt.find(')').filter(|_| !bare_host(seed)).map(|at| at + 1);
        match host_end {
            // A port holds for the host alone, so its parenthesis stays.
            None if url.port().is_some() || !surt.contains(",)") => surt.truncate(surt.find(')')? + 1),
            None => surt.truncate(surt.find(')')?),
            Some(host_end) => {
                let path_end = surt[host_end..].find('?').map_or(surt.len(), |at| host_end + at);
                let cut = surt[host_end..path_end].rfind('/').map_or(host_end, |at| host_end + at + 1);
                surt.truncate(cut);
            }
        }
        Some(Self(surt))
    }

    /// The host of `url` alone, at its port.
    ///
    /// ```
    /// let prefix = urlkey::SurtPrefix::host("http://127.0.0.1:8080/x").unwrap();
    /// assert_eq!(prefix.as_str(), "http://(127.0.0.1:8080)");
    /// ```
    #[must_use]
    pub fn host(url: &str) -> Option<Self> {
        let url = parse_lax(url.trim())?;
        let mut surt = String::new();
        let host = url.host()?;
        push_scheme(&url, &mut surt);
        push_host(&host, &mut surt);
        push_port(&url, &mut surt);
        surt.push(')');
        Some(Self(surt))
    }

    /// The registrable domain of `url` and every host below it; an address stands for itself.
    ///
    /// ```
    /// let prefix = urlkey::SurtPrefix::domain("http://news.bbc.co.uk/x").unwrap();
    /// assert_eq!(prefix.as_str(), "http://(uk,co,bbc,");
    /// ```
    #[must_use]
    pub fn domain(url: &str) -> Option<Self> {
        let parsed = parse_lax(url.trim())?;
        let Host::Domain(name) = parsed.host()? else {
            return Self::host(url);
        };
        let name = registrable_domain(name, Suffixes::All).unwrap_or(name);
        let mut surt = String::new();
        push_scheme(&parsed, &mut surt);
        push_host(&Host::Domain(name), &mut surt);
        Some(Self(surt))
    }

    /// Reads a line of a SURT prefix file: a SURT (`http://(com,example,`), a bare reversed host
    /// (`com,example,`) or, with a `+` before it, a seed. Comments and empty lines give `None`.
    #[must_use]
    pub fn parse_line(line: &str) -> Option<Self> {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(seed) = line.strip_prefix('+') {
            return Self::from_seed(seed);
        }
        if let Some(at) = line.find("://(") {
            let scheme = line[..at].to_ascii_lowercase();
            let scheme = if scheme == "https" { "http" } else { &scheme };
            return Some(Self(format!("{scheme}{}", line[at..].to_ascii_lowercase())));
        }
        if line.contains("://") {
            return Self::from_seed(line);
        }
        (!line.is_empty()).then(|| Self(format!("http://({}", line.to_ascii_lowercase())))
    }

    /// The prefix as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a scope SURT lies under this prefix.
    #[must_use]
    pub fn matches(&self, surt: &str) -> bool {
        surt.starts_with(&self.0)
    }

    /// Whether a URL lies under this prefix.
    #[must_use]
    pub fn matches_url(&self, url: &str) -> bool {
        scope_surt(url).is_some_and(|surt| self.matches(&surt))
    }
}

impl fmt::Display for SurtPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// People write seeds without a scheme; `example.com:8080` then looks as if it had one.
fn parse_lax(text: &str) -> Option<Url> {
    if let Ok(url) = Url::parse(text)
        && url.has_host()
    {
        return Some(url);
    }
    let names_port = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    let lacks_scheme = text.split_once(':').is_none_or(names_port);
    if !lacks_scheme {
        return None;
    }
    Url::parse(&format!("http://{text}")).ok().filter(Url::has_host)
}

/// Whether nothing, not even a slash, follows the host.
fn bare_host(seed: &str) -> bool {
    let after_scheme = seed.split_once("://").map_or(seed, |(_, rest)| rest);
    !after_scheme.contains(['/', '?', '#'])
}

/// Many prefixes, asked together.
///
/// Prefixes under another prefix of the set are dropped, so a question looks at one candidate: the greatest
/// prefix that sorts at or before the SURT.
#[derive(Debug, Clone, Default)]
pub struct SurtPrefixSet(BTreeSet<String>);

impl SurtPrefixSet {
    /// Adds a prefix unless a shorter one already covers it, and drops those that it covers.
    pub fn insert(&mut self, prefix: SurtPrefix) {
        if self.matches(prefix.as_str()) {
            return;
        }
        let covered: Vec<String> =
            self.0.range(prefix.0.clone()..).take_while(|other| prefix.matches(other)).cloned().collect();
        for other in covered {
            self.0.remove(&other);
        }
        self.0.insert(prefix.0);
    }

    /// Adds all prefixes of another set.
    pub fn insert_all(&mut self, other: &Self) {
        for prefix in &other.0 {
            self.insert(SurtPrefix(prefix.clone()));
        }
    }

    /// Whether a scope SURT lies under any prefix.
    #[must_use]
    pub fn matches(&self, surt: &str) -> bool {
        self.0
            .range::<str, _>((Bound::Unbounded, Bound::Included(surt)))
            .next_back()
            .is_some_and(|prefix| surt.starts_with(prefix.as_str()))
    }

    /// Whether a URL lies under any prefix.
    #[must_use]
    pub fn matches_url(&self, url: &str) -> bool {
        scope_surt(url).is_some_and(|surt| self.matches(&surt))
    }

    /// The prefixes, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<SurtPrefix> for SurtPrefixSet {
    fn from_iter<T: IntoIterator<Item = SurtPrefix>>(prefixes: T) -> Self {
        let mut set = Self::default();
        for prefix in prefixes {
            set.insert(prefix);
        }
        set
    }
}
