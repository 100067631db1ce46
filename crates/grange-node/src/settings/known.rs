//! Every key that exists, read off the types: path, doc comment, kind, default.
//!
//! The types are the one source. What is unknown is refused by this list, and the example file, the reference
//! page and `settings explain` are printed from it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

/// One settable key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// `web.listen`; list elements are `[]`, free names are `*`.
    pub path: String,
    pub doc: String,
    /// In words: "text", "whole number", "length of time", "one of auto, human, json", "list of text".
    pub kind: String,
    /// `Value::Null` when unset by default.
    pub default: Value,
    /// Taken as it stands from the environment or `--set`, without quotes.
    pub textual: bool,
}

/// One section with its head comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub path: String,
    pub doc: String,
}

/// All keys and sections, in the order of the types.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub keys: Vec<Key>,
    pub sections: Vec<Section>,
}

impl Known {
    /// Reads the list off a settings type.
    pub fn of<T: JsonSchema + Default + Serialize>() -> Self {
        // Everything in place instead of behind references: the walk below needs no look-ups.
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        // Settings are plain data, so showing the default cannot fail; if it did, defaults show as unset.
        let defaults = serde_json::to_value(T::default()).unwrap_or(Value::Null);
        let mut known = Self::default();
        known.walk("", &schema, &defaults);
        known
    }

    fn walk(&mut self, path: &str, schema: &Value, default: &Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, property) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let doc = doc_of(property);
            if property["properties"].is_object() {
                self.sections.push(Section { path: path.clone(), doc });
                self.walk(&path, property, &default[name]);
            } else if property["items"]["properties"].is_object() {
                self.sections.push(Section { path: format!("{path}[]"), doc });
                self.walk(&format!("{path}[]"), &property["items"], &Value::Null);
            } else if property["additionalProperties"]["properties"].is_object() {
                self.sections.push(Section { path: format!("{path}.*"), doc });
                self.walk(&format!("{path}.*"), &property["additionalProperties"], &Value::Null);
            } else {
                let (kind, textual) = kind_of(property);
                self.keys.push(Key { path, doc, kind, default: default[name].clone(), textual });
            }
        }
    }

    /// The key at a concrete path such as `replicas[2].url` or `web.listen`.
    pub fn key(&self, path: &str) -> Option<&Key> {
        self.keys.iter().find(|key| matches(&key.path, path))
    }

    pub fn is_section(&self, path: &str) -> bool {
        self.sections.iter().any(|section| {
            matches(&section.path, path)
                || section.path.strip_suffix("[]").is_some_and(|list| matches(list, path))
                || section.path.strip_suffix(".*").is_some_and(|map| matches(map, path))
        })
    }

    /// The known key or section nearest in spelling, if any is near enough to be meant.
    pub fn nearest(&self, path: &str) -> Option<&str> {
        let all = self.keys.iter().map(|key| key.path.as_str());
        let all = all.chain(self.sections.iter().map(|section| section.path.as_str()));
        // Half the letters wrong is another word; the last part counts alone too, for keys in the wrong section.
        let leaf = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        all.map(|known| {
            let whole = strsim::normalized_damerau_levenshtein(known, path);
            let last = strsim::normalized_damerau_levenshtein(&leaf(known), &leaf(path));
            (whole.max(last * 0.95), known)
        })
        .filter(|(likeness, _)| *likeness > 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
    }
}

/// Whether a pattern of the list (`a[].b`, `a.*.b`) covers a concrete path (`a[3].b`, `a.x.b`).
fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('.'), path.split('.'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(p), Some(q)) if p == q => {}
            (Some(p), Some(q)) => {
                let listed = p.strip_suffix("[]").zip(q.strip_suffix(']').and_then(|q| q.split_once('[')));
                if listed.is_none_or(|(p, (q, _))| p != q) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn doc_of(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}

/// The kind in words, and whether a bare word is meant as text.
fn kind_of(schema: &Value) -> (String, bool) {
    let choices = choices_of(schema);
    if !choices.is_empty() {
        return (format!("one of {}", choices.join(", ")), true);
    }
    if let Some(title) = schema["title"].as_str() {
        return (title.to_owned(), true);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        _ => schema["anyOf"]
            .as_array()
            .and_then(|options| options.iter().find(|option| option["type"] != "null"))
            .map(|option| return_kind(option))
            .unwrap_or_default(),
    };
    match types.as_slice() {
        ["string"] => ("text".to_owned(), true),
        ["integer"] => ("whole number".to_owned(), false),
        ["number"] => ("number".to_owned(), false),
        ["boolean"] => ("true or false".to_owned(), false),
        ["array"] => (format!("list of {}", kind_of(&schema["items"]).0), false),
        ["object"] => ("table".to_owned(), false),
        _ => ("value".to_owned(), true),
    }
}

fn return_kind(option: &Value) -> Vec<&str> {
    option["type"].as_str().into_iter().collect()
}

/// The names an enum offers, whether written as `enum` or as documented `const`s.
fn choices_of(schema: &Value) -> Vec<&str> {
    let listed = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let documented = schema["oneOf"].as_array().into_iter().flatten().filter_map(|one| one["const"].as_str());
    listed.chain(documented).collect()
}
