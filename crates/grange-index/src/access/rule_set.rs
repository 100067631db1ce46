//! Rules looked up by the beginnings of keys.
//!
//! The prefixes are sorted. Every prefix of a key sorts between its own beginning and the key, and whatever sorts between a
//! prefix and the key begins with that prefix: so all prefixes of a key are the greatest one that is not above the key, and
//! the prefixes of that one. Each knows the next shorter one, and a look is one search and a short walk, whatever the
//! number of rules.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::facts::{CaptureFacts, is_crawl_documentation, normal};
use super::network::Network;
use super::{Audience, Decision, Reader, Rule};
use crate::stamp::Stamp;

/// A rule, ready to be asked.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    /// Its number in the database; `None` for the rule that is always there.
    pub id: Option<i64>,
    pub rule: Rule,
    mime: Option<String>,
    times: (Stamp, Stamp),
    audience_networks: Vec<Network>,
    decision_networks: Vec<Network>,
}

/// How narrow a rule is: an exact key before a prefix, a longer prefix before a shorter, a collection before all, a whole MIME
/// type before a kind before all, a shorter span of capture times before a longer.
pub(super) type Specificity = (bool, usize, bool, u8, Reverse<i64>);

/// All rules in force, by key.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<CompiledRule>,
    /// Sorted by prefix, each once.
    prefixes: Vec<Prefix>,
    /// The beginnings of their keys, side by side: a search in a hundred thousand reads some of these and rarely a key.
    heads: Vec<u128>,
    /// The documentation of crawls is hidden unless a rule allows it.
    documentation: CompiledRule,
}

#[derive(Debug)]
struct Prefix {
    key: Box<[u8]>,
    /// The longest other prefix that this one begins with.
    shorter: Option<usize>,
    /// Those of `rules` with this prefix.
    rules: std::ops::Range<usize>,
}

/// Where the last key was found: captures are asked about in the order of their keys, so the next is nearly always at the same
/// place or right behind it. Never changes what is found.
#[derive(Debug, Default)]
pub struct LookupHint(AtomicUsize);

