//! Writing WARC 1.1: records with digests, packed one by one, in files that survive a crash.
//!
//! A [`Series`] names and rolls over files, a [`WarcFile`] is one of them, a [`NewRecord`] is what goes in.
//! A file carries the suffix `.open` until it is closed; after a crash [`recover`] cuts it at the last
//! whole record.

mod copy;
mod file;
mod name;
mod pack;
mod press;
mod record;
mod recover;
mod serial;
mod series;

use std::fmt;

use uuid::Uuid;

pub(crate) use copy::spool;
pub use file::{FileOptions, SyncPolicy, WarcFile, Written};
pub use name::{NameError, NameTemplate};
pub use pack::Compression;
pub use press::Press;
pub use record::{NewRecord, Reread, Truncated};
pub use recover::{Recovered, recover};
pub use series::{Series, SeriesOptions};

/// The suffix of a file that is being written.
pub const OPEN_SUFFIX: &str = ".open";

/// The id of a record, `<urn:uuid:…>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(Uuid);

impl RecordId {
    /// A new random id.
    pub fn random() -> RecordId {
        RecordId(Uuid::new_v4())
    }

    /// Reads an id with or without brackets, if it is a UUID.
    pub fn parse(text: &[u8]) -> Option<RecordId> {
        let text = crate::record::unbracket(text);
        let uuid = text.strip_prefix(b"urn:uuid:").unwrap_or(text);
        Uuid::try_parse_ascii(uuid).ok().map(RecordId)
    }
}

impl From<Uuid> for RecordId {
    fn from(uuid: Uuid) -> RecordId {
        RecordId(uuid)
    }
}

/// As headers write it, in angle brackets.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<urn:uuid:{}>", self.0)
    }
}
