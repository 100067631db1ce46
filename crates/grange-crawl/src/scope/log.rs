//! `scope.log`: why a URL was left out.
//!
//! ```text
//! 2026-11-16T00:51:01.123Z 1 RejectDecideRule REJECT http://b.example/ {"hopPath":"L","via":"http://a.example/","seed":"http://a.example/","host":"b.example"}
//! ```
//!
//! Most links of a crawl lead out of it, so the log would be larger than the archive. Of each rule and host the
//! first ones are told, then one in a hundred, and at the end how many there were.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use serde::Serialize;

use super::chain::Scope;
use super::rule::{Decision, Rule};
use crate::candidate::Candidate;
use crate::log::push_millis;

/// How many lines of each rule and host are written in full: enough to see a pattern.
const FIRST: u32 = 20;
/// After that, one in this many.
const ONE_IN: u32 = 100;
/// How many (rule, host) pairs are remembered, 12 bytes each. Beyond that hosts share one count per rule.
const PAIRS_MAX: usize = 1 << 17;

/// Decides what goes to the log, and writes it.
#[derive(Debug)]
pub struct ScopeLog {
    hasher: RandomState,
    seen: HashMap<u64, u32>,
    /// By rule: rejected, and written of them.
    tally: [(u64, u64); Rule::ALL.len()],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    hop_path: String,
    via: Option<&'a str>,
    seed: Option<&'a str>,
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    regex: Option<&'a str>,
}

impl Default for ScopeLog {
    fn default() -> ScopeLog {
        ScopeLog::new()
    }
}

impl ScopeLog {
    pub fn new() -> ScopeLog {
        ScopeLog { hasher: RandomState::new(), seen: HashMap::new(), tally: [(0, 0); Rule::ALL.len()] }
    }

    /// Counts a rejected candidate, and appends its line if it is one of those told. Accepted ones are not: the
    /// crawl's own log tells what became of them.
    pub fn note(
        &mut self,
        now: Timestamp,
        scope: &Scope,
        decision: Decision,
        candidate: &Candidate,
        out: &mut Vec<u8>,
    ) {
        if decision.accept {
            return;
        }
        let place = usize::from(decision.rule.number()) - 1;
        self.tally[place].0 += 1;
        if !self.is_told(decision.rule, candidate.url.host_str()) {
            return;
        }
        self.tally[place].1 += 1;
        let info = Info {
            hop_path: candidate.hops.to_string(),
            via: candidate.via.as_deref(),
            seed: candidate.source.as_deref(),
            host: candidate.url.host_str(),
            regex: decision.pattern.and_then(|index| scope.pattern(index)).map(|(text, _)| text),
        };
        line(now, decision.rule, &candidate.target_uri(), &info, out);
    }

    fn is_told(&mut self, rule: Rule, host: Option<&str>) -> bool {
        let key = self.hasher.hash_one((rule, host));
        let full = self.seen.len() >= PAIRS_MAX && !self.seen.contains_key(&key);
        let key = if full { u64::from(rule.number()) } else { key };
        let count = self.seen.entry(key).or_default();
        *count = count.saturating_add(1);
        *count <= FIRST || count.is_multiple_of(ONE_IN)
    }

    /// Appends one line for each rule that rejected anything: how many, and how many of them were told.
    pub fn close(&self, now: Timestamp, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Closing {
            rejected: u64,
            logged: u64,
        }
        for (rule, (rejected, logged)) in Rule::ALL.into_iter().zip(self.tally) {
            if rejected > 0 {
                line(now, rule, "-", &Closing { rejected, logged }, out);
            }
        }
    }

    /// How many were rejected by each rule.
    pub fn rejected(&self) -> impl Iterator<Item = (Rule, u64)> {
        Rule::ALL.into_iter().zip(self.tally).map(|(rule, (rejected, _))| (rule, rejected))
    }
}

fn line(now: Timestamp, rule: Rule, url: &str, info: &impl Serialize, out: &mut Vec<u8>) {
    use std::io::Write as _;
    push_millis(out, now);
    // Writing plain data to memory cannot fail.
    let _ = write!(out, " {} {} REJECT ", rule.number(), rule.name());
    out.extend(url.bytes().map(|b| if b <= b' ' { b'+' } else { b }));
    out.push(b' ');
    let _ = serde_json::to_writer(&mut *out, info);
    out.push(b'\n');
}