impl Clone for LookupHint {
    fn clone(&self) -> Self {
        Self(AtomicUsize::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Default for RuleSet {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl From<Vec<Rule>> for RuleSet {
    /// Rules without numbers get those of their order, from 1 on.
    fn from(rules: Vec<Rule>) -> Self {
        Self::new((1..).zip(rules).collect())
    }
}

impl RuleSet {
    /// Makes a set of rules and their numbers. Their order does not matter.
    pub fn new(rules: Vec<(i64, Rule)>) -> Self {
        let mut rules: Vec<CompiledRule> =
            rules.into_iter().map(|(id, rule)| CompiledRule::new(Some(id), rule)).collect();
        rules.sort_by(|one, other| one.rule.surt_prefix.as_bytes().cmp(other.rule.surt_prefix.as_bytes()));
        let mut prefixes: Vec<Prefix> = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let key = rule.rule.surt_prefix.as_bytes();
            match prefixes.last_mut() {
                Some(last) if *last.key == *key => last.rules.end = number + 1,
                last => {
                    let mut shorter = last.is_some().then(|| prefixes.len() - 1);
                    while let Some(at) = shorter.filter(|at| !key.starts_with(&prefixes[*at].key)) {
                        shorter = prefixes[at].shorter;
                    }
                    prefixes.push(Prefix { key: key.into(), shorter, rules: number..number + 1 });
                }
            }
        }
        let documentation =
            CompiledRule::new(None, Rule::new("metadata:", Decision::Block { message: String::new() }));
        let heads = prefixes.iter().map(|prefix| head(&prefix.key)).collect();
        Self { rules, prefixes, heads, documentation }
    }

    /// Whether nothing was decided by anybody.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// The rule that is always there.
    pub(super) const fn documentation(&self) -> &CompiledRule {
        &self.documentation
    }

    /// Every rule about a capture.
    pub(super) fn about<'s, 'k>(
        &'s self,
        facts: &'k CaptureFacts<'k>,
        embedded: Option<&'k str>,
        hint: &LookupHint,
    ) -> impl Iterator<Item = &'s CompiledRule> + Clone + use<'s, 'k> {
        let own = self.with_prefix_of(facts.surt, self.place(facts.surt, hint));
        let inside = embedded.map(|key| self.with_prefix_of(key.as_bytes(), self.search(key.as_bytes())));
        let documentation = is_crawl_documentation(facts.surt).then_some(&self.documentation);
        own.chain(inside.into_iter().flatten()).filter(move |rule| rule.is_about(facts)).chain(documentation)
    }

    fn with_prefix_of<'s, 'k>(
        &'s self,
        key: &'k [u8],
        place: usize,
    ) -> impl Iterator<Item = &'s CompiledRule> + Clone + use<'s, 'k> {
        let first = place.checked_sub(1);
        std::iter::successors(first, |at| self.prefixes[*at].shorter)
            .map(|at| &self.prefixes[at])
            .filter(move |prefix| key.starts_with(&prefix.key))
            .flat_map(|prefix| &self.rules[prefix.rules.clone()])
            .filter(move |rule| !rule.rule.exact || key.len() == rule.rule.surt_prefix.len())
    }

    /// How many prefixes are not above a key.
    fn place(&self, key: &[u8], hint: &LookupHint) -> usize {
        let place = hint.0.load(Ordering::Relaxed);
        let start = head(key);
        let not_above = |at: usize| {
            self.heads.get(at).is_some_and(|head| {
                *head < start
                    || *head == start && self.prefixes.get(at).is_some_and(|prefix| *prefix.key <= *key)
            })
        };
        if place <= self.prefixes.len() && (place == 0 || not_above(place - 1)) && !not_above(place) {
            return place;
        }
        let place = self.search(key);
        hint.0.store(place, Ordering::Relaxed);
        place
    }

    fn search(&self, key: &[u8]) -> usize {
        let start = head(key);
        let first = self.heads.partition_point(|head| *head < start);
        let alike = self.heads[first..].partition_point(|head| *head == start);
        first + self.prefixes[first..first + alike].partition_point(|prefix| *prefix.key <= *key)
    }
}

/// The first bytes of a key as a number: of two keys with different ones, that with the smaller is the smaller.
fn head(key: &[u8]) -> u128 {
    let mut head = [0; 16];
    let len = key.len().min(head.len());
    head[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(head)
}

impl CompiledRule {
    fn new(id: Option<i64>, rule: Rule) -> Self {
        let from = rule.captured_from.as_deref().and_then(Stamp::earliest).unwrap_or(Stamp::MIN);
        let to = rule.captured_to.as_deref().and_then(Stamp::latest).unwrap_or(Stamp::MAX);
        let parsed = |text: &String| text.parse::<Network>().ok();
        let audience_networks = rule.audience.iter().filter_map(|one| match one {
            Audience::Network(network) => parsed(network),
            _ => None,
        });
        let decision_networks = match &rule.decision {
            // A network that cannot be read contains nobody: rules fail closed.
            Decision::Networks { networks } => networks.iter().filter_map(parsed).collect(),
            _ => Vec::new(),
        };
        Self {
            id,
            mime: rule.mime.as_deref().map(|mime| normal(mime).into_owned()),
            times: (from, to),
            audience_networks: audience_networks.collect(),
            decision_networks,
            rule,
        }
    }

    /// Whether the rule says anything about a capture whose key fits.
    fn is_about(&self, facts: &CaptureFacts<'_>) -> bool {
        let (from, to) = self.times;
        self.rule.collection.as_deref().is_none_or(|collection| collection == facts.collection)
            && from <= facts.time
            && facts.time <= to
            && self.mime.as_deref().is_none_or(|mime| match self.rule.decision {
                Decision::Allow => facts.media_type.must_be(mime),
                _ => facts.media_type.may_be(mime),
            })
    }

    /// Whether the rule is for a reader.
    pub(super) fn is_for(&self, reader: &Reader<'_>) -> bool {
        self.rule.audience.is_empty()
            || self.rule.audience.iter().any(|one| match one {
                Audience::Staff => reader.staff,
                Audience::Role(role) => reader.role == Some(role),
                Audience::User(user) => is_user(user, reader),
                Audience::Network(_) => false,
            })
            || reader
                .address
                .is_some_and(|address| self.audience_networks.iter().any(|network| network.contains(address)))
    }

    /// Whether the decision lets a reader through.
    pub(super) fn shows(&self, facts: &CaptureFacts<'_>, reader: &Reader<'_>) -> bool {
        match &self.rule.decision {
            Decision::Allow => true,
            Decision::Block { .. } => false,
            Decision::Embargo { seconds } => {
                let until = facts.time.seconds().saturating_add(i64::try_from(*seconds).unwrap_or(i64::MAX));
                reader.now.seconds() >= until
            }
            Decision::Networks { .. } => reader.address.is_some_and(|address| {
                self.decision_networks.iter().any(|network| network.contains(address))
            }),
            Decision::Users { users } => users.iter().any(|user| is_user(user, reader)),
        }
    }

    pub(super) fn specificity(&self) -> Specificity {
        let mime = match self.mime.as_deref() {
            None => 0,
            Some(mime) if mime.ends_with('*') => 1,
            Some(_) => 2,
        };
        let (from, to) = self.times;
        let span = match (from > Stamp::MIN, to < Stamp::MAX) {
            (true, true) => to.seconds() - from.seconds(),
            // A span open at one end is still less than all time.
            (true, false) | (false, true) => i64::MAX - 1,
            (false, false) => i64::MAX,
        };
        (self.rule.exact, self.rule.surt_prefix.len(), self.rule.collection.is_some(), mime, Reverse(span))
    }

    /// How much a decision hides.
    pub(super) const fn strictness(&self) -> u8 {
        match self.rule.decision {
            Decision::Allow => 0,
            Decision::Users { .. } => 1,
            Decision::Networks { .. } => 2,
            Decision::Embargo { .. } => 3,
            Decision::Block { .. } => 4,
        }
    }
}

/// Accounts have names in lower case; a front server may send them otherwise.
fn is_user(name: &str, reader: &Reader<'_>) -> bool {
    reader.user.is_some_and(|user| name == "*" || name == user || name.to_lowercase() == user.to_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys that begin alike for more bytes than a head has, and keys with the byte that fills short heads.
        #[test]
        fn a_place_is_found_as_by_comparing_whole_keys(
            rules in prop::collection::vec("[ab\0]{0,3}(aaaaaaaaaaaaaaa)?[ab\0]{0,3}", 0..20),
            keys in prop::collection::vec("[ab\0]{0,3}(aaaaaaaaaaaaaaa)?[ab\0]{0,3}", 1..6),
        ) {
            let rules: Vec<Rule> = rules.iter().map(|prefix| Rule::new(prefix, Decision::Allow)).collect();
            let (set, hint) = (RuleSet::from(rules), LookupHint::default());
            for key in &keys {
                let expected = set.prefixes.partition_point(|prefix| *prefix.key <= *key.as_bytes());
                prop_assert_eq!(set.search(key.as_bytes()), expected);
                prop_assert_eq!(set.place(key.as_bytes(), &hint), expected);
            }
        }
    }
}
