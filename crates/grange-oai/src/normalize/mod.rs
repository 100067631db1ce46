//! Fields added to records as they are harvested, so that a search finds `image` where one repository says `jpeg` and
//! another `photograph`.
//!
//! ```xml
//! <normalize>
//!   <selectionNamespaces>xmlns:dc='http://purl.org/dc/elements/1.1/'</selectionNamespaces>
//!   <mapping xpath="//dc:type">
//!     <newElement name="dc:type" regexp="jpeg" ignoreCase="true"><newValue>image</newValue></newElement>
//!   </mapping>
//! </normalize>
//! ```
//!
//! For each node of a mapping, every `newElement` whose expression is found in it adds one element per `newValue`,
//! behind the last sibling of the node's kind. Expressions see the record as it was harvested; the same element with
//! the same value is added once; everything else in the record stays as it is, to the byte.

mod insert;

use std::borrow::Cow;

use crate::rules::{BadRules, Document, Expression, File, Pattern, RuleError, attributes, flag};
use insert::{Insertions, Name};

#[derive(Debug)]
struct NewElement {
    name: Name,
    pattern: Option<Pattern>,
    values: Vec<String>,
}

#[derive(Debug)]
struct Mapping {
    expression: Expression,
    elements: Vec<NewElement>,
}

/// A normalize file that was found good.
#[derive(Debug)]
pub struct Normalizer {
    mappings: Vec<Mapping>,
}

impl Normalizer {
    /// Reads a normalize file. Whatever in it cannot work is refused here, before any record.
    pub fn parse(xml: &str) -> Result<Normalizer, BadRules> {
        let file = File::parse(xml)?;
        let (elements, namespaces) = file.rules("mapping")?;
        let mut mappings = Vec::with_capacity(elements.len());
        for (number, element) in elements.into_iter().enumerate() {
            let place = format!("mapping {}", number + 1);
            let found = attributes(element, &place, &["xpath"])?;
            let xpath = found.get("xpath").ok_or_else(|| BadRules::new(&place, "xpath is missing"))?;
            let expression = Expression::parse(xpath, &namespaces, &place)?;
            let mut new = Vec::new();
            for child in element.children().filter(roxmltree::Node::is_element) {
                if child.tag_name().name() != "newElement" {
                    let reason =
                        format!("{} is not known here; expected newElement", child.tag_name().name());
                    return Err(BadRules::new(&place, reason));
                }
                let found = attributes(child, &place, &["name", "regexp", "ignoreCase"])?;
                let name = found
                    .get("name")
                    .ok_or_else(|| BadRules::new(&place, "name of newElement is missing"))?;
                let ignore_case = flag(found.get("ignoreCase"), &place, "ignoreCase")?;
                let pattern = found.get("regexp").map(|regexp| Pattern::parse(regexp, ignore_case, &place));
                let values: Vec<String> = child
                    .children()
                    .filter(|value| value.has_tag_name("newValue") || value.tag_name().name() == "newValue")
                    .map(|value| {
                        value
                            .descendants()
                            .filter_map(|node| node.text().filter(|_| node.is_text()))
                            .collect()
                    })
                    .collect();
                if values.is_empty() {
                    return Err(BadRules::new(&place, format!("newElement {name} has no newValue")));
                }
                new.push(NewElement {
                    name: Name::parse(name, &namespaces).map_err(|reason| BadRules::new(&place, reason))?,
                    pattern: pattern.transpose()?,
                    values,
                });
            }
            mappings.push(Mapping { expression, elements: new });
        }
        Ok(Normalizer { mappings })
    }

    /// The record with its new elements.
    pub fn apply<'a>(&self, record_xml: &'a str) -> Result<Cow<'a, str>, RuleError> {
        self.apply_document(&Document::parse(record_xml)?)
    }

    /// The record, parsed already, with its new elements.
    pub fn apply_document<'a>(&self, record: &Document<'a>) -> Result<Cow<'a, str>, RuleError> {
        let mut insertions = Insertions::default();
        for mapping in &self.mappings {
            for found in mapping.expression.values(record)? {
                for element in &mapping.elements {
                    let wanted = match &element.pattern {
                        Some(pattern) => pattern.is_in(&found.text)?,
                        None => true,
                    };
                    for value in element.values.iter().filter(|_| wanted) {
                        insertions.add(record, found.element, &element.name, value);
                    }
                }
            }
        }
        Ok(insertions.apply(record.xml))
    }
}

#[cfg(test)]
mod tests;
