//! What the tables of the archive promise: files, holdings, checks, repairs, the log.

use grange_model::{
    Actor, AuditKind, AuditState, Checksums, FileName, LogEvent, LogRecord, Md5, Presence, RepairKind,
    RepairState, ReplicaKind, Sha512, UploadState, Verdict,
};
use serde_json::json;

use super::{Bed, LONG, SHORT, anna, on_both_engines};
use crate::{
    AUDIT_WORK, Adopted, Amendment, Begun, Claim, Confirmed, Declared, FileFilter, Found, HoldingChange,
    IfStored, NewFile, NewRepair, Page, RepairTurn, ReplicaRow, STORE_WORK, Seen, Trouble, Votes, deciding,
};

on_both_engines! {
    replicas_are_declared_once_and_an_undeclared_one_is_told,
    a_file_is_claimed_advanced_and_settled,
    other_bytes_are_refused_and_the_same_wait_for_whoever_has_it,
    a_lost_lease_can_neither_advance_nor_settle,
    a_requeued_file_is_due_again,
    the_overview_counts_what_the_rows_say,
    a_list_check_finds_missing_and_extra_files,
    a_checksum_check_votes_on_what_differs,
    a_check_of_a_replica_that_lost_everything_goes_on_in_stretches,
    one_check_of_a_kind_runs_at_a_time_and_ends_once,
    the_vote_over_all_decides_ties_and_absences,
    a_record_that_all_copies_contradict_is_put_right_once,
    a_repair_wants_a_second_person,
    the_source_of_a_file_is_needed_until_a_replica_has_its_bytes,
    of_many_who_want_to_perform_a_repair_one_gets_it,
    a_copy_that_comes_back_is_read_by_the_list_check_that_finds_it,
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
        Adopted { name: name(&format!("f{n}")), size: 10, checksums: sums(n), held }
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
        answered: true,
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

async fn a_list_check_finds_missing_and_extra_files(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 5, &[]).await;
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    let wrong = Seen { size: 9, ..seen("f2", None) };
    let first = Page {
        upto: Some("f2".to_owned()),
        seen: vec![seen("a", None), seen("f0", None), wrong],
        ..page.clone()
    };
    let turned = bed.db.audits().turn_page(&claim, first).await.unwrap();
    let found = Found { files: 2, bytes: 19, ok: 1, missing: 1, corrupt: 1, undecided: 0, extra: 1 };
    assert_eq!((turned.position.as_deref(), turned.found), (Some("f2"), found));
    let rest = Page { after: turned.position, seen: vec![seen("f3", None)], ..page.clone() };
    let turned = bed.db.audits().turn_page(&claim, rest).await.unwrap();
    assert_eq!((turned.position, turned.found.ok, turned.found.missing), (None, 1, 1));
    let ended = bed.db.audits().end(&claim, page.audit, AuditState::Done, None, vec![]).await.unwrap();
    assert_eq!((ended.found.missing, ended.found.corrupt, ended.found.extra), (2, 1, 1));
    assert_eq!(ended.position.as_deref(), Some("f2"));
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap().holdings.remove(0);
    assert_eq!((f1.presence, f1.state, f1.checksum), (Presence::Missing, UploadState::UploadFailed, None));
    let f2 = bed.db.files().get(&name("f2")).await.unwrap().unwrap().holdings.remove(0);
    assert_eq!((f2.verdict, f2.checksum.as_deref()), (Verdict::Corrupt, Some("size=9")));
    assert!(bed.db.replicas().list().await.unwrap()[0].listed_at.is_some());
    // Missing once is told once.
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    bed.db.audits().turn_page(&claim, page).await.unwrap();
    let told = bed.db.logbook().of_file("f1").await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
}

