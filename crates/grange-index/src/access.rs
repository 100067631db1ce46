//! Who may see a capture: a pure function of rules, capture, reader and time.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// A rule about captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A beginning of keys: `com,example)/private`, `com,example,` for hosts below, empty for all.
    pub surt_prefix: String,
    /// Only this whole key, not those that begin with it.
    #[serde(default)]
    pub exact: bool,
    /// Only this collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// Only this MIME type, or all of a kind: `video/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Only captures from this time on (1 to 17 digits).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_from: Option<String>,
    /// Only captures up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_to: Option<String>,
    pub decision: Decision,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    Allow,
    /// Nobody sees it. The message is for those who ask for it by name.
    Block {
        message: String,
    },
    /// Nobody sees it until so many seconds after its capture.
    Embargo {
        seconds: u64,
    },
    /// Only readers in these networks (`192.0.2.0/24`, `2001:db8::/32`).
    Networks {
        networks: Vec<String>,
    },
    /// Only these users; `*` is everybody who is signed in.
    Users {
        users: Vec<String>,
    },
}

/// What rules look at.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub collection: &'a str,
    pub surt: &'a [u8],
    pub time: Stamp,
    pub mime: Option<&'a str>,
}

/// Who asks, and when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    pub address: Option<IpAddr>,
    pub user: Option<&'a str>,
    /// The present moment, as 14 digits of UTC.
    pub now: Stamp,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'r> {
    Visible,
    /// Invisible, with the rule that says so.
    Hidden(&'r Rule),
}

impl Verdict<'_> {
    pub const fn is_visible(self) -> bool {
        matches!(self, Self::Visible)
    }
}

/// Decides by the most specific rule that applies; without one, captures are visible.
///
/// More specific is, in this order: an exact key before a prefix, a longer prefix before a shorter, a collection before all,
/// a whole MIME type before a kind before all, a shorter span of capture times before a longer. Between rules that are
/// equally specific the one that shows less wins, so that their order never matters.
pub fn judge<'r>(rules: &'r [Rule], asked: &Asked<'_>, reader: &Reader<'_>) -> Verdict<'r> {
    let rank =
        |rule: &&Rule| (rule.specificity(), !rule.decision.shows(asked, reader), rule.decision.strictness());
    match rules.iter().filter(|rule| rule.applies(asked)).max_by_key(rank) {
        Some(rule) if !rule.decision.shows(asked, reader) => Verdict::Hidden(rule),
        _ => Verdict::Visible,
    }
}

impl Rule {
    fn times(&self) -> (Stamp, Stamp) {
        let from = self.captured_from.as_deref().and_then(Stamp::earliest).unwrap_or(Stamp::MIN);
        let to = self.captured_to.as_deref().and_then(Stamp::latest).unwrap_or(Stamp::MAX);
        (from, to)
    }

    /// Whether the rule says anything about a capture.
    pub fn applies(&self, asked: &Asked<'_>) -> bool {
        let prefix = self.surt_prefix.as_bytes();
        // The key first: of thousands of rules nearly all end here, for every capture that is shown.
        if !(if self.exact { asked.surt == prefix } else { asked.surt.starts_with(prefix) }) {
            return false;
        }
        let (from, to) = self.times();
        self.collection.as_deref().is_none_or(|collection| collection == asked.collection)
            && self.mime.as_deref().is_none_or(|mime| mime_matches(mime, asked.mime))
            && from <= asked.time
            && asked.time <= to
    }

    fn specificity(&self) -> (bool, usize, bool, u8, std::cmp::Reverse<i64>) {
        let mime = match self.mime.as_deref() {
            None => 0,
            Some(mime) if mime.ends_with("/*") => 1,
            Some(_) => 2,
        };
        let (from, to) = self.times();
        let span =
            if to == Stamp::MAX || from == Stamp::MIN { i64::MAX } else { to.seconds() - from.seconds() };
        // A span open at one end is still less than all time.
        let span =
            if span == i64::MAX && (to < Stamp::MAX || from > Stamp::MIN) { i64::MAX - 1 } else { span };
        (self.exact, self.surt_prefix.len(), self.collection.is_some(), mime, std::cmp::Reverse(span))
    }
}

impl Decision {
    /// Whether a reader sees a capture under this decision.
    pub fn shows(&self, asked: &Asked<'_>, reader: &Reader<'_>) -> bool {
        match self {
            Self::Allow => true,
            Self::Block { .. } => false,
            Self::Embargo { seconds } => {
                let until = asked.time.seconds().saturating_add(i64::try_from(*seconds).unwrap_or(i64::MAX));
                reader.now.seconds() >= until
            }
            Self::Networks { networks } => reader
                .address
                .is_some_and(|address| networks.iter().any(|network| contains(network, address))),
            Self::Users { users } => {
                reader.user.is_some_and(|user| users.iter().any(|allowed| allowed == "*" || allowed == user))
            }
        }
    }

    const fn strictness(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Users { .. } => 1,
            Self::Networks { .. } => 2,
            Self::Embargo { .. } => 3,
            Self::Block { .. } => 4,
        }
    }
}

fn mime_matches(rule: &str, mime: Option<&str>) -> bool {
    let mime = mime.unwrap_or_default();
    match rule.strip_suffix('*') {
        Some(kind) => mime.starts_with(kind),
        None => mime == rule,
    }
}

/// Whether an address is in a network. A network that cannot be read contains nobody: rules fail closed.
fn contains(network: &str, address: IpAddr) -> bool {
    let (base, bits) = network.split_once('/').map_or((network, None), |(base, bits)| (base, Some(bits)));
    let Ok(base) = base.parse::<IpAddr>() else { return false };
    // An IPv4 reader may arrive on an IPv6 socket.
    let number = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let ((base, width), (address, other)) = (number(base), number(address));
    let Some(bits) = bits.map_or(Some(width), |bits| bits.parse().ok()).filter(|bits| *bits <= width) else {
        return false;
    };
    width == other && (base ^ address).checked_shr(width - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
