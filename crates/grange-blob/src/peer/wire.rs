//! What travels between two nodes: paths, headers and errors. Both sides use this file.
//!
//! ```text
//! GET  MOUNT/files?after=NAME&limit=N   → [Listed]
//! GET  MOUNT/files/NAME                 → bytes; with Range: bytes=N- from there on, bytes=A-B just those
//! PUT  MOUNT/files/NAME                 → how many bytes are there; with the last part: Stored
//! GET  MOUNT/uploads/ID                 → how many bytes are there
//! DELETE MOUNT/uploads/ID               → nothing is kept
//! POST MOUNT/pull/NAME                  → Stored; the body says from where
//! GET  MOUNT/stat/NAME                  → Stat
//! GET  MOUNT/checksum/NAME?algorithms=… → Checksums
//! GET  MOUNT/challenge/NAME?salt=HEX    → Sha512
//! POST MOUNT/remove/NAME                → nothing
//! GET  MOUNT/free                       → Space
//! GET  MOUNT/markers                    → [MarkedPart]
//! POST MOUNT/mark                       → nothing; the body says where and what
//! ```
//!
//! Bytes travel chunked with `Grange-Size` before them and `Grange-Checksum: sha512=…` in the trailer. The trailer of
//! a download is that of the whole file wherever it started, so that a transfer in several parts is proven as one. An
//! upload comes in parts: `Grange-Upload` is its id and `Grange-Offset` where the part begins; only the last part has
//! the trailer.

use grange_model::{Checksums, FileName};
use http::{HeaderName, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How many bytes follow.
pub(crate) const SIZE: HeaderName = HeaderName::from_static("grange-size");
/// Which upload a part belongs to: 32 hexadecimal digits that the sender made up.
pub(crate) const UPLOAD: HeaderName = HeaderName::from_static("grange-upload");
/// Where in the file the part begins.
pub(crate) const OFFSET: HeaderName = HeaderName::from_static("grange-offset");
/// What they sum up to; in the trailer.
pub(crate) const CHECKSUM: HeaderName = HeaderName::from_static("grange-checksum");
/// What the asking side knows of the file.
pub(crate) const EXPECTED: HeaderName = HeaderName::from_static("grange-expected");
/// The server's half of the proof that both share the node token.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("grange-peer-proof");

/// Files per page at most: a megabyte of JSON.
pub(crate) const LIST_MAX: usize = 5_000;

/// What needs no escape in a path segment or a query value (RFC 3986, unreserved).
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

/// A marker to be left.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    pub(crate) part: String,
    pub(crate) text: String,
}

/// An error on its way to the other side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    code: String,
    text: String,
    /// What was known or announced, and what was given or found.
    #[serde(default)]
    sums: Option<[Checksums; 2]>,
    #[serde(default)]
    sizes: Option<[u64; 2]>,
    /// Where a file was to be fetched from, and why it was not.
    #[serde(default)]
    origin: Option<[String; 2]>,
}

