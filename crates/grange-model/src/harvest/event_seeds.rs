//! Seeds for an event: pasted by the hundred, sorted here by domain.

use std::collections::BTreeMap;

use super::domain_name::DomainName;
use super::limit::{Limit, Limits};
use super::name::Name;
use super::seeds::{BadLine, domain_of, seed};

/// Seeds by domain, and the lines that were none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSeeds {
    pub by_domain: BTreeMap<DomainName, Vec<String>>,
    pub bad: Vec<BadLine>,
}

/// Sorts pasted lines by domain. Blank lines and lines beginning with `#` or `//` are passed over; a missing scheme
/// is `http://`; bad lines are kept aside and the others used.
pub fn sort(text: &str) -> EventSeeds {
    let mut sorted = EventSeeds::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let placed = seed(line).and_then(|found| {
            let Some(text) = found else { return Ok(None) };
            let url = url::Url::parse(&text).map_err(|error| error.to_string())?;
            Ok(Some((domain_of(&url)?, text)))
        });
        match placed {
            Ok(Some((domain, seed))) => {
                let seeds = sorted.by_domain.entry(domain).or_default();
                if !seeds.contains(&seed) {
                    seeds.push(seed);
                }
            }
            Ok(None) => {}
            Err(reason) => sorted.bad.push(BadLine::new(number, line, reason)),
        }
    }
    sorted
}

/// The name of the configuration and seed list made for a domain of an event:
/// `<harvest>_<template>_<N|Unlimited>Bytes_<N|Unlimited>Objects`.
pub fn configuration_name(harvest: &Name, template: &Name, limits: Limits) -> String {
    let said = |limit: Limit| limit.get().map_or_else(|| "Unlimited".to_owned(), |number| number.to_string());
    format!("{harvest}_{template}_{}Bytes_{}Objects", said(limits.bytes), said(limits.objects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_lines_are_sorted_by_domain_and_bad_ones_kept_aside() {
        let sorted =
            sort("// ours\n# and theirs\n\nhttp://www.a.dk/x\nb.dk\na.dk/y\nhttp://www.a.dk/x\nnot a url\n");
        let shown: Vec<_> =
            sorted.by_domain.iter().map(|(domain, seeds)| format!("{domain}: {}", seeds.join(" "))).collect();
        assert_eq!(shown, ["a.dk: http://www.a.dk/x http://a.dk/y", "b.dk: http://b.dk"]);
        assert_eq!(sorted.bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn the_configuration_says_what_it_is_for() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let limits = Limits { bytes: Limit::of(5000), ..Limits::NONE };
        let made = configuration_name(&name("Valg"), &name("front-page"), limits);
        assert_eq!(made, "Valg_front-page_5000Bytes_UnlimitedObjects");
    }
}
