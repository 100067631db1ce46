//! Channels: lanes of harvesters. A job waits in one; a harvester serves one or more.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::job::JobId;
use crate::nearest::named;

named! {
    /// What a channel is for.
    ChannelKind, "kind of channel" {
        /// Selective and event harvests.
        Focused = "focused",
        /// Snapshot harvests.
        Snapshot = "snapshot",
    }
}

/// A channel's name: 1 to 64 ASCII letters, digits and `_`. It is part of the names that messages travel by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ChannelName(String);

/// A text that cannot name a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" cannot name a channel: write 1 to 64 of a-z, A-Z, 0-9 and _", .0.escape_debug())]
pub struct ChannelNameError(String);

/// A lane of harvesters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    pub name: ChannelName,
    pub kind: ChannelKind,
    /// The one that harvests of its kind use when none is chosen.
    pub default: bool,
    pub comments: String,
    /// Jobs that wait in it.
    pub waiting: u64,
    /// Harvesters that serve it and live.
    pub harvesters: u64,
}

named! {
    /// What a harvester is doing.
    HarvesterState, "state of a harvester" {
        Idle = "idle",
        Busy = "busy",
        /// Takes no jobs until there is space on its disk again.
        Full = "full",
        /// Finishes what it has and takes nothing new.
        Leaving = "leaving",
    }
}

/// One harvester as the register knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Harvester {
    /// Its node and which of the node's harvesters it is.
    pub name: String,
    pub host: String,
    pub channels: Vec<ChannelName>,
    pub state: HarvesterState,
    pub free_bytes: Option<u64>,
    /// What it has now.
    pub jobs: Vec<JobId>,
    #[schemars(with = "String")]
    pub seen_at: Timestamp,
    pub alive: bool,
}

impl ChannelName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChannelName {
    type Err = ChannelNameError;

    fn from_str(text: &str) -> Result<Self, ChannelNameError> {
        let fits =
            (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if fits { Ok(Self(text.to_owned())) } else { Err(ChannelNameError(text.chars().take(65).collect())) }
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for ChannelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ChannelName {
    fn schema_name() -> Cow<'static, str> {
        "ChannelName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^\\w{1,64}$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_names_fit_into_message_names() {
        for good in ["focused", "SNAPSHOT", "own_2"] {
            assert_eq!(good.parse::<ChannelName>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a-b", "a.b", "å", &"a".repeat(65)] {
            assert!(bad.parse::<ChannelName>().is_err(), "{bad}");
        }
    }
}
