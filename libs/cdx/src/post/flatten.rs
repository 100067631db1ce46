//! JSON bodies: leaf values as arguments under their innermost names.

use super::Spelling;
use super::number::float;
use super::percent::quote_plus;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt::{self, Write as _};

/// The arguments, or `None` if the body is neither JSON nor lines of JSON.
pub(super) fn query(body: &[u8], spelling: Spelling) -> Option<String> {
    let mut leaves = Leaves { out: String::new(), counts: HashMap::new(), spelling };
    if let Ok(value) = serde_json::from_slice::<Json>(body) {
        leaves.push("", &value);
        return Some(leaves.out);
    }
    memchr::memchr(b'\n', body)?;
    for line in body.split(|b| *b == b'\n') {
        leaves.push("", &serde_json::from_slice::<Json>(line).ok()?);
    }
    Some(leaves.out)
}

struct Leaves {
    out: String,
    /// How often each name was used.
    counts: HashMap<String, usize>,
    spelling: Spelling,
}

impl Leaves {
    fn push(&mut self, name: &str, value: &Json) {
        match value {
            Json::Object(fields) => fields.iter().for_each(|(name, value)| self.push(name, value)),
            Json::Array(values) => values.iter().for_each(|value| self.push(name, value)),
            leaf if !name.is_empty() => self.push_leaf(name, &leaf.text(self.spelling)),
            _ => {}
        }
    }

    fn push_leaf(&mut self, name: &str, text: &str) {
        if !self.out.is_empty() {
            self.out.push('&');
        }
        quote_plus(name.as_bytes(), &mut self.out);
        let count = self.counts.entry(name.to_owned()).or_insert(0);
        *count += 1;
        if *count > 1 {
            // A String never fails to be written to.
            let _ = write!(self.out, ".{count}_");
        }
        self.out.push('=');
        quote_plus(text.as_bytes(), &mut self.out);
    }
}

/// JSON with its fields in order. A name that comes twice in one object keeps its place and takes the last value.
enum Json {
    Null,
    Bool(bool),
    Integer(String),
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn text(&self, spelling: Spelling) -> String {
        let modern = spelling == Spelling::Modern;
        match self {
            Self::Null => if modern { "null" } else { "None" }.to_owned(),
            Self::Bool(true) => if modern { "true" } else { "True" }.to_owned(),
            Self::Bool(false) => if modern { "false" } else { "False" }.to_owned(),
            Self::Integer(text) | Self::Text(text) => text.clone(),
            Self::Float(value) => float(*value, spelling),
            Self::Array(_) | Self::Object(_) => String::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Json, S::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Json, M::Error> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if let Some(at) = places.get(&name) {
                fields[*at].1 = value;
            } else {
                places.insert(name.clone(), fields.len());
                fields.push((name, value));
            }
        }
        Ok(Json::Object(fields))
    }
}

/// Rewrites a request body or key that was made with the Python spelling into the modern one, and leaves a
/// modern one as it is. Both sides of a comparison are passed through it.
///
/// The spellings are told apart by whole values only (`=True`, `=None`, `=44.0`), in upper or lower case
/// because keys are lower-cased. A text value `None` is thus taken for the absent value; there is no telling
/// them apart.
///
/// ```
/// use cdx::modern_spelling;
/// assert_eq!(modern_spelling("a=True&b=None&c=44.0&d=Nonesuch&e=1e-05"), "a=true&b=null&c=44&d=Nonesuch&e=0.00001");
/// ```
#[must_use]
pub fn modern_spelling(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    for (i, arg) in query.split('&').enumerate() {
        if i > 0 {
            out.push('&');
        }
        let Some((name, value)) = arg.split_once('=') else {
            out.push_str(arg);
            continue;
        };
        out.push_str(name);
        out.push('=');
        match value {
            "True" => out.push_str("true"),
            "False" => out.push_str("false"),
            "None" | "none" => out.push_str("null"),
            value => {
                // In a request body the sign of an exponent is escaped, in a key it is not.
                let escaped = value.contains("%2B");
                match python_float(&value.replace("%2B", "+")) {
                    Some(number) if escaped => {
                        out.push_str(&float(number, Spelling::Modern).replace('+', "%2B"));
                    }
                    Some(number) => out.push_str(&float(number, Spelling::Modern)),
                    None => out.push_str(value),
                }
            }
        }
    }
    out
}

/// A number that Python prints for a float and JavaScript would print otherwise.
fn python_float(value: &str) -> Option<f64> {
    let looks = value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e'));
    let number: f64 = value.parse().ok().filter(|_| looks && value.contains(['.', 'e']))?;
    (float(number, Spelling::Python) == value).then_some(number)
}
