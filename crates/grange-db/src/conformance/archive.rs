//! What the tables of the archive promise: files, holdings, the log. Audits and repairs have their own files.

use grange_model::{
    AuditKind, Checksums, FileName, LogEvent, LogRecord, Md5, Presence, ReplicaKind, Sha512, UploadState,
    Verdict,
};
use serde_json::json;

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{
    AUDIT_WORK, Adopted, Begun, Claim, Declared, FileFilter, HoldingChange, IfStored, NewFile, Page,
    ReplicaRow, STORE_WORK, Seen, Trouble, deciding,
};

on_both_engines! {
    replicas_are_declared_once_and_an_undeclared_one_is_told,
    a_file_is_claimed_advanced_and_settled,
    other_bytes_are_refused_and_the_same_wait_for_whoever_has_it,
    a_lost_lease_can_neither_advance_nor_settle,
    a_requeued_file_is_due_again,
    the_overview_counts_what_the_rows_say,
    the_source_of_a_file_is_needed_until_a_replica_has_its_bytes,
    the_log_grows_without_gaps_also_when_many_append,
    files_are_listed_by_trouble_and_page_by_page,
}

pub(crate) fn name(text: &str) -> FileName {
    text.parse().unwrap()
}

pub(crate) fn sums(byte: u8) -> Checksums {
    Checksums { sha512: Some(Sha512([byte; 64])), md5: Some(Md5([byte; 16])), ..Checksums::default() }
}

pub(crate) fn new(text: &str, byte: u8) -> NewFile {
    NewFile { name: name(text), size: 10, checksums: sums(byte), source: Some("here".to_owned()) }
}

pub(crate) fn record(event: LogEvent, text: &str) -> LogRecord {
    LogRecord {
        at: jiff::Timestamp::UNIX_EPOCH,
        event,
        name: Some(text.to_owned()),
        checksum: None,
        size: None,
        replica: None,
        by: "anna".to_owned(),
        detail: json!({ "odd": "\u{1}\"ø" }),
    }
}

pub(crate) async fn three(bed: &Bed) -> Vec<ReplicaRow> {
    let kinds = [
        ("one", ReplicaKind::Bitarchive),
        ("two", ReplicaKind::Bitarchive),
        ("three", ReplicaKind::Checksum),
    ];
    let wanted = kinds.iter().map(|(name, kind)| (name.parse().unwrap(), *kind)).collect();
    match bed.db.replicas().declare(wanted).await.unwrap() {
        Declared::Replicas(rows) => rows,
        Declared::Undeclared(rows) => panic!("{rows:?}"),
    }
}

/// Files f0, f1, … with the same answer everywhere, except as told.
pub(crate) async fn adopted(
    bed: &Bed,
    replicas: &[ReplicaRow],
    files: u8,
    other: &[(u8, usize, Option<u8>)],
) {
    let file = |n: u8| {
        let answer = |(index, row): (usize, &ReplicaRow)| {
            let byte = other
                .iter()
                .find(|(f, r, _)| (*f, *r) == (n, index))
                .map_or(Some(n), |(_, _, byte)| *byte)?;
            Some((row.id, deciding(&sums(byte))))
        };
        let held = replicas.iter().enumerate().filter_map(answer).collect();
        Adopted { name: name(&format!("f{n}")), size: 10, checksums: sums(n), held, away: Vec::new() }
    };
    let all = (0..files).map(file).collect();
    assert_eq!(bed.db.files().adopt(all, vec![]).await.unwrap(), u64::from(files));
}

