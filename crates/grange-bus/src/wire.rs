//! The message as it travels. One JSON object, the same on every backend:
//!
//! ```text
//! { "v": 1, "id": "0b6a…", "at": "2026-11-05T12:00:00Z", "from": "node1/scheduler",
//!   "kind": "job-submitted", "subject": "job/42", "body": { … } }
//! ```
//!
//! Readers skip fields they do not know, so adding one keeps `v`. `v` rises only when an old reader would
//! misunderstand; `test_data/compat/v1` keeps messages that must be readable for ever.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;

/// What this program writes, and the highest it reads.
pub const VERSION: u32 = 1;

/// Bytes of a whole encoded message. PostgreSQL takes a notification of less than 8,000 bytes, in which the channel
/// name (at most 200) travels too. The limit is the same on every backend, so that what works in one process also
/// works in a cluster.
pub const MESSAGE_BYTES_MAX: usize = 7_600;

/// A hint or an event: something happened to `subject`; look at its row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    v: u32,
    /// Tells a doubled message from a second one.
    pub id: Uuid,
    /// When it was published, by the sender's clock.
    pub at: Timestamp,
    /// The hop it came from: node and role.
    pub from: String,
    /// What happened, as a stable word: `job-submitted`.
    pub kind: String,
    /// What it happened to: `job/42`.
    pub subject: String,
    /// Details, small: anything large is a row.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

impl Message {
    pub fn new(
        at: Timestamp,
        from: impl Into<String>,
        kind: impl Into<String>,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            v: VERSION,
            id: Uuid::new_v4(),
            at,
            from: from.into(),
            kind: kind.into(),
            subject: subject.into(),
            body: Value::Null,
        }
    }

    #[must_use]
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    /// The version the sender wrote.
    pub fn version(&self) -> u32 {
        self.v
    }

    /// One line of JSON, refused when it is too large for any backend.
    pub fn encode(&self) -> Result<String, Error> {
        let text = serde_json::to_string(self).map_err(Error::Unreadable)?;
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(Error::TooLarge { bytes: text.len(), most: MESSAGE_BYTES_MAX });
        }
        Ok(text)
    }

    pub fn decode(text: &[u8]) -> Result<Self, Error> {
        // The version first: a newer message may lack what this program wants, and that is not damage.
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        let head: Head = serde_json::from_slice(text).map_err(Error::Unreadable)?;
        if head.v > VERSION {
            return Err(Error::Version { version: head.v, known: VERSION });
        }
        serde_json::from_slice(text).map_err(Error::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message() -> Message {
        Message::new(Timestamp::UNIX_EPOCH, "node1/scheduler", "job-submitted", "job/42")
    }

    #[test]
    fn the_first_version_is_still_read() {
        let message = Message::decode(include_bytes!("../test_data/compat/v1/message.json")).unwrap();
        assert_eq!(message.version(), 1);
        assert_eq!(message.id.to_string(), "0b6a3f9e-8f0c-4a51-9d61-2f6a7c1f5e10");
        assert_eq!(message.at.to_string(), "2026-11-05T12:00:00.25Z");
        assert_eq!((message.kind.as_str(), message.subject.as_str()), ("job-submitted", "job/42"));
        assert_eq!(message.from, "node1/scheduler");
        assert_eq!(message.body, json!({ "channel": "FOCUSED", "title": "Dagblade, forår" }));
    }

    /// Field by field as version 1 has it; whoever changes this breaks older nodes.
    #[test]
    fn it_is_written_as_the_first_version() {
        let golden: Value =
            serde_json::from_str(include_str!("../test_data/compat/v1/message.json")).unwrap();
        let message: Message = serde_json::from_value(golden.clone()).unwrap();
        let written: Value = serde_json::from_str(&message.encode().unwrap()).unwrap();
        let mut golden = golden;
        golden.as_object_mut().unwrap().remove("added_later");
        assert_eq!(written, golden);
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        assert_eq!(Message::decode(br#"{"v": 2, "shape": "other"}"#).unwrap_err().code(), "bus-version");
        for damaged in [&b""[..], b"{", b"null", b"{}", br#"{"v": 1}"#, b"\xff\xfe"] {
            assert_eq!(Message::decode(damaged).unwrap_err().code(), "bus-unreadable");
        }
    }

    #[test]
    fn the_limit_counts_encoded_bytes() {
        let bare = message().with_body(json!("")).encode().unwrap().len();
        let room = MESSAGE_BYTES_MAX - bare;
        assert!(message().with_body(json!("x".repeat(room))).encode().is_ok());
        let error = message().with_body(json!("x".repeat(room + 1))).encode().unwrap_err();
        assert_eq!(error.code(), "bus-too-large");
        assert!(message().with_body(json!("ø".repeat(room / 2 + 1))).encode().is_err());
    }
}
