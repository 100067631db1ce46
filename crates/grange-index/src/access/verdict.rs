//! What comes of all rules about a capture together.

use std::cmp::Reverse;

use super::facts::{CaptureFacts, CapturedUrl, is_crawl_documentation};
use super::rule_set::{CompiledRule, LookupHint, RuleSet, Specificity};
use super::{Decision, Reader};

/// What comes of it.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'r> {
    Visible,
    /// Invisible, with the rule that says so: of several the strictest, then the narrowest.
    Hidden(&'r CompiledRule),
}

impl Verdict<'_> {
    pub const fn is_visible(self) -> bool {
        matches!(self, Self::Visible)
    }
}

/// The part that one rule has in a verdict.
#[derive(Debug, Clone, Copy)]
pub struct RuleEffect<'r> {
    pub rule: &'r CompiledRule,
    pub effect: Effect<'r>,
}

/// What a rule about a capture does for a reader.
#[derive(Debug, Clone, Copy)]
pub enum Effect<'r> {
    /// It hides the capture.
    Hides,
    /// It would hide it, but this one lifts it.
    LiftedBy(&'r CompiledRule),
    /// It restricts the capture, and the reader is one of those who may see it.
    LetsThrough,
    /// It lifts restrictions, those that it can.
    Allows,
    /// It is for other readers.
    ForOthers,
}

impl RuleSet {
    /// Whether a reader sees a capture.
    ///
    /// Every restriction that is for the reader must let them through, or be lifted by an allow that is for them. An allow for
    /// everybody lifts restrictions that are less narrow than it is, so a page can be opened below a blocked host and a file
    /// blocked below that page. An allow for an audience lifts embargoes and limits to networks and users however narrow they
    /// are, for it says that those rules are not meant for this audience; a block it lifts only if it is as narrow: what a
    /// court took down is not opened by a rule about the whole archive.
    ///
    /// A capture that is listed under another key than that of its URL must be visible under both: an allow about the one lifts
    /// nothing of the other.
    pub fn judge(&self, facts: &CaptureFacts<'_>, reader: &Reader<'_>, hint: &LookupHint) -> Verdict<'_> {
        let verdict = self.judge_key(facts, reader, hint);
        if !verdict.is_visible() {
            return verdict;
        }
        // Without rules only the documentation of crawls is hidden: other keys need not be made.
        let Some(key) = facts.url.key_unlike(facts.surt, self.is_empty()) else { return verdict };
        let facts = CaptureFacts { surt: key.as_bytes(), url: CapturedUrl::Unknown, ..*facts };
        self.judge_key(&facts, reader, &LookupHint::default())
    }

    fn judge_key(&self, facts: &CaptureFacts<'_>, reader: &Reader<'_>, hint: &LookupHint) -> Verdict<'_> {
        let embedded = if self.is_empty() { None } else { facts.embedded_key() };
        let rules = self.about(facts, embedded.as_deref(), hint);
        let hiding =
            rules.clone().filter(|rule| matches!(effect(rule, rules.clone(), facts, reader), Effect::Hides));
        hiding.max_by_key(|rule| weight(rule)).map_or(Verdict::Visible, Verdict::Hidden)
    }

    /// The rule that hides all documentation of crawls in a collection, if no allow for the reader speaks of it.
    pub fn hides_documentation(&self, collection: &str, reader: &Reader<'_>) -> Option<&CompiledRule> {
        let documentation = self.documentation();
        let opens = |rule: &CompiledRule| {
            rule.rule.decision == Decision::Allow
                && rule.rule.collection.as_deref().is_none_or(|one| one == collection)
                && rule.is_for(reader)
                && lifts(rule, documentation)
        };
        (!self.rules().iter().any(opens)).then_some(documentation)
    }

    /// Every rule about a capture and what it does for a reader; those that hide it first, the one that decides at the head.
    pub fn explain<'r>(&'r self, facts: &CaptureFacts<'_>, reader: &Reader<'_>) -> Vec<RuleEffect<'r>> {
        let embedded = facts.embedded_key();
        let mut rules: Vec<&CompiledRule> = Vec::new();
        for rule in self.about(facts, embedded.as_deref(), &LookupHint::default()) {
            // One that is about the key and about the URL inside it comes twice.
            if !rules.iter().any(|known| std::ptr::eq(*known, rule)) {
                rules.push(rule);
            }
        }
        let of = |rule| effect(rule, rules.iter().copied(), facts, reader);
        let mut effects: Vec<RuleEffect<'r>> =
            rules.iter().map(|rule| RuleEffect { rule, effect: of(rule) }).collect();
        effects.sort_by_key(|one| Reverse((matches!(one.effect, Effect::Hides), weight(one.rule))));
        effects
    }
}

/// What one of the rules about a capture does, all of them considered.
fn effect<'r>(
    rule: &'r CompiledRule,
    mut all: impl Iterator<Item = &'r CompiledRule>,
    facts: &CaptureFacts<'_>,
    reader: &Reader<'_>,
) -> Effect<'r> {
    if !rule.is_for(reader) {
        return Effect::ForOthers;
    }
    if rule.rule.decision == Decision::Allow {
        return Effect::Allows;
    }
    if rule.shows(facts, reader) {
        return Effect::LetsThrough;
    }
    let lifter = all
        .find(|allow| allow.rule.decision == Decision::Allow && allow.is_for(reader) && lifts(allow, rule));
    lifter.map_or(Effect::Hides, Effect::LiftedBy)
}

/// Whether an allow that is for the reader lifts a restriction.
fn lifts(allow: &CompiledRule, restriction: &CompiledRule) -> bool {
    if restriction.id.is_none() {
        // Only a rule that speaks of documentation opens it.
        return is_crawl_documentation(allow.rule.surt_prefix.as_bytes());
    }
    match restriction.rule.decision {
        _ if allow.rule.audience.is_empty() => allow.specificity() > restriction.specificity(),
        Decision::Block { .. } => allow.specificity() >= restriction.specificity(),
        _ => true,
    }
}

/// Which of several rules is named: the strictest, then the narrowest, then the oldest.
fn weight(rule: &CompiledRule) -> (u8, Specificity, Reverse<Option<i64>>) {
    (rule.strictness(), rule.specificity(), Reverse(rule.id))
}
