//! Records that were judged, each identifier once: what a page, or a part of a large one, comes to.

use std::collections::HashMap;

use grange_model::oai::Counts;
use jiff::Timestamp;
use oaipmh::{Level, Record};

use super::judge::Verdict;
use super::window::Window;

/// A record with its verdict.
#[derive(Debug)]
pub(super) struct Judged {
    pub identifier: String,
    pub datestamp: Option<Timestamp>,
    pub sets: Vec<String>,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Stored(Vec<u8>),
    Deleted,
    Unwanted,
    /// Delivered and not usable: a copy that is held stays, and the record counts as seen.
    Damaged,
}

/// What was taken in. Records that are bad are numbers and warnings here.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub records: Vec<Judged>,
    at: HashMap<String, usize>,
    pub counts: Counts,
    pub warnings: Vec<String>,
    /// Dated outside of the window.
    pub outside: u64,
    /// Records that were delivered, bad ones included.
    pub delivered: u64,
    /// Records delivered again that came in this batch before.
    pub repeated: u64,
    /// Records delivered whose identifier is missing or may have been altered: one of those held may be meant.
    pub unidentified: u64,
    pub bytes: usize,
    /// Records that end the harvest: how many, and the first one's reason. Each is also a warning.
    pub fatal: Option<(u64, String)>,
}

/// Warnings of one harvest that are written down; the numbers tell the rest.
pub(super) const WARNINGS_MAX: u64 = 1_000;

impl Batch {
    /// Takes a record in, with what was judged of it.
    pub(super) fn add(&mut self, record: Record, verdict: Verdict, window: &Window) {
        self.delivered += 1;
        let datestamp = record.header.datestamp.map(oaipmh::Datestamp::timestamp);
        self.outside += u64::from(datestamp.is_some_and(|date| window.excludes(date)));
        self.unidentified += u64::from(!is_identified(&record));
        let content = match verdict {
            Verdict::Store(content, warning) => {
                self.warnings.extend(warning);
                Content::Stored(content)
            }
            Verdict::Deleted => Content::Deleted,
            Verdict::Unwanted => Content::Unwanted,
            Verdict::Bad(warning) => return self.refuse(record.header.identifier, warning),
            Verdict::Fatal(reason) => {
                self.fatal.get_or_insert_with(|| (0, reason.clone())).0 += 1;
                return self.refuse(record.header.identifier, reason);
            }
        };
        if let Content::Stored(content) = &content {
            self.bytes += content.len();
        }
        let header = record.header;
        let judged = Judged { identifier: header.identifier, datestamp, sets: header.sets, content };
        let Some(index) = self.at.get(&judged.identifier) else { return self.push(judged) };
        let before = &mut self.records[*index];
        self.repeated += 1;
        if matches!(before.content, Content::Damaged) {
            *before = judged;
            return;
        }
        // The same again on one page: the later one counts, unless it is older.
        self.counts.unchanged += 1;
        if judged.datestamp >= before.datestamp {
            *before = judged;
        }
    }

    fn is_known(&self, identifier: &str) -> bool {
        self.at.contains_key(identifier)
    }

    /// Counts and reports a record that cannot be used. An empty identifier: it has none.
    pub(super) fn refuse(&mut self, identifier: String, warning: String) {
        self.repeated += u64::from(self.is_known(&identifier));
        self.counts.bad += 1;
        self.warnings.push(warning);
        self.see(identifier);
    }

    /// An identifier that was listed, whatever became of its record.
    pub(super) fn see(&mut self, identifier: String) {
        if !identifier.is_empty() && !self.is_known(&identifier) {
            self.push(Judged { identifier, datestamp: None, sets: Vec::new(), content: Content::Damaged });
        }
    }

    fn push(&mut self, judged: Judged) {
        self.at.insert(judged.identifier.clone(), self.records.len());
        self.records.push(judged);
    }
}

/// Whether a record's identifier is there and cannot be the work of a repair: those leave blanks, U+FFFD and letters of
/// other encodings behind.
fn is_identified(record: &Record) -> bool {
    let plain = |letter: char| letter.is_ascii() && !letter.is_ascii_whitespace();
    let identifier = &record.header.identifier;
    !identifier.is_empty() && (record.level() != Some(Level::Damage) || identifier.chars().all(plain))
}
