//! The `web` section of the settings.

use std::net::SocketAddr;

use grange_base::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The admin pages and the JSON API.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the admin pages and the API listen. Loopback by default: put a TLS proxy in front before
    /// opening it to a network. Port 0 takes a free one.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// How long a log-in lasts at most.
    pub session_lifetime: Period,
    /// How long a log-in lasts without a request.
    pub session_idle: Period,
    /// Whether the session cookie is marked `Secure`. Turn it on behind TLS; browsers then never send the
    /// cookie over plain HTTP.
    pub secure_cookies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            // A working day with some to spare.
            session_lifetime: Period::from_secs(12 * 3600),
            session_idle: Period::from_secs(2 * 3600),
            secure_cookies: false,
        }
    }
}
