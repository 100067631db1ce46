//! The rows of copies after every write are those of the pure functions that the exploration of all states uses
//! (`grange_model::copy_row`): every row with every answer.

use std::collections::{BTreeMap, HashSet};

use grange_model::{
    AuditAnswer, AuditKind, Ballot, Checksums, CopyRow, FileName, Presence, Sha512, UNREADABLE, UploadState,
    Verdict, vote,
};

use super::archive::{name, start, three};
use super::{Bed, LONG, on_both_engines};
use crate::{Begun, HoldingChange, IfStored, NewFile, Page, Seen, deciding};

on_both_engines! {
    what_a_store_keeps_is_what_the_pure_function_says,
    what_an_audit_keeps_is_what_the_pure_function_and_the_vote_say,
}

const SIZE: u64 = 10;

/// The checksum whose bytes are all `byte`. The recorded one is 0.
fn checksum(byte: u8) -> String {
    deciding(&Checksums { sha512: Some(Sha512([byte; 64])), ..Checksums::default() })
}

fn answers() -> [Option<String>; 5] {
    [None, Some(checksum(0)), Some(checksum(1)), Some(UNREADABLE.to_owned()), Some("size=9".to_owned())]
}

/// Every combination of the columns.
fn every_row() -> Vec<CopyRow<String>> {
    let mut rows = Vec::new();
    for state in [
        UploadState::Unknown,
        UploadState::UploadStarted,
        UploadState::DataUploaded,
        UploadState::UploadCompleted,
        UploadState::UploadFailed,
    ] {
        for presence in [Presence::Unknown, Presence::Ok, Presence::Missing] {
            for verdict in [Verdict::Unknown, Verdict::Ok, Verdict::Corrupt] {
                rows.extend(answers().map(|checksum| CopyRow { state, presence, verdict, checksum }));
            }
        }
    }
    rows
}

/// Enters a file and writes this row for its first copy, by the way that a store takes.
async fn written(bed: &Bed, file: &FileName, row: &CopyRow<String>) {
    let replica = three(bed).await[0].id;
    let new = NewFile {
        name: file.clone(),
        size: SIZE,
        checksums: checksum(0).parse().unwrap(),
        source: Some("here".to_owned()),
    };
    let begun = bed.db.files().begin(new, "me", LONG, IfStored::Skip).await.unwrap();
    let Begun::Claimed(status, claim) = begun else { panic!("{begun:?}") };
    let change = HoldingChange {
        replica_id: replica,
        state: row.state,
        presence: row.presence,
        verdict: row.verdict,
        checksum: row.checksum.clone(),
        attempts: 0,
        last_error: None,
        asked_at: None,
    };
    bed.db.files().advance(&claim, status.file.id, vec![change]).await.unwrap();
    bed.db.work().release(&claim).await.unwrap();
}

/// The rows of a file's copies, in the order of the replicas.
async fn kept(bed: &Bed, file: &FileName) -> Vec<CopyRow<String>> {
    let status = bed.db.files().get(file).await.unwrap().unwrap();
    let row = |one: crate::Holding| CopyRow {
        state: one.state,
        presence: one.presence,
        verdict: one.verdict,
        checksum: one.checksum,
    };
    status.holdings.into_iter().map(row).collect()
}

async fn what_a_store_keeps_is_what_the_pure_function_says(bed: &Bed) {
    for (n, row) in every_row().into_iter().enumerate() {
        let file = name(&format!("f{n:04}"));
        written(bed, &file, &row).await;
        assert_eq!(kept(bed, &file).await[0], row.clone().kept_under(&checksum(0)), "{row:?}");
    }
}

/// What the replica says of a file in the next audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Nothing,
    Listed,
    OtherSize,
    Checksum(u8),
    Unreadable,
}

impl Says {
    fn seen(self, file: &FileName) -> Option<Seen> {
        let (size, checksum) = match self {
            Self::Nothing => return None,
            Self::Listed => (SIZE, None),
            Self::OtherSize => (9, None),
            Self::Checksum(byte) => (SIZE, Some(checksum(byte))),
            Self::Unreadable => (SIZE, Some(UNREADABLE.to_owned())),
        };
        Some(Seen { name: file.clone(), size, checksum })
    }

    fn answer(self) -> AuditAnswer<String> {
        match self {
            Self::Nothing => AuditAnswer::Missing,
            Self::Listed => AuditAnswer::Listed,
            Self::OtherSize => AuditAnswer::Answered("size=9".to_owned()),
            Self::Checksum(byte) => AuditAnswer::Answered(checksum(byte)),
            Self::Unreadable => AuditAnswer::Answered(UNREADABLE.to_owned()),
        }
    }
}

async fn what_an_audit_keeps_is_what_the_pure_function_and_the_vote_say(bed: &Bed) {
    // Only rows that a store can leave; several of those it is given become the same.
    let mut rows: Vec<CopyRow<String>> = Vec::new();
    for row in every_row() {
        let row = row.kept_under(&checksum(0));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let all = [
        Says::Nothing,
        Says::Listed,
        Says::OtherSize,
        Says::Checksum(0),
        Says::Checksum(1),
        Says::Unreadable,
    ];
    let mut cases = BTreeMap::new();
    for row in &rows {
        for says in all {
            let file = name(&format!("f{:04}", cases.len()));
            written(bed, &file, row).await;
            cases.insert(file, (row.clone(), says));
        }
    }
    let replicas = three(bed).await;
    let (page, claim) = start(bed, &replicas[0], AuditKind::Checksum).await;
    let seen = cases.iter().filter_map(|(file, (_, says))| says.seen(file)).collect();
    bed.db.audits().turn_page(&claim, Page { seen, ..page }).await.unwrap();

    let mut outcomes = HashSet::new();
    for (file, (row, says)) in &cases {
        let recorded = checksum(0);
        let mut expected = row.clone().after_audit(says.answer(), &recorded);
        if expected.contradicts(&recorded) && *says != Says::Listed {
            let ballot =
                Ballot { replica: 0, presence: expected.presence, checksum: expected.checksum.clone() };
            for (_, verdict) in vote(&recorded, &[ballot]).verdicts {
                expected = CopyRow { state: verdict.upload_state(), verdict, ..expected };
            }
        }
        assert_eq!(kept(bed, file).await[0], expected, "{row:?} {says:?}");
        outcomes.insert(format!("{expected:?}"));
    }
    assert_eq!((cases.len(), outcomes.len()), (846, 48), "cases and different outcomes");
}
