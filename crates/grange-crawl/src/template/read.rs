//! TOML into a type, with the place of everything that is wrong.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::placeholder;
use super::problem::{Place, Problem, TemplateError};
use super::{OWN_BRACES, PLACEHOLDERS};

/// The longest template, in bytes: one with long lists of expressions has some hundred thousand.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Where each key of a text stands.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<String, Place>);

impl Places {
    /// The place of a key, or of the nearest thing above it that the text names.
    pub(super) fn of(&self, key: &str) -> Option<Place> {
        let mut path = key;
        loop {
            if let Some(place) = self.0.get(path) {
                return Some(*place);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// Reads `text` as a `T`. Unknown keys and placeholders are told all at once, a value of the wrong kind alone.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<(T, Places), TemplateError> {
    let one = |place, key: String, reason: String| {
        TemplateError(vec![Problem { place, key, reason, nearest: None }])
    };
    if text.len() > TEXT_BYTES_MAX {
        let reason = format!("the template has {} bytes; at most {TEXT_BYTES_MAX} are read", text.len());
        return Err(one(None, String::new(), reason));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().map(|span| place_of(text, span.start));
        one(place, String::new(), format!("not TOML: {}", error.message()))
    })?;
    let mut reader = Reader { text, places: Places::default() };
    let mut tree = Value::Object(reader.table("", table.get_ref()));
    let places = reader.places;

    let known = schema::<T>();
    let mut problems = Vec::new();
    unknown_keys("", &tree, &known, &known, &places, &mut problems);
    unknown_placeholders(&mut tree, &places, &mut problems);
    if !problems.is_empty() {
        // In the order of the text.
        problems.sort_by_key(|problem| problem.place.map(|place| (place.line, place.column)));
        return Err(TemplateError(problems));
    }
    match serde_path_to_error::deserialize(tree) {
        Ok(value) => Ok((value, places)),
        Err(error) => {
            let key = error.path().to_string();
            let key = if key == "." { String::new() } else { key };
            Err(one(places.of(&key), key, plain(&error.into_inner().to_string())))
        }
    }
}

/// The keys of a type, everything in place instead of behind references.
fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn unknown_keys(
    path: &str,
    tree: &Value,
    schema: &Value,
    root: &Value,
    places: &Places,
    problems: &mut Vec<Problem>,
) {
    match tree {
        Value::Object(table) => {
            // A map of free names, or not a table at all; the latter is told when the value is read.
            let Some(properties) = schema["properties"].as_object() else { return };
            for (name, value) in table {
                let key = below(path, name);
                if let Some(property) = properties.get(name) {
                    unknown_keys(&key, value, property, root, places, problems);
                } else {
                    let reason = "there is no such key".to_owned();
                    let nearest = nearest(&key, root);
                    problems.push(Problem { place: places.of(&key), key, reason, nearest });
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unknown_keys(&format!("{path}[{index}]"), item, &schema["items"], root, places, problems);
            }
        }
        _ => {}
    }
}

fn unknown_placeholders(tree: &mut Value, places: &Places, problems: &mut Vec<Problem>) {
    placeholder::walk("", tree, OWN_BRACES, &mut |path, text| {
        for (_, name) in placeholder::names(text).filter(|(_, name)| !PLACEHOLDERS.contains(name)) {
            problems.push(Problem {
                place: places.of(path),
                key: path.to_owned(),
                reason: format!("{{{name}}} stands for nothing"),
                nearest: closest(name, PLACEHOLDERS.iter().copied()).map(|name| format!("{{{name}}}")),
            });
        }
    });
}

/// The known key that was probably meant.
fn nearest(key: &str, root: &Value) -> Option<String> {
    let mut all = Vec::new();
    collect("", root, &mut all);
    closest(key, all.iter().map(String::as_str)).map(str::to_owned)
}

fn collect(path: &str, schema: &Value, all: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let key = below(path, name);
        collect(&key, property, all);
        all.push(key);
    }
}

/// Half the letters wrong is another word; the last part counts alone too, for keys in the wrong table.
fn closest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    fn leaf(path: &str) -> &str {
        path.rsplit('.').next().unwrap_or(path)
    }
    known
        .map(|known| {
            let whole = strsim::normalized_damerau_levenshtein(known, given);
            let last = strsim::normalized_damerau_levenshtein(leaf(known), leaf(given));
            (whole.max(last * 0.95), known)
        })
        .filter(|(likeness, _)| *likeness > 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Turns TOML into plain values and remembers where each stood.
struct Reader<'a> {
    text: &'a str,
    places: Places,
}

impl Reader<'_> {
    fn table(&mut self, path: &str, table: &DeTable<'_>) -> Map<String, Value> {
        let mut values = Map::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let path = below(path, &name);
            self.places.0.insert(path.clone(), place_of(self.text, key.span().start));
            values.insert(name, self.value(&path, value.get_ref()));
        }
        values
    }

    fn value(&mut self, path: &str, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                i64::from_str_radix(&digits, number.radix()).map_or(Value::String(digits), Value::from)
            }
            DeValue::Float(number) => {
                number.as_str().replace('_', "").parse::<f64>().map_or(Value::Null, Value::from)
            }
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Array(items) => {
                let mut values = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.places.0.insert(path.clone(), place_of(self.text, item.span().start));
                    values.push(self.value(&path, item.get_ref()));
                }
                Value::Array(values)
            }
            DeValue::Table(table) => Value::Object(self.table(path, table)),
        }
    }
}

fn place_of(text: &str, at: usize) -> Place {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

/// serde's wording, without the Rust words in it.
fn plain(reason: &str) -> String {
    // The names of our types say nothing to whoever writes a template.
    let reason = match reason.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => reason.to_owned(),
    };
    reason
        .replace("invalid type: ", "wrong kind of value: ")
        .replace("invalid value: ", "unusable value: ")
        .replace("unknown variant ", "unknown choice ")
        .replace("a boolean", "true or false")
        .replace("a string", "text")
        .replace("expected u8", "expected a whole number up to 255")
        .replace("expected u16", "expected a whole number up to 65535")
        .replace("expected u32", "expected a whole number that is not negative")
        .replace("expected u64", "expected a whole number that is not negative")
        .replace("expected usize", "expected a whole number that is not negative")
        .replace("a sequence", "a list")
        .replace("a map", "a table")
}
