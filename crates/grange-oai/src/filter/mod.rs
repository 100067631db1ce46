//! Which records are wanted: XPath and regular expressions over each record, as the Illinois harvester has them.
//!
//! ```xml
//! <filters match="any">
//!   <selectionNamespaces>xmlns:dc='http://purl.org/dc/elements/1.1/'</selectionNamespaces>
//!   <filter invert="false" xpath="//dc:subject" regexp="heritage" ignoreCase="true"/>
//! </filters>
//! ```
//!
//! `match` joins the filters, and the nodes within each filter. A filter without any node does not match, in either
//! mode; `invert` turns its answer round, so that with it a record without the field is wanted.

use crate::rules::{BadRules, Document, Expression, File, Pattern, RuleError, attributes, flag};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Any,
    All,
}

#[derive(Debug)]
struct Rule {
    invert: bool,
    expression: Expression,
    pattern: Pattern,
}

/// A filter file that was found good.
#[derive(Debug)]
pub struct Filter {
    joined: Match,
    rules: Vec<Rule>,
}

impl Filter {
    /// Reads a filter file. Whatever in it cannot work is refused here, before any record.
    pub fn parse(xml: &str) -> Result<Filter, BadRules> {
        let file = File::parse(xml)?;
        let root = file.root();
        if root.tag_name().name() != "filters" {
            let reason = format!("the root element is {}; expected filters", root.tag_name().name());
            return Err(BadRules::new("the file", reason));
        }
        let joined = match attributes(root, "filters", &["match"])?.get("match").copied() {
            Some("any") => Match::Any,
            Some("all") | None => Match::All,
            Some(other) => {
                return Err(BadRules::new("filters", format!("match is {other}; expected any or all")));
            }
        };
        let (elements, namespaces) = file.rules("filter")?;
        let mut rules = Vec::with_capacity(elements.len());
        for (number, element) in elements.into_iter().enumerate() {
            let place = format!("filter {}", number + 1);
            let attributes = attributes(element, &place, &["invert", "xpath", "regexp", "ignoreCase"])?;
            let needed = |name: &str| {
                attributes
                    .get(name)
                    .copied()
                    .ok_or_else(|| BadRules::new(&place, format!("{name} is missing")))
            };
            let ignore_case = flag(attributes.get("ignoreCase"), &place, "ignoreCase")?;
            rules.push(Rule {
                invert: flag(attributes.get("invert"), &place, "invert")?,
                expression: Expression::parse(needed("xpath")?, &namespaces, &place)?,
                pattern: Pattern::parse(needed("regexp")?, ignore_case, &place)?,
            });
        }
        Ok(Filter { joined, rules })
    }

    /// Whether a record is wanted.
    pub fn matches(&self, record_xml: &str) -> Result<bool, RuleError> {
        self.matches_document(&Document::parse(record_xml)?)
    }

    /// Whether a record that was parsed already is wanted.
    pub fn matches_document(&self, record: &Document<'_>) -> Result<bool, RuleError> {
        // Without a filter everything is wanted, also where any of them would do.
        if self.rules.is_empty() {
            return Ok(true);
        }
        for rule in &self.rules {
            let matched = rule.matches(record, self.joined)?;
            match self.joined {
                Match::Any if matched => return Ok(true),
                Match::All if !matched => return Ok(false),
                _ => {}
            }
        }
        Ok(self.joined == Match::All)
    }
}

impl Rule {
    fn matches(&self, record: &Document<'_>, joined: Match) -> Result<bool, RuleError> {
        let values = self.expression.values(record)?;
        let mut matched = joined == Match::All && !values.is_empty();
        for value in &values {
            let found = self.pattern.is_in(&value.text)?;
            match joined {
                Match::Any if found => {
                    matched = true;
                    break;
                }
                Match::All if !found => {
                    matched = false;
                    break;
                }
                _ => {}
            }
        }
        Ok(matched != self.invert)
    }
}

#[cfg(test)]
mod tests;
