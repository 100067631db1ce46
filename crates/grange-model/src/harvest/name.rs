//! Names that people give: of configurations, seed lists, schedules, templates, harvests, trap lists.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A name: 1 to 300 characters, none of them a control character or a slash, no blank at either end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

/// A text that cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{}\" cannot be a name: write 1 to {NAME_CHARS_MAX} characters without line breaks, slashes or blanks at the ends",
    .0.escape_debug()
)]
pub struct NameError(String);

/// As long as NetarchiveSuite keeps names, so that an import loses none.
pub const NAME_CHARS_MAX: usize = 300;

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let count = text.chars().count();
        let odd = |c: char| c.is_control() || c == '/';
        if (1..=NAME_CHARS_MAX).contains(&count) && text.trim() == text && !text.contains(odd) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError(text.chars().take(NAME_CHARS_MAX + 1).collect()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_a_line_a_path_and_a_column() {
        let longest = "å".repeat(NAME_CHARS_MAX);
        for good in ["daily", "Valg 2026 (Folketing)", "dk.dk_default_UnlimitedBytes", &longest] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for bad in ["", " ", " a", "a ", "a\nb", "a/b", "a\0", &long] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
