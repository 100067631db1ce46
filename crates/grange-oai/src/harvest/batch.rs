//! A batch of records against what is known: pure, so that nothing is counted twice and nothing is lost.

use std::collections::HashMap;

use grange_model::oai::{Counts, KnownRecord, RecordRow};
use jiff::Timestamp;
use oaipmh::Record;

use super::judge::{Judge, Verdict};
use super::window::Window;
use crate::store::files::Change;
use crate::store::path::{self, RecordPath};
use crate::store::place::Places;

/// A record with its verdict.
#[derive(Debug)]
pub(super) struct Judged {
    pub identifier: String,
    datestamp: Option<Timestamp>,
    sets: Vec<String>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Stored(Vec<u8>),
    Deleted,
    Unwanted,
}

/// Records of one batch, each identifier once.
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
    pub bytes: usize,
}

/// What has to be done about a batch.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub rows: Vec<RecordRow>,
    pub same: Vec<i64>,
    pub changes: Vec<Change>,
    pub counts: Counts,
    /// Every record came before in this list.
    pub only_seen: bool,
}

/// Warnings of one harvest that are written down; the numbers tell the rest.
pub(super) const WARNINGS_MAX: u64 = 1_000;

impl Batch {
    /// Takes a record in. An error ends the harvest.
    pub(super) fn add(&mut self, record: Record, judge: &Judge, window: &Window) -> Result<(), String> {
        self.delivered += 1;
        let datestamp = record.header.datestamp.map(oaipmh::Datestamp::timestamp);
        self.outside += u64::from(datestamp.is_some_and(|date| window.excludes(date)));
        let content = if record.header.deleted && !record.header.identifier.is_empty() {
            Content::Deleted
        } else {
            match judge.judge(&record) {
                Verdict::Store(content, warning) => {
                    self.warnings.extend(warning);
                    Content::Stored(content)
                }
                Verdict::Unwanted => Content::Unwanted,
                Verdict::Bad(warning) => {
                    self.counts.bad += 1;
                    self.warnings.push(warning);
                    return Ok(());
                }
                Verdict::Fatal(reason) => return Err(reason),
            }
        };
        if let Content::Stored(content) = &content {
            self.bytes += content.len();
        }
        let header = record.header;
        let judged = Judged { identifier: header.identifier, datestamp, sets: header.sets, content };
        if let Some(index) = self.at.get(&judged.identifier) {
            // The same again on one page: the later one counts, unless it is older.
            self.counts.unchanged += 1;
            let before = &mut self.records[*index];
            if judged.datestamp >= before.datestamp {
                *before = judged;
            }
        } else {
            self.at.insert(judged.identifier.clone(), self.records.len());
            self.records.push(judged);
        }
        Ok(())
    }

    pub(super) fn identifiers(&self) -> Vec<&str> {
        self.records.iter().map(|record| record.identifier.as_str()).collect()
    }

    /// The folders of records that are not known, for their counts.
    pub(super) fn new_paths(&self, known: &[KnownRecord], rules: Rules<'_>) -> Vec<RecordPath> {
        let has_file: HashMap<_, _> =
            known.iter().map(|known| (known.identifier.as_str(), !known.filename.is_empty())).collect();
        self.records
            .iter()
            .filter(|record| matches!(record.content, Content::Stored(_)))
            .filter(|record| !has_file.get(record.identifier.as_str()).copied().unwrap_or(false))
            .map(|record| path::of(&record.identifier, rules.prefix, rules.parse_id))
            .collect()
    }

