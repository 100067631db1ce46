//! The `[virus]` part of a template.

use grange_base::{Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and how answers are scanned before they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where clamd listens: `tcp:127.0.0.1:3310` or `unix:/run/clamav/clamd.ctl`. Empty: nothing is scanned.
    pub clamd: String,

    /// What happens to an answer that could not be scanned, because clamd is away, slow or refuses it.
    pub on_unscanned: OnUnscanned,

    /// How much of an answer is shown to clamd. Keep it below clamd's own `StreamMaxLength` (100 MB as delivered).
    /// A longer answer whose beginning is clean counts as not scanned.
    pub max_stream: Size,

    /// How long to wait for a connection; clamd is near.
    pub connect_timeout: Period,

    /// How long one scan may take in all; archives inside archives take their time.
    pub timeout: Period,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            clamd: String::new(),
            on_unscanned: OnUnscanned::Quarantine,
            max_stream: Size::mib(90),
            connect_timeout: Period::from_secs(5),
            timeout: Period::from_secs(60),
        }
    }
}

/// What happens to an answer that could not be scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnscanned {
    /// It is kept as if it were infected, and can be turned back once it was looked at.
    #[default]
    Quarantine,
    /// It is written as any other, and its log line says that it was not scanned.
    Flag,
}
