//! The log of everything that happened to files: one record per leaf of a Merkle tree.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::nearest::named;

named! {
    /// What happened.
    LogEvent, "event" {
        /// Every replica is proven to hold the file.
        Stored = "stored",
        /// A stretch of a replica was checked; `detail` says from where to where and what was found.
        Checked = "checked",
        Missing = "missing",
        Corrupt = "corrupt",
        /// The voters were split evenly: people must look.
        Undecided = "undecided",
        /// A copy that answered wrongly was not served.
        Unservable = "unservable",
        Repaired = "repaired",
        /// A copy was taken out and handed to whoever asked.
        Removed = "removed",
        /// Two people corrected the recorded checksum.
        Amended = "amended",
        /// The row was made again from what lies on the replicas.
        Rebuilt = "rebuilt",
        /// A salted challenge between two replicas was answered.
        Challenged = "challenged",
    }
}

/// One record. Its canonical form is what is proven: fields in this order, none left out, no spaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub event: LogEvent,
    /// The file, where it is about one.
    pub name: Option<String>,
    /// The file's checksum, as `algorithm=hex`.
    pub checksum: Option<String>,
    pub size: Option<u64>,
    /// The replica, where it is about one.
    pub replica: Option<String>,
    /// Who asked for it; `grange` for what happens by itself.
    pub by: String,
    pub detail: Value,
}

impl LogRecord {
    /// The bytes that the leaf is made from. `None` never happens: every field can be written as JSON.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_is_fixed_and_reads_back() {
        let record = LogRecord {
            at: Timestamp::UNIX_EPOCH,
            event: LogEvent::Stored,
            name: Some("a \"b\".warc.gz".to_owned()),
            checksum: Some("sha512=00".to_owned()),
            size: Some(7),
            replica: None,
            by: "grange".to_owned(),
            detail: Value::Null,
        };
        let text = record.canonical();
        // Written out: a change here makes every old proof unreadable.
        assert_eq!(
            text,
            r#"{"at":"1970-01-01T00:00:00Z","event":"stored","name":"a \"b\".warc.gz","checksum":"sha512=00","size":7,"replica":null,"by":"grange","detail":null}"#
        );
        assert_eq!(serde_json::from_str::<LogRecord>(&text).unwrap(), record);
    }
}
