//! Placeholders: `{name}` in a text of a template, filled for each job.

use serde_json::Value;

/// What placeholders stand for in one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub job_id: String,
    /// The name of the harvest definition.
    pub harvest: String,
    /// Who runs the crawl: a person or an office.
    pub operator: String,
    /// Whom the archive belongs to.
    pub organization: String,
    /// The page that tells web masters who crawls and why.
    pub contact_url: String,
    /// The mail address of the operator.
    pub from: String,
    /// The name of the template itself.
    pub template: String,
}

/// Every placeholder there is.
pub const PLACEHOLDERS: [&str; 7] =
    ["job_id", "harvest", "operator", "organization", "contact_url", "from", "template"];

impl Values {
    pub fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "job_id" => &self.job_id,
            "harvest" => &self.harvest,
            "operator" => &self.operator,
            "organization" => &self.organization,
            "contact_url" => &self.contact_url,
            "from" => &self.from,
            "template" => &self.template,
            _ => return None,
        })
    }
}

/// The names in braces of a text, with where they stand. Braces around anything but a name are left alone.
pub(super) fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
        (end > 0 && rest[end..].starts_with('}')).then(|| (at, &rest[..end]))
    })
}

/// Fills every text of `tree`, but for the tables and keys named in `except`.
pub(super) fn fill(tree: &mut Value, values: &Values, except: &[&str]) {
    walk("", tree, except, &mut |_, text| {
        let mut filled = String::with_capacity(text.len());
        let mut done = 0;
        for (at, name) in names(text) {
            if let Some(value) = values.get(name) {
                filled.push_str(&text[done..at]);
                filled.push_str(value);
                done = at + name.len() + 2;
            }
        }
        filled.push_str(&text[done..]);
        *text = filled;
    });
}

/// Shows every text of `tree` with its key, but for those in `except`.
pub(super) fn walk(path: &str, tree: &mut Value, except: &[&str], show: &mut impl FnMut(&str, &mut String)) {
    if except.contains(&path) {
        return;
    }
    match tree {
        Value::String(text) => show(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(&format!("{path}[{index}]"), item, except, show);
            }
        }
        Value::Object(table) => {
            for (name, value) in table {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(&path, value, except, show);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_in_braces() {
        let found = |text: &'static str| names(text).map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(found("a {job_id} b {x}"), ["job_id", "x"]);
        assert!(found("{} {2,3} {serial:5} {A} { x } {x").is_empty());
        assert_eq!(found("{{from}}"), ["from"]);
    }

    #[test]
    fn every_placeholder_has_a_value() {
        assert!(PLACEHOLDERS.iter().all(|name| Values::default().get(name).is_some()));
        assert_eq!(Values::default().get("nobody"), None);
    }

    #[test]
    fn texts_are_filled_but_for_those_with_braces_of_their_own() {
        let values = Values { job_id: "7".into(), from: "{job_id}".into(), ..Values::default() };
        let mut tree =
            json!({"a": ["job {job_id}{job_id}", 1], "b": {"c": "{from}"}, "d": {"e": "{job_id}"}});
        fill(&mut tree, &values, &["d"]);
        // What was filled in is not filled again.
        assert_eq!(tree, json!({"a": ["job 77", 1], "b": {"c": "{job_id}"}, "d": {"e": "{job_id}"}}));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}a-z_\\PC]{0,40}") {
            let mut tree = json!(text);
            fill(&mut tree, &Values::default(), &[]);
        }
    }
}
