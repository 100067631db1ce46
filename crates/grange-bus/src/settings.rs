//! The section `bus` of the settings. The doc comments are the reference page.

use std::path::PathBuf;

use grange_base::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channels::Channels;
use crate::error::Error;

/// How roles wake each other. Everything also works, only more slowly, with no message ever arriving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What carries the hints: `local:` within one process, `postgres:` over the connection of `db.url` (a
    /// cluster then needs no further service), `postgres://USER@HOST/NAME` over another database, or
    /// `nats://HOST:4222` (several servers separated by commas, `tls://` for encryption) over NATS.
    pub url: String,

    /// Name of this installation, the first part of every channel name: letters and digits, at most 40. All nodes
    /// of one installation share it; two installations on one server need two names.
    pub environment: String,

    /// How long to try to reach the server at start, and at each later attempt to reach it again.
    pub connect_timeout: Period,

    /// How long publishing may take before the hint is given up. A hint that comes later than this is worth little,
    /// as the worker it should wake also wakes by itself.
    pub publish_timeout: Period,

    /// Messages kept for one slow listener before its oldest are dropped. Any one of them wakes it, so a few
    /// hundred are plenty; each takes at most 8 kB.
    pub buffer_messages: usize,

    /// File with the NATS token, or with the password of the user whom `bus.url` names (`nats://USER@HOST`).
    /// White space around it is ignored.
    pub token_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "local:".to_owned(),
            environment: "GRANGE".to_owned(),
            // A server in the same network answers within milliseconds, one that is starting within seconds.
            connect_timeout: Period::from_secs(5),
            // Above any healthy round trip, below what a person notices in a page that publishes.
            publish_timeout: Period::from_secs(2),
            buffer_messages: 256,
            token_file: None,
        }
    }
}

impl Settings {
    /// The channels of this installation.
    pub fn channels(&self) -> Result<Channels, Error> {
        Channels::new(&self.environment)
    }

    /// The buffer as used: none at all would make every listener deaf.
    pub(crate) fn buffer(&self) -> usize {
        self.buffer_messages.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_default_and_an_unknown_key_is_refused() {
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
        let error = serde_json::from_str::<Settings>(r#"{"utl": "local:"}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `utl`"));
    }

    #[test]
    fn every_setting_is_described() {
        let schema = schemars::schema_for!(Settings);
        let properties = schema.get("properties").and_then(|p| p.as_object()).unwrap();
        assert_eq!(properties.len(), 6);
        for (name, property) in properties {
            assert!(property.get("description").is_some(), "{name}");
        }
    }
}
