//! The `[replay]` section of the settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use grange_base::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Replay of archived pages, on ports of its own so that they never share an origin with the admin pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where Wayback mode, Memento and the CDX APIs answer. Loopback by default: put a TLS proxy in front before others
    /// may read, on a host name of its own. Port 0 takes a free one.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Where proxy mode answers: browsers that have it as their HTTP proxy see the archive and nothing else.
    #[schemars(with = "String")]
    pub proxy_listen: SocketAddr,
    /// The header in which a front server names the reader, for access rules about users. It must take the header off
    /// what comes from outside. Empty: nobody is named.
    pub user_header: String,
    /// A folder with texts of your own for the pages that readers see: a file FOLDER/da/any.ftl replaces sentences of the
    /// Danish pages, FOLDER/sv brings Swedish ones. What is said now is in the folder bundles of the crate grange-i18n.
    pub texts: Option<PathBuf>,
    /// Work that rewriting one body may take, in bytes examined; a byte that is examined twice counts twice. Pages and
    /// scripts take two to four times their length, so only a body made to keep the server busy needs more than the
    /// default, which is some seconds of one core. Past it the rest of the body is served unrewritten and a log line names
    /// it. 0B: no body is rewritten.
    pub rewrite_budget: Size,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7080)),
            proxy_listen: SocketAddr::from(([127, 0, 0, 1], 7081)),
            user_header: String::new(),
            texts: None,
            rewrite_budget: Size::gib(1),
        }
    }
}
