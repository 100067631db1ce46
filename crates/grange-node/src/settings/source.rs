//! Where values come from: files, `GRANGE_SECTION__KEY` in the environment, `--set section.key=value`.
//! Every value remembers its place, so that a complaint can name the file and the line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::known::Known;
use super::load::Problem;

/// The place of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment { name: String },
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { name } => write!(f, "environment variable {name}"),
            Self::Flag => f.write_str("--set"),
        }
    }
}

/// One layer of values with the place of each key and section.
#[derive(Clone, Debug)]
pub struct Layer {
    pub values: Map<String, Value>,
    pub places: BTreeMap<String, Origin>,
}

impl Layer {
    /// Reads a TOML file. The problem of an unreadable or ill-formed one says where and what to do.
    pub fn file(path: &Path) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Problem::Unreadable { path: path.to_owned(), reason: source.to_string() })?;
        Self::parse(path, &text)
    }

    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Problem> {
        let table = DeTable::parse(text).map_err(|error| Problem::Syntax {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            reason: error.message().to_owned(),
        })?;
        let mut places = BTreeMap::new();
        let place = |at: usize| Origin::File { path: path.to_owned(), line: line_of(text, at) };
        let values = table_values("", table.get_ref(), &place, &mut places);
        Ok(Self { values, places })
    }

    /// The settings among environment variables: those named `GRANGE_SECTION__KEY`, two underscores for the dot.
    pub fn environment(variables: impl Iterator<Item = (String, String)>, known: &Known) -> Self {
        let mut layer = Self { values: Map::new(), places: BTreeMap::new() };
        let mut found: Vec<_> = variables
            .filter_map(|(name, value)| {
                let path = name.strip_prefix("GRANGE_")?;
                path.contains("__")
                    .then(|| (path.to_ascii_lowercase().replace("__", "."), name.clone(), value))
            })
            .collect();
        found.sort();
        for (path, name, value) in found {
            layer.put(&path, &value, Origin::Environment { name }, known);
        }
        layer
    }

    /// The settings of `--set path=value` flags; later ones win.
    pub fn flags(flags: &[String], known: &Known) -> Result<Self, Problem> {
        let mut layer = Self { values: Map::new(), places: BTreeMap::new() };
        for flag in flags {
            let Some((path, value)) = flag.split_once('=') else {
                return Err(Problem::Flag { flag: flag.clone() });
            };
            layer.put(path.trim(), value.trim(), Origin::Flag, known);
        }
        Ok(layer)
    }

    /// Puts one value given as bare text: taken as it stands where the key is textual, as TOML otherwise.
    fn put(&mut self, path: &str, text: &str, origin: Origin, known: &Known) {
        let textual = known.key(path).is_some_and(|key| key.textual);
        let parsed = (!textual).then(|| toml::from_str::<toml::Table>(&format!("v = {text}")).ok()).flatten();
        let value = parsed
            .and_then(|mut table| table.remove("v"))
            .and_then(|value| serde_json::to_value(value).ok())
            .unwrap_or_else(|| Value::String(text.to_owned()));
        let mut place = &mut self.values;
        let mut parts = path.split('.').peekable();
        let mut so_far = String::new();
        while let Some(part) = parts.next() {
            if !so_far.is_empty() {
                so_far.push('.');
            }
            so_far.push_str(part);
            self.places.insert(so_far.clone(), origin.clone());
            if parts.peek().is_none() {
                place.insert(part.to_owned(), value);
                return;
            }
            let below = place.entry(part).or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            let Value::Object(table) = below else { return };
            place = table;
        }
    }
}

fn table_values(
    path: &str,
    table: &DeTable<'_>,
    place: &impl Fn(usize) -> Origin,
    places: &mut BTreeMap<String, Origin>,
) -> Map<String, Value> {
    let mut values = Map::new();
    for (key, value) in table {
        let name = key.get_ref().to_string();
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        places.insert(path.clone(), place(key.span().start));
        values.insert(name, value_of(&path, value.get_ref(), place, places));
    }
    values
}

fn value_of(
    path: &str,
    value: &DeValue<'_>,
    place: &impl Fn(usize) -> Origin,
    places: &mut BTreeMap<String, Origin>,
) -> Value {
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
            let items = items.iter().enumerate().map(|(index, item)| {
                let path = format!("{path}[{index}]");
                places.insert(path.clone(), place(item.span().start));
                value_of(&path, item.get_ref(), place, places)
            });
            Value::Array(items.collect())
        }
        DeValue::Table(table) => Value::Object(table_values(path, table, place, places)),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}