    /// Compares with what is known. `list` is read now, `first_list` began this harvest, `response` dates records
    /// that have no date.
    pub(super) fn compare(
        self,
        known: Vec<KnownRecord>,
        rules: Rules<'_>,
        places: &mut Places,
        lists: (i64, i64),
        response: Timestamp,
    ) -> Work {
        let (first_list, list) = lists;
        let mut known: HashMap<_, _> =
            known.into_iter().map(|known| (known.identifier.clone(), known)).collect();
        let mut work = Work { counts: self.counts, only_seen: !self.records.is_empty(), ..Work::default() };
        for record in self.records {
            let known = known.remove(&record.identifier);
            work.only_seen &= known.as_ref().is_some_and(|known| known.list == list);
            work.take(record, known, rules, places, first_list, response);
        }
        work
    }
}

/// What a repository's rules say about places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'r> {
    pub prefix: &'r str,
    pub parse_id: bool,
}

impl Work {
    fn take(
        &mut self,
        record: Judged,
        known: Option<KnownRecord>,
        rules: Rules<'_>,
        places: &mut Places,
        first_list: i64,
        response: Timestamp,
    ) {
        let datestamp = record.datestamp.unwrap_or(response);
        if let Some(known) = &known
            // Older than what this very harvest brought: a page out of order. Older than what an earlier harvest
            // brought is what the repository has now.
            && known.list >= first_list
            && datestamp < known.datestamp
        {
            self.counts.stale += 1;
            self.same.push(known.id);
            return;
        }
        let Judged { identifier, sets, content, .. } = record;
        let deleted_row = |filename: String| RecordRow {
            identifier: identifier.clone(),
            filename,
            datestamp,
            deleted: true,
            digest: String::new(),
            sets: sets.clone(),
        };
        match (content, known) {
            (Content::Deleted, Some(known)) if known.deleted => {
                self.counts.unchanged += 1;
                self.same.push(known.id);
            }
            (Content::Deleted, known) => {
                self.counts.deleted += 1;
                let filename = known.map(|known| known.filename).unwrap_or_default();
                self.remove(&filename);
                self.rows.push(deleted_row(filename));
            }
            // Accepted before and no longer wanted: it leaves the store.
            (Content::Unwanted, Some(known)) if !known.deleted => {
                self.counts.filtered += 1;
                self.remove(&known.filename);
                self.rows.push(deleted_row(known.filename));
            }
            (Content::Unwanted, known) => {
                self.counts.filtered += 1;
                self.same.extend(known.map(|known| known.id));
            }
            (Content::Stored(content), known) => {
                let digest = digest(&content, &sets);
                match &known {
                    Some(known) if !known.deleted && known.digest == digest => {
                        self.counts.unchanged += 1;
                        self.same.push(known.id);
                        return;
                    }
                    Some(known) if !known.deleted => self.counts.changed += 1,
                    _ => self.counts.new += 1,
                }
                let filename = match known {
                    Some(known) if !known.filename.is_empty() => known.filename,
                    _ => places.assign(&path::of(&identifier, rules.prefix, rules.parse_id)),
                };
                self.changes.push(Change::Write { name: filename.clone(), content });
                self.rows.push(RecordRow { identifier, filename, datestamp, deleted: false, digest, sets });
            }
        }
    }

    fn remove(&mut self, filename: &str) {
        if !filename.is_empty() {
            self.changes.push(Change::Delete { name: filename.to_owned() });
        }
    }
}

