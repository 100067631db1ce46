//! Crawler traps: regular expressions of URLs that no crawl follows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::JobId;
use super::name::Name;
use super::seeds::BadLine;

/// A list of traps that holds for every job while it is active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrapList {
    pub name: Name,
    pub description: String,
    pub active: bool,
    pub expressions: Vec<String>,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub edition: i64,
}

/// The longest expression: NetarchiveSuite's bound, and more than anybody can read.
const EXPRESSION_BYTES_MAX: usize = 1000;

/// What one expression may compile to. Keeps `(a{1000}){1000}` from taking the crawler's memory.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// What all expressions of a test may compile to together.
const SET_BYTES_MAX: usize = 64 << 20;

/// A trap must match the whole URL, as in NetarchiveSuite.
fn whole(expression: &str) -> String {
    format!("^(?:{expression})$")
}

/// Whether an expression can be used; otherwise a line that says why not.
pub(super) fn compiles(expression: &str) -> Result<(), String> {
    let made = RegexBuilder::new(expression).size_limit(COMPILED_BYTES_MAX).build();
    made.map(|_: Regex| ()).map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

fn check(expression: &str) -> Result<(), String> {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("an expression is at most {EXPRESSION_BYTES_MAX} bytes long"));
    }
    // The expression alone first, so that a stray parenthesis is told as such.
    compiles(expression).and_then(|()| compiles(&whole(expression)))
}

/// The expressions among these lines; blank ones are passed over. Every line that is no expression is told.
pub fn parse(text: &str) -> Result<Vec<String>, Vec<BadLine>> {
    let (mut traps, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        match check(line) {
            Ok(()) if !traps.iter().any(|known| known == line) => traps.push(line.to_owned()),
            Ok(()) => {}
            Err(reason) => bad.push(BadLine::new(number, line, reason)),
        }
    }
    if bad.is_empty() { Ok(traps) } else { Err(bad) }
}

/// What traps would have blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrapHits {
    /// Lines of crawl logs that were read.
    pub lines: u64,
    /// Of these, lines without a URL in the fourth field.
    pub unreadable: u64,
    pub blocked: u64,
    /// Bytes of what would have been blocked, where the log tells them.
    pub blocked_bytes: u64,
    /// Counts by host, the hosts with most first in number; bounded.
    pub by_host: BTreeMap<String, u64>,
    /// The first URLs that would have been blocked.
    pub examples: Vec<String>,
}

/// What traps would have blocked of what stored jobs asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobTrapHits {
    #[serde(flatten)]
    pub hits: TrapHits,
    /// The jobs whose crawl logs were read.
    pub jobs: Vec<JobId>,
    /// Jobs without a crawl log in the archive.
    pub missing: Vec<JobId>,
}

/// Examples kept: a screenful.
const EXAMPLES_MAX: usize = 20;
/// Hosts counted one by one; the others only count in the sum.
const HOSTS_MAX: usize = 10_000;

/// Runs traps over the lines of crawl logs.
#[derive(Debug)]
pub struct TrapTester {
    set: RegexSet,
    hits: TrapHits,
}

impl TrapTester {
    /// For expressions that [`parse`] has accepted.
    pub fn new(expressions: &[String]) -> Result<Self, String> {
        let set = RegexSetBuilder::new(expressions.iter().map(|expression| whole(expression)))
            .size_limit(SET_BYTES_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { set, hits: TrapHits::default() })
    }

    /// One line of a crawl log: time, status, size, URL, …
    pub fn line(&mut self, line: &str) {
        self.hits.lines += 1;
        let mut fields = line.split_ascii_whitespace().skip(2);
        let (Some(size), Some(url)) = (fields.next(), fields.next()) else {
            self.hits.unreadable += 1;
            return;
        };
        if !self.set.is_match(url) {
            return;
        }
        self.hits.blocked += 1;
        self.hits.blocked_bytes += size.parse::<u64>().unwrap_or_default();
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_else(|| "-".to_owned());
        if self.hits.by_host.len() < HOSTS_MAX || self.hits.by_host.contains_key(&host) {
            *self.hits.by_host.entry(host).or_default() += 1;
        }
        if self.hits.examples.len() < EXAMPLES_MAX {
            self.hits.examples.push(url.to_owned());
        }
    }

    pub fn hits(self) -> TrapHits {
        self.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_must_be_an_expression_of_bounded_size() {
        assert_eq!(
            parse(".*/calendar/.*\n\n  .*[?]sid=.*  \n.*/calendar/.*\n").unwrap(),
            [".*/calendar/.*", ".*[?]sid=.*"]
        );
        let bad = parse("(\nok\n((a{1000}){1000}){1000}\na)|(b\n*x").unwrap_err();
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [1, 3, 4, 5], "{bad:?}");
        assert!(parse(&"x".repeat(EXPRESSION_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_tester_counts_what_would_have_been_blocked() {
        let traps = parse(".*/calendar/.*\nhttp://b\\.dk/x").unwrap();
        let mut tester = TrapTester::new(&traps).unwrap();
        for line in [
            "2026-01-01T00:00:00.000Z   200       1000 http://a.dk/calendar/1999 LL http://a.dk/ text/html",
            "2026-01-01T00:00:01.000Z   200         10 http://b.dk/x L http://b.dk/ text/html",
            "2026-01-01T00:00:01.000Z   200         10 http://b.dk/xy L http://b.dk/ text/html",
            "2026-01-01T00:00:02.000Z    -2          - http://a.dk/calendar/2000 LL http://a.dk/ unknown",
            "garbage",
        ] {
            tester.line(line);
        }
        let hits = tester.hits();
        assert_eq!((hits.lines, hits.unreadable, hits.blocked, hits.blocked_bytes), (5, 1, 3, 1010));
        assert_eq!(
            hits.by_host.iter().map(|(h, n)| format!("{h} {n}")).collect::<Vec<_>>(),
            ["a.dk 2", "b.dk 1"]
        );
    }
}
