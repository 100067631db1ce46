//! What the recorder must know after a crash. It is committed together with the URLs it speaks of.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::files::Lane;

/// The key of the state among the frontier's marks.
pub const MARK: &str = "recorder";

/// The files as the frontier knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The number of the chunk being written, from 1.
    pub chunk: u32,
    /// The number of the next WARC file.
    pub serial: u64,
    /// WARC files being written.
    pub open: Vec<OpenMark>,
    /// WARC files of this chunk that are whole.
    pub closed: Vec<FileEntry>,
    /// How long the log files are.
    pub logs: BTreeMap<String, u64>,
    /// URLs logged in this chunk.
    pub urls: u64,
    /// Set while a chunk is being closed: the name it takes.
    pub rotating: Option<String>,
    /// Set when the crawl had ended: the name of its last chunk.
    #[serde(default)]
    pub ended: Option<String>,
    #[serde(default)]
    pub work: Work,
}

/// What was done over all chunks, for the reports at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Bytes of records before packing.
    pub record_bytes: u64,
    /// The same, packed.
    pub disk_bytes: u64,
    /// By the name of the extractor.
    pub extracted: BTreeMap<Cow<'static, str>, Extracted>,
}

/// What an extractor found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// Documents that it looked into.
    pub uris: u64,
    pub links: u64,
}

/// A WARC file being written, and how much of it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMark {
    pub name: String,
    pub lane: Lane,
    pub chunk: u32,
    pub end: u64,
    pub records: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

/// A file that will not change any more, as the manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    /// Bytes.
    pub size: u64,
    pub sha512: String,
    pub md5: String,
    /// WARC records, the warcinfo record included; lines for a log.
    pub records: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last: Option<Timestamp>,
    /// Whether it holds infected payloads, made harmless.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub viral: bool,
}

impl State {
    pub fn to_mark(&self) -> (String, Vec<u8>) {
        let text = serde_json::to_vec(self).unwrap_or_default();
        (MARK.to_owned(), text)
    }

    /// Reads the state out of the frontier's marks. None if the crawl never came to write.
    pub fn from_marks(marks: &[(String, Vec<u8>)]) -> Result<Option<State>, serde_json::Error> {
        let mark = marks.iter().find(|(key, _)| key == MARK);
        mark.map(|(_, text)| serde_json::from_slice(text)).transpose()
    }
}
