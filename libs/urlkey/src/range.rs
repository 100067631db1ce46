//! Which keys answer a question: one URL, a prefix, a host, a domain.

use crate::dialect::{Dialect, Keyer};
use std::str::FromStr;

/// What a search asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MatchType {
    /// Captures of this URL.
    #[default]
    Exact,
    /// Captures whose key begins like this one's.
    Prefix,
    /// Captures of this host.
    Host,
    /// Captures of this host and every host below it.
    Domain,
}

impl MatchType {
    /// The name that CDX servers use for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::Domain => "domain",
        }
    }
}

/// A match type that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown match type {0:?}: expected exact, prefix, host or domain")]
pub struct UnknownMatchType(pub String);

impl FromStr for MatchType {
    type Err = UnknownMatchType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Exact, Self::Prefix, Self::Host, Self::Domain]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownMatchType(name.to_owned()))
    }
}

/// Index lines from `start` (included) to `end` (excluded), compared as bytes.
///
/// The bounds hold for keys alone and for whole lines: in a line a space follows the key, and a space sorts
/// before every byte that a key can hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key that may match.
    pub start: String,
    /// The first key that no longer can.
    pub end: String,
}

impl KeyRange {
    /// Whether a key, or a line that begins with it, lies in the range.
    #[must_use]
    pub fn contains(&self, line: impl AsRef<[u8]>) -> bool {
        let line = line.as_ref();
        self.start.as_bytes() <= line && line < self.end.as_bytes()
    }
}

/// The range of keys that a search for `url` covers.
///
/// `url` may be a URL, a bare host or, for [`MatchType::Domain`], a bare top-level domain (`uk`). A trailing
/// `/` or `?` that a person typed in a prefix search counts, although the key of a URL does without it. As the
/// old wildcard forms, `*.example.com` and `example.com/a*` are read with their stars taken off; which match
/// type they mean is for the caller to say.
///
/// ```
/// use urlkey::{Dialect, MatchType, search_range};
/// let range = search_range("http://example.com/a/", MatchType::Prefix, Dialect::Standard);
/// assert_eq!((range.start.as_str(), range.end.as_str()), ("com,example)/a/", "com,example)/a0"));
/// ```
#[must_use]
pub fn search_range(url: &str, kind: MatchType, dialect: Dialect) -> KeyRange {
    let url = if kind == MatchType::Exact { url } else { without_stars(url) };
    let mut start = String::with_capacity(url.len() + 1);
    Keyer::new(dialect).key_into(url, &mut start);
    match kind {
        MatchType::Exact => {
            let end = format!("{start}!");
            KeyRange { start, end }
        }
        MatchType::Prefix => {
            keep_typed_end(url, &mut start);
            let end = successor(&start);
            KeyRange { start, end }
        }
        MatchType::Host | MatchType::Domain => host_range(start, kind),
    }
}

fn without_stars(url: &str) -> &str {
    let url = url.strip_prefix("*.").unwrap_or(url);
    url.strip_suffix('*').unwrap_or(url)
}

/// Gives a prefix the `/` or `?` back that canonicalisation dropped.
fn keep_typed_end(url: &str, key: &mut String) {
    let typed = url.trim_end();
    let end = match typed.as_bytes().last() {
        Some(b'/') if !typed.contains(['?', '#']) => '/',
        Some(b'?') if typed.find('?') == Some(typed.len() - 1) && !typed.contains('#') => '?',
        _ => return,
    };
    if !key.ends_with(end) {
        key.push(end);
    }
}

fn host_range(key: String, kind: MatchType) -> KeyRange {
    // OutbackCDX keys IPv4 hosts without a parenthesis: up to the path is all there is.
    let Some(close) = key.find(')') else {
        let end = key.find('/').unwrap_or(key.len());
        let start = key[..end].to_owned() + "/";
        let end = successor(&start);
        return KeyRange { start, end };
    };
    let host = &key[..close];
    // The byte after `,` ends the hosts below, the byte after `)` the host itself. A top-level domain may be a host as well
    // (`localhost`, a name of an intranet).
    let to = if kind == MatchType::Domain { "-" } else { "*" };
    KeyRange { start: format!("{host})/"), end: format!("{host}{to}") }
}

/// The smallest text above everything that begins with `prefix`.
fn successor(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // Keys are ASCII; foreign ones may not be, and the next code point sorts next as bytes as well.
        if let Some(next) = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32) {
            end.push(next);
            return end;
        }
    }
    char::MAX.to_string()
}
