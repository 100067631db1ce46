//! What each registrable domain cost, as the harvest database wants to know it.

use std::collections::BTreeMap;

use urlkey::{Suffixes, registrable_domain};

use super::host::{host_of, is_pseudo};
use super::statistics::Statistics;

/// One domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainTally {
    /// Answers, prerequisites and error pages among them.
    pub objects: u64,
    pub bytes: u64,
}

/// Answers by domain: that of the seed a URI descends from, for embeds from elsewhere are part of the page; where
/// no seed is known, that of the URI. An address is its own domain.
pub fn domain_tallies(statistics: &Statistics) -> BTreeMap<String, DomainTally> {
    let mut domains: BTreeMap<String, DomainTally> = BTreeMap::new();
    let mut add = |domain: &str, objects: u64, bytes: u64| {
        let tally = domains.entry(domain.to_owned()).or_default();
        tally.objects += objects;
        tally.bytes = tally.bytes.saturating_add(bytes);
    };
    let mut rest: BTreeMap<&str, (u64, u64)> =
        statistics.hosts().map(|(name, host)| (name, (host.succeeded.urls, host.succeeded.bytes))).collect();
    for (source, host, tally) in statistics.sources() {
        add(&domain_of(&host_of(source)), tally.urls, tally.bytes);
        if let Some((objects, bytes)) = rest.get_mut(host) {
            *objects = objects.saturating_sub(tally.urls);
            *bytes = bytes.saturating_sub(tally.bytes);
        }
    }
    for (host, (objects, bytes)) in rest {
        if objects > 0 && !is_pseudo(host) {
            add(&domain_of(host), objects, bytes);
        }
    }
    domains
}

fn domain_of(host: &str) -> String {
    registrable_domain(host, Suffixes::All).unwrap_or(host).to_owned()
}
