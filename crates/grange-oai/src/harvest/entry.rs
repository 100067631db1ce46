//! What was received, as the journal keeps it: a page, or a part of a large one, with the position behind it.
//!
//! ```text
//! length  u32, little end first     of the head
//! head    JSON                      what Head says
//! content of every stored record, one behind the other
//! ```

use std::borrow::Cow;

use grange_model::oai::Counts;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::batch::{Batch, Content, Judged};
use super::position::{Position, is_zero};

/// One step of a harvest, on its way from the network to files and rows.
#[derive(Debug)]
pub(super) struct Entry {
    /// The list its records came in.
    pub list: i64,
    /// Where to go on behind it; its number is `position.entry`.
    pub position: Position,
    /// Dates records that have no date.
    pub response: Timestamp,
    pub records: Vec<Judged>,
    /// Records that are in no other number: bad ones, and repetitions on one page.
    pub counts: Counts,
    /// Records that came twice in these.
    pub repeated: u64,
    pub warnings: Vec<String>,
    pub page: PagePart,
}

/// Which part of a page an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PagePart {
    pub first: bool,
    pub last: bool,
    /// Some of the page was kept before, so that it is no wonder if all of it is known.
    pub again: bool,
}

#[derive(Serialize, Deserialize)]
struct Head<'e> {
    list: i64,
    position: Cow<'e, Position>,
    response: Timestamp,
    counts: Counts,
    #[serde(default, skip_serializing_if = "is_zero")]
    repeated: u64,
    warnings: Cow<'e, [String]>,
    page: PagePart,
    records: Vec<Line<'e>>,
}

/// Identifier, datestamp, sets, and the bytes of the content.
#[derive(Serialize, Deserialize)]
struct Line<'e>(Cow<'e, str>, Option<Timestamp>, Cow<'e, [String]>, Kind);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Stored(usize),
    Deleted,
    Unwanted,
    Damaged,
}

impl<'e> Line<'e> {
    fn of(record: &'e Judged) -> Self {
        let kind = match &record.content {
            Content::Stored(content) => Kind::Stored(content.len()),
            Content::Deleted => Kind::Deleted,
            Content::Unwanted => Kind::Unwanted,
            Content::Damaged => Kind::Damaged,
        };
        Self(Cow::Borrowed(&record.identifier), record.datestamp, Cow::Borrowed(&record.sets), kind)
    }
}

