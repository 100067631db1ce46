//! Aliases: a domain that shows another one's site. It is left out of snapshot harvests until the word expires.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::domain_name::DomainName;

/// What a domain is an alias of, and since when that is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alias {
    pub of: DomainName,
    /// When a person last said so.
    #[schemars(with = "String")]
    pub set_at: Timestamp,
}

/// An alias in the list for review, by its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AliasReview {
    pub domain: DomainName,
    #[serde(flatten)]
    pub alias: Alias,
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    pub expired: bool,
}

/// Why one domain cannot be the alias of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    #[error("{0} cannot be an alias of itself")]
    OfItself(DomainName),
    #[error("{of} is itself an alias of {its}: make {domain} an alias of {its} instead")]
    OfAlias { domain: DomainName, of: DomainName, its: DomainName },
    #[error("{domain} has aliases of its own ({}): move them to {of} first", .aliases.join(", "))]
    HasAliases { domain: DomainName, of: DomainName, aliases: Vec<String> },
}

/// The rules: not of itself, and no chains in either direction.
pub fn check(
    domain: &DomainName,
    of: &DomainName,
    of_is_alias_of: Option<&DomainName>,
    aliases_of_domain: &[DomainName],
) -> Result<(), AliasError> {
    if domain == of {
        return Err(AliasError::OfItself(domain.clone()));
    }
    if let Some(its) = of_is_alias_of {
        return Err(AliasError::OfAlias { domain: domain.clone(), of: of.clone(), its: its.clone() });
    }
    if !aliases_of_domain.is_empty() {
        // A line, not a page: the list command shows them all.
        let aliases = aliases_of_domain.iter().take(5).map(ToString::to_string).collect();
        return Err(AliasError::HasAliases { domain: domain.clone(), of: of.clone(), aliases });
    }
    Ok(())
}

impl Alias {
    /// From then on the domain is harvested like any other until somebody renews the alias.
    pub fn expires_at(&self, lifetime: Duration) -> Timestamp {
        self.set_at.checked_add(lifetime).unwrap_or(Timestamp::MAX)
    }

    pub fn expired(&self, lifetime: Duration, now: Timestamp) -> bool {
        self.expires_at(lifetime) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn no_self_and_no_chains() {
        let (a, b, c) = (name("a.dk"), name("b.dk"), name("c.dk"));
        assert_eq!(check(&a, &b, None, &[]), Ok(()));
        assert!(matches!(check(&a, &a, None, &[]), Err(AliasError::OfItself(_))));
        assert!(matches!(check(&a, &b, Some(&c), &[]), Err(AliasError::OfAlias { .. })));
        let error = check(&a, &b, None, std::slice::from_ref(&c)).unwrap_err();
        assert_eq!(error.to_string(), "a.dk has aliases of its own (c.dk): move them to b.dk first");
    }

    #[test]
    fn an_alias_holds_until_its_end_and_not_longer() {
        let set_at: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let alias = Alias { of: name("b.dk"), set_at };
        let year = Duration::from_secs(31_536_000);
        assert_eq!(alias.expires_at(year).to_string(), "2026-01-01T00:00:00Z");
        assert!(!alias.expired(year, "2025-12-31T23:59:59Z".parse().unwrap()));
        assert!(alias.expired(year, "2026-01-01T00:00:00Z".parse().unwrap()));
        assert!(!alias.expired(Duration::MAX, Timestamp::from_second(253_000_000_000).unwrap()));
    }
}
