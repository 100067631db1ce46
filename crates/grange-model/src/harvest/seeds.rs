//! Seed lists: where the harvest of a domain begins.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::domain_name::DomainName;
use super::name::Name;

/// A list of seeds of one domain, one per line as it was typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedList {
    pub name: Name,
    pub comments: String,
    /// As typed, with comment lines.
    pub seeds: String,
    /// How many of the lines are seeds.
    pub active: u64,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub edition: i64,
}

/// A line that could not be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadLine {
    /// Counted from 1.
    pub line: u64,
    pub text: String,
    pub reason: String,
}

/// The longest seed: what browsers and servers take, and no page of a book.
const SEED_BYTES_MAX: usize = 4096;

/// How much of a bad line is told.
const SHOWN_CHARS_MAX: usize = 200;

impl BadLine {
    pub fn new(line: u64, text: &str, reason: impl Into<String>) -> Self {
        Self { line, text: text.chars().take(SHOWN_CHARS_MAX).collect(), reason: reason.into() }
    }
}

/// The line as the crawler gets it, `None` for a blank line or a comment. A missing scheme is `http://`.
pub fn seed(line: &str) -> Result<Option<String>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.len() > SEED_BYTES_MAX {
        return Err(format!("a seed is at most {SEED_BYTES_MAX} bytes long"));
    }
    if line.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("a seed is one URL without blanks".to_owned());
    }
    let text = if line.contains("://") { line.to_owned() } else { format!("http://{line}") };
    let url = Url::parse(&text).map_err(|error| format!("it is not a URL ({error})"))?;
    if !matches!(url.scheme(), "http" | "https" | "ftp") {
        return Err(format!("{} cannot be harvested: only http, https and ftp", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a seed names no user and no password: make a login for the domain instead".to_owned());
    }
    domain_of(&url)?;
    Ok(Some(text))
}

/// The domain a seed belongs to.
pub fn domain_of(url: &Url) -> Result<DomainName, String> {
    let host = url.host_str().ok_or("it has no host")?;
    DomainName::of_host(host).map_err(|error| error.reason)
}

/// The seeds among these lines, each once, as the crawler gets them: no comments. IDN hosts stay as typed.
pub fn active(text: &str) -> Result<Vec<String>, Vec<BadLine>> {
    let (mut seeds, mut bad) = (Vec::new(), Vec::new());
    let mut seen = std::collections::HashSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        match seed(line) {
            Ok(Some(seed)) if seen.insert(seed.clone()) => seeds.push(seed),
            Ok(_) => {}
            Err(reason) => bad.push(BadLine::new(number, line, reason)),
        }
    }
    if bad.is_empty() { Ok(seeds) } else { Err(bad) }
}

/// The seeds of a new domain: http and https, with and without `www.`.
pub fn default_seeds(domain: &DomainName) -> String {
    let name = match domain.address() {
        Some(address) if address.is_ipv6() => format!("[{address}]"),
        _ => domain.readable(),
    };
    if domain.address().is_some() || name.starts_with("www.") {
        format!("http://{name}\nhttps://{name}")
    } else {
        format!("http://{name}\nhttps://{name}\nhttp://www.{name}\nhttps://www.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_never_reach_the_crawler() {
        let text = "http://a.dk/\n# http://b.dk/\n\n  \nc.dk/x\nhttp://a.dk/\r\nhttps://www.bücher.de/æ?b=1";
        let seeds = active(text).unwrap();
        assert_eq!(seeds, ["http://a.dk/", "http://c.dk/x", "https://www.bücher.de/æ?b=1"]);
    }

    #[test]
    fn every_bad_line_is_named() {
        let bad =
            active("http://a.dk\nmailto:x@a.dk\nhttp://\nhttp://a b.dk\nhttp://localhost/\ngopher://a.dk")
                .unwrap_err();
        let lines: Vec<_> = bad.iter().map(|bad| bad.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6], "{bad:?}");
        let long = format!("http://a.dk/{}", "x".repeat(SEED_BYTES_MAX));
        assert!(seed(&long).is_err());
    }

    #[test]
    fn a_new_domain_is_seeded_four_ways_and_www_is_not_doubled() {
        let seeds = |name: &str| default_seeds(&name.parse().unwrap());
        assert_eq!(seeds("a.dk"), "http://a.dk\nhttps://a.dk\nhttp://www.a.dk\nhttps://www.a.dk");
        assert_eq!(seeds("www.dk"), "http://www.dk\nhttps://www.dk");
        assert_eq!(seeds("192.0.2.1"), "http://192.0.2.1\nhttps://192.0.2.1");
        assert_eq!(seeds("2001:db8::1"), "http://[2001:db8::1]\nhttps://[2001:db8::1]");
        assert!(seeds("xn--bcher-kva.de").starts_with("http://bücher.de\n"));
        for name in ["a.dk", "www.dk", "192.0.2.1", "2001:db8::1", "xn--bcher-kva.de"] {
            assert!(active(&seeds(name)).is_ok(), "{name}");
        }
    }
}
