//! The JSON block of a CDXJ line, field by field, borrowing from the line where it can.

use crate::entry::Entry;
use crate::parse::{LineProblem, original, status};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, de};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Reads `block` into `entry`.
pub(crate) fn read_block<'a>(block: &'a str, entry: &mut Entry<'a>, problems: &mut Vec<LineProblem>) {
    let mut json = serde_json::Deserializer::from_str(block);
    let seed = Block { entry, problems };
    if seed.deserialize(&mut json).is_err() {
        problems.push(LineProblem::BadJson);
    }
}

struct Block<'e, 'a> {
    entry: &'e mut Entry<'a>,
    problems: &'e mut Vec<LineProblem>,
}

impl<'a> DeserializeSeed<'a> for Block<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Block<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(name)) = map.next_key()? {
            let value = map.next_value::<Scalar<'a>>()?;
            self.set(name, value);
        }
        Ok(())
    }
}

impl<'a> Block<'_, 'a> {
    fn set(&mut self, name: Cow<'a, str>, value: Scalar<'a>) {
        let entry = &mut *self.entry;
        // pywb has used several names for some fields over the years.
        let text = match name.as_ref() {
            "url" => &mut entry.url,
            "mime" | "mimetype" => &mut entry.mime,
            "digest" => &mut entry.digest,
            "redirect" => &mut entry.redirect,
            "robotflags" => &mut entry.robots,
            "filename" => &mut entry.filename,
            "recordDigest" => &mut entry.record_digest,
            "requestBody" => &mut entry.request_body,
            "method" => &mut entry.method,
            "orig.filename" => {
                if let Some(text) = value.text() {
                    original(entry).filename = Some(text);
                }
                return;
            }
            "status" | "statuscode" => {
                if let Some(text) = value.text().filter(|text| !matches!(text.as_ref(), "" | "-")) {
                    entry.status = status(&text, self.problems);
                }
                return;
            }
            "length" => return entry.length = number(&value, LineProblem::BadLength, self.problems),
            "offset" => return entry.offset = number(&value, LineProblem::BadOffset, self.problems),
            "orig.length" => {
                return original(entry).length = number(&value, LineProblem::BadLength, self.problems);
            }
            "orig.offset" => {
                return original(entry).offset = number(&value, LineProblem::BadOffset, self.problems);
            }
            _ => return entry.extra.push((name, value.into_value())),
        };
        *text = value.text();
    }
}

fn number(value: &Scalar<'_>, problem: LineProblem, problems: &mut Vec<LineProblem>) -> Option<u64> {
    let text = match value {
        Scalar::Text(text) => text,
        Scalar::Other(Value::Number(number)) if number.is_u64() => return number.as_u64(),
        Scalar::Other(Value::Null) => return None,
        Scalar::Other(_) => "?",
    };
    if text.is_empty() || text == "-" {
        return None;
    }
    let number = text.parse().ok();
    if number.is_none() {
        problems.push(problem);
    }
    number
}

/// A name, borrowed when it holds no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(json: D) -> Result<Self, D::Error> {
        match json.deserialize_str(AnyScalar)? {
            Scalar::Text(text) => Ok(Self(text)),
            Scalar::Other(_) => Err(de::Error::custom("a name is text")),
        }
    }
}

enum Scalar<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl<'a> Scalar<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(Value::Null) => None,
            Self::Other(other) => Some(Cow::Owned(other.to_string())),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.into_owned()),
            Self::Other(other) => other,
        }
    }
}

impl<'a> Deserialize<'a> for Scalar<'a> {
    fn deserialize<D: Deserializer<'a>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(AnyScalar)
    }
}

struct AnyScalar;

impl<'a> Visitor<'a> for AnyScalar {
    type Value = Scalar<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Other(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Other(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Other(number.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Scalar<'a>, E> {
        Ok(Scalar::Other(Value::Null))
    }

    fn visit_seq<S: SeqAccess<'a>>(self, seq: S) -> Result<Scalar<'a>, S::Error> {
        Value::deserialize(value::SeqAccessDeserializer::new(seq)).map(Scalar::Other)
    }

    fn visit_map<M: MapAccess<'a>>(self, map: M) -> Result<Scalar<'a>, M::Error> {
        Value::deserialize(value::MapAccessDeserializer::new(map)).map(Scalar::Other)
    }
}
