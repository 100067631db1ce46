//! Changes that are made together.

use crate::capture::Capture;
use crate::run::Run;

/// Captures to be added and taken away in one commit.
///
/// ```text
/// let mut batch = Batch::new();
/// batch.add_file("a.warc.gz", Some("12"), captures);
/// index.commit(batch)?;
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    /// Whole files, each by itself so that those known already can be left out.
    pub(crate) files: Vec<FileRows>,
    /// Single captures, whatever file they are in.
    pub(crate) loose: Run,
}

#[derive(Debug)]
pub(crate) struct FileRows {
    pub(crate) name: String,
    pub(crate) rows: Run,
}

impl Batch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all captures of a file. File and job of each capture are set to these. A file that is already in the index is
    /// left out when the batch is committed.
    pub fn add_file(&mut self, name: &str, job: Option<&str>, captures: impl IntoIterator<Item = Capture>) {
        let name = name.replace('\0', "%00");
        let mut rows = Run::of_file(&name, job);
        for mut capture in captures {
            capture.file.clone_from(&name);
            capture.job = job.map(ToOwned::to_owned);
            rows.push_capture(&capture, false);
        }
        self.push_file(name, rows);
    }

    pub(crate) fn push_file(&mut self, name: String, rows: Run) {
        self.files.push(FileRows { name, rows });
    }

    /// Adds one capture, or replaces the one with the same key, time, file and offset.
    pub fn add(&mut self, capture: &Capture) {
        self.loose.push_capture(capture, false);
    }

    /// Takes one capture away: that with the same key, time, file and offset.
    pub fn delete(&mut self, capture: &Capture) {
        self.loose.push_capture(capture, true);
    }
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Files that are in the index now and were not before.
    pub files: u64,
    /// Rows written.
    pub rows: u64,
    /// Files that were already there; nothing of them changed.
    pub known: Vec<String>,
}
