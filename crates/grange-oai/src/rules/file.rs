//! The XML form of rules, as the University of Illinois harvester defined it. Read strictly: a misspelt attribute
//! would otherwise silently let every record through.

use std::collections::BTreeMap;

use roxmltree::Node;

use super::BadRules;

/// Prefixes that expressions may use.
pub(crate) type Namespaces = BTreeMap<String, String>;

/// A file of rules, parsed as XML.
pub(crate) struct File<'a>(roxmltree::Document<'a>);

impl<'a> File<'a> {
    pub(crate) fn parse(xml: &'a str) -> Result<File<'a>, BadRules> {
        let xml = xml.trim_start_matches('\u{feff}').trim_start();
        let options = roxmltree::ParsingOptions { allow_dtd: false, ..roxmltree::ParsingOptions::default() };
        let parsed = roxmltree::Document::parse_with_options(xml, options);
        parsed.map(File).map_err(|error| BadRules::new("the file", format!("not well-formed XML: {error}")))
    }

    pub(crate) fn root(&self) -> Node<'_, 'a> {
        self.0.root_element()
    }

    /// The elements below the root, and the namespaces of `selectionNamespaces` and of the root itself.
    pub(crate) fn rules(&self, name: &str) -> Result<(Vec<Node<'_, 'a>>, Namespaces), BadRules> {
        let declared = self.root().namespaces().filter_map(|namespace| {
            let prefix = namespace.name().filter(|prefix| *prefix != "xml")?;
            Some((prefix.to_owned(), namespace.uri().to_owned()))
        });
        let mut namespaces: Namespaces = declared.collect();
        let mut rules = Vec::new();
        for element in self.root().children().filter(Node::is_element) {
            match element.tag_name().name() {
                "selectionNamespaces" => {
                    selection_namespaces(&text_of(element), &mut namespaces)
                        .map_err(|reason| BadRules::new("selectionNamespaces", reason))?;
                }
                found if found == name => rules.push(element),
                found => {
                    let reason = format!("{found} is not known here; expected {name} or selectionNamespaces");
                    return Err(BadRules::new(self.root().tag_name().name(), reason));
                }
            }
        }
        Ok((rules, namespaces))
    }
}

/// The text directly inside an element.
pub(crate) fn text_of(element: Node<'_, '_>) -> String {
    element.children().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

/// The attributes of an element, which must all be among those known.
pub(crate) fn attributes<'a>(
    element: Node<'a, '_>,
    place: &str,
    known: &[&str],
) -> Result<BTreeMap<&'a str, &'a str>, BadRules> {
    let mut found = BTreeMap::new();
    for attribute in element.attributes().filter(|attribute| attribute.namespace().is_none()) {
        if !known.contains(&attribute.name()) {
            let reason =
                format!("the attribute {} is not known; expected {}", attribute.name(), known.join(", "));
            return Err(BadRules::new(place, reason));
        }
        found.insert(attribute.name(), attribute.value());
    }
    Ok(found)
}

/// `true` or `false`, which is also what an absent attribute means.
pub(crate) fn flag(value: Option<&&str>, place: &str, name: &str) -> Result<bool, BadRules> {
    match value.map(|value| value.trim().to_ascii_lowercase()).as_deref() {
        None | Some("false" | "0" | "no" | "") => Ok(false),
        Some("true" | "1" | "yes" | "-1") => Ok(true),
        Some(other) => Err(BadRules::new(place, format!("{name} is {other}; expected true or false"))),
    }
}

/// `xmlns:dc='…' xmlns:x="…"`, as the property of that name in Microsoft's parser takes it.
fn selection_namespaces(text: &str, namespaces: &mut Namespaces) -> Result<(), String> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let wrong = || format!("expected xmlns:prefix='namespace' at: {rest}");
        let (name, after) = rest.split_once('=').ok_or_else(wrong)?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\'')).ok_or_else(wrong)?;
        let (uri, after) = after[1..].split_once(quote).ok_or_else(wrong)?;
        match name.trim().strip_prefix("xmlns") {
            // A default namespace is of no use in XPath 1.0, and harmless.
            Some("") => {}
            Some(prefix) if prefix.len() > 1 && prefix.starts_with(':') && !uri.is_empty() => {
                namespaces.insert(prefix[1..].to_owned(), uri.to_owned());
            }
            _ => return Err(wrong()),
        }
        rest = after.trim_start();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_namespaces_are_read_as_microsoft_wrote_them() {
        for (text, bound) in [
            ("xmlns:dc='http://purl.org/dc/elements/1.1/'", Some("dc=http://purl.org/dc/elements/1.1/")),
            (" xmlns:a='urn:a'\n\txmlns:b = \"urn:b\" ", Some("a=urn:a b=urn:b")),
            ("xmlns='urn:x' xmlns:a='urn:a'", Some("a=urn:a")),
            ("", Some("")),
            ("xmlns:a=urn:a", None),
            ("dc='urn:a'", None),
            ("xmlns:='urn:a'", None),
            ("xmlns:a='urn:a", None),
            ("xmlns:a=''", None),
        ] {
            let mut namespaces = Namespaces::new();
            let read = selection_namespaces(text, &mut namespaces);
            let got = namespaces
                .iter()
                .map(|(prefix, uri)| format!("{prefix}={uri}"))
                .collect::<Vec<_>>()
                .join(" ");
            assert_eq!(read.is_ok().then_some(got.as_str()), bound, "{text}");
        }
    }
}
