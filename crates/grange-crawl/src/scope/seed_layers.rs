//! The part of a scope that comes from seeds, in layers that successive scopes share.
//!
//! A crawl of many seeds gains many more by redirects, one at a time, and each makes a new scope. A new layer is merged
//! with the one below it only when it has become as large, so an entry is copied once for each doubling of its layer: 15
//! times for 20,000 seeds, where one set would have been copied 20,000 times. A lookup asks as many layers at most.

use std::collections::HashSet;
use std::sync::Arc;

use url::Url;
use urlkey::{Suffixes, registrable_domain};

use super::chain::ScopeError;
use super::settings::ScopeKind;
use super::surts::{AcceptSurts, SeedSurts};
use crate::candidate::without_user_info;

/// What all seeds and listed SURTs stand for. A copy costs little.
#[derive(Clone, Debug)]
pub(super) struct SeedLayers {
    /// Each larger than the next. What is in one is in no other.
    layers: Vec<Arc<SeedLayer>>,
}

#[derive(Clone, Debug, Default)]
struct SeedLayer {
    accept: AcceptSurts,
    /// The registrable domains of the seeds.
    domains: HashSet<String>,
    /// How many entries it was made of.
    entries: usize,
}

impl SeedLayers {
    /// The listed SURTs and the seeds of a job.
    pub(super) fn new<S: AsRef<str>>(
        listed: AcceptSurts,
        seeds: &[S],
        count_as: Option<ScopeKind>,
    ) -> Result<SeedLayers, ScopeError> {
        let first = SeedLayer { accept: listed, ..SeedLayer::default() };
        SeedLayers { layers: vec![Arc::new(first)] }.with(seeds, count_as)
    }

    /// These and more seeds: all of them, or none if one is not a URL. Without `count_as` nothing comes into scope, and
    /// their domains alone are noted.
    pub(super) fn with<S: AsRef<str>>(
        &self,
        seeds: &[S],
        count_as: Option<ScopeKind>,
    ) -> Result<SeedLayers, ScopeError> {
        let mut fresh = SeedLayer::default();
        for seed in seeds {
            let seed = seed.as_ref();
            if let Some(domain) = seed_domain(seed).filter(|domain| !self.has_domain(domain)) {
                fresh.entries += usize::from(fresh.domains.insert(domain));
            }
            let Some(kind) = count_as else { continue };
            let surts = SeedSurts::of(kind, seed)
                .ok_or_else(|| ScopeError::Seed(without_user_info(seed).chars().take(200).collect()))?;
            if !self.layers.iter().any(|layer| layer.accept.covers(&surts)) {
                fresh.accept.insert(surts);
                fresh.entries += 1;
            }
        }
        let mut layers = self.layers.clone();
        if fresh.entries > 0 {
            while let Some(below) = layers.pop_if(|below| below.entries <= fresh.entries) {
                fresh = below.merged(fresh);
            }
            layers.push(Arc::new(fresh));
        }
        Ok(SeedLayers { layers })
    }

    pub(super) fn takes(&self, surt: &str) -> bool {
        self.layers.iter().any(|layer| layer.accept.takes(surt))
    }

    pub(super) fn has_domain(&self, domain: &str) -> bool {
        self.layers.iter().any(|layer| layer.domains.contains(domain))
    }
}

impl SeedLayer {
    /// Both. The one that is not shared takes the other in.
    fn merged(&self, mut other: SeedLayer) -> SeedLayer {
        other.accept.insert_all(&self.accept);
        other.domains.extend(self.domains.iter().cloned());
        other.entries += self.entries;
        other
    }
}

fn seed_domain(seed: &str) -> Option<String> {
    let url = Url::parse(seed).ok().filter(Url::has_host);
    let url = url.or_else(|| Url::parse(&format!("http://{seed}")).ok())?;
    let host = url.host_str()?;
    Some(registrable_domain(host, Suffixes::All).unwrap_or(host).to_owned())
}

#[cfg(test)]
mod tests {
    use urlkey::scope_surt;

    use super::*;

    fn of_hosts(hosts: impl Iterator<Item = String>) -> SeedLayers {
        let seeds: Vec<_> = hosts.map(|host| format!("http://{host}/")).collect();
        SeedLayers::new(AcceptSurts::new(ScopeKind::Host, &[]), &seeds, Some(ScopeKind::Host)).unwrap()
    }

    /// The entries of layers that were made anew.
    fn copied(before: &SeedLayers, after: &SeedLayers) -> usize {
        let is_shared = |layer: &&Arc<SeedLayer>| before.layers.iter().any(|old| Arc::ptr_eq(old, layer));
        after.layers.iter().filter(|layer| !is_shared(layer)).map(|layer| layer.entries).sum()
    }

    #[test]
    fn a_gained_seed_copies_a_few_entries_however_many_seeds_there_are() {
        const MANY: usize = 4096;
        let mut layers = of_hosts((0..MANY).map(|n| format!("site{n}.example")));
        let mut all_copied = 0;
        for n in 0..MANY {
            let next = layers.with(&[format!("http://www.site{n}.example/")], Some(ScopeKind::Host)).unwrap();
            all_copied += copied(&layers, &next);
            layers = next;
        }
        // One set for all would have copied 25,000,000.
        assert!(all_copied <= MANY * 14, "{all_copied}");
        assert!(layers.layers.len() <= 14, "{}", layers.layers.len());
        for n in [0, 1, MANY / 2, MANY - 1] {
            for host in [format!("site{n}.example"), format!("www.site{n}.example")] {
                assert!(layers.takes(&scope_surt(&format!("http://{host}/a")).unwrap()), "{host}");
            }
            assert!(layers.has_domain(&format!("site{n}.example")));
        }
        assert!(!layers.takes(&scope_surt("http://other.example/").unwrap()));
        assert!(!layers.has_domain("other.example"));
    }

    #[test]
    fn a_seed_that_is_in_scope_already_adds_nothing() {
        let layers = of_hosts(["a.example".to_owned()].into_iter());
        let same = layers.with(&["https://a.example/start"], Some(ScopeKind::Host)).unwrap();
        assert_eq!(copied(&layers, &same), 0);
        let page = layers.with(&["http://a.example/b"], Some(ScopeKind::Page)).unwrap();
        assert_eq!(copied(&page, &page.with(&["http://a.example/b"], Some(ScopeKind::Page)).unwrap()), 0);
    }

    #[test]
    fn seeds_that_put_nothing_into_scope_still_have_a_domain() {
        let layers =
            of_hosts(["a.example".to_owned()].into_iter()).with(&["http://b.example/"], None).unwrap();
        assert!(layers.has_domain("b.example") && !layers.takes(&scope_surt("http://b.example/").unwrap()));
    }
}