impl Entry {
    pub(super) fn new(
        list: i64,
        position: Position,
        response: Timestamp,
        batch: Batch,
        page: PagePart,
    ) -> Self {
        let Batch { records, counts, repeated, warnings, .. } = batch;
        Self { list, position, response, records, counts, repeated, warnings, page }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let head = Head {
            list: self.list,
            position: Cow::Borrowed(&self.position),
            response: self.response,
            counts: self.counts,
            repeated: self.repeated,
            warnings: Cow::Borrowed(&self.warnings),
            page: self.page,
            records: self.records.iter().map(Line::of).collect(),
        };
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let mut bytes = Vec::with_capacity(4 + head.len() + self.bytes());
        bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&head);
        for record in &self.records {
            if let Content::Stored(content) = &record.content {
                bytes.extend_from_slice(content);
            }
        }
        bytes
    }

    /// `None` where the bytes are no entry.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (head, mut rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let head: Head<'_> = serde_json::from_slice(head).ok()?;
        let mut records = Vec::with_capacity(head.records.len());
        for Line(identifier, datestamp, sets, kind) in head.records {
            let content = match kind {
                Kind::Stored(length) => {
                    let (content, behind) = rest.split_at_checked(length)?;
                    rest = behind;
                    Content::Stored(content.to_vec())
                }
                Kind::Deleted => Content::Deleted,
                Kind::Unwanted => Content::Unwanted,
                Kind::Damaged => Content::Damaged,
            };
            let (identifier, sets) = (identifier.into_owned(), sets.into_owned());
            records.push(Judged { identifier, datestamp, sets, content });
        }
        Some(Self {
            list: head.list,
            position: head.position.into_owned(),
            response: head.response,
            records,
            counts: head.counts,
            repeated: head.repeated,
            warnings: head.warnings.into_owned(),
            page: head.page,
        })
    }

    /// Bytes of all contents.
    pub(super) fn bytes(&self) -> usize {
        let content = |record: &Judged| match &record.content {
            Content::Stored(content) => content.len(),
            _ => 0,
        };
        self.records.iter().map(content).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::position::Asked;
    use super::*;

    fn entry(records: Vec<Judged>, warnings: Vec<String>) -> Entry {
        Entry {
            list: 7,
            position: Position::start(Asked::everything(), None, 3, Timestamp::UNIX_EPOCH),
            response: Timestamp::UNIX_EPOCH,
            records,
            counts: Counts { bad: 2, ..Counts::default() },
            repeated: 0,
            warnings,
            page: PagePart { first: true, last: false, again: true },
        }
    }

    proptest! {
        #[test]
        fn entries_come_back_as_they_were(
            names in prop::collection::vec(any::<String>(), 0..5),
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 5),
            kinds in prop::collection::vec(0..4_usize, 5),
            cut in any::<prop::sample::Index>(),
        ) {
            let records = names.iter().zip(contents).zip(kinds).map(|((name, content), kind)| Judged {
                identifier: name.clone(),
                datestamp: (kind == 1).then_some(Timestamp::UNIX_EPOCH),
                sets: vec![name.clone()],
                content: [Content::Stored(content), Content::Deleted, Content::Unwanted, Content::Damaged]
                    .into_iter()
                    .nth(kind)
                    .unwrap(),
            });
            let before = entry(records.collect(), names.clone());
            let bytes = before.encode();
            let after = Entry::decode(&bytes).unwrap();
            prop_assert_eq!(format!("{before:?}"), format!("{after:?}"));
            // Cut bytes are no entry, or one that lacks nothing.
            let _ = Entry::decode(&bytes[..cut.index(bytes.len())]);
        }
    }

    /// Never edited: what one release wrote before a crash the next one reads.
    const GOLDEN: &str = r#"{"list":7,"position":{"asked":{"prefix":"oai_dc","set":null,"from":null,"until":null,"method":"list-records","slices":"whole"},"first_response":null,"first_list":3,"list":3,"window":{"from":null,"until":null,"next":null},"token":null,"pages":0,"pages_of_list":0,"empty_pages":0,"records_of_list":0,"size":null,"restarts":0,"windows_broken":false,"doubtful":false,"counts":{"new":0,"changed":0,"unchanged":0,"deleted":0,"bad":0,"filtered":0,"stale":0},"records":0,"bytes":0,"begun":"1970-01-01T00:00:00Z","entry":0,"done":false},"response":"1970-01-01T00:00:00Z","counts":{"new":0,"changed":0,"unchanged":0,"deleted":0,"bad":2,"filtered":0,"stale":0},"warnings":["w"],"page":{"first":true,"last":false,"again":true},"records":[["oai:x:1","1970-01-01T00:00:00Z",["s"],{"stored":4}],["oai:x:2",null,[],"deleted"],["oai:x:3",null,[],"unwanted"]]}"#;

    #[test]
    fn the_form_on_disk_stays() {
        let judged = |identifier: &str, datestamp, sets: &[&str], content| Judged {
            identifier: identifier.to_owned(),
            datestamp,
            sets: sets.iter().map(|set| (*set).to_owned()).collect(),
            content,
        };
        let records = vec![
            judged("oai:x:1", Some(Timestamp::UNIX_EPOCH), &["s"], Content::Stored(b"<a/>".to_vec())),
            judged("oai:x:2", None, &[], Content::Deleted),
            judged("oai:x:3", None, &[], Content::Unwanted),
        ];
        let entry = entry(records, vec!["w".to_owned()]);
        let mut golden = (GOLDEN.len() as u32).to_le_bytes().to_vec();
        golden.extend_from_slice(GOLDEN.as_bytes());
        golden.extend_from_slice(b"<a/>");
        assert_eq!(String::from_utf8_lossy(&entry.encode()), String::from_utf8_lossy(&golden));
        assert_eq!(format!("{:?}", Entry::decode(&golden).unwrap()), format!("{entry:?}"));
    }
}
