//! Rules 2 and 5: SURT prefixes.

use std::collections::HashSet;

use urlkey::{SurtPrefix, SurtPrefixSet, scope_surt};

use super::settings::ScopeKind;

/// What lies under a seed or under a listed prefix.
#[derive(Clone, Debug, Default)]
pub(super) struct AcceptSurts {
    everything: bool,
    prefixes: SurtPrefixSet,
    /// SURTs of single pages.
    pages: HashSet<String>,
}

impl AcceptSurts {
    pub(super) fn new(kind: ScopeKind, listed: &[String]) -> AcceptSurts {
        let prefixes = listed.iter().filter_map(|line| SurtPrefix::parse_line(line)).collect();
        AcceptSurts { everything: kind == ScopeKind::Any, prefixes, pages: HashSet::new() }
    }

    pub(super) fn insert(&mut self, surts: SeedSurts) {
        match surts {
            SeedSurts::Everything => self.everything = true,
            SeedSurts::Under(prefix) => self.prefixes.insert(prefix),
            SeedSurts::Page(surt) => {
                self.pages.insert(surt);
            }
        }
    }

    pub(super) fn insert_all(&mut self, other: &AcceptSurts) {
        self.everything |= other.everything;
        self.prefixes.insert_all(&other.prefixes);
        self.pages.extend(other.pages.iter().cloned());
    }

