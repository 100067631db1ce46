//! The `[db]` section of the settings.

use std::path::PathBuf;

use grange_base::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the facts are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The database: `sqlite:PATH` (one machine; a relative path is below the data folder) or
    /// `postgres://USER@HOST:PORT/NAME` (several machines). Put no password here; see `password_file`.
    pub url: String,

    /// A file whose first line is the password for PostgreSQL. Not used for SQLite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,

    /// The most connections held open at once: to PostgreSQL in all, to SQLite for reading (one more writes).
    /// 16 keeps a node's workers and pages busy while six nodes stay below PostgreSQL's default limit of 100.
    pub connections_max: u32,

    /// How long to wait for a connection before giving up: a server that is gone, or all connections in use.
    pub connect_timeout: Period,

    /// How long SQLite waits for another program that is writing to the same file.
    pub busy_timeout: Period,

    /// How often a copy of the SQLite database is put into the folder `backups` below the data folder; `0s` never
    /// does. PostgreSQL is backed up with its own tools.
    pub backup_every: Period,

    /// How many of those copies are kept; older ones are deleted.
    pub backup_keep: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "sqlite:grange.db".to_owned(),
            password_file: None,
            connections_max: 16,
            connect_timeout: Period::from_secs(10),
            busy_timeout: Period::from_secs(10),
            backup_every: Period::from_secs(24 * 60 * 60),
            backup_keep: 7,
        }
    }
}