async fn a_checksum_check_votes_on_what_differs(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[]).await;
    let (page, claim) = start(bed, &rows[1], AuditKind::Checksum).await;
    let all = vec![seen("f0", Some(0)), seen("f1", Some(50)), seen("f2", Some(2))];
    let turned = bed.db.audits().turn_page(&claim, Page { seen: all, ..page.clone() }).await.unwrap();
    assert_eq!((turned.found.ok, turned.found.corrupt), (2, 1));
    bed.db.audits().end(&claim, page.audit, AuditState::Done, None, vec![]).await.unwrap();
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let verdicts: Vec<_> = f1.holdings.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Ok, Verdict::Corrupt, Verdict::Ok]);
    // The checksum replica says the same as the bad copy: two against two.
    bed.db.audits().observe(f1.file.id, vec![(rows[2].id, Some(deciding(&sums(50))))], "anna").await.unwrap();
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let verdicts: Vec<_> = f1.holdings.iter().map(|one| (one.verdict, one.state)).collect();
    let undecided = (Verdict::Unknown, UploadState::UploadFailed);
    assert_eq!(verdicts, [(Verdict::Ok, UploadState::UploadCompleted), undecided, undecided]);
    let back = vec![(rows[1].id, Some(deciding(&sums(1)))), (rows[2].id, None)];
    let votes = bed.db.audits().observe(f1.file.id, back, "anna").await.unwrap();
    assert_eq!((votes.corrupt, votes.undecided), (0, 0));
    let f1 = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    let states: Vec<_> = f1.holdings.iter().map(|one| (one.state, one.presence)).collect();
    let good = (UploadState::UploadCompleted, Presence::Ok);
    assert_eq!(states, [good, good, (UploadState::UploadFailed, Presence::Missing)]);
}

async fn a_check_of_a_replica_that_lost_everything_goes_on_in_stretches(bed: &Bed) {
    let rows = three(bed).await;
    let many = (0..5_200_u32).map(|n| Adopted {
        name: name(&format!("g{n:05}")),
        size: 1,
        checksums: sums(1),
        held: vec![(rows[0].id, deciding(&sums(1)))],
    });
    assert_eq!(bed.db.files().adopt(many.collect(), vec![]).await.unwrap(), 5_200);
    let (page, claim) = start(bed, &rows[0], AuditKind::Checksum).await;
    let last = Seen { size: 1, ..seen("g05199", Some(1)) };
    let turned =
        bed.db.audits().turn_page(&claim, Page { seen: vec![last.clone()], ..page.clone() }).await.unwrap();
    assert_eq!(
        (turned.position.as_deref(), turned.found.missing, turned.found.ok),
        (Some("g04999"), 5_000, 0)
    );
    let rest = Page { after: turned.position, seen: vec![last], ..page };
    let turned = bed.db.audits().turn_page(&claim, rest).await.unwrap();
    assert_eq!((turned.position, turned.found.missing, turned.found.ok), (None, 199, 1));
    assert_eq!(bed.db.logbook().size().await.unwrap(), 5_199 + 2);
}

async fn one_check_of_a_kind_runs_at_a_time_and_ends_once(bed: &Bed) {
    let rows = three(bed).await;
    let (page, claim) = start(bed, &rows[0], AuditKind::List).await;
    let same = bed.db.audits().start(rows[0].id, AuditKind::List, &anna()).await.unwrap();
    assert_eq!(same.id, page.audit);
    let other = bed.db.audits().start(rows[0].id, AuditKind::Checksum, &anna()).await.unwrap();
    assert_ne!(other.id, page.audit);
    let cancelled = bed.db.audits().cancel(page.audit, &anna()).await.unwrap();
    assert_eq!(cancelled.state, AuditState::Cancelled);
    let error = bed.db.audits().turn_page(&claim, page.clone()).await.unwrap_err();
    assert_eq!(error.code(), "lease-lost");
    assert_eq!(bed.db.audits().cancel(page.audit, &anna()).await.unwrap_err().code(), "not-found");
    assert_eq!(bed.db.audits().list(9).await.unwrap().len(), 2);
    assert!(bed.db.audits().last_start(rows[0].id, AuditKind::Checksum).await.unwrap().is_some());
    let last = bed.db.audits().last_start(rows[0].id, AuditKind::List).await.unwrap();
    assert_eq!(last, None, "a cancelled check does not put off the next");
    assert_eq!(bed.db.audits().last_start(rows[1].id, AuditKind::List).await.unwrap(), None);
    // A check by the calendar gives way to a person's, and never the other way round.
    let system = Actor::system();
    let calendar = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &system).await.unwrap();
    let asked = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &anna()).await.unwrap();
    let given_up = bed.db.audits().get(calendar.id).await.unwrap().unwrap();
    assert_eq!((given_up.state, asked.state), (AuditState::Cancelled, AuditState::Running));
    let again = bed.db.audits().start(rows[1].id, AuditKind::Checksum, &system).await.unwrap();
    assert_eq!(again.id, asked.id);
}

