//! One page of a list on its way from the engine to the facts.

use jiff::Timestamp;

use super::counts::Counts;

/// What is known of a record that came again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecord {
    pub id: i64,
    pub identifier: String,
    pub filename: String,
    pub datestamp: Timestamp,
    pub deleted: bool,
    pub digest: String,
    /// The last list it was seen in.
    pub list: i64,
}

/// A record that is new, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub identifier: String,
    pub filename: String,
    pub datestamp: Timestamp,
    pub deleted: bool,
    pub digest: String,
    pub sets: Vec<String>,
    /// Never kept before: nothing of it is to be replaced.
    pub fresh: bool,
}

/// What became of a page. Each identifier is in it once.
#[derive(Clone, Debug, Default)]
pub struct OaiPage {
    /// The list it belongs to.
    pub list: i64,
    pub records: Vec<RecordRow>,
    /// Known records that came again as they are.
    pub same: Vec<i64>,
    /// Folders that got files, and how many they have had now.
    pub folders: Vec<(String, i64)>,
    /// Where to go on after this page; opaque here.
    pub position: String,
    pub pages: u64,
    pub expected: Option<u64>,
    pub counts: Counts,
    /// A line of history each.
    pub warnings: Vec<String>,
}
