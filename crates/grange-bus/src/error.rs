//! What can go wrong on the bus. Each says what was tried and on what; none carries a password.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use grange_base::{Period, Retry};
use jiff::Timestamp;

type Source = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "bus.url \"{given}\" names no message bus: write local: (one process), postgres: (the database also \
         carries the hints) or nats://HOST:4222"
    )]
    Url { given: String },

    #[error(
        "bus.url is postgres: but the database is not PostgreSQL: set db.url to a postgres:// address, \
         or bus.url to one, or to local:"
    )]
    NoDatabase,

    #[error("cannot read bus.token_file {}: make it readable for this user or take the setting out", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error(
        "cannot reach the message bus at {place} within {}: check that the server runs there and lets us in, or \
         change bus.url", Period(*tried)
    )]
    Unreachable {
        place: String,
        tried: Duration,
        #[source]
        source: Source,
    },

    #[error(
        "\"{given}\" cannot name an environment: write 1 to 40 letters and digits, such as PROD (setting \
         bus.environment)"
    )]
    Environment { given: String },

    #[error("\"{given}\" cannot name a channel: {reason}")]
    Name { given: String, reason: String },

    #[error(
        "a message of {bytes} bytes is too large for the bus, which carries at most {most}: put the data into a \
         row and send its id"
    )]
    TooLarge { bytes: usize, most: usize },

    #[error("a message of version {version} came, this program reads up to {known}: upgrade this node too")]
    Version { version: u32, known: u32 },

    #[error("a message came that cannot be read")]
    Unreadable(#[source] serde_json::Error),

    #[error("cannot publish on {channel}: no connection to {place} since {since}")]
    Disconnected { channel: String, place: String, since: Timestamp },

    #[error("cannot publish on {channel} at {place}")]
    Publish {
        channel: String,
        place: String,
        #[source]
        source: Source,
    },

    #[error("cannot publish on {channel}: {place} did not take it within {}", Period(*waited))]
    TimedOut { channel: String, place: String, waited: Duration },

    #[error("cannot listen on {channel} at {place}")]
    Subscribe {
        channel: String,
        place: String,
        #[source]
        source: Source,
    },
}

impl Error {
    pub(crate) fn name(given: &str, reason: &str) -> Self {
        Self::Name { given: given.to_owned(), reason: reason.to_owned() }
    }

    /// Stable: the key of the translation and the field of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "bus-url",
            Self::NoDatabase => "bus-no-database",
            Self::TokenFile { .. } => "bus-token-file",
            Self::Unreachable { .. } => "bus-unreachable",
            Self::Environment { .. } => "bus-environment",
            Self::Name { .. } => "bus-name",
            Self::TooLarge { .. } => "bus-too-large",
            Self::Version { .. } => "bus-version",
            Self::Unreadable(_) => "bus-unreadable",
            Self::Disconnected { .. } => "bus-disconnected",
            Self::Publish { .. } => "bus-publish",
            Self::TimedOut { .. } => "bus-timed-out",
            Self::Subscribe { .. } => "bus-subscribe",
        }
    }

    /// Whether the same call may succeed later.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. }
            | Self::Disconnected { .. }
            | Self::Publish { .. }
            | Self::TimedOut { .. }
            | Self::Subscribe { .. } => Retry::Soon,
            _ => Retry::No,
        }
    }
}
