//! Layers into one checked value: defaults ← files ← environment ← flags. Tables merge, lists are replaced.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::known::Known;
use super::source::{Layer, Origin};

/// The settings and where each set value came from.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    pub settings: T,
    /// Only what some layer set; everything else is the default.
    pub origins: BTreeMap<String, Origin>,
}

/// One thing wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("cannot read the settings file {}: {reason}; name an existing TOML file with --settings", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}: not TOML: {reason}", path.display())]
    Syntax { path: PathBuf, line: usize, reason: String },
    #[error("--set {flag}: write --set section.key=value")]
    Flag { flag: String },
    #[error("{origin}: unknown key \"{key}\"{}", meant(.nearest.as_deref()))]
    Unknown { key: String, origin: Origin, nearest: Option<String> },
    #[error("{origin}: {key}: {reason}")]
    Value { key: String, origin: Origin, reason: String },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "; `grange settings example` lists all keys".to_owned(),
        |nearest| format!("; did you mean \"{nearest}\"?"),
    )
}

/// Everything wrong with the settings at once, so that they are mended in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Checks every layer against the known keys, merges them and reads the result into the type.
pub fn load<T>(layers: Vec<Layer>, known: &Known) -> Result<Loaded<T>, Problems>
where
    T: DeserializeOwned + JsonSchema + Default + Serialize,
{
    let mut problems = Vec::new();
    let mut merged = Map::new();
    let mut origins = BTreeMap::new();
    for layer in layers {
        unknown(&layer, known, &mut problems);
        merge(&mut merged, layer.values);
        origins.extend(layer.places);
    }
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    match serde_path_to_error::deserialize(Value::Object(merged)) {
        Ok(settings) => Ok(Loaded { settings, origins }),
        Err(error) => {
            let key = error.path().to_string();
            let origin = origin_of(&origins, &key);
            let reason = plain(&error.into_inner().to_string());
            Err(Problems(vec![Problem::Value { key, origin, reason }]))
        }
    }
}

fn unknown(layer: &Layer, known: &Known, problems: &mut Vec<Problem>) {
    for (path, origin) in &layer.places {
        // Below an unknown section every key is unknown; naming the section once is enough.
        let told = problems.iter().any(|problem| match problem {
            Problem::Unknown { key, .. } => {
                path.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']))
            }
            _ => false,
        });
        // List elements that are plain values belong to their list.
        let listed =
            path.ends_with(']') && path.rfind('[').is_some_and(|at| known.key(&path[..at]).is_some());
        if !told && !listed && known.key(path).is_none() && !known.is_section(path) {
            let nearest = known.nearest(path).map(str::to_owned);
            problems.push(Problem::Unknown { key: path.clone(), origin: origin.clone(), nearest });
        }
    }
}

fn merge(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(lower)), Value::Object(upper)) => merge(lower, upper),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The place of a key, or of the nearest thing above it that some layer set.
pub(super) fn origin_of(origins: &BTreeMap<String, Origin>, key: &str) -> Origin {
    let mut path = key;
    loop {
        if let Some(origin) = origins.get(path) {
            return origin.clone();
        }
        match path.rfind(['.', '[']) {
            Some(at) => path = &path[..at],
            None => return Origin::Default,
        }
    }
}

/// serde's wording, without the Rust words in it.
fn plain(reason: &str) -> String {
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    reason
        .replace("invalid type: ", "wrong kind of value: ")
        .replace("a boolean", "true or false")
        .replace("a string", "text")
        .replace("u64", "a whole number")
        .replace("u32", "a whole number")
        .replace("u16", "a whole number up to 65535")
        .replace("usize", "a whole number")
}