async fn the_vote_over_all_decides_ties_and_absences(bed: &Bed) {
    let rows = three(bed).await;
    let other = [
        (1, 0, Some(90)), // corrupt
        (2, 0, Some(90)),
        (2, 1, Some(90)), // two against two
        (3, 0, None),
        (3, 1, None),
        (3, 2, None),
        (4, 0, Some(90)),
        (4, 1, Some(90)),
        (4, 2, Some(90)), // every copy contradicts the record
    ];
    adopted(bed, &rows, 6, &other).await;
    let votes = bed.db.audits().vote_all().await.unwrap();
    assert_eq!(votes, Votes { files: 6, decided: 1, undecided: 2, nowhere: 1, corrupt: 1 });
    // Voting again finds the same and tells nothing new.
    let size = bed.db.logbook().size().await.unwrap();
    assert_eq!(bed.db.audits().vote_all().await.unwrap(), votes);
    assert_eq!(bed.db.logbook().size().await.unwrap(), size);
    let corrupt = FileFilter { trouble: Some(Trouble::Corrupt), ..FileFilter::default() };
    let names: Vec<_> =
        bed.db.files().list(&corrupt).await.unwrap().iter().map(|one| one.file.name.to_string()).collect();
    assert_eq!(names, ["f1"]);
}

async fn a_record_that_all_copies_contradict_is_put_right_once(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[(1, 0, Some(90)), (1, 1, Some(90)), (1, 2, Some(90)), (2, 0, Some(90))]).await;
    bed.db.audits().vote_all().await.unwrap();
    let undecided = FileFilter { trouble: Some(Trouble::Undecided), ..FileFilter::default() };
    let listed = bed.db.files().list(&undecided).await.unwrap();
    let [status] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(status.file.name.as_str(), "f1");
    let checksums: Checksums = status.holdings[0].checksum.as_deref().unwrap().parse().unwrap();
    let amendment = Amendment {
        file_id: status.file.id,
        was: deciding(&status.file.checksums),
        size: 4711,
        checksums,
        record: record(LogEvent::Amended, "f1"),
    };
    let size = bed.db.logbook().size().await.unwrap();
    assert!(bed.db.files().amend(amendment.clone()).await.unwrap());
    assert!(!bed.db.files().amend(amendment).await.unwrap(), "the row says something else by now");
    assert_eq!(bed.db.logbook().size().await.unwrap(), size + 1);
    let after = bed.db.files().get(&name("f1")).await.unwrap().unwrap();
    assert_eq!((after.file.size, after.file.checksums), (4711, checksums));
    assert!(after.proven(), "{after:?}");
    assert_eq!(bed.db.files().list(&undecided).await.unwrap(), []);
    assert_eq!(
        bed.db.audits().vote_all().await.unwrap().decided,
        1,
        "the other file's copy is still corrupt"
    );
}

