//! The configuration that each seed of a job counts for.
//!
//! A seed list may hold seeds of other domains than its own. Everything such a seed leads to counts for the configuration
//! that holds the seed; otherwise the statistics of the job would miss it.

use std::collections::HashMap;
use std::io;

use grange_model::harvest::{DomainName, JobSpec, seeds};
use url::Url;

use crate::folder::JobFolder;

/// In the job folder: the domain of each configuration with its seeds.
const FILE: &str = "seed-owners.json";

/// The domain of the configuration that a seed, or a domain, counts for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedOwners {
    by_seed: HashMap<String, DomainName>,
    by_domain: HashMap<DomainName, DomainName>,
    /// The domain of the first configuration.
    first: Option<DomainName>,
    /// There are more.
    has_others: bool,
}

impl SeedOwners {
    /// From the domain and the seeds of each configuration. A seed that several configurations hold counts for the first.
    pub fn new(configurations: &[(DomainName, Vec<String>)]) -> SeedOwners {
        let mut owners = SeedOwners::default();
        for (domain, _) in configurations {
            owners.by_domain.insert(domain.clone(), domain.clone());
        }
        for (domain, lines) in configurations {
            for (seed, seed_domain) in lines.iter().filter_map(|line| parsed(line)) {
                owners.by_seed.entry(seed).or_insert_with(|| domain.clone());
                owners.by_domain.entry(seed_domain).or_insert_with(|| domain.clone());
            }
        }
        owners.first = configurations.first().map(|(domain, _)| domain.clone());
        owners.has_others = configurations.len() > 1;
        owners
    }

    /// Keeps in the job folder what the seeds of the job count for.
    pub fn save(folder: &JobFolder, spec: &JobSpec) -> io::Result<()> {
        let configurations: Vec<_> =
            spec.configurations.iter().map(|one| (&one.domain, &one.seeds)).collect();
        folder.save(FILE, &configurations)
    }

    /// Reads what [`SeedOwners::save`] kept. In a folder of an older version every domain counts for itself.
    pub fn load(folder: &JobFolder) -> io::Result<SeedOwners> {
        match folder.load::<Vec<(DomainName, Vec<String>)>>(FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SeedOwners::default()),
            configurations => Ok(SeedOwners::new(&configurations?)),
        }
    }

    /// The domain that a line of the crawl log counts for: `seed` is the seed it descends from, `domain` the domain of
    /// that seed, or of the URL itself where no seed is named. What descends from no seed of the job (a person added one while
    /// the crawl ran) counts for the first configuration, so that the sum of the statistics is that of the log.
    pub fn of_line(&self, seed: Option<&str>, domain: Option<DomainName>) -> Option<DomainName> {
        self.holder_of(seed, domain.as_ref()).or(self.first.as_ref()).cloned().or(domain)
    }

    /// Whether no configuration of the job holds the seed or the domain of a line.
    pub fn is_foreign(&self, seed: Option<&str>, domain: Option<&DomainName>) -> bool {
        self.first.is_some() && self.holder_of(seed, domain).is_none()
    }

    /// The domain of the configuration that holds the seed or the domain of a line.
    fn holder_of(&self, seed: Option<&str>, domain: Option<&DomainName>) -> Option<&DomainName> {
        let by_seed = seed.and_then(|seed| self.by_seed.get(&parsed(seed)?.0));
        let by_domain = || domain.and_then(|domain| self.by_domain.get(domain));
        by_seed.or_else(by_domain).or(self.first.as_ref().filter(|_| !self.has_others))
    }

    /// The domain that a domain counts for if it has a configuration or a seed; otherwise itself.
    pub fn of_domain(&self, domain: DomainName) -> DomainName {
        self.by_domain.get(&domain).cloned().unwrap_or(domain)
    }
}

/// A seed as crawl logs have it, and its domain.
fn parsed(line: &str) -> Option<(String, DomainName)> {
    let mut url = Url::parse(&seeds::seed(line).ok()??).ok()?;
    // A fragment is not part of a request; logs may have it or not.
    url.set_fragment(None);
    let domain = seeds::domain_of(&url).ok()?;
    Some((url.into(), domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_counts_for_the_configuration_that_holds_it() {
        let name = |text: &str| text.parse::<DomainName>().unwrap();
        let lists = |lists: &[(&str, &[&str])]| {
            let list = |(domain, seeds): &(&str, &[&str])| {
                (name(domain), seeds.iter().map(|seed| (*seed).to_owned()).collect())
            };
            SeedOwners::new(&lists.iter().map(list).collect::<Vec<_>>())
        };
        let two = lists(&[
            ("a.dk", &["http://www.a.dk", "social.org/a#top", "https://b.dk/from-a"]),
            ("b.dk", &["http://b.dk/", "http://social.org/a", "http://SOCIAL.org/b"]),
        ]);
        let one = lists(&[("a.dk", &["http://social.org/a"])]);
        let none = SeedOwners::default();
        for (owners, seed, domain, expected) in [
            (&two, Some("http://www.a.dk/"), "a.dk", "a.dk"),
            (&two, Some("http://social.org/a"), "social.org", "a.dk"),
            (&two, Some("http://social.org/b"), "social.org", "b.dk"),
            (&two, Some("https://b.dk/from-a"), "b.dk", "a.dk"),
            // A seed that was added while the crawl ran, and a line without a seed.
            (&two, Some("http://social.org/new"), "social.org", "a.dk"),
            (&two, None, "b.dk", "b.dk"),
            (&two, None, "cdn.net", "a.dk"),
            // A seed of a domain that no configuration has, added while the crawl ran.
            (&two, Some("http://ordered.org/"), "ordered.org", "a.dk"),
            // Where there is but one configuration, everything is its own.
            (&one, Some("http://new.org/"), "new.org", "a.dk"),
            (&none, Some("http://social.org/a"), "social.org", "social.org"),
        ] {
            let found = owners.of_line(seed, Some(name(domain)));
            assert_eq!(found, Some(name(expected)), "{seed:?} {domain}");
        }
        assert_eq!(one.of_line(None, None), Some(name("a.dk")));
        for (owners, expected) in [(&two, true), (&one, false), (&none, false)] {
            assert_eq!(owners.is_foreign(Some("http://ordered.org/"), Some(&name("ordered.org"))), expected);
        }
        assert_eq!(one.of_domain(name("social.org")), name("a.dk"));
        assert_eq!(one.of_domain(name("cdn.net")), name("cdn.net"));
    }
}