pub(crate) async fn claimed(bed: &Bed, text: &str, byte: u8) -> (crate::FileStatus, Claim) {
    match bed.db.files().begin(new(text, byte), "me", LONG, IfStored::Skip).await.unwrap() {
        Begun::Claimed(status, claim) => (status, claim),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn change(replica_id: i64, state: UploadState, byte: u8) -> HoldingChange {
    HoldingChange {
        replica_id,
        state,
        presence: Presence::Ok,
        verdict: Verdict::Ok,
        checksum: Some(deciding(&sums(byte))),
        attempts: 1,
        last_error: Some("odd \0 text".to_owned()),
        asked_at: Some(jiff::Timestamp::MAX),
    }
}

async fn replicas_are_declared_once_and_an_undeclared_one_is_told(bed: &Bed) {
    // Nodes that start together on a new database.
    let together = tokio::join!(three(bed), three(bed), three(bed), three(bed));
    let rows = three(bed).await;
    assert_eq!(together, (rows.clone(), rows.clone(), rows.clone(), rows.clone()));
    claimed(bed, "a", 1).await;
    let one = vec![("one".parse().unwrap(), ReplicaKind::Checksum)];
    let Declared::Undeclared(left) = bed.db.replicas().declare(one).await.unwrap() else { panic!("taken") };
    assert_eq!(left, rows, "one is of another kind, the others are not there");
    let mut four: Vec<_> = rows.iter().map(|row| (row.name.clone(), row.kind)).collect();
    four.push(("four".parse().unwrap(), ReplicaKind::Bitarchive));
    assert!(
        matches!(bed.db.replicas().declare(four).await.unwrap(), Declared::Replicas(rows) if rows.len() == 4)
    );
    let status = bed.db.files().get(&name("a")).await.unwrap().unwrap();
    assert_eq!(status.holdings.len(), 4, "a new replica has a row for every file");
    assert_eq!(bed.db.files().count().await.unwrap(), 1);
}

async fn a_file_is_claimed_advanced_and_settled(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "a", 1).await;
    assert_eq!((status.file.size, status.file.checksums, status.holdings.len()), (10, sums(1), 3));
    assert!(status.holdings.iter().all(|one| one.state == UploadState::Unknown));
    let files = bed.db.files();
    let done = record(LogEvent::Stored, "a");
    assert!(!files.settle(&claim, status.file.id, Some(done.clone())).await.unwrap());
    for row in &rows {
        let change = change(row.id, UploadState::UploadCompleted, 1);
        files.advance(&claim, status.file.id, vec![change]).await.unwrap();
    }
    assert!(files.settle(&claim, status.file.id, Some(done.clone())).await.unwrap());
    assert_eq!(bed.db.work().find(STORE_WORK, "a").await.unwrap(), None, "it left the queue");
    let stored = files.get(&name("a")).await.unwrap().unwrap();
    assert!(stored.proven() && stored.file.stored_at.is_some() && stored.file.source.is_none());
    assert_eq!(stored.holdings[0].last_error.as_deref(), Some("odd \u{fffd} text"));
    assert!(matches!(files.begin(new("a", 1), "me", LONG, IfStored::Skip).await.unwrap(), Begun::Proven(_)));
    let leaves = bed.db.logbook().of_file("a").await.unwrap();
    assert_eq!(leaves.len(), 1);
    assert_eq!(leaves[0].body, done.canonical());
}

async fn other_bytes_are_refused_and_the_same_wait_for_whoever_has_it(bed: &Bed) {
    three(bed).await;
    let (_, claim) = claimed(bed, "a", 1).await;
    let again = bed.again().await;
    let begun = again.files().begin(new("a", 1), "other", LONG, IfStored::Skip).await.unwrap();
    assert!(matches!(begun, Begun::Busy(_)), "{begun:?}");
    let begun = again.files().begin(new("a", 2), "other", LONG, IfStored::Skip).await.unwrap();
    assert!(matches!(&begun, Begun::Refused(known) if known.checksums == sums(1)), "{begun:?}");
    let other_size = NewFile { size: 11, ..new("a", 1) };
    assert!(matches!(
        again.files().begin(other_size, "other", LONG, IfStored::Skip).await.unwrap(),
        Begun::Refused(_)
    ));
    bed.db.work().release(&claim).await.unwrap();
    assert!(matches!(
        again.files().begin(new("a", 1), "other", LONG, IfStored::Skip).await.unwrap(),
        Begun::Claimed(..)
    ));
}

async fn a_lost_lease_can_neither_advance_nor_settle(bed: &Bed) {
    let rows = three(bed).await;
    let begun = bed.db.files().begin(new("a", 1), "me", SHORT, IfStored::Skip).await.unwrap();
    let Begun::Claimed(status, late) = begun else { panic!("{begun:?}") };
    bed.pass(late.lease_until).await;
    let (_, claim) = claimed(bed, "a", 1).await;
    assert!(claim.token > late.token);
    let changes = vec![change(rows[0].id, UploadState::UploadCompleted, 1)];
    let files = bed.db.files();
    let error = files.advance(&late, status.file.id, changes.clone()).await.unwrap_err();
    assert_eq!(error.code(), "lease-lost");
    let error = files.settle(&late, status.file.id, Some(record(LogEvent::Stored, "a"))).await.unwrap_err();
    assert_eq!(error.code(), "lease-lost");
    files.advance(&claim, status.file.id, changes).await.unwrap();
    assert_eq!(bed.db.logbook().size().await.unwrap(), 0);
}

async fn a_requeued_file_is_due_again(bed: &Bed) {
    three(bed).await;
    let (_, claim) = claimed(bed, "a", 1).await;
    bed.db.files().requeue(&name("a")).await.unwrap();
    assert_eq!(bed.db.work().claim(STORE_WORK, "x", LONG).await.unwrap(), None, "it is at work");
    bed.db.work().fail(&claim, "away", LONG).await.unwrap();
    assert_eq!(bed.db.work().claim(STORE_WORK, "x", LONG).await.unwrap(), None, "it rests");
    bed.db.files().requeue(&name("a")).await.unwrap();
    assert_eq!(bed.db.work().claim(STORE_WORK, "x", LONG).await.unwrap().unwrap().key, "a");
    bed.db.files().requeue(&name("b")).await.unwrap();
    assert_eq!(bed.db.work().claim(STORE_WORK, "x", LONG).await.unwrap().unwrap().key, "b");
}

async fn the_overview_counts_what_the_rows_say(bed: &Bed) {
    let rows = three(bed).await;
    // The copies of f3 are two against the record and one voice for it.
    let other = [(1, 0, Some(99)), (2, 1, None), (3, 0, Some(90)), (3, 1, Some(90))];
    adopted(bed, &rows, 6, &other).await;
    bed.db.audits().vote_all().await.unwrap();
    claimed(bed, "new", 77).await;
    let told: Vec<_> = bed
        .db
        .replicas()
        .overview()
        .await
        .unwrap()
        .iter()
        .map(|one| {
            (
                one.files,
                one.bytes,
                one.completed,
                one.started,
                one.failed,
                one.missing,
                one.corrupt,
                one.undecided,
            )
        })
        .collect();
    assert_eq!(
        told,
        [(6, 60, 4, 1, 2, 0, 1, 1), (5, 50, 4, 1, 2, 1, 0, 1), (6, 60, 6, 1, 0, 0, 0, 0)],
        "files bytes completed started failed missing corrupt undecided"
    );
}

pub(crate) async fn start(bed: &Bed, replica: &ReplicaRow, kind: AuditKind) -> (Page, Claim) {
    let audit = bed.db.audits().start(replica.id, kind, &anna()).await.unwrap();
    let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    assert_eq!(claim.key, audit.id.to_string());
    let page = Page {
        audit: audit.id,
        replica_id: replica.id,
        replica: replica.name.to_string(),
        kind,
        after: None,
        upto: None,
        seen: Vec::new(),
        asked_at: bed.clock.now() + LONG,
        by: "anna".to_owned(),
    };
    (page, claim)
}

pub(crate) fn seen(text: &str, checksum: Option<u8>) -> Seen {
    Seen { name: name(text), size: 10, checksum: checksum.map(|byte| deciding(&sums(byte))) }
}

async fn the_source_of_a_file_is_needed_until_a_replica_has_its_bytes(bed: &Bed) {
    let rows = three(bed).await;
    let (status, claim) = claimed(bed, "f0", 0).await;
    let needed = async || bed.db.files().needed_sources().await.unwrap();
    assert_eq!(needed().await, ["here"]);
    let completed = |row: &ReplicaRow| vec![change(row.id, UploadState::UploadCompleted, 0)];
    bed.db.files().advance(&claim, status.file.id, completed(&rows[2])).await.unwrap();
    assert_eq!(needed().await, ["here"], "a checksum replica has no bytes");
    bed.db.files().advance(&claim, status.file.id, completed(&rows[0])).await.unwrap();
    assert_eq!(needed().await, Vec::<String>::new());
}

async fn the_log_grows_without_gaps_also_when_many_append(bed: &Bed) {
    let appenders = (0..20).map(|n| {
        let db = bed.db.clone();
        tokio::spawn(async move {
            let records = (0..=n % 3).map(|m| record(LogEvent::Checked, &format!("{n}-{m}"))).collect();
            db.logbook().append(records).await.unwrap();
        })
    });
    for appender in appenders.collect::<Vec<_>>() {
        appender.await.unwrap();
    }
    let size = bed.db.logbook().size().await.unwrap();
    let leaves = bed.db.logbook().leaves(0, 1000).await.unwrap();
    assert_eq!(leaves.iter().map(|leaf| leaf.number).collect::<Vec<_>>(), (0..size).collect::<Vec<_>>());
    assert_eq!(size, 39);
    assert_eq!(leaves[0].body, record(LogEvent::Checked, &name_in(&leaves[0].body)).canonical());
    assert_eq!(bed.db.logbook().leaves(30, 5).await.unwrap()[0].number, 30);
    let mark = crate::Checkpoint {
        size,
        at: jiff::Timestamp::UNIX_EPOCH,
        root: "aa".to_owned(),
        public_key: "bb".to_owned(),
        signature: "cc".to_owned(),
    };
    bed.db.logbook().save_checkpoint(mark.clone()).await.unwrap();
    bed.db
        .logbook()
        .save_checkpoint(crate::Checkpoint { root: "dd".to_owned(), ..mark.clone() })
        .await
        .unwrap();
    assert_eq!(bed.db.logbook().checkpoints().await.unwrap(), [mark]);
}

fn name_in(body: &str) -> String {
    serde_json::from_str::<LogRecord>(body).unwrap().name.unwrap()
}

async fn files_are_listed_by_trouble_and_page_by_page(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 5, &[(1, 0, None), (3, 2, None)]).await;
    let listed = async |filter: FileFilter| {
        let files = bed.db.files().list(&filter).await.unwrap();
        assert!(files.iter().all(|one| one.holdings.len() == 3));
        files.iter().map(|one| one.file.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    let all = FileFilter::default();
    assert_eq!(listed(all.clone()).await, "f0 f1 f2 f3 f4");
    assert_eq!(listed(FileFilter { after: Some(name("f1")), limit: 2, ..all.clone() }).await, "f2 f3");
    let missing = FileFilter { trouble: Some(Trouble::Missing), ..all };
    assert_eq!(listed(missing.clone()).await, "f1 f3");
    assert_eq!(listed(FileFilter { replica: Some(rows[0].id), ..missing.clone() }).await, "f1");
    assert_eq!(listed(FileFilter { trouble: Some(Trouble::Unproven), ..missing }).await, "f1 f3");
    let recorded = bed.db.files().recorded(vec![name("f0"), name("nothing")]).await.unwrap();
    assert_eq!((recorded.len(), &recorded["f0"]), (1, &deciding(&sums(0))));
    let sample = bed.db.files().sample(rows[1].id, 0, 3).await.unwrap();
    assert_eq!(sample.len(), 3);
    let from_the_end = bed.db.files().sample(rows[1].id, 999_999, 3).await.unwrap();
    assert_eq!(from_the_end.len(), 3, "a sample that begins at the last file goes on with the first");
    // Known names stay as they are.
    let twice = Adopted { name: name("f0"), size: 99, checksums: sums(9), held: vec![], away: Vec::new() };
    assert_eq!(bed.db.files().adopt(vec![twice], vec![record(LogEvent::Rebuilt, "f0")]).await.unwrap(), 0);
    assert_eq!(bed.db.logbook().size().await.unwrap(), 0);
}