    /// Whether all that `surts` stands for is taken already.
    pub(super) fn covers(&self, surts: &SeedSurts) -> bool {
        match surts {
            SeedSurts::Everything => self.everything,
            SeedSurts::Under(prefix) => self.prefixes.matches(prefix.as_str()),
            SeedSurts::Page(surt) => self.pages.contains(surt),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.everything && self.pages.is_empty() && self.prefixes.iter().next().is_none()
    }

    pub(super) fn takes(&self, surt: &str) -> bool {
        self.everything
            || self.prefixes.matches(surt)
            || (!self.pages.is_empty() && self.pages.contains(surt))
    }
}

/// The SURTs that a seed puts into scope.
#[derive(Clone, Debug)]
pub(super) enum SeedSurts {
    Everything,
    Under(SurtPrefix),
    Page(String),
}

impl SeedSurts {
    /// What `seed` stands for in a scope of this kind; none if it is not a URL with a host.
    pub(super) fn of(kind: ScopeKind, seed: &str) -> Option<SeedSurts> {
        let prefix = match kind {
            ScopeKind::Domain => SurtPrefix::domain(seed),
            ScopeKind::Host => SurtPrefix::host(seed),
            ScopeKind::Path => SurtPrefix::from_seed(&with_path(seed)),
            ScopeKind::Seed => SurtPrefix::from_seed(seed),
            ScopeKind::Any => return SurtPrefix::host(seed).map(|_| SeedSurts::Everything),
            ScopeKind::Page => {
                SurtPrefix::host(seed)?;
                let page = scope_surt(seed).or_else(|| scope_surt(&format!("http://{seed}")));
                return page.map(SeedSurts::Page);
            }
        };
        prefix.map(SeedSurts::Under)
    }
}

/// A seed with no path at all means its root folder here.
fn with_path(seed: &str) -> String {
    let after_scheme = seed.split_once("://").map_or(seed, |(_, rest)| rest);
    if after_scheme.contains(['/', '?', '#']) { seed.to_owned() } else { format!("{seed}/") }
}

/// What lies under a rejected prefix.
#[derive(Clone, Debug, Default)]
pub(super) struct RejectSurts {
    prefixes: SurtPrefixSet,
    empty: bool,
}

impl RejectSurts {
    pub(super) fn new(listed: &[String]) -> RejectSurts {
        let prefixes: SurtPrefixSet = listed.iter().filter_map(|line| SurtPrefix::parse_line(line)).collect();
        let empty = prefixes.iter().next().is_none();
        RejectSurts { prefixes, empty }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(super) fn takes(&self, surt: &str) -> bool {
        !self.empty && self.prefixes.matches(surt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(accept: &mut AcceptSurts, kind: ScopeKind, seed: &str) -> bool {
        SeedSurts::of(kind, seed).map(|surts| accept.insert(surts)).is_some()
    }

    #[test]
    fn a_seed_stands_for_what_the_kind_says() {
        let seed = "https://www.example.co.uk/a/b.html?q";
        for (kind, inside, outside) in [
            (
                ScopeKind::Domain,
                &["http://example.co.uk/", "https://shop.example.co.uk/x", "http://www.example.co.uk:8080/"]
                    [..],
                &["http://example2.co.uk/", "http://co.uk/", "http://xexample.co.uk/"][..],
            ),
            (
                ScopeKind::Host,
                &["http://www.example.co.uk/", "http://www.example.co.uk/c?d"],
                &["http://example.co.uk/", "http://a.www.example.co.uk/"],
            ),
            (
                ScopeKind::Path,
                &["http://www.example.co.uk/a/", "https://www.example.co.uk/a/c/d"],
                &["http://www.example.co.uk/a", "http://www.example.co.uk/ab/", "http://www.example.co.uk/"],
            ),
            (
                ScopeKind::Page,
                &["http://www.example.co.uk/a/b.html?q"],
                &["http://www.example.co.uk/a/b.html", "http://www.example.co.uk/a/b.html?q=1"],
            ),
            (ScopeKind::Any, &["http://anything.example/"], &[]),
        ] {
            let mut accept = AcceptSurts::new(kind, &[]);
            assert!(insert(&mut accept, kind, seed));
            for url in inside {
                assert!(accept.takes(&scope_surt(url).unwrap()), "{kind:?} {url}");
            }
            for url in outside {
                assert!(!accept.takes(&scope_surt(url).unwrap()), "{kind:?} {url}");
            }
        }
    }

    #[test]
    fn a_seed_without_a_path_is_taken_as_heritrix_does() {
        let takes = |kind, seed: &str, url: &str| {
            let mut accept = AcceptSurts::new(kind, &[]);
            assert!(insert(&mut accept, kind, seed));
            accept.takes(&scope_surt(url).unwrap())
        };
        assert!(takes(ScopeKind::Seed, "http://example.com", "http://sub.example.com/"));
        assert!(!takes(ScopeKind::Seed, "http://example.com/", "http://sub.example.com/"));
        assert!(!takes(ScopeKind::Path, "http://example.com", "http://sub.example.com/"));
        assert!(takes(ScopeKind::Path, "http://example.com", "http://example.com/a"));
        assert!(takes(ScopeKind::Page, "example.com/a", "https://example.com/a"));
    }

    #[test]
    fn what_is_no_seed_is_told() {
        for kind in [ScopeKind::Domain, ScopeKind::Host, ScopeKind::Path, ScopeKind::Page, ScopeKind::Any] {
            let mut accept = AcceptSurts::new(kind, &[]);
            assert!(!insert(&mut accept, kind, "mailto:a@b"), "{kind:?}");
            assert!(!insert(&mut accept, kind, ""), "{kind:?}");
        }
    }

    #[test]
    fn listed_prefixes_are_taken_in_every_form() {
        let listed = ["http://(com,a,", "org,b,", "+https://c.net/d/x", "# none", ""].map(str::to_owned);
        let accept = AcceptSurts::new(ScopeKind::Host, &listed);
        let reject = RejectSurts::new(&listed);
        for (url, takes) in [
            ("http://x.a.com/", true),
            ("https://b.org/", true),
            ("http://c.net/d/y", true),
            ("http://c.net/e", false),
        ] {
            let surt = scope_surt(url).unwrap();
            assert_eq!((accept.takes(&surt), reject.takes(&surt)), (takes, takes), "{url}");
        }
        assert!(!reject.is_empty() && RejectSurts::new(&[]).is_empty() && !accept.is_empty());
    }

    #[test]
    fn a_seed_with_a_port_puts_its_own_pages_into_scope() {
        for (kind, seed, page, taken) in [
            (ScopeKind::Domain, "http://127.0.0.1:8080/", "http://127.0.0.1:8080/a", true),
            (ScopeKind::Domain, "http://127.0.0.1:8080/", "http://127.0.0.10:8080/a", false),
            (ScopeKind::Domain, "http://example.com:8080/", "http://www.example.com/a", true),
            (ScopeKind::Host, "http://example.com:8080/", "http://example.com:8080/a", true),
            (ScopeKind::Host, "http://example.com/", "http://example.com/a", true),
            (ScopeKind::Host, "http://[::1]:8080/", "http://[::1]:8080/a", true),
        ] {
            let mut accept = AcceptSurts::new(kind, &[]);
            assert!(insert(&mut accept, kind, seed));
            assert_eq!(accept.takes(&scope_surt(page).unwrap()), taken, "{kind:?} {seed} {page}");
        }
    }
}
