//! What an XPath expression uses, before any engine sees it. Engines find an unbound prefix or an unknown function
//! only when a record makes them look; rules must be refused before the first record.

use super::Namespaces;

const FUNCTIONS: &[&str] = &[
    "boolean",
    "ceiling",
    "concat",
    "contains",
    "count",
    "false",
    "floor",
    "id",
    "lang",
    "last",
    "local-name",
    "name",
    "namespace-uri",
    "normalize-space",
    "not",
    "number",
    "position",
    "round",
    "starts-with",
    "string",
    "string-length",
    "substring",
    "substring-after",
    "substring-before",
    "sum",
    "translate",
    "true",
];
const NODE_TYPES: &[&str] = &["comment", "node", "processing-instruction", "text"];
const AXES: &[&str] = &[
    "ancestor",
    "ancestor-or-self",
    "attribute",
    "child",
    "descendant",
    "descendant-or-self",
    "following",
    "following-sibling",
    "namespace",
    "parent",
    "preceding",
    "preceding-sibling",
    "self",
];

/// What an expression asks of its engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// The namespace axis.
    pub(super) namespace_axis: bool,
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{B7}')
}

/// Checks the names in an expression.
pub(super) fn check(xpath: &str, namespaces: &Namespaces) -> Result<Uses, String> {
    let mut uses = Uses::default();
    let mut rest = xpath;
    while let Some(first) = rest.chars().next() {
        if matches!(first, '"' | '\'') {
            let end = rest[1..].find(first).ok_or("a string has no closing quote")?;
            rest = &rest[end + 2..];
        } else if first == '$' {
            return Err("variables are not available".into());
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(length);
            rest = after;
            let next = after.trim_start();
            if next.starts_with("::") {
                if !AXES.contains(&name) {
                    return Err(format!("there is no axis {name}"));
                }
                uses.namespace_axis |= name == "namespace";
            } else if let Some(local) = after.strip_prefix(':') {
                if name != "xml" && !namespaces.contains_key(name) {
                    return Err(format!("the prefix {name} is not declared in selectionNamespaces"));
                }
                // The local name is part of this one.
                rest = local.trim_start_matches(is_name_char);
                if rest.trim_start().starts_with('(') {
                    return Err(format!(
                        "there is no function {name}:{}",
                        &local[..local.len() - rest.len()]
                    ));
                }
            } else if next.starts_with('(')
                && !FUNCTIONS.contains(&name)
                && !NODE_TYPES.contains(&name)
                && !["and", "or", "div", "mod"].contains(&name)
            {
                return Err(format!("there is no function {name} in XPath 1.0"));
            }
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_any_record() {
        let namespaces = Namespaces::from([("dc".to_owned(), "urn:dc".to_owned())]);
        for (xpath, wrong) in [
            ("//dc:subject", None),
            ("//dc:*[contains(., 'x:y(z)')]", None),
            ("//text()[. != \"it's\"] | comment()", None),
            ("child::dc:title/following-sibling::*", None),
            ("//@xml:lang", None),
            ("count(//dc:a) div 2 and (1 or (2))", None),
            ("number(3.5) mod (2)", None),
            ("//x:subject", Some("prefix x")),
            ("//dc:a[x:b]", Some("prefix x")),
            ("matches(., 'x')", Some("function matches")),
            ("dc:f(1)", Some("function dc:f")),
            ("$a", Some("variables")),
            ("foo::bar", Some("axis foo")),
            ("'abc", Some("quote")),
        ] {
            let got = check(xpath, &namespaces);
            match wrong {
                None => assert!(got.is_ok(), "{xpath}: {got:?}"),
                Some(wrong) => assert!(got.clone().unwrap_err().contains(wrong), "{xpath}: {got:?}"),
            }
        }
        assert!(check("//namespace::*", &namespaces).unwrap().namespace_axis);
    }
}