async fn a_repair_wants_a_second_person(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file_id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let new = NewRepair {
        file_id,
        replica_id: rows[0].id,
        kind: RepairKind::Corrupt,
        bad_checksum: Some("md5=00".to_owned()),
        new_checksum: None,
        confirmed_by: None,
    };
    let repairs = bed.db.repairs();
    let row = repairs.ask(new.clone(), &anna()).await.unwrap();
    assert_eq!((row.state, row.asked_by.as_str()), (RepairState::Waiting, "anna"));
    assert_eq!(
        repairs.ask(new.clone(), &Actor::new("bert", "web")).await.unwrap().id,
        row.id,
        "one at a time"
    );
    assert!(matches!(repairs.confirm(row.id, &anna()).await.unwrap(), Confirmed::SamePerson(_)));
    let Confirmed::Yes(row) = repairs.confirm(row.id, &Actor::new("bert", "web")).await.unwrap() else {
        panic!()
    };
    assert_eq!((row.state, row.confirmed_by.as_deref()), (RepairState::Confirmed, Some("bert")));
    let RepairTurn::Claimed(_, claim) = repairs.begin(row.id, "me", LONG).await.unwrap() else { panic!() };
    assert!(matches!(repairs.begin(row.id, "other", LONG).await.unwrap(), RepairTurn::Busy(_)));
    let row = repairs.end(&claim, row.id, None, vec![record(LogEvent::Repaired, "f0")]).await.unwrap();
    assert_eq!(row.state, RepairState::Done);
    assert!(matches!(repairs.begin(row.id, "other", LONG).await.unwrap(), RepairTurn::NotDue(_)));
    let late = repairs.end(&claim, row.id, Some("late".to_owned()), Vec::new()).await.unwrap_err();
    assert_eq!((late.code(), bed.db.logbook().size().await.unwrap()), ("lease-lost", 1));
    assert_eq!(repairs.list(Some(RepairState::Waiting), 9).await.unwrap(), []);
    assert_eq!(repairs.list(None, 9).await.unwrap(), std::slice::from_ref(&row));
    let second =
        repairs.ask(NewRepair { confirmed_by: Some("key".to_owned()), ..new }, &anna()).await.unwrap();
    assert!(second.id != row.id && second.state == RepairState::Confirmed);
    assert_eq!(bed.db.logbook().size().await.unwrap(), 1);
    // Nobody has begun with it: whoever looks for such repairs gets it, once.
    let (found, _) = repairs.claim("me", LONG).await.unwrap().unwrap();
    assert_eq!(found.id, second.id);
    assert!(repairs.claim("other", LONG).await.unwrap().is_none());
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

async fn of_many_who_want_to_perform_a_repair_one_gets_it(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 1, &[]).await;
    let file_id = bed.db.files().get(&name("f0")).await.unwrap().unwrap().file.id;
    let new = NewRepair {
        file_id,
        replica_id: rows[0].id,
        kind: RepairKind::Missing,
        bad_checksum: None,
        new_checksum: None,
        confirmed_by: Some("not needed".to_owned()),
    };
    let id = bed.db.repairs().ask(new, &anna()).await.unwrap().id;
    let many = (0..8).map(|n| {
        let db = bed.db.clone();
        tokio::spawn(async move { db.repairs().begin(id, &format!("node{n}"), LONG).await.unwrap() })
    });
    let mut claims = Vec::new();
    for one in many.collect::<Vec<_>>() {
        if let RepairTurn::Claimed(_, claim) = one.await.unwrap() {
            claims.push(claim);
        }
    }
    assert_eq!(claims.len(), 1);
    bed.db.repairs().end(&claims[0], id, None, Vec::new()).await.unwrap();
}

async fn a_copy_that_comes_back_is_read_by_the_list_check_that_finds_it(bed: &Bed) {
    let rows = three(bed).await;
    adopted(bed, &rows, 3, &[(0, 1, None), (1, 1, None)]).await;
    let names: Vec<_> = ["f0", "f1", "f2"].iter().map(|text| name(text)).collect();
    let two = rows[1].id;
    let mut found: Vec<_> =
        bed.db.audits().reappeared(two, names.clone()).await.unwrap().into_iter().collect();
    found.sort();
    assert_eq!(found, ["f0", "f1"], "what was never missing is not read again");
    bed.hand.advance(SHORT);
    let audit = bed.db.audits().start(two, AuditKind::List, &anna()).await.unwrap();
    let claim = bed.db.work().claim(AUDIT_WORK, "me", LONG).await.unwrap().unwrap();
    let seen = |text: &str, checksum: Option<Checksums>| Seen {
        name: name(text),
        size: 10,
        checksum: checksum.as_ref().map(deciding),
    };
    let page = Page {
        audit: audit.id,
        replica_id: two,
        replica: "two".to_owned(),
        kind: AuditKind::List,
        after: None,
        upto: None,
        seen: vec![seen("f0", Some(sums(0))), seen("f1", Some(sums(9))), seen("f2", None)],
        asked_at: bed.clock.now(),
        by: "anna".to_owned(),
    };
    let found = bed.db.audits().turn_page(&claim, page).await.unwrap().found;
    assert_eq!((found.files, found.ok, found.corrupt, found.undecided), (3, 2, 1, 0), "{found:?}");
    let holding = async |text: &str| {
        let status = bed.db.files().get(&name(text)).await.unwrap().unwrap();
        (status.holdings[1].state, status.holdings[1].verdict)
    };
    assert_eq!(holding("f0").await, (UploadState::UploadCompleted, Verdict::Ok));
    assert_eq!(holding("f1").await, (UploadState::UploadFailed, Verdict::Corrupt));
    assert!(bed.db.audits().reappeared(two, names).await.unwrap().is_empty(), "all are read");
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
    let twice = Adopted { name: name("f0"), size: 99, checksums: sums(9), held: vec![] };
    assert_eq!(bed.db.files().adopt(vec![twice], vec![record(LogEvent::Rebuilt, "f0")]).await.unwrap(), 0);
    assert_eq!(bed.db.logbook().size().await.unwrap(), 0);
}
