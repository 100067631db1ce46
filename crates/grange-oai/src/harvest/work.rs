//! A batch of records against what is known: pure, so that nothing is counted twice and nothing is lost.

use std::collections::HashMap;

use grange_model::oai::{Counts, KnownRecord, RecordRow};
use jiff::Timestamp;

use super::batch::{Content, Judged};
use crate::store::files::Change;
use crate::store::path::{self, RecordPath};
use crate::store::place::Places;

/// What has to be done about a batch.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub rows: Vec<RecordRow>,
    pub same: Vec<i64>,
    pub changes: Vec<Change>,
    pub counts: Counts,
    /// Every record came before in this list; true of none.
    pub only_seen: bool,
    /// Records that came before in this list.
    pub repeated: u64,
}

/// What a repository's rules say about places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'r> {
    pub prefix: &'r str,
    pub parse_id: bool,
}

/// The places of records that have none yet, for the counts of their folders.
pub(super) fn new_paths<'b>(
    records: impl Iterator<Item = &'b Judged>,
    known: &HashMap<String, KnownRecord>,
    rules: Rules<'_>,
) -> Vec<RecordPath> {
    let has_file = |identifier| known.get(identifier).is_some_and(|known| !known.filename.is_empty());
    records
        .filter(|record| matches!(record.content, Content::Stored(_)) && !has_file(&record.identifier))
        .map(|record| path::of(&record.identifier, rules.prefix, rules.parse_id))
        .collect()
}

/// Compares a batch with what is known, which is used up. `first_list` began this harvest, `list` is read now,
/// `response` dates records that have no date.
pub(super) fn compare(
    records: Vec<Judged>,
    known: &mut HashMap<String, KnownRecord>,
    rules: Rules<'_>,
    places: &mut Places,
    lists: (i64, i64),
    response: Timestamp,
) -> Work {
    let (first_list, list) = lists;
    let mut work = Work { only_seen: true, ..Work::default() };
    for record in records {
        let known = known.remove(&record.identifier);
        let came_before = known.as_ref().is_some_and(|known| known.list == list);
        work.only_seen &= came_before;
        work.repeated += u64::from(came_before);
        work.take(record, known, rules, places, first_list, response);
    }
    work
}

/// The files of records whose rows are kept already, for files that may not have outlived the machine.
pub(super) fn mend(records: Vec<Judged>, known: &HashMap<String, KnownRecord>) -> Vec<Change> {
    let again = |record: Judged| {
        let known = known.get(&record.identifier).filter(|known| !known.filename.is_empty())?;
        let name = known.filename.clone();
        match record.content {
            // Changed since: a later page of the journal has what it is now, or its files were synced.
            Content::Stored(content) => (!known.deleted && known.digest == digest(&content, &record.sets))
                .then_some(Change::Write { name, content }),
            Content::Deleted | Content::Unwanted => known.deleted.then_some(Change::Delete { name }),
            Content::Damaged => None,
        }
    };
    records.into_iter().filter_map(again).collect()
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
            && !matches!(record.content, Content::Damaged)
        {
            self.counts.stale += 1;
            self.same.push(known.id);
            return;
        }
        let fresh = known.is_none();
        let Judged { identifier, sets, content, .. } = record;
        let deleted_row = |filename: String| RecordRow {
            identifier: identifier.clone(),
            filename,
            datestamp,
            deleted: true,
            digest: String::new(),
            sets: sets.clone(),
            fresh,
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
            // In the count of bad ones already. Delivered means seen, whatever is held of it.
            (Content::Damaged, known) => self.same.extend(known.map(|known| known.id)),
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
                self.rows.push(RecordRow {
                    identifier,
                    filename,
                    datestamp,
                    deleted: false,
                    digest,
                    sets,
                    fresh,
                });
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
    use oaipmh::{Datestamp, Header, Record};

    use super::super::batch::Batch;
    use super::super::judge::Judge;
    use super::super::window::Window;
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

    fn batch(records: Vec<Record>) -> Batch {
        let judge = Judge::new(&HarvestSpec::all("oai_dc"), None, None).unwrap();
        let mut batch = Batch::default();
        for record in records {
            let verdict = judge.judge(&record);
            batch.add(record, verdict, &Window::default());
        }
        batch
    }

    /// The counts and the number of rows and files of one record against what is known of it.
    fn outcome(record: Record, known: Option<KnownRecord>) -> (Counts, usize, usize) {
        let (mut places, now) = (Places::new(5_000), Timestamp::UNIX_EPOCH);
        let mut known = known.into_iter().map(|known| (known.identifier.clone(), known)).collect();
        let work = compare(batch(vec![record]).records, &mut known, RULES, &mut places, (5, 6), now);
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
        let dated = [("2026-01-01", "<a/>"), ("2026-01-02", "<b/>"), ("2025-01-01", "<c/>")];
        let batch = batch(dated.map(|(date, text)| record("oai:x:1", date, Some(text))).into());
        assert_eq!((batch.delivered, batch.counts.unchanged), (3, 2));
        let (mut known, mut places) = (HashMap::new(), Places::new(1));
        let work = compare(batch.records, &mut known, RULES, &mut places, (1, 1), Timestamp::UNIX_EPOCH);
        assert_eq!((work.counts.new, work.counts.unchanged, work.rows.len()), (1, 0, 1));
        let [Change::Write { content, .. }] = &work.changes[..] else { panic!("one file") };
        assert!(String::from_utf8_lossy(content).contains("<b/>"));
    }

    #[test]
    fn files_are_mended_where_the_row_says_the_same() {
        let (a, b) = (Some("<a/>"), Some("<b/>"));
        for (what, came, row, expected) in [
            ("the same", a, Some(a), Some(true)),
            ("changed since", a, Some(b), None),
            ("deleted since", a, Some(None), None),
            ("deleted", None, Some(None), Some(false)),
            ("back to life since", None, Some(a), None),
            ("never kept", a, None, None),
        ] {
            let known = row.map(|metadata| known("oai:x:1", "2026-01-01", metadata, 4));
            let known = known.into_iter().map(|known| (known.identifier.clone(), known)).collect();
            let changes = mend(batch(vec![record("oai:x:1", "2026-01-01", came)]).records, &known);
            let writes = changes.first().map(|change| matches!(change, Change::Write { .. }));
            assert_eq!(writes, expected, "{what}");
        }
    }
}