impl Fault {
    /// An error that has no more than its text.
    pub(crate) fn plain(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into(), sums: None, sizes: None, origin: None }
    }

    pub(crate) fn of(error: &Error) -> (StatusCode, Self) {
        let plain = Self::plain(error.code(), grange_base::Chain(error).to_string());
        let with = |first: &Checksums, second: &Checksums| Some([*first, *second]);
        match error {
            Error::NotFound { .. } => (StatusCode::NOT_FOUND, plain),
            Error::Conflict { known, given, .. } => {
                (StatusCode::CONFLICT, Self { sums: with(known, given), ..plain })
            }
            Error::WrongChecksum { announced, received, .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, Self { sums: with(announced, received), ..plain })
            }
            Error::WrongSize { announced, received, .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, Self { sizes: Some([*announced, *received]), ..plain })
            }
            Error::OtherBytes { expected, found, .. } => {
                (StatusCode::CONFLICT, Self { sums: with(expected, found), ..plain })
            }
            Error::NoChecksum { .. } | Error::Source { .. } => (StatusCode::BAD_REQUEST, plain),
            Error::ReadOnly { .. } => (StatusCode::FORBIDDEN, plain),
            Error::Full { needed, .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, Self { sizes: needed.map(|needed| [needed, 0]), ..plain })
            }
            Error::Origin { from, reason, .. } => {
                (StatusCode::BAD_GATEWAY, Self { origin: Some([from.clone(), reason.clone()]), ..plain })
            }
            Error::ReadBack { written, read, .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, Self { sums: with(written, read), ..plain })
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, plain),
        }
    }

    /// The error as the asking side tells it: the same one, at that place.
    pub(crate) fn into_error(
        self,
        status: u16,
        doing: String,
        name: Option<&FileName>,
        place: &str,
    ) -> Error {
        let place = place.to_owned();
        let refused = |text: String| Error::Refused { place: place.clone(), doing, status, reason: text };
        let Some(name) = name.cloned() else { return refused(self.text) };
        if let Some([from, reason]) = self.origin {
            let reached = self.code == "blob-origin";
            return Error::Origin { name, from, reason, reached };
        }
        match (self.code.as_str(), self.sums.map(|sums| sums.map(Box::new)), self.sizes) {
            ("blob-not-found", ..) => Error::NotFound { name, place },
            ("blob-conflict", Some([known, given]), _) => Error::Conflict { name, place, known, given },
            ("blob-wrong-checksum", Some([announced, received]), _) => {
                Error::WrongChecksum { name, announced, received }
            }
            ("blob-wrong-size", _, Some([announced, received])) => {
                Error::WrongSize { name, announced, received }
            }
            ("blob-other-bytes", Some([expected, found]), _) => {
                Error::OtherBytes { name, place, expected, found }
            }
            ("blob-no-checksum", ..) => Error::NoChecksum { name },
            ("blob-read-only", ..) => Error::ReadOnly { place },
            ("blob-full", _, sizes) => Error::Full { name, place, needed: sizes.map(|[needed, _]| needed) },
            ("blob-read-back", Some([written, read]), _) => Error::ReadBack { name, place, written, read },
            ("blob-shortage", ..) => Error::Shortage { name, place, reason: self.text },
            ("blob-unreadable", ..) => Error::Unreadable { name, place, reason: self.text },
            _ => refused(self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_arrives_as_the_same_error() {
        let name: FileName = "a".parse().unwrap();
        let sums = || Box::new(Checksums::default());
        let (place, n) = ("there".to_owned(), || name.clone());
        for error in [
            Error::NotFound { name: n(), place: place.clone() },
            Error::Conflict { name: n(), place: place.clone(), known: sums(), given: sums() },
            Error::WrongChecksum { name: n(), announced: sums(), received: sums() },
            Error::WrongSize { name: n(), announced: 1, received: 2 },
            Error::OtherBytes { name: n(), place: place.clone(), expected: sums(), found: sums() },
            Error::NoChecksum { name: n() },
            Error::Full { name: n(), place: place.clone(), needed: Some(3) },
            Error::Full { name: n(), place: place.clone(), needed: None },
            Error::ReadOnly { place: place.clone() },
            Error::ReadBack { name: n(), place: place.clone(), written: sums(), read: sums() },
            Error::Origin {
                name: n(),
                from: "store one".to_owned(),
                reason: "gone".to_owned(),
                reached: true,
            },
            Error::Origin {
                name: n(),
                from: "store one".to_owned(),
                reason: "away".to_owned(),
                reached: false,
            },
        ] {
            let (status, fault) = Fault::of(&error);
            assert!(!status.is_success());
            let fault: Fault = serde_json::from_slice(&serde_json::to_vec(&fault).unwrap()).unwrap();
            let back = fault.into_error(status.as_u16(), "put it".to_owned(), Some(&name), "there");
            assert_eq!((back.code(), back.to_string()), (error.code(), error.to_string()));
        }
        let error = Error::Io { doing: "read", path: "/x".into(), source: std::io::Error::other("worn out") };
        let (status, fault) = Fault::of(&error);
        let back = fault.into_error(status.as_u16(), "get a".to_owned(), Some(&name), "there");
        assert!(
            back.to_string().contains("cannot read /x") && back.to_string().contains("worn out"),
            "{back}"
        );
        assert_eq!(back.retry(), grange_base::Retry::Soon);
    }

    #[test]
    fn names_travel_in_paths() {
        assert_eq!(escaped("a b/?#é~"), "a%20b%2F%3F%23%C3%A9~");
    }
}