/// What a record is compared by: its bytes and its sets. 128 bits of BLAKE3.
fn digest(content: &[u8], sets: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(content);
    for set in sets {
        hasher.update(&[0]);
        hasher.update(set.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use grange_model::oai::HarvestSpec;
    use oaipmh::{Datestamp, Header};

    use super::*;

    const RULES: Rules<'static> = Rules { prefix: "oai_dc", parse_id: true };

    fn record(identifier: &str, date: &str, metadata: Option<&str>) -> Record {
        let header = Header {
            identifier: identifier.to_owned(),
            datestamp: Datestamp::parse(date),
            sets: vec!["s".to_owned()],
            deleted: metadata.is_none(),
        };
        Record { header, metadata: metadata.map(str::to_owned), ..Record::default() }
    }

    fn known(identifier: &str, date: &str, metadata: Option<&str>, list: i64) -> KnownRecord {
        let content = metadata.map(|text| format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}\n"));
        KnownRecord {
            id: 7,
            identifier: identifier.to_owned(),
            filename: "x/1.xml".to_owned(),
            datestamp: Datestamp::parse(date).unwrap().timestamp(),
            deleted: metadata.is_none(),
            digest: content.map(|text| digest(text.as_bytes(), &["s".to_owned()])).unwrap_or_default(),
            list,
        }
    }

    /// The counts and the number of rows and files of one record against what is known of it.
    fn outcome(record: Record, known: Option<KnownRecord>) -> (Counts, usize, usize) {
        let judge = Judge::new(&HarvestSpec::all("oai_dc"), None, None).unwrap();
        let mut batch = Batch::default();
        batch.add(record, &judge, &Window::default()).unwrap();
        let (mut places, now) = (Places::new(5_000), Timestamp::UNIX_EPOCH);
        let work = batch.compare(known.into_iter().collect(), RULES, &mut places, (5, 6), now);
        assert_eq!(work.counts.delivered(), 1, "every record is in one number");
        (work.counts, work.rows.len(), work.changes.len())
    }

    #[test]
    fn every_record_is_one_of_new_changed_unchanged_deleted_stale() {
        let (a, b) = (Some("<a/>"), Some("<b/>"));
        let now = |metadata| record("oai:x:1", "2026-01-02", metadata);
        let was = |date, metadata, list| Some(known("oai:x:1", date, metadata, list));
        let count = Counts::default();
        for (what, record, known, expected) in [
            ("new", now(a), None, (Counts { new: 1, ..count }, 1, 1)),
            ("the same", now(a), was("2026-01-02", a, 4), (Counts { unchanged: 1, ..count }, 0, 0)),
            ("dated anew", now(a), was("2026-01-01", a, 4), (Counts { unchanged: 1, ..count }, 0, 0)),
            ("changed", now(b), was("2026-01-01", a, 4), (Counts { changed: 1, ..count }, 1, 1)),
            ("changed on one date", now(b), was("2026-01-02", a, 4), (Counts { changed: 1, ..count }, 1, 1)),
            ("deleted", now(None), was("2026-01-01", a, 4), (Counts { deleted: 1, ..count }, 1, 1)),
            (
                "deleted before",
                now(None),
                was("2026-01-01", None, 4),
                (Counts { unchanged: 1, ..count }, 0, 0),
            ),
            ("deleted, never seen", now(None), None, (Counts { deleted: 1, ..count }, 1, 0)),
            ("back to life", now(a), was("2026-01-01", None, 4), (Counts { new: 1, ..count }, 1, 1)),
            ("out of order", now(b), was("2026-01-03", a, 5), (Counts { stale: 1, ..count }, 0, 0)),
            ("rolled back", now(b), was("2026-01-03", a, 4), (Counts { changed: 1, ..count }, 1, 1)),
        ] {
            assert_eq!(outcome(record, known), expected, "{what}");
        }
    }

    #[test]
    fn one_identifier_twice_on_a_page_is_stored_once() {
        let judge = Judge::new(&HarvestSpec::all("oai_dc"), None, None).unwrap();
        let mut batch = Batch::default();
        for (date, text) in [("2026-01-01", "<a/>"), ("2026-01-02", "<b/>"), ("2025-01-01", "<c/>")] {
            batch.add(record("oai:x:1", date, Some(text)), &judge, &Window::default()).unwrap();
        }
        let work = batch.compare(Vec::new(), RULES, &mut Places::new(1), (1, 1), Timestamp::UNIX_EPOCH);
        assert_eq!((work.counts.new, work.counts.unchanged, work.rows.len()), (1, 2, 1));
        let [Change::Write { content, .. }] = &work.changes[..] else { panic!("one file") };
        assert!(String::from_utf8_lossy(content).contains("<b/>"));
    }
}
