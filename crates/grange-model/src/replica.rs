//! Replicas: complete copies of the archive.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::nearest::named;

named! {
    /// What a replica keeps.
    ReplicaKind, "kind of replica" {
        /// The bytes of every file.
        Bitarchive = "bitarchive",
        /// The name and checksums of every file: a voter that costs almost nothing.
        Checksum = "checksum",
    }
}

/// The name of a replica: 1 to 32 lower-case letters, digits and `-`, beginning with a letter. It is also a folder and
/// a part of a channel's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ReplicaName(String);

/// A text that cannot name a replica.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{given}\" cannot name a replica: write 1 to 32 of a-z, 0-9 and -, beginning with a letter, such as one"
)]
pub struct ReplicaNameError {
    given: String,
}

impl ReplicaName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReplicaName {
    type Err = ReplicaNameError;

    fn from_str(text: &str) -> Result<Self, ReplicaNameError> {
        let fits = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.len() <= 32
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if fits { Ok(Self(text.to_owned())) } else { Err(ReplicaNameError { given: text.to_owned() }) }
    }
}

impl fmt::Display for ReplicaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for ReplicaName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_their_folder_or_channel_are_refused() {
        for good in ["one", "a", "kb-aarhus-2"] {
            assert_eq!(good.parse::<ReplicaName>().unwrap().as_str(), good);
        }
        let long = "a".repeat(33);
        for bad in ["", "One", "1one", "-one", "a_b", "a/b", "..", "a b", "å", "one\0", &long] {
            assert!(bad.parse::<ReplicaName>().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<ReplicaName>("\"A\"").is_err());
    }
}
