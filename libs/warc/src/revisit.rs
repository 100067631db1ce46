//! What a revisit record says about the capture it stands for.

use crate::date::Date;
use crate::header::RecordType;
use crate::record::{Record, unbracket};

/// Why a capture was stored as a revisit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The payload is the same as that of an earlier capture.
    IdenticalPayloadDigest,
    /// The server answered that nothing has changed.
    ServerNotModified,
    /// Any other, or none stated.
    Unknown,
}

impl Profile {
    /// Reads a `WARC-Profile`, of any version of the standard.
    pub fn parse(uri: &[u8]) -> Profile {
        let uri = unbracket(uri);
        let name = &uri[memchr::memrchr(b'/', uri).map_or(0, |at| at + 1)..];
        match name.to_ascii_lowercase().as_slice() {
            b"identical-payload-digest" => Profile::IdenticalPayloadDigest,
            b"server-not-modified" => Profile::ServerNotModified,
            _ => Profile::Unknown,
        }
    }

    /// The URI in version 1.1 of the standard; empty if unknown.
    pub const fn uri(self) -> &'static str {
        match self {
            Profile::IdenticalPayloadDigest => {
                "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
            }
            Profile::ServerNotModified => "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
            Profile::Unknown => "",
        }
    }
}

/// What a revisit refers to. Old writers state little of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisit<'a> {
    /// Why it is one.
    pub profile: Profile,
    /// The id of the original record.
    pub refers_to: Option<&'a [u8]>,
    /// The URI under which the original was captured; it may be another one.
    pub target_uri: Option<&'a [u8]>,
    /// When the original was captured.
    pub date: Option<Date>,
}

impl Record<'_> {
    /// What the record refers to, if it is a revisit.
    pub fn revisit(&self) -> Option<Revisit<'_>> {
        if self.kind() != RecordType::Revisit {
            return None;
        }
        let header = self.header();
        Some(Revisit {
            profile: header.get("WARC-Profile").map_or(Profile::Unknown, Profile::parse),
            refers_to: header.get("WARC-Refers-To").map(unbracket),
            target_uri: header.get("WARC-Refers-To-Target-URI").map(unbracket),
            date: header.get("WARC-Refers-To-Date").and_then(Date::parse),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn profiles_of_every_version() {
        for (uri, expected) in [
            (
                "http://netpreserve.org/warc/0.18/revisit/identical-payload-digest",
                Profile::IdenticalPayloadDigest,
            ),
            (
                "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
                Profile::IdenticalPayloadDigest,
            ),
            ("http://netpreserve.org/warc/1.1/revisit/server-not-modified", Profile::ServerNotModified),
            ("<http://netpreserve.org/warc/1.0/revisit/server-not-modified>", Profile::ServerNotModified),
            ("http://example.org/other", Profile::Unknown),
            ("", Profile::Unknown),
        ] {
            assert_eq!(Profile::parse(uri.as_bytes()), expected, "{uri}");
        }
    }
}
